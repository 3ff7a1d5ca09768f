"""Directories on a local disk or on any file system Hadoop knows, through one small interface."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


class LocalPlace:
    """A path on this machine's disk; needs no Java, so it works while Spark is going down.

    ``uri`` is the path in words that Spark cannot mistake for one on another file system.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.name = self.path.name
        self.uri = f"file://{self.path}"

    def exists(self) -> bool:
        """Say whether a file or directory is there."""
        return os.path.lexists(self.path)

    def is_directory(self) -> bool:
        """Say whether it is a directory."""
        return self.path.is_dir()

    def names(self) -> list[str]:
        """Return the names in this directory."""
        return [entry.name for entry in self.path.iterdir()]

    def make_directory(self) -> None:
        """Create this directory and the ones above it."""
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, data: bytes) -> None:
        """Create this file."""
        self.path.write_bytes(data)

    def rename(self, name: str) -> None:
        """Take another name in the same directory, one that nothing has."""
        self.path.rename(self.path.with_name(name))

    def remove(self) -> None:
        """Delete the file or the whole directory, if there is one."""
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path)
        elif self.exists():
            self.path.unlink()

    def sibling(self, name: str) -> LocalPlace:
        """Return the place of that name in the same directory."""
        return LocalPlace(self.path.with_name(name))

    def child(self, name: str) -> LocalPlace:
        """Return the place of that name in this directory."""
        return LocalPlace(self.path / name)


class HadoopPlace:
    """A path on HDFS, S3, ... through the Hadoop file system of a running session's JVM.

    It can do what :class:`LocalPlace` can.
    """

    def __init__(self, file_system: Any, path: Any, jvm: Any) -> None:
        self._fs, self._path, self._jvm = file_system, path, jvm
        self.name = str(path.getName())
        self.uri = str(path.toString())

    def exists(self) -> bool:
        """Say whether a file or directory is there."""
        return bool(self._fs.exists(self._path))

    def is_directory(self) -> bool:
        """Say whether it is a directory."""
        return self.exists() and bool(self._fs.getFileStatus(self._path).isDirectory())

    def names(self) -> list[str]:
        """Return the names in this directory."""
        return [str(status.getPath().getName()) for status in self._fs.listStatus(self._path)]

    def make_directory(self) -> None:
        """Create this directory and the ones above it."""
        self._fs.mkdirs(self._path)

    def write(self, data: bytes) -> None:
        """Create this file."""
        stream = self._fs.create(self._path)
        stream.write(bytearray(data))
        stream.close()

    def rename(self, name: str) -> None:
        """Take another name in the same directory, one that nothing has."""
        target = self.sibling(name)
        # Hadoop reports most failures by returning False.
        if target.exists() or not self._fs.rename(self._path, target._path):
            raise OSError(f"could not rename {self.uri} to {target.uri}")

    def remove(self) -> None:
        """Delete the file or the whole directory, if there is one."""
        self._fs.delete(self._path, True)

    def sibling(self, name: str) -> HadoopPlace:
        """Return the place of that name in the same directory."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._path.getParent(), name)
        return HadoopPlace(self._fs, path, self._jvm)

    def child(self, name: str) -> HadoopPlace:
        """Return the place of that name in this directory."""
        path = self._jvm.org.apache.hadoop.fs.Path(self._path, name)
        return HadoopPlace(self._fs, path, self._jvm)


Place = LocalPlace | HadoopPlace


def local_path(path: str) -> Path | None:
    """Return the local path that a path surely means, without asking Spark; None if unsure.

    A path without a scheme means the cluster's default file system, which only Spark's
    configuration names. It is surely this machine's disk when the job itself starts Spark (it was
    not started by ``spark-submit``) and no Hadoop configuration is in the environment.
    """
    if path.startswith("file:/"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    configured = ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path) or any(
        os.environ.get(name) for name in configured
    ):
        return None
    return Path(path)


def find_place(spark: SparkSession, path: str) -> Place:
    """Return the place a path means in this session."""
    sure = local_path(path)
    if sure is not None:
        return LocalPlace(sure)
    context = spark.sparkContext
    jvm: Any = context._jvm
    raw = jvm.org.apache.hadoop.fs.Path(path)
    file_system = raw.getFileSystem(context._jsc.hadoopConfiguration())
    full = file_system.makeQualified(raw)
    if full.toUri().getScheme() == "file":
        return LocalPlace(str(full.toUri().getPath()))
    return HadoopPlace(file_system, full, jvm)
