"""Tables of Spark's catalog as input and output of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.cli.conftest import Run


@pytest.fixture
def points(spark: SparkSession) -> Iterator[str]:
    """A table of two groups of rows; whatever the test adds to its schema is removed, too."""
    spark.sql("create schema if not exists places")
    rng = np.random.default_rng(1)
    rows = [(i, float(x), float(y)) for i, (x, y) in enumerate(rng.normal(size=(40, 2)))]
    rows = [(i, x + 9 * (i % 2), y) for i, x, y in rows]
    spark.createDataFrame(rows, "id int, x double, y double").write.saveAsTable("places.points")
    yield "places.points"
    spark.sql("drop schema places cascade")


def test_fit_and_predict_from_table_to_table(
    spark: SparkSession, points: str, run: Run, tmp_path: Path
) -> None:
    found = run("fit", "--table", points, "--k", "2", "--seed", "1", "--output", tmp_path / "out",
                "--output-table", "places.clusters")  # fmt: skip
    assert found.status == 0, found.stderr
    assert found.metrics["n"] == 40
    assert not (tmp_path / "out" / "assignments").exists()
    assert "places.points" in (tmp_path / "out" / "report.html").read_text()
    clusters = spark.table("places.clusters")
    assert clusters.columns == ["id", "prediction", "distance"]
    groups = clusters.selectExpr("id % 2", "prediction").distinct().collect()
    assert len(groups) == 2
    words = ("predict", "--table", points, "--model", tmp_path / "out" / "model")
    found = run(*words, "--output-table", "places.labelled")
    assert found.status == 0, found.stderr
    assert (found.metrics["n"], found.metrics["output"]) == (40, "places.labelled")
    assert spark.table("places.labelled").exceptAll(clusters).isEmpty()
    told = run(*words, "--output-table", "places.labelled").error
    assert "--output-table must be a name that no table has; got 'places.labelled'" in told
    assert run(*words, "--output-table", "places.labelled", "--overwrite").status == 0
    # What is there stays where it is not an earlier output, or if a row cannot be labelled.
    told = run(*words, "--output-table", points, "--overwrite").error
    assert "with the columns prediction and distance; got places.points, with id, x, y" in told
    spark.sql("create table places.bad select id, x, double('nan') y from places.points")
    words = ("predict", "--table", "places.bad", "--model", tmp_path / "out" / "model")
    assert "NaN" in run(*words, "--output-table", "places.labelled", "--overwrite").error
    assert spark.table("places.labelled").count() == 40


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--table", "nowhere.points"), "nowhere"),
        (("--table", "a", "--input", "b"), "--input and --table exclude each other"),
        ((), "--input (or --table) must be given"),
    ],
)
def test_one_line_for_a_table_that_is_none(
    spark: SparkSession, run: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    assert told in run("fit", *words, "--k", "2", "--output", tmp_path / "out").error
