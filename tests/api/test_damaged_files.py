"""Saved models that are damaged, out of reach or in odd places."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel
from localkmeans_spark.saved_files import literal

REPOSITORY = Path(__file__).resolve().parents[2]
CENTERS = [[0.0, 0.0], [9.0, 8.0], [1.0, 7.0]]


def part(path: Path, folder: str) -> Path:
    return next((path / folder).glob("part-*"))


def without_checksums(path: Path) -> None:
    for checksum in path.rglob(".*.crc"):
        checksum.unlink()


def change_metadata(path: Path, change: Callable[[dict], object]) -> None:
    file = part(path, "metadata")
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    without_checksums(path)


def cut_table(path: Path) -> None:
    file = part(path, "data")
    file.write_bytes(file.read_bytes()[:100])
    without_checksums(path)


def other_centers(path: Path) -> None:
    other = path.with_name("other")
    LocalKMeansModel(CENTERS[:2]).save(other)
    shutil.rmtree(path / "data")
    shutil.copytree(other / "data", path / "data")


def without(key: str) -> Callable[[Path], None]:
    return lambda path: change_metadata(path, lambda saved: saved.pop(key) and saved)


DAMAGE = {
    "no table": (lambda path: part(path, "data").unlink(), "no 'centers' in its data"),
    "no data": (lambda path: shutil.rmtree(path / "data"), "no 'data' in it"),
    "table cut": (cut_table, "a 'data' that Spark cannot read .*is not a Parquet file"),
    "a list": (lambda path: change_metadata(path, lambda saved: [1]), "not one line of JSON"),
    "no line": (lambda path: part(path, "metadata").unlink(), "not one line of JSON"),
    "checksum": (
        lambda path: part(path, "metadata").write_text("edited"),
        "a 'metadata' that Spark cannot read .*Checksum error",
    ),
    "no parameters": (without("paramMap"), "cannot read it .KeyError: 'paramMap'"),
    "its line twice": (
        lambda path: (
            part(path, "metadata").write_text(2 * part(path, "metadata").read_text()),
            without_checksums(path),
        ),
        "not one line of JSON",
    ),
    "format 0": (
        lambda path: change_metadata(path, lambda saved: {**saved, "formatVersion": 0}),
        "no format number",
    ),
    "no format": (without("formatVersion"), "no format number"),
    "fewer centers": (other_centers, r"centers of shape \(2, 2\), not \(3, 2\)"),
    "bad parameter": (
        lambda path: change_metadata(path, lambda saved: {**saved, "paramMap": {"k": 0}}),
        "parameter 'k' must be an integer >= 1",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named(spark, tmp_path, what):
    damage, told = DAMAGE[what]
    path = tmp_path / "model"
    LocalKMeansModel(CENTERS).save(path)
    damage(path)
    with pytest.raises(InvalidInputError, match=told) as caught:
        LocalKMeansModel.load(path)
    message = str(caught.value)
    assert message.startswith(f"LocalKMeansModel: path '{path}' must be a saved LocalKMeansModel;")
    assert message.endswith("restore the directory from a copy.")
    assert "\n" not in message


def test_damage_of_an_estimator_is_named(spark, tmp_path):
    path = tmp_path / "estimator"
    LocalKMeans(initialCenters=CENTERS).save(path)
    part(path, "data").unlink()
    with pytest.raises(InvalidInputError, match="no 'initialCenters' in its data"):
        LocalKMeans.load(path)
    without("hasInitialCenters")(path)
    with pytest.raises(InvalidInputError, match="KeyError: 'hasInitialCenters'"):
        LocalKMeans.load(path)


def test_a_place_out_of_reach_is_told_with_its_cause(spark):
    for act in (LocalKMeansModel.load, LocalKMeans.load, LocalKMeans().save,
                LocalKMeansModel(CENTERS).write().overwrite().save):  # fmt: skip
        with pytest.raises(InvalidInputError, match='No FileSystem for scheme "nosuch"') as caught:
            act("nosuch:///x")
        assert "path 'nosuch:///x' must be" in str(caught.value)


@pytest.mark.parametrize("name", ["a[1]", "b{x}", "c\\d", "*", "what?", "{a,b", "100% [", "\\"])
def test_names_that_look_like_patterns(spark, tmp_path, name):
    LocalKMeansModel([[5.0]]).save(tmp_path / "a1")  # what the pattern a[1] would find
    LocalKMeansModel(CENTERS).save(tmp_path / name)
    assert LocalKMeansModel.load(tmp_path / name).clusterCenters()[1].tolist() == [9.0, 8.0]


def test_the_address_of_a_server_is_no_pattern():
    assert literal("hdfs://[::1]:8020/a[1]") == r"hdfs://[::1]:8020/a\[1\]"
    assert literal("file:/a*") == r"file:/a\*"


def test_another_process_predicts_the_same_bits(spark, blobs, blob_rows, tmp_path):
    model = LocalKMeans(k=3, seed=1, distanceCol="d").fit(blobs)
    model.save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", blob_rows)
    script = tmp_path / "predict.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "import numpy as np\n"
        "from pyspark.sql import SparkSession\n"
        "from pyspark.ml.linalg import Vectors\n"
        "from localkmeans_spark import LocalKMeansModel\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".getOrCreate()\n"
        "model, rows = LocalKMeansModel.load('model'), np.load('rows.npy')\n"
        "df = spark.createDataFrame([(Vectors.dense(row),) for row in rows], ['features'])\n"
        "found = model.transform(df).select('prediction', 'd').collect()\n"
        "np.save('scored.npy', np.array(found, dtype=float))\n"
        "np.save('labels.npy', model.predict(rows))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, script], env=env, cwd=tmp_path, check=True, capture_output=True)
    df = spark.createDataFrame([(Vectors.dense(row),) for row in blob_rows], ["features"])
    here = np.array(model.transform(df).select("prediction", "d").collect(), dtype=float)
    there = np.load(tmp_path / "scored.npy")
    assert there.tobytes() == here.tobytes()
    labels = np.load(tmp_path / "labels.npy")
    assert np.array_equal(labels, model.predict(blob_rows))
    assert np.array_equal(labels, here[:, 0])
