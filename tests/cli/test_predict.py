"""jobs/predict.py: applying a saved model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from localkmeans_spark import LocalKMeans, LocalKMeansModel
from localkmeans_spark.cli.inputs import Table
from localkmeans_spark.cli.predict import sampled

Run = Callable[..., Any]

CENTERS = [[0.0, 0.0], [10.0, 10.0]]


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("predict")
    model = LocalKMeansModel(CENTERS)
    model.write().save(str(place / "by_vector"))
    model.setFeaturesCols(["a.x", "b"]).write().save(str(place / "by_columns"))
    rows = pd.DataFrame({"key": ["p", "q", "r"], "a.x": [0.0, 10.0, 7.0], "b": [3.0, 10.0, 6.0]})
    rows.to_csv(place / "t.csv", index=False)
    rows.rename(columns={"a.x": "u"}).to_csv(place / "other.csv", index=False)
    vectors = [(i, Vectors.dense(x, y)) for i, x, y in rows[["a.x", "b"]].itertuples()]
    spark.createDataFrame(vectors, ["key", "features"]).write.parquet(str(place / "t.parquet"))
    np.savez(place / "nan.npz", X=np.array([[0.0, 3.0], [np.nan, 1.0]]))
    return place


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    ("model", "rows", "words", "keys"),
    [
        ("by_columns", "t.csv", [], ["p", "q", "r"]),
        ("by_vector", "t.csv", ["--feature-cols", "a.x,b"], ["p", "q", "r"]),
        ("by_columns", "other.csv", ["--feature-cols", "u,b", "--id-cols", "key"], ["p", "q", "r"]),
    ],
)
def test_rows_get_their_nearest_center(
    run: Run,
    folder: Path,
    tmp_path: Path,
    model: str,
    rows: str,
    words: list[str],
    keys: list,
) -> None:
    out = tmp_path / "out"
    told = run(
        "predict", "--model", folder / model, "--input", folder / rows, "--output", out, *words
    )
    assert told.status == 0, told.stderr
    found = pd.read_parquet(out).sort_values("key")
    assert list(found.columns) == ["key", "prediction", "distance"]
    assert found["key"].tolist() == keys
    assert found["prediction"].tolist() == [0, 1, 1]
    np.testing.assert_allclose(found["distance"], [3, 0, 5])
    assert told.lines[1].split() == ["1", "2", "66.7%"]
    metrics = told.metrics
    assert {key: metrics[key] for key in ("k", "n", "d")} == {"k": 2, "n": 3, "d": 2}
    assert names(tmp_path) == ["out"]


def test_rows_that_cannot_be_labelled(run: Run, folder: Path, tmp_path: Path) -> None:
    words = ["--model", folder / "by_vector", "--input", folder / "nan.npz"]
    told = run("predict", *words, "--output", tmp_path / "out")
    assert told.status == 2
    assert "free of null, NaN and infinite values" in told.stderr.splitlines()[-1]
    flag = "set --handle-invalid to 'skip' (drop them) or 'keep' (extra cluster k)"
    assert flag in told.stderr.splitlines()[-1]
    assert names(tmp_path) == []
    for rule, labels in (("skip", [0]), ("keep", [0, 2])):
        out = tmp_path / rule
        told = run("predict", *words, "--handle-invalid", rule, "--output", out)
        assert ("cluster 2 holds 1 row that no center is near to" in told.stderr) == (
            rule == "keep"
        )
        assert pd.read_parquet(out).sort_values("id")["prediction"].tolist() == labels


def test_overwrite(run: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--model", folder / "by_columns", "--output", out, "--input"]
    assert run("predict", *words, folder / "t.csv").status == 0
    refused = run("predict", *words, folder / "t.csv")
    assert refused.status == 2
    assert "Add --overwrite" in refused.stderr
    pd.DataFrame({"key": ["z"], "a.x": [1.0], "b": [1.0]}).to_csv(tmp_path / "z.csv", index=False)
    assert run("predict", *words, tmp_path / "z.csv", "--overwrite").status == 0
    assert pd.read_parquet(out)["key"].tolist() == ["z"]
    assert names(tmp_path) == ["out", "z.csv"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--model {0}/nope --input {0}/t.csv", "--model must be a saved model"),
        ("--model {0}/by_columns --input {0}/none.csv", "--input must be an existing"),
        ("--model {0}/by_columns --input {0}/other.csv", "got 'a.x'. It has: key, u, b"),
        ("--model {0}/by_vector --input {0}/t.csv", "It has: key, a.x, b"),
        ("--model {0}/by_vector --input {0}/t.csv --feature-cols b", "2 numbers wide"),
        ("--model {0}/by_vector --input {0}/t.csv --handle-invalid no", "--handle-invalid must be"),
        ("--input {0}/t.csv", "--model must be given"),
    ],
)
def test_slips_end_in_one_line(
    run: Run, folder: Path, tmp_path: Path, words: str, told: str
) -> None:
    found = run("predict", *words.format(folder).split(), "--output", str(tmp_path / "out"))
    last = found.stderr.splitlines()[-1]
    assert (found.status, found.lines) == (2, []), found.stderr
    assert last.startswith("predict: error: ")
    assert told in last
    assert names(tmp_path) == []


def test_rows_of_another_width(run: Run, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    vectors = [(None,), (Vectors.sparse(3, [1], [1.0]),)]
    schema = spark.read.parquet(f"{folder}/t.parquet").select("features").schema
    spark.createDataFrame(vectors, schema).write.parquet(f"{tmp_path}/wide.parquet")
    told = run(
        "predict", "--model", folder / "by_vector", "--input", tmp_path / "wide.parquet",
        "--handle-invalid", "skip", "--output", tmp_path / "out",
    )  # fmt: skip
    assert "2" in told.error and "3" in told.error
    assert names(tmp_path) == ["wide.parquet"]


def test_a_table_of_spark_is_not_replaced(run: Run, folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    shutil.copytree(folder / "t.parquet", table)
    words = ["--model", folder / "by_vector", "--input", folder / "t.parquet", "--overwrite"]
    assert "earlier output of predict" in run("predict", *words, "--output", table).error
    assert names(table) == names(folder / "t.parquet")


def test_an_output_named_like_a_pattern(run: Run, folder: Path, tmp_path: Path) -> None:
    told = run(
        "predict", "--model", folder / "by_vector", "--input", folder / "t.parquet",
        "--output", tmp_path / "out[1]",
    )  # fmt: skip
    assert told.status == 0, told.stderr
    assert (tmp_path / "out[1]" / "_SUCCESS").is_file()


def test_rows_are_drawn_by_any_seed(spark):
    frame = spark.createDataFrame([([float(i)],) for i in range(300)], "features array<double>")
    model = LocalKMeans(initialCenters=[[0.0], [300.0]]).fit(frame)
    table = Table(frame, "features", (), None, None, ())
    rows, clusters = sampled(model, table, 300_000, 2**64 - 1)
    assert len(rows) == len(clusters) < 300
