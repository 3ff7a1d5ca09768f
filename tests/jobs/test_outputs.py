"""Outputs appear complete or not at all, on local disks and elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.outputs import Draft
from jobs.places import HadoopPlace, LocalPlace, find_place, local_path
from localkmeans_spark.errors import InvalidInputError

MARKER = "metrics.json"


def draft(path: object, overwrite: bool = False, keep: tuple[str, ...] = ()) -> Draft:
    return Draft("fit", str(path), overwrite, MARKER, keep)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def publish(spark: SparkSession, path: object, text: str, overwrite: bool = False) -> None:
    with draft(path, overwrite) as job:
        job.begin(spark).child(MARKER).write(text.encode())
        job.publish()


def fail_half_way(spark: SparkSession, job: Draft, error: type[BaseException]) -> None:
    with job:
        job.begin(spark).child("part").write(b"half")
        raise error("stop")


def test_nothing_is_seen_before_it_is_complete(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "out"
    with draft(target) as job:
        job.begin(spark).child(MARKER).write(b"{}")
        assert not target.exists()
        job.publish()
    assert names(target.parent) == ["out"]
    assert (target / MARKER).read_text() == "{}"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_no_trace(
    spark: SparkSession, tmp_path: Path, error: type[BaseException]
) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(error):
        fail_half_way(spark, draft(tmp_path / "a" / "b" / "c" / "out"), error)
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == []


def test_an_earlier_output_stays_unless_replaced(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    publish(spark, target, "first")
    with pytest.raises(InvalidInputError, match="Add --overwrite"):
        draft(target)
    with pytest.raises(ValueError, match="stop"):
        fail_half_way(spark, draft(target, overwrite=True), ValueError)
    assert (target / MARKER).read_text() == "first"
    publish(spark, target, "second", overwrite=True)
    assert (target / MARKER).read_text() == "second"
    assert names(tmp_path) == ["out"]


def test_the_earlier_output_comes_back_when_the_last_step_fails(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    publish(spark, target, "first")
    with draft(target, overwrite=True) as job:
        job.begin(spark).remove()  # now the new directory cannot be moved
        with pytest.raises(FileNotFoundError):
            job.publish()
    assert (target / MARKER).read_text() == "first"
    assert names(tmp_path) == ["out"]


def test_overwrite_spares_what_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "precious.txt").touch()
    (tmp_path / "file").touch()
    for name in ("home", "file"):
        with pytest.raises(InvalidInputError, match="an earlier output of this job"):
            draft(tmp_path / name, overwrite=True)


def test_overwrite_spares_what_is_read(tmp_path: Path) -> None:
    (tmp_path / MARKER).touch()
    (tmp_path / "x.csv").touch()
    for keep in (tmp_path, tmp_path / "x.csv"):
        with pytest.raises(InvalidInputError, match="apart from what is read"):
            draft(tmp_path, overwrite=True, keep=(str(keep),))
    draft(tmp_path, overwrite=True, keep=(f"{tmp_path}2/x.csv",))


def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match="file is not a directory you may write to"):
        draft(tmp_path / "file" / "out")


def test_paths_that_are_surely_local(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert local_path("a/b c") == Path("a/b c")
    assert local_path("file:///a/b") == local_path("file:/a/b") == Path("/a/b")
    assert local_path("hdfs://host/a") is None
    assert local_path("s3a://bucket/a") is None
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert local_path("/a/b") is None
    assert local_path("file:/a/b") == Path("/a/b")


def test_spark_decides_what_an_unsure_path_means(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/nowhere")
    place = find_place(spark, f"{tmp_path}/a b")
    assert isinstance(place, LocalPlace)
    assert place.path == tmp_path / "a b"


def test_other_file_systems(spark: SparkSession, elsewhere: str, tmp_path: Path) -> None:
    target = f"{elsewhere}/deep/out"
    assert isinstance(find_place(spark, target), HadoopPlace)
    publish(spark, target, "first")
    with pytest.raises(InvalidInputError, match="Add --overwrite"), draft(target) as job:
        job.begin(spark)
    with pytest.raises(ValueError, match="stop"):
        fail_half_way(spark, draft(target, overwrite=True), ValueError)
    assert find_place(spark, target).names() == [MARKER]
    publish(spark, target, "second", overwrite=True)
    assert find_place(spark, f"{elsewhere}/deep").names() == ["out"]
    assert (tmp_path / "elsewhere" / "deep" / "out" / MARKER).read_text() == "second"
