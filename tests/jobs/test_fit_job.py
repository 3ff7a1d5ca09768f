"""jobs/fit.py from the outside: what it writes, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from jobs import fit
from localkmeans_spark import LocalKMeansModel

REPOSITORY = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]

SCRIPT = REPOSITORY / "jobs" / "fit.py"
NEEDED_KEYS = {
    "k", "n", "d", "partitions", "local_steps", "n_iter", "n_rounds", "cost", "seconds", "seed",
    "converged", "model", "output",
}  # fmt: skip


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three well separated groups of 100 rows, shuffled, with labels and a name for each row."""
    folder = tmp_path_factory.mktemp("blobs")
    rng = np.random.default_rng(0)
    kinds = rng.permutation(np.repeat(["a", "b", "c"], 100))
    x = rng.normal(size=(300, 2)) + 20 * np.array(["abc".index(kind) for kind in kinds])[:, None]
    table = pd.DataFrame(x, columns=["in.come", "age"])
    table.insert(0, "name", [f"row {i}" for i in range(300)])
    table["kind"] = kinds
    table["w"] = rng.integers(1, 4, 300)
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", index=False)
    np.savez(folder / "t.npz", X=x.astype(np.float32), y=kinds)
    return folder


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_everything_is_written(
    run_here: Run, spark: SparkSession, blobs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    told = run_here(
        fit.main, "--input", blobs / "t.csv", "--k", 3, "--seed", 1, "--label-col", "kind",
        "--weight-col", "w", "--partitions", 3, "--local-steps", 2, "--output", out,
    )  # fmt: skip
    assert told.status == 0, told.stderr
    assert names(out.parent) == ["out"]
    assert {"assignments", "history.csv", "metrics.json", "model", "report.html"} <= set(names(out))

    metrics = told.metrics
    assert set(metrics) >= NEEDED_KEYS
    assert json.loads((out / "metrics.json").read_text()) == metrics
    expected = {"k": 3, "n": 300, "d": 2, "features": ["in.come", "age"], "partitions": 3,
                "local_steps": 2, "seed": 1, "converged": True, "misclustering": 0.0,
                "model": f"{out}/model"}  # fmt: skip
    assert {key: metrics[key] for key in expected} == expected

    table = pd.read_csv(blobs / "t.csv").set_index("name")
    found = pd.read_parquet(out / "assignments").set_index("name").loc[table.index]
    assert list(found.columns) == ["kind", "prediction", "distance"]
    assert found.groupby("kind")["prediction"].nunique().eq(1).all()
    cost = (table["w"] * found["distance"] ** 2).sum()
    assert cost == pytest.approx(metrics["cost"], rel=1e-6)

    model = LocalKMeansModel.load(metrics["model"])
    rows = table[["in.come", "age"]].to_numpy()
    np.testing.assert_array_equal(model.predict(rows), found["prediction"])
    for j, center in enumerate(model.clusterCenters()):
        mine = (found["prediction"] == j).to_numpy()
        mean = np.average(rows[mine], axis=0, weights=table["w"][mine])
        np.testing.assert_allclose(center, mean, rtol=1e-6)

    history = pd.read_csv(out / "history.csv")
    assert len(history) == metrics["n_rounds"]
    assert history["local_steps"][0] == 2
    assert history["inertia"].iloc[-1] == pytest.approx(metrics["cost"])

    assert told.lines[0].split()[:2] == ["round", "iteration"]
    # head, rounds, end, legend, the line of JSON
    assert len(told.lines) == 1 + metrics["n_rounds"] + 3
    assert "features: in.come, age" in told.stderr
    assert told.stderr.count("fit: round ") == metrics["n_rounds"]
    page = (out / "report.html").read_text()
    assert "300 rows of 2\nfeatures in 3" in page
    assert "--seed 1" in page


def test_formats_give_the_same_clusters(
    run_here: Run, spark: SparkSession, blobs: Path, tmp_path: Path
) -> None:
    costs = []
    for name in ("t.csv", "t.parquet", "t.npz"):
        words = [] if name == "t.npz" else ["--feature-cols", "in.come,age", "--label-col", "kind"]
        told = run_here(
            fit.main, "--input", blobs / name, "--k", 3, "--seed", 1, "--no-report",
            "--output", tmp_path / name, *words,
        )  # fmt: skip
        assert told.status == 0, told.stderr
        assert told.metrics["misclustering"] == 0.0
        assert "report.html" not in names(tmp_path / name)
        costs.append(told.metrics["cost"])
    np.testing.assert_allclose(costs, costs[0], rtol=1e-6)
    found = pd.read_parquet(tmp_path / "t.npz" / "assignments")
    assert list(found.columns) == ["id", "label", "prediction", "distance"]
    assert sorted(found["id"]) == list(range(300))


def test_the_seed_told_repeats_the_run(
    run_here: Run, spark: SparkSession, blobs: Path, tmp_path: Path
) -> None:
    words = ["--input", blobs / "t.npz", "--k", 7, "--partitions", 4, "--no-report"]
    first = run_here(fit.main, *words, "--output", tmp_path / "a").metrics
    again = run_here(fit.main, *words, "--seed", first["seed"], "--output", tmp_path / "b").metrics
    assert again["cost"] == first["cost"]
    centers = [LocalKMeansModel.load(run["model"]).clusterCenters() for run in (first, again)]
    np.testing.assert_array_equal(*centers)


def test_output_on_another_file_system(
    run_here: Run, spark: SparkSession, blobs: Path, tmp_path: Path, elsewhere: str
) -> None:
    words = ["--input", blobs / "t.npz", "--k", 3, "--output", f"{elsewhere}/out"]
    for more in ([], ["--overwrite"]):
        told = run_here(fit.main, *words, *more)
        assert told.status == 0, told.stderr
        assert names(tmp_path / "elsewhere") == ["out"]
    assert {"report.html", "metrics.json"} <= set(names(tmp_path / "elsewhere" / "out"))
    assert len(LocalKMeansModel.load(told.metrics["model"]).clusterCenters()) == 3
    refused = run_here(fit.main, *words)
    assert refused.status == 2
    assert "Add --overwrite" in refused.stderr


def test_rows_that_cannot_be_used(run_here: Run, spark: SparkSession, tmp_path: Path) -> None:
    x = np.repeat([[0.0, 0.0], [9.0, 9.0]], 10, axis=0)
    x[3, 1] = np.nan
    np.savez(tmp_path / "x.npz", X=x, y=np.repeat([0, 1], 10))
    words = ["--input", tmp_path / "x.npz", "--k", 2, "--partitions", 2]
    told = run_here(fit.main, *words, "--output", tmp_path / "out")
    assert told.status == 2
    assert told.lines == []
    assert "1 of 20 rows with null, NaN or infinite" in told.stderr
    assert "give --handle-invalid skip" in told.stderr
    assert names(tmp_path) == ["x.npz"]
    for rule, rows in (("skip", 19), ("keep", 20)):
        out = tmp_path / rule
        told = run_here(fit.main, *words, "--handle-invalid", rule, "--output", out)
        assert (told.metrics["n"], told.metrics["n_skipped"]) == (19, 1)
        assert told.metrics["misclustering"] == 0.0
        assert len(pd.read_parquet(out / "assignments")) == rows


def test_fewer_distinct_rows_than_clusters(
    run_here: Run, spark: SparkSession, tmp_path: Path
) -> None:
    np.savez(tmp_path / "x.npz", X=[[0.0], [0.0], [5.0], [5.0]])
    told = run_here(fit.main, "--input", tmp_path / "x.npz", "--k", 5, "--output", tmp_path / "out")
    assert told.status == 0, told.stderr
    assert (told.metrics["k"], told.metrics["cost"]) == (2, 0.0)
    assert "fit: warning: k=5" in told.stderr


def test_columns_named_like_those_the_job_adds(
    run_here: Run, spark: SparkSession, tmp_path: Path
) -> None:
    rows = [(i, float(i % 2), 5.0 * (i % 2), "old") for i in range(20)]
    spark.createDataFrame(rows, ["key", "age", "distance", "prediction"]).write.parquet(
        f"{tmp_path}/t.parquet"
    )
    said = run_here(
        fit.main, "--input", tmp_path / "t.parquet", "--k", 2, "--feature-cols", "age,distance",
        "--no-report", "--output", tmp_path / "out",
    )  # fmt: skip
    assert said.status == 0, said.stderr
    found = pd.read_parquet(tmp_path / "out" / "assignments")
    assert list(found.columns) == ["key", "prediction", "distance"]
    assert found.groupby(found["key"] % 2)["prediction"].nunique().tolist() == [1, 1]
    # The model can label its own rows: its columns have other names than the features.
    model = LocalKMeansModel.load(said.metrics["model"])
    assert model.getPredictionCol() == "prediction"
    rows_again = spark.read.parquet(f"{tmp_path}/t.parquet").drop("prediction")
    assert model.transform(rows_again).count() == 20


def test_a_label_with_too_many_values_costs_only_the_count(
    run_here: Run,
    spark: SparkSession,
    blobs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("localkmeans_spark.metrics.MAX_LABELS", 20)
    told = run_here(
        fit.main, "--input", blobs / "t.csv", "--k", 3, "--label-col", "name",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert told.status == 0, told.stderr
    assert "misclustering" not in told.metrics
    assert "column 'name' must be a label with at most 20" in told.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--input {blobs}/t.csv --k 0 --output out", "--k must be an integer >= 1"),
        ("--input {blobs}/nope.csv --k 2 --output out", "--input must be an existing"),
        ("--input {blobs}/t.csv --k 2 --output {blobs}/t.npz", "must be a path where nothing"),
        ("--input {blobs}/t.csv --k 2 --output {blobs} --overwrite", "apart from what is read"),
        ("--input {blobs}/t.csv --k 2 --output out --config no.toml", "--config must be"),
        ("--input {blobs}/t.csv --k 2 --output out --feature-cols age,x", "It has: name, in.come"),
        ("--input {blobs}/t.csv --k 2 --output out --feature-cols name,age", "must be numeric"),
        ("--input {blobs}/t.csv --k 2 --output out --weight-col name", "must be numeric"),
        ("--input {blobs}/t.csv --k 2 --output out --format parquet", ""),
        ("--input {blobs}/t.csv --k 2 --output /proc/out", "--output must be in a directory that"),
        ("--k 2 --output out", "--input must be given"),
    ],
)
def test_slips_end_in_one_line(
    run_here: Run,
    spark: SparkSession,
    blobs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = names(blobs)
    found = run_here(fit.main, *words.format(blobs=blobs).split())
    errors = [line for line in found.stderr.splitlines() if line.startswith("fit: error: ")]
    assert (found.status, found.lines, len(errors)) == (2, [], 1), found.stderr
    assert told in errors[0]
    assert found.stderr.splitlines()[-1] == errors[0]
    assert names(tmp_path) == []
    assert names(blobs) == before


def test_digits_look_like_images(run_here: Run, spark: SparkSession, tmp_path: Path) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    np.savez(tmp_path / "digits.npz", X=digits.data.astype(np.uint8), y=digits.target)
    told = run_here(
        fit.main, "--input", tmp_path / "digits.npz", "--k", 10, "--seed", 1, "--max-iter", 30,
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert told.metrics["misclustering"] < 0.4
    assert (tmp_path / "out" / "report.html").read_text().count('alt="center of cluster') == 10


def start(*words: object) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", env=environment,
        start_new_session=True,
    )  # fmt: skip


def test_as_a_script(blobs: Path, tmp_path: Path) -> None:
    job = start(
        "--input", blobs / "t.csv", "--k", 3, "--seed", 1, "--master", "local[2]",
        "--output", tmp_path / "out",
    )  # fmt: skip
    stdout, stderr = job.communicate(timeout=250)
    assert job.returncode == 0, stderr
    lines = stdout.splitlines()
    assert json.loads(lines[-1]) == json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert all(line.startswith(("round", " ", "converged", "shift: ")) for line in lines[:-1])
    assert all(line.startswith("fit: ") for line in stderr.splitlines()), stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_told_to_stop_it_leaves_nothing(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    # overlapping noise and tol 0: a fit that is never over in time
    np.savez(tmp_path / "x.npz", X=np.random.default_rng(0).random((20_000, 50), np.float32))
    job = start(
        "--input", tmp_path / "x.npz", "--k", 100, "--max-iter", 100_000, "--tol", 0,
        "--master", "local[2]", "--output", tmp_path / "deep" / "out",
    )  # fmt: skip
    assert job.stderr is not None
    for line in job.stderr:
        if line.startswith("fit: round 2"):
            break
    assert [name[:13] for name in names(tmp_path / "deep")] == [".out.partial-"]
    job.send_signal(number)
    began = time.monotonic()
    stdout, stderr = job.communicate(timeout=120)
    assert time.monotonic() - began < 60
    assert job.returncode == status, stderr
    assert stdout == ""
    assert all(line.startswith("fit: ") for line in stderr.splitlines()), stderr
    assert names(tmp_path) == ["x.npz"]


def test_sparse_libsvm_rows_by_cosine(run_here: Run, tmp_path: Path) -> None:
    # Rows point along feature 3 or along feature 90, whatever their length.
    lines = [f"0 {3 if i % 2 else 90}:{1 + i} 100:0.01" for i in range(40)]
    (tmp_path / "t.libsvm").write_text("\n".join(lines) + "\n")
    told = run_here(
        fit.main, "--input", tmp_path / "t.libsvm", "--k", 2, "--seed", 1,
        "--distance-measure", "cosine", "--output", tmp_path / "out",
    )  # fmt: skip
    assert told.status == 0
    assert (told.metrics["d"], told.metrics["features"]) == (100, ["features"])
    assert told.metrics["cost"] < 1e-3
    model = LocalKMeansModel.load(str(tmp_path / "out" / "model"))
    assert model.summary.clusterSizes == [20, 20]
    assert "cosine distances" in (tmp_path / "out" / "report.html").read_text()


def test_unusable_rows_of_weight_0_are_left_out(
    run_here: Run, spark: SparkSession, tmp_path: Path
) -> None:
    rows = [f"{i},{i % 3 * 10 + i / 100},{i},1" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,b,w", *rows, "30,,3,0", "31,NaN,3,0"]) + "\n")
    told = run_here(
        fit.main, "--input", tmp_path / "t.csv", "--feature-cols", "a,b", "--weight-col", "w",
        "--k", "3", "--id-cols", "id", "--seed", "1", "--output", tmp_path / "out",
    )  # fmt: skip
    assert told.status == 0, told.stderr
    found = spark.read.parquet(f"{tmp_path}/out/assignments")
    assert sorted(row.id for row in found.collect()) == list(range(30))
