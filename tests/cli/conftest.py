"""Commands run in this process, and a file system that is not the local disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from localkmeans_spark.cli.main import main


class Told(NamedTuple):
    """What a command left: exit status, lines on stdout, text on stderr, the last line as JSON."""

    status: int
    lines: list[str]
    stderr: str

    @property
    def metrics(self) -> dict[str, Any]:
        return json.loads(self.lines[-1])

    @property
    def error(self) -> str:
        """The one line of a command that failed."""
        *progress, last = self.stderr.splitlines()
        assert (self.status, self.lines) == (2, []), self
        assert "error: " in last and not [line for line in progress if "error" in line], self
        assert "Traceback" not in self.stderr
        return last


Run = Callable[..., Told]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``localkmeans`` in this process, on the session of the tests if it is open."""

    def run(*words: object) -> Told:
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
