"""What :mod:`persistence` wrote, read back: whatever is wrong with it ends in one clear error."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.errors import Fact, InvalidInputError, invalid
from localkmeans_spark.spark_private import HadoopPath, Py4JError, is_connect

# Raise it when older versions of the library could not read what is written.
FORMAT = 1
ARRAYS = "name string, row int, values array<double>"
PACKAGE = __name__.split(".", maxsplit=1)[0]

_CHECK_PATH = "Check the path."
_RESTORE = "Save it again, or restore the directory from a copy."
_IF_DAMAGED = "If it is right, save again, or restore the directory from a copy."
_GLOB = re.compile(r"([\[\]{}*?\\])")
_AUTHORITY = re.compile(r"[A-Za-z][\w+.-]*://[^/]*")


class SavedFiles:
    """A directory that :mod:`persistence` wrote.

    Parameters
    ----------
    session : SparkSession
    path : str or os.PathLike
    class_name : str
        Class that is to be loaded.
    """

    def __init__(self, session: SparkSession, path: Any, class_name: str) -> None:
        self._session, self._owner = session, class_name
        self._path = checked_path(path, class_name)

    def metadata(self) -> dict[str, Any]:
        """Read and check the metadata.

        Raises
        ------
        InvalidInputError
            If there is none, or it cannot be read, or is another class's or a later format's.
        """
        lines = self._read("metadata", lambda place: self._session.read.text(place).collect())
        try:
            ((line,),) = lines
            metadata: dict[str, Any] = json.loads(line)
            saved_class = metadata["class"].rsplit(".", 1)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            found = Fact("a 'metadata' that is not one line of JSON with a class")
            raise self._wrong(found, f"{_CHECK_PATH} {_IF_DAMAGED}") from None
        if saved_class != [PACKAGE, self._owner]:
            fix = f"Load it with {saved_class[-1]}."
            if metadata["class"] == "org.apache.spark.ml.clustering.KMeansModel":
                fix = "Load it with pyspark.ml.clustering.KMeansModel and use fromMLlib."
            raise self._wrong(Fact(metadata["class"]), fix)
        number = metadata.get("formatVersion")
        if type(number) is not int or number < 1:
            raise self._damaged("no format number in the metadata")
        if number > FORMAT:
            raise invalid(
                self._owner,
                self._subject,
                f"saved in format {FORMAT} or earlier",
                Fact(f"format {number}, of version {metadata.get('libraryVersion')}"),
                f"Update {PACKAGE} (this is {__version__}).",
            )
        return metadata

    def arrays(self, *names: str) -> dict[str, np.ndarray]:
        """Read these arrays.

        Raises
        ------
        InvalidInputError
            If they cannot be read, or one of them or rows of it are missing.
        """
        found: dict[str, dict[int, list[float]]] = {}
        rows = self._read(
            "data", lambda place: self._session.read.schema(ARRAYS).parquet(place).collect()
        )
        for name, index, values in rows:
            found.setdefault(name, {})[index] = values
        missing = [name for name in names if name not in found]
        if missing:
            raise self._damaged(f"no '{missing[0]}' in its data")
        with self.whole():
            return {
                name: np.array([found[name][i] for i in range(len(found[name]))], dtype=np.float64)
                for name in names
            }

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Tell what does not fit together in here as damage of what was saved."""
        try:
            yield
        except InvalidInputError as error:
            # Its advice is for people who make a model, not for those who load one.
            rule = str(error).split(": ", 1)[-1].split("; got", maxsplit=1)[0]
            raise self._damaged(rule) from None
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._damaged(f"{PACKAGE} {__version__} cannot read it ({_of(error)})") from None

    def _read(self, part: str, read: Any) -> Any:
        try:
            return read(f"{literal(self._path)}/{part}")
        except (PySparkException, Py4JError) as error:
            cause = spark_cause(error)
        if "PATH_NOT_FOUND" not in cause:
            found = Fact(f"a '{part}' that Spark cannot read ({cause})")
            raise self._wrong(found, f"{_CHECK_PATH} {_IF_DAMAGED}")
        if part == "metadata":
            raise self._wrong(Fact("nothing that Spark saved"), _CHECK_PATH)
        raise self._damaged(f"no '{part}' in it")

    @property
    def _subject(self) -> str:
        return f"path '{self._path}'"

    def _wrong(self, found: Fact, fix: str) -> InvalidInputError:
        return invalid(self._owner, self._subject, f"a saved {self._owner}", found, fix)

    def _damaged(self, found: str) -> InvalidInputError:
        return self._wrong(Fact(f"a damaged one: {found}"), _RESTORE)


def is_there(session: SparkSession, path: str) -> bool:
    """Say whether anything is at a path.

    Raises
    ------
    OSError
        If its file system cannot tell.
    """
    if not is_connect(session):
        return HadoopPath(session, path).exists()
    try:
        return bool(session.read.text(literal(path)).schema)
    except PySparkException as error:
        if "PATH_NOT_FOUND" in str(error):
            return False
        raise OSError(spark_cause(error)) from None


def is_replaceable(session: SparkSession, path: str) -> bool:
    """Say whether a directory is empty, or holds what Spark ML or this library saved.

    That is ``metadata`` with part files that begin with a line of JSON with a class, and other
    directories: those that a class of this library writes. Spark Connect sees ``metadata`` alone.
    """
    names: list[str] = []
    if not is_connect(session):
        place = HadoopPath(session, path)
        names = place.names()
        if not names and place.is_directory():
            return True
        if not all(place.child(name).is_directory() for name in names):
            return False
        if not any(name.startswith("part-") for name in place.child("metadata").names()):
            return False
    try:
        first: Any = session.read.text(f"{literal(path)}/metadata").head()
        name = json.loads(first[0])["class"]
        return not name.startswith(f"{PACKAGE}.") or {"metadata", "data"}.issuperset(names)
    except (
        PySparkException, Py4JError, AttributeError, LookupError, TypeError, ValueError,
        RecursionError,
    ):  # fmt: skip
        return False


def checked_path(path: Any, owner: str) -> str:
    """Return the path as text; raise if it is none."""
    text = str(path) if isinstance(path, str | os.PathLike) else ""
    if not text:
        raise invalid(owner, "the path", "text or a pathlib.Path", path, "Name a directory.")
    return text


def literal(path: str) -> str:
    """Return a path that Spark reads as it stands: it takes ``[1]``, ``{x}`` or ``*`` for patterns.

    On Windows the escape would be a separator, so paths there stay as they are.
    """
    if os.name == "nt":
        return path
    authority = _AUTHORITY.match(path)  # never a pattern, though [::1] looks like one
    start = authority.end() if authority else 0
    return path[:start] + _GLOB.sub(r"\\\1", path[start:])


def spark_cause(error: Exception) -> str:
    """Return the first line of what lies at the bottom of an error of Spark."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if thrown is None:
        return str(error).split("\n", maxsplit=1)[0]
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    return str(thrown.getMessage() or thrown.toString()).split("\n", maxsplit=1)[0]


def _of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
