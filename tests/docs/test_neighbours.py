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


def test_a_stream_keeps_a_model_fresh_and_goes_on_after_a_batch_without_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    moved = [([10.0, 9.0],)]  # one row, of one cluster: the other stays where it is
    for number, rows in enumerate((POINTS, [], moved)):
        frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
        frame.write.mode("append").json(str(tmp_path / "in"))
        for file in (tmp_path / "in").glob("part-*"):
            file.rename(tmp_path / "in" / f"{number}.json")
    (tmp_path / "in" / "1.json").touch()  # Spark writes no file for no rows
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    names = {"path": str(tmp_path / "model"), "stream": stream.json(str(tmp_path / "in"))}
    exec(compile(block("python"), "NEIGHBOURS.md", "exec"), names)  # noqa: S102
    assert len(names["query"].recentProgress) == 3
    first, last = names["models"]
    low, high = first.predict([[0.5, 0.5], [8.5, 8.5]])
    assert (low, high) == tuple(last.predict([[0.5, 0.5], [8.5, 8.5]]))
    assert last.summary.clusterSizes[high] == 1
    assert last.centers[low].tolist() == [0.5, 0.5] and last.centers[high].tolist() == [10.0, 9.0]
    assert (names["model"].centers == last.centers).all()


def test_mlflow(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    frame = spark.createDataFrame(POINTS, SCHEMA)
    names = {"df": frame.selectExpr("features[0] as x", "features[1] as y")}
    exec(compile(block('python title="MLflow"'), "NEIGHBOURS.md", "exec"), names)  # noqa: S102
    spark_labels = [row.prediction for row in names["loaded"].transform(names["df"]).collect()]
    assert names["labels"].tolist() == spark_labels and len(set(spark_labels)) == 2
