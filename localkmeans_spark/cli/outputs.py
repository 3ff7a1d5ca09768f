"""An output directory that never looks whole before it is, and replaces nobody else's.

It is written beside its place under another name, then renamed; the file by which readers tell a
complete one is written last. A marker file lists what the command wrote: ``--overwrite`` removes a
directory only if all in it is listed there.
"""

from __future__ import annotations

import glob
import json
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.cli.flags import Options
from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid
from localkmeans_spark.spark_private import HadoopPath

MARKER = ".localkmeans.json"
ADDED = ("prediction", "distance")
"""Columns that the commands add to the id columns."""
_READ = ("input", "model", "config", "checkpoint_dir")


class LocalPlace:
    """A path on this machine's disk, with the methods of :class:`HadoopPath`; needs no Java.

    ``uri`` is the path in words that Spark cannot mistake for one on another file system.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.uri = f"{'' if _is_volume(str(self.path)) else 'file://'}{self.path}"
        self.real = os.path.realpath(self.path)

    def exists(self) -> bool:
        """Say whether anything is there, if only a link to nothing."""
        try:
            return bool(self.path.lstat())
        except (FileNotFoundError, NotADirectoryError):  # not when the name is too long
            return False

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
        elif self.exists():
            self.path.unlink()

    def beside(self, name: str) -> LocalPlace:
        """Return the place of that name in the same directory."""
        return LocalPlace(self.path.with_name(name))

    def child(self, name: str) -> LocalPlace:
        """Return the place of that name in this directory."""
        return LocalPlace(self.path / name)

    def matches(self, path: str) -> list[str]:
        """Return the real paths that a path, or a pattern, stands for or, if none, would."""
        local = local_path(path) or Path(path)
        return [os.path.realpath(found) for found in local_matches(local) or [local]]


class HadoopPlace(HadoopPath):
    """A path on HDFS, S3, ...; its methods do what those of :class:`LocalPlace` do."""

    @property
    def real(self) -> str:
        """The path without a user's name."""
        return _without_user(self.uri)

    def entries(self) -> set[str]:
        """Return the paths, from here, of all files and directories below this one."""
        found: set[str] = set()
        for name in self.names():
            found.add(name)
            if (child := self.child(name)).is_directory():
                found.update(f"{name}/{below}" for below in child.entries())
        return found

    def matches(self, path: str) -> list[str]:
        """Return the real paths that a path, or a pattern, stands for."""
        return [_without_user(found) for found in super().matches(path)]


Place = LocalPlace | HadoopPlace


class Output:
    """An output directory in the making.

    Use it as a context manager around the whole command; without :meth:`publish`, leaving removes
    what was written, also on Ctrl-C. Enter it before the session starts, so that it is left after
    the session has stopped: no task writes into the directory any more while it is removed.

    A process that is killed (SIGKILL) leaves a directory ``.localkmeans-*`` beside the output.

    Parameters
    ----------
    options : Options
        With ``owner``, ``output``, ``overwrite`` and the paths that are read.

    Raises
    ------
    InvalidInputError
        When the output exists and may not be replaced, cannot be created, or is not apart from
        what is read.
    """

    def __init__(self, options: Options) -> None:
        self._owner, self._path = str(options.owner), str(options.output)
        self._overwrite = bool(options.overwrite)
        read = {f"--{name.replace('_', '-')}": getattr(options, name, None) for name in _READ}
        self._read = {flag: str(path) for flag, path in read.items() if path}
        self._target: Any = None
        self._aside: Any = None
        sure = local_path(self._path)
        if sure is not None:
            check_name(self._owner, "--output", sure)
            self._check(LocalPlace(sure))

    def begin(self, spark: SparkSession) -> Place:
        """Create and return the directory to write into, beside the output."""
        try:
            self._target = find_place(spark, self._path)
            self._check(self._target)
            aside = self._target.beside(f".localkmeans-{secrets.token_hex(4)}")
            self._aside = aside
            aside.create()
        except OSError as error:
            fix = f"Choose another place: {error.strerror or str(error).splitlines()[0]}."
            raise self._refused("in a directory that can be written to", fix) from None
        return aside

    def publish(self, last: str, data: bytes) -> None:
        """Move the finished directory to its name; an earlier output goes only then.

        Parameters
        ----------
        last : str
            Name of the file by which readers tell a complete output: written at the very end.
        data : bytes
            Its content.
        """
        target, aside = self._target, self._aside
        aside.child(last).remove()
        known = {"command": f"localkmeans {self._owner}", "version": __version__,
                 "entries": sorted(aside.entries() | {last, f".{last}.crc"})}  # fmt: skip
        aside.child(MARKER).write(json.dumps(known, indent=1).encode())
        self._check(target)
        earlier = target.beside(f".localkmeans-{secrets.token_hex(4)}") if target.exists() else None
        try:
            if earlier:
                target.rename(earlier)
            aside.rename(target)
            target.child(last).write(data)
        except BaseException:
            if not aside.exists():
                target.remove()
            if earlier and earlier.exists():
                earlier.rename(target)
            raise
        self._aside = None
        if earlier:
            earlier.remove()

    def final(self) -> str:
        """Return the path of the output as the user wrote it."""
        return self._path.rstrip("/") or "/"

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *error: object) -> None:
        if self._aside is not None:
            self._aside.remove()

    def _check(self, target: Place) -> None:
        """Refuse an output that is not apart from what is read, or exists and is to stay."""
        for flag, path in self._read.items():
            for real in target.matches(path):
                if _holds(real, target.real) or _holds(target.real, real):
                    found = Fact(f"{self._path}, where {flag} {path} is read")
                    fix = "Name another path."
                    raise invalid(self._owner, "--output", "apart from what is read", found, fix)
        if not target.exists():
            return
        if not self._overwrite:
            fix = "Add --overwrite to replace an earlier output, or name another path."
            raise self._refused("a path where nothing exists", fix)
        foreign = self._foreign(target)
        if foreign:
            rule = f"an earlier output of {self._owner} and nothing else"
            found = Fact(f"{self._path}, {foreign}")
            fix = "Name another path, or remove it yourself."
            raise invalid(self._owner, "--output with --overwrite", rule, found, fix)

    def _foreign(self, target: Place) -> str:
        """Say what speaks against a directory being an output of this command; empty if nothing."""
        if not target.is_directory():
            return "which is not a directory"
        try:
            known = json.loads(target.child(MARKER).read())
            is_own = known["command"] == f"localkmeans {self._owner}"
            listed = {str(name) for name in known["entries"]}
        except (ValueError, TypeError, LookupError, RecursionError):
            return f"which has no {MARKER} of {self._owner}"
        others = sorted(target.entries() - listed - {MARKER, f".{MARKER}.crc"})
        if not is_own:
            return "an output of another command"
        return f"which holds {others[0]!r}" if others else ""

    def _refused(self, rule: str, fix: str) -> InvalidInputError:
        return invalid(self._owner, "--output", rule, self._path, fix)


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


def local_matches(path: Path) -> list[Path]:
    """Return what is at a local path, which may be a pattern; ``{a,b}`` counts as ``*``."""
    if os.path.lexists(path):
        return [path]
    # Not Path.glob, which knows ** and refuses others like it.
    pattern = re.sub(r"\{.*\}", "*", str(path.absolute()))
    return [Path(found) for found in sorted(glob.glob(pattern))]  # noqa: PTH207


def check_name(owner: str, flag: str, path: Path) -> None:
    """Refuse a local path that Spark cannot read: what stands before a colon is a scheme to it."""
    if ":" in str(path):
        rule, fix = "a path without a colon", "Rename it: Spark cannot read it."
        raise invalid(owner, flag, rule, str(path), fix)


def find_place(spark: SparkSession, path: str) -> Place:
    """Return the place a path means in this session."""
    sure = local_path(path)
    if sure is not None:
        return LocalPlace(sure)
    place = HadoopPlace(spark, path)
    if place.uri.startswith("file:"):
        return LocalPlace("/" + place.uri.removeprefix("file:").lstrip("/"))
    return place


def check_output_table(owner: str, spark: SparkSession, name: str, overwrite: bool) -> None:
    """Refuse an output table that exists and is to stay, before the rows are read."""
    if not spark.catalog.tableExists(name):
        return
    if not overwrite:
        raise invalid(
            owner, "--output-table", "a name that no table has", name,
            "Add --overwrite to replace it, or name another one.",
        )  # fmt: skip
    columns = spark.table(name).columns
    if not set(ADDED) <= set(columns):
        raise invalid(
            owner, "--output-table with --overwrite",
            f"an earlier output, with the columns {' and '.join(ADDED)}",
            Fact(f"{name}, with {', '.join(columns)}"), "Name another table, or drop it yourself.",
        )  # fmt: skip


def write_table(rows: DataFrame, name: str, overwrite: bool) -> None:
    """Write rows as a table. An earlier one goes once all rows are known to be right.

    Most catalogs drop it before they write the new one.
    """
    if overwrite and rows.sparkSession.catalog.tableExists(name):
        rows.write.format("noop").mode("overwrite").save()
    rows.write.mode("overwrite" if overwrite else "error").saveAsTable(name)


def check_written(owner: str, place: Place, n_least: int) -> None:
    """Make sure that rows written to a local disk by a cluster are there.

    Every executor writes to its own machine's disk: without a disk that all machines share, the
    output would be silently incomplete.
    """
    if not isinstance(place, LocalPlace):
        return
    n_found = sum(pq.read_metadata(file).num_rows for file in place.path.rglob("*.parquet"))
    if n_found < n_least:
        raise invalid(
            owner, "--output", "on a file system that all machines share",
            Fact(f"{n_found:,} of {count_of(n_least, 'row')} on this machine"),
            "Name a path on such a file system, for example hdfs:// or s3a://.",
        )  # fmt: skip


def _is_volume(path: str) -> bool:
    """Say whether it is in a Volume of Databricks: mounted on the disk, known to Spark as it is."""
    return path.startswith("/Volumes/") and "DATABRICKS_RUNTIME_VERSION" in os.environ


def _without_user(uri: str) -> str:
    return uri if uri.startswith(("abfs", "wasb")) else re.sub(r"^([\w+.-]+://)[^/@]*@", r"\1", uri)


def _holds(path: str, folder: str) -> bool:
    """Say whether a path is a folder or lies in it."""
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
