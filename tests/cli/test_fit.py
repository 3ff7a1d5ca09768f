"""fit from the outside: what it writes, what it prints, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

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


def test_everything_is_written(run: Run, spark: SparkSession, blobs: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    told = run(
        "fit", "--input", blobs / "t.csv", "--k", 3, "--seed", 1, "--label-col", "kind",
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
    run: Run, spark: SparkSession, blobs: Path, tmp_path: Path
) -> None:
    costs = []
    for name in ("t.parquet", "t.npz"):
        words = [] if name == "t.npz" else ["--feature-cols", "in.come,age", "--label-col", "kind"]
        told = run(
            "fit", "--input", blobs / name, "--k", 3, "--seed", 1, "--no-report",
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


def test_output_on_another_file_system(
    run: Run, spark: SparkSession, blobs: Path, tmp_path: Path, elsewhere: str
) -> None:
    words = ["--input", blobs / "t.npz", "--k", 3, "--output", f"{elsewhere}/out"]
    for more in (["--no-report"], ["--overwrite"]):
        told = run("fit", *words, *more)
        assert told.status == 0, told.stderr
        assert names(tmp_path / "elsewhere") == ["out"]
    assert {"report.html", "metrics.json"} <= set(names(tmp_path / "elsewhere" / "out"))
    assert len(LocalKMeansModel.load(told.metrics["model"]).clusterCenters()) == 3
    refused = run("fit", *words)
    assert refused.status == 2
    assert "Add --overwrite" in refused.stderr


def test_rows_that_cannot_be_used(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    x = np.repeat([[0.0, 0.0], [9.0, 9.0]], 10, axis=0)
    x[3, 1] = np.nan
    np.savez(tmp_path / "x.npz", X=x, y=np.repeat([0, 1], 10))
    words = ["--input", tmp_path / "x.npz", "--k", 2, "--partitions", 2, "--no-report"]
    told = run("fit", *words, "--output", tmp_path / "out")
    assert told.status == 2
    assert told.lines == []
    assert "1 of 20 rows with null, NaN or infinite" in told.stderr
    assert "--handle-invalid" in told.stderr
    assert names(tmp_path) == ["x.npz"]
    told = run("fit", *words, "--handle-invalid", "keep", "--output", tmp_path / "out")
    assert (told.metrics["n"], told.metrics["n_skipped"]) == (19, 1)
    assert told.metrics["misclustering"] == 0.0
    assert len(pd.read_parquet(tmp_path / "out" / "assignments")) == 20
    assert "cluster 2 holds 1 row that no center is near to" in told.stderr


def test_fewer_distinct_rows_than_clusters(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=[[0.0], [0.0], [5.0], [5.0]])
    told = run("fit", "--input", tmp_path / "x.npz", "--k", 5, "--output", tmp_path / "out")
    assert told.status == 0, told.stderr
    assert (told.metrics["k"], told.metrics["cost"]) == (2, 0.0)
    assert "fit: warning: k=5" in told.stderr


def test_columns_named_like_those_the_job_adds(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    rows = [(i, float(i % 2), 5.0 * (i % 2), "old") for i in range(20)]
    spark.createDataFrame(rows, ["key", "age", "distance", "prediction"]).write.parquet(
        f"{tmp_path}/t.parquet"
    )
    said = run(
        "fit", "--input", tmp_path / "t.parquet", "--k", 2, "--feature-cols", "age,distance",
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
    run: Run,
    spark: SparkSession,
    blobs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("localkmeans_spark.metrics.MAX_LABELS", 20)
    told = run(
        "fit", "--input", blobs / "t.csv", "--k", 3, "--label-col", "name", "--no-report",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert told.status == 0, told.stderr
    assert "misclustering" not in told.metrics
    assert "column 'name' must be a label with at most 20" in told.stderr


def test_as_a_script(blobs: Path, tmp_path: Path) -> None:
    words = ["--input", "t.csv", "--k", "3", "--seed", "1", "--master", "local[2]"]
    job = subprocess.run(
        [sys.executable, SCRIPT, *words, "--output", tmp_path / "out"],
        capture_output=True, text=True, cwd=blobs, check=False,
    )  # fmt: skip
    assert job.returncode == 0, job.stderr
    stderr, lines = job.stderr, job.stdout.splitlines()
    assert json.loads(lines[-1]) == json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert all(line.startswith(("round", " ", "converged", "shift: ")) for line in lines[:-1])
    assert all(line.startswith("fit: ") for line in stderr.splitlines()), stderr


def test_sparse_libsvm_rows_by_cosine(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    # Rows point along feature 3 or along feature 90, whatever their length.
    lines = [f"0 {3 if i % 2 else 90}:{1 + i} 100:0.01" for i in range(40)]
    (tmp_path / "t.libsvm").write_text("\n".join(lines) + "\n")
    told = run(
        "fit", "--input", tmp_path / "t.libsvm", "--k", 2, "--seed", 1,
        "--distance-measure", "cosine", "--output", tmp_path / "out",
    )  # fmt: skip
    assert told.status == 0
    assert (told.metrics["d"], told.metrics["features"]) == (100, ["features"])
    assert told.metrics["cost"] < 1e-3
    model = LocalKMeansModel.load(str(tmp_path / "out" / "model"))
    assert model.summary.clusterSizes == [20, 20]
    assert "cosine distances" in (tmp_path / "out" / "report.html").read_text()


def test_unusable_rows_of_weight_0_are_left_out(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    rows = [f"{i},{i % 3 * 10 + i / 100},{i},1" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,b,w", *rows, "30,,3,0", "31,NaN,3,0"]) + "\n")
    told = run(
        "fit", "--input", tmp_path / "t.csv", "--feature-cols", "a,b", "--weight-col", "w",
        "--k", "3", "--id-cols", "id", "--seed", "1", "--output", tmp_path / "out",
    )  # fmt: skip
    assert told.status == 0, told.stderr
    found = spark.read.parquet(f"{tmp_path}/out/assignments")
    assert sorted(row.id for row in found.collect()) == list(range(30))
