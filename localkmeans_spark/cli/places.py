"""Directories on a local disk or on any file system Hadoop knows, with the same methods."""

from __future__ import annotations

import glob
import os
import re
import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from localkmeans_spark.spark_private import HadoopPath

_MOST_BRACES = 8


class LocalPlace:
    """A path on this machine's disk; needs no Java, so it works while Spark is going down.

    ``uri`` is the path in words that Spark cannot mistake for one on another file system.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.uri = f"{'' if _is_volume(str(self.path)) else 'file://'}{self.path}"
        self.real = os.path.realpath(self.path)

    def exists(self) -> bool:
        """Say whether anything is there, if only a link to nothing."""
        return os.path.lexists(self.path)

    def is_directory(self) -> bool:
        """Say whether it is a directory, and not a link to one."""
        return self.path.is_dir() and not self.path.is_symlink()

    def entries(self) -> set[str]:
        """Return the paths, from here, of all files and directories below this one."""
        found: set[str] = set()
        for folder, folders, files in os.walk(self.path):
            here = os.path.relpath(folder, self.path)
            found.update(os.path.normpath(f"{here}/{name}") for name in (*folders, *files))
        return found

    def read(self) -> bytes:
        """Return this file's bytes, none if it is no plain file."""
        is_plain = self.path.is_file() and not self.path.is_symlink()
        return self.path.read_bytes() if is_plain else b""

    def write(self, data: bytes) -> None:
        """Create this file."""
        self.path.write_bytes(data)

    def create(self) -> None:
        """Create this directory and those above it."""
        self.path.mkdir(parents=True)

    def rename(self, target: LocalPlace) -> None:
        """Move it to a path where nothing exists."""
        self.path.rename(target.path)

    def remove(self) -> None:
        """Delete the file or the whole directory, if there is one."""
        if self.is_directory():
            shutil.rmtree(self.path)
        else:
            self.path.unlink(missing_ok=True)

    def beside(self, name: str) -> LocalPlace:
        """Return the place of that name in the same directory."""
        return LocalPlace(self.path.with_name(name))

    def child(self, name: str) -> LocalPlace:
        """Return the place of that name in this directory."""
        return LocalPlace(self.path / name)

    def matches(self, path: str) -> list[str]:
        """Return the real paths that a path, or a pattern, stands for."""
        return [os.path.realpath(found) for found in local_matches(local_path(path) or Path(path))]


class HadoopPlace(HadoopPath):
    """A path on HDFS, S3, ...; its methods do what those of :class:`LocalPlace` do."""

    @property
    def real(self) -> str:
        return _without_user(self.uri)

    def entries(self) -> set[str]:
        found: set[str] = set()
        for name in self.names():
            found.add(name)
            if (child := self.child(name)).is_directory():
                found.update(f"{name}/{below}" for below in child.entries())
        return found

    def matches(self, path: str) -> list[str]:
        return [_without_user(found) for found in super().matches(path)]


Place = LocalPlace | HadoopPlace


def local_path(path: str) -> Path | None:
    """Return the local path that a path surely means, without asking Spark; None if unsure.

    A path without a scheme means the cluster's default file system, which only Spark's
    configuration names. It is surely this machine's disk when the command itself starts Spark (it
    was not started by ``spark-submit``) and no Hadoop configuration is in the environment.
    """
    if _is_volume(path):
        return Path(path)
    if path.startswith("file:/"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    configured = ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path) or any(map(os.environ.get, configured)):
        return None
    return Path(path)


def _is_volume(path: str) -> bool:
    """Say whether it is in a Volume of Databricks: mounted on the disk, known to Spark as it is."""
    return path.startswith("/Volumes/") and "DATABRICKS_RUNTIME_VERSION" in os.environ


def find_place(spark: SparkSession, path: str) -> Place:
    """Return the place a path means in this session."""
    sure = local_path(path)
    if sure is not None:
        return LocalPlace(sure)
    place = HadoopPlace(spark, path)
    if place.uri.startswith("file:"):
        return LocalPlace("/" + place.uri.removeprefix("file:").lstrip("/"))
    return place


def local_matches(path: Path) -> list[Path]:
    """Return what is at a local path, which may be a pattern as Hadoop knows them."""
    if os.path.lexists(path):
        return [path]
    # Not Path.glob, which knows ** and refuses others like it.
    patterns = _without_braces(str(path.absolute()))
    return [Path(found) for each in patterns for found in sorted(glob.glob(each))]  # noqa: PTH207


def _without_user(uri: str) -> str:
    return uri if uri.startswith(("abfs", "wasb")) else re.sub(r"^([\w+.-]+://)[^/@]*@", r"\1", uri)


def _without_braces(pattern: str) -> list[str]:
    """Return the patterns that ``{a,b}`` in a pattern, which Hadoop knows, stands for."""
    if pattern.count("{") > _MOST_BRACES:
        return [re.sub(r"\{[^{}]*\}", "*", pattern)]
    choice = re.search(r"\{([^{}]*)\}", pattern)
    if choice is None:
        return [pattern]
    before, after = pattern[: choice.start()], pattern[choice.end() :]
    found = [_without_braces(f"{before}{one}{after}") for one in choice[1].split(",")]
    return [each for several in found for each in several]
