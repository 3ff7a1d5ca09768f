"""The code of docs/NEIGHBOURS.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "NEIGHBOURS.md").read_text()
POINTS = [([0.0, 0.0],), ([1.0, 1.0],), ([9.0, 8.0],), ([8.0, 9.0],)]
SCHEMA = "features array<double>"


def block(language: str) -> str:
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    return code


def test_a_stream_goes_on_after_a_batch_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    for number, rows in enumerate((POINTS, [], POINTS[:3])):
        frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
        frame.write.mode("append").json(str(tmp_path / "in"))
        for file in (tmp_path / "in").glob("part-*"):
            file.rename(tmp_path / "in" / f"{number}.json")
    (tmp_path / "in" / "1.json").touch()  # Spark writes no file for no rows
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    names = {"spark": spark, "stream": stream.json(str(tmp_path / "in"))}
    exec(compile(block("python"), "NEIGHBOURS.md", "exec"), names)  # noqa: S102
    assert [sum(model.summary.clusterSizes) for model in names["found"]] == [4, 3]
    assert len(names["query"].recentProgress) == 3


def test_mlflow(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("mlflow.spark")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    names = {"spark": spark, "df": spark.createDataFrame(POINTS, SCHEMA)}
    exec(compile(block('python title="MLflow"'), "NEIGHBOURS.md", "exec"), names)  # noqa: S102
    assert names["labels"].select("prediction").distinct().count() == 2
