"""Outputs never look whole before they are, and nothing of anybody else's is removed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.outputs import (
    MARKER,
    HadoopPlace,
    LocalPlace,
    Output,
    find_place,
    local_path,
)
from localkmeans_spark.errors import InvalidInputError

LAST = "metrics.json"


def output(path: object, overwrite: bool = False, owner: str = "fit", **read: Any) -> Output:
    return Output(Options(owner=owner, output=str(path), overwrite=overwrite, **read))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def publish(spark: SparkSession, path: object, text: str, overwrite: bool = False) -> None:
    with output(path, overwrite) as job:
        folder = job.begin(spark)
        folder.child("model").create()
        folder.child("model").child("part").write(b"1")
        job.publish(LAST, text.encode())


def fail_half_way(spark: SparkSession, job: Output, error: type[BaseException]) -> None:
    with job:
        job.begin(spark).child("part").write(b"half")
        raise error("stop")


def snapshot(folder: Path) -> dict[str, bytes | None]:
    found = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def test_nothing_is_seen_before_it_is_complete(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "out"
    with output(target) as job:
        job.begin(spark).child("model").write(b"{}")
        assert not target.exists()
        job.publish(LAST, b"{}")
    assert names(target.parent) == ["out"]
    assert names(target) == [MARKER, LAST, "model"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(
    spark: SparkSession, tmp_path: Path, error: type[BaseException]
) -> None:
    with pytest.raises(error):
        fail_half_way(spark, output(tmp_path / "out"), error)
    assert names(tmp_path) == []


def test_an_earlier_output_stays_unless_replaced(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    publish(spark, target, "first")
    with pytest.raises(InvalidInputError, match="Add --overwrite"):
        output(target)
    with pytest.raises(ValueError, match="stop"):
        fail_half_way(spark, output(target, overwrite=True), ValueError)
    assert (target / LAST).read_text() == "first"
    publish(spark, target, "second", overwrite=True)
    assert (target / LAST).read_text() == "second"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("step", ["rename", "write"])
def test_the_earlier_output_comes_back_when_the_last_steps_fail(
    spark: SparkSession, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    publish(spark, target, "first")
    whole = getattr(LocalPlace, step)

    def fails(place: LocalPlace, argument: Any) -> None:
        if (step == "rename" and argument.path == target) or place.path == target / LAST:
            monkeypatch.undo()
            raise OSError(28, "No space left on device")
        whole(place, argument)

    with output(target, overwrite=True) as job:
        job.begin(spark).child("new").write(b"2")
        monkeypatch.setattr(LocalPlace, step, fails)
        with pytest.raises(OSError, match="No space"):
            job.publish(LAST, b"second")
    assert (target / LAST).read_text() == "first"
    assert names(tmp_path) == ["out"]


def test_the_earlier_output_comes_back_when_its_own_renaming_is_interrupted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On other file systems the JVM goes on with what it was told."""
    target = tmp_path / "out"
    publish(spark, target, "first")
    whole = LocalPlace.rename

    def interrupted(place: LocalPlace, argument: LocalPlace) -> None:
        monkeypatch.undo()
        whole(place, argument)
        raise KeyboardInterrupt

    with output(target, overwrite=True) as job:
        job.begin(spark).child("new").write(b"2")
        monkeypatch.setattr(LocalPlace, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            job.publish(LAST, b"second")
    assert (target / LAST).read_text() == "first"
    assert names(tmp_path) == ["out"]


def own(folder: Path, **changes: Any) -> None:
    """Make an earlier output of fit, or nearly one."""
    folder.mkdir()
    (folder / LAST).write_text("{}")
    (folder / "model").mkdir()
    known = {"command": "localkmeans fit", "version": "1", "entries": [LAST, "model"], **changes}
    (folder / MARKER).write_text(json.dumps(known))


def foreign(kind: str, place: Path) -> None:
    """Make something that ``--overwrite`` must not remove."""
    if kind == "file":
        place.write_text("precious")
    elif kind == "link to an output":
        own(place.with_name("real"))
        place.symlink_to(place.with_name("real"))
    elif kind == "dangling link":
        place.symlink_to(place.with_name("nothing"))
    elif kind == "another command's":
        own(place, command="localkmeans predict")
    elif kind == "more inside":
        own(place)
        (place / "notes.txt").write_text("precious")
    elif kind == "more deep inside":
        own(place)
        (place / "model" / ".git").mkdir()
    elif kind == "a link inside":
        own(place)
        (place / "model" / "data").symlink_to(place.with_name("elsewhere"))
    else:
        place.mkdir()
        (place / ".git").mkdir()
        (place / "src").mkdir()
        if kind == "a project with metrics.json":
            (place / LAST).write_text("{}")
        elif kind == "a table of Spark":
            (place / "_SUCCESS").touch()
        elif kind == "a marker that waits":
            os.mkfifo(place / MARKER)
        elif kind == "a marker that is a link":
            (place / MARKER).symlink_to("/dev/zero")
        else:
            (place / MARKER).write_text({"odd marker": "[1]", "deep marker": "[" * 100_000}[kind])


@pytest.mark.parametrize(
    "kind",
    [
        "file", "link to an output", "dangling link", "another command's", "more inside",
        "more deep inside", "a link inside", "a project with metrics.json", "a table of Spark",
        "a marker that waits", "a marker that is a link", "odd marker", "deep marker",
    ],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_overwrite_spares_what_is_no_output(tmp_path: Path, kind: str) -> None:
    foreign(kind, tmp_path / "out")
    before = snapshot(tmp_path) if "waits" not in kind and "is a link" not in kind else {}
    with pytest.raises(InvalidInputError, match="earlier output of fit and nothing else; got"):
        output(tmp_path / "out", overwrite=True)
    if before:
        assert snapshot(tmp_path) == before


def test_overwrite_takes_what_the_command_wrote(tmp_path: Path) -> None:
    own(tmp_path / "out")
    output(tmp_path / "out", overwrite=True)


@pytest.mark.parametrize(
    ("read", "out"),
    [
        ("in/d.csv", "in"),
        ("in*/d.csv", "in"),
        ("i?", "in"),
        ("{in,x}/d.csv", "in"),
        ("in", "in"),
        ("in", "in/out"),
        ("link", "in"),
        ("in", "link/out"),
        ("link/d.csv", "in"),
        ("in/../in/d.csv", "x/../in"),
    ],
)
@pytest.mark.parametrize("flag", ["input", "model", "config"])
def test_output_and_what_is_read_are_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, out: str, flag: str
) -> None:
    own(tmp_path / "in", entries=[LAST, "model", "d.csv"])
    (tmp_path / "in" / "d.csv").touch()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    monkeypatch.chdir(tmp_path)
    for path in (read, f"{tmp_path}/{read}", f"file://{tmp_path}/{read}"):
        with pytest.raises(InvalidInputError, match=f"apart from what is read.*--{flag}"):
            output(out, overwrite=True, **{flag: path})
    output("in2", overwrite=True, **{flag: read})


def test_a_place_that_cannot_be_made(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "out", "/proc/x"):
        with pytest.raises(InvalidInputError, match="in a directory that"), output(path) as job:
            job.begin(spark)
    with pytest.raises(OSError, match="File name too long"):
        output(tmp_path / ("n" * 300))


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


def test_a_checkpoint_to_be_made_is_apart_too(tmp_path: Path) -> None:
    for path in ("out", "out/checkpoint", "deep/../out/x/y"):
        with pytest.raises(InvalidInputError, match="apart from what is read"):
            output(tmp_path / "out", checkpoint_dir=f"{tmp_path}/{path}")
    output(tmp_path / "out", checkpoint_dir=f"{tmp_path}/checkpoint")


def test_other_file_systems(spark: SparkSession, elsewhere: str, tmp_path: Path) -> None:
    target = f"{elsewhere}/deep/out"
    assert isinstance(find_place(spark, target), HadoopPlace)
    publish(spark, target, "first")
    with pytest.raises(InvalidInputError, match="Add --overwrite"), output(target) as job:
        job.begin(spark)
    with pytest.raises(ValueError, match="stop"):
        fail_half_way(spark, output(target, overwrite=True), ValueError)
    assert (tmp_path / "elsewhere" / "deep" / "out" / LAST).read_text() == "first"
    publish(spark, target, "second", overwrite=True)
    assert names(tmp_path / "elsewhere" / "deep") == ["out"]
    assert (tmp_path / "elsewhere" / "deep" / "out" / LAST).read_text() == "second"
    for path in (f"{elsewhere}/deep/o*/model", target, f"{elsewhere}/d?ep"):
        job = output(target, overwrite=True, input=path)
        with pytest.raises(InvalidInputError, match="apart from what is read"):
            job.begin(spark)
    (tmp_path / "elsewhere" / "deep" / "out" / "model" / "mine").touch()
    with pytest.raises(InvalidInputError, match="which holds 'model/mine'"):
        output(target, overwrite=True).begin(spark)
