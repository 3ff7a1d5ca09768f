"""A file system that is not the local disk, and what a job prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession


class Told(NamedTuple):
    """What a job left: exit status, lines on stdout, text on stderr, the last line as JSON."""

    status: int
    lines: list[str]
    stderr: str

    @property
    def metrics(self) -> dict[str, Any]:
        return json.loads(self.lines[-1])


Run = Callable[..., Told]


@pytest.fixture
def run_here(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a job's ``main`` in this process, on the session of the tests."""

    def run(main: Callable[[list[str]], None], *words: object) -> Told:
        status = 0
        try:
            main([str(word) for word in words])
        except SystemExit as leave:
            status = int(leave.code or 0)
        said = capsys.readouterr()
        return Told(status, said.out.splitlines(), said.err)

    return run


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> str:
    """A directory on a Hadoop file system that is not ``file:`` (a view, kept in memory)."""
    (tmp_path / "elsewhere").mkdir()
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    name = f"test{abs(hash(tmp_path)):x}"
    conf.set(f"fs.viewfs.mounttable.{name}.link./data", f"file://{tmp_path}/elsewhere")
    return f"viewfs://{name}/data"
