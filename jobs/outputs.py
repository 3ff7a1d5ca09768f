"""An output directory that appears complete or not at all: written aside, then renamed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from types import TracebackType

from pyspark.sql import SparkSession

from jobs.places import LocalPlace, Place, find_place, local_path
from jobs.temporary import hold, release, remove_abandoned
from localkmeans_spark.errors import Fact, invalid


class Draft:
    """An output directory in the making.

    Use it as a context manager around the whole job; without :meth:`publish`, leaving removes
    every trace, also on Ctrl-C. Enter it before the session starts, so that it is left after the
    session has stopped: no task can write into the directory any more while it is removed.

    A killed process leaves its directory behind. On a local disk the next one with the same output
    removes it; on other file systems it stays, beside the output, as ``.NAME.partial-*``.

    Parameters
    ----------
    owner : str
        The command, for error messages.
    path : str
        The output directory: a local path or a URI.
    overwrite : bool
        Replace an earlier output. Only a directory that holds ``marker`` counts as one: a slip
        of the hand must not delete a home directory.
    marker : str
        File that every complete output of the command holds.
    keep : sequence of str
        Paths the job reads: an output that holds one of them is refused.
    """

    def __init__(
        self, owner: str, path: str, overwrite: bool, marker: str, keep: tuple[str, ...] = ()
    ) -> None:
        self._owner, self._path, self._overwrite = owner, path, overwrite
        self._marker, self._keep = marker, keep
        self._target: Place | None = None
        self._aside: Place | None = None
        self._first_made: Path | None = None
        self._held: int | None = None
        sure = local_path(path)
        if sure is not None:
            self._check(LocalPlace(sure))
            self._check_writable(sure.absolute())

    def begin(self, spark: SparkSession) -> Place:
        """Create the directory to write into.

        Returns
        -------
        Place
            A directory beside the output, on the same file system.
        """
        target = find_place(spark, self._path)
        self._check(target)
        prefix = f".{target.name}.partial-"
        aside = target.sibling(prefix + secrets.token_hex(4))
        if isinstance(target, LocalPlace):
            self._first_made = _first_missing(target.path.parent)
        self._target, self._aside = target, aside
        try:
            aside.make_directory()
            if isinstance(aside, LocalPlace):
                self._held = hold(aside.path)
                remove_abandoned(aside.path.parent, prefix)
        except OSError as error:
            raise invalid(
                self._owner, "--output", "in a directory that can be written to", self._path,
                f"Choose another place: {error.strerror or error}.",
            ) from None  # fmt: skip
        return aside

    def publish(self) -> None:
        """Move the finished directory to its name; an earlier output goes only then."""
        target, aside = self._target, self._aside
        if target is None or aside is None:
            raise RuntimeError("begin() comes first")
        self._release()  # complete: from here on nobody may take it for abandoned
        old = target.sibling(aside.name.replace(".partial-", ".old-"))
        replaced = target.exists()
        if replaced:
            self._check(target)
            target.rename(old.name)
        try:
            aside.rename(target.name)
        except BaseException:
            if replaced and not target.exists():
                old.rename(target.name)
            raise
        self._aside = None
        if replaced:
            old.remove()

    def final(self, name: str = "") -> str:
        """Return the path a part of the output will have once published, as the user wrote it."""
        return f"{self._path.rstrip('/') or '/'}/{name}".rstrip("/")

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._aside is None:
            return
        self._aside.remove()
        self._release()
        if self._first_made is not None and isinstance(self._aside, LocalPlace):
            _remove_empty(self._first_made, upto=self._aside.path.parent)

    def _release(self) -> None:
        if self._held is not None and isinstance(self._aside, LocalPlace):
            release(self._aside.path, self._held)
            self._held = None

    def _check(self, target: Place) -> None:
        """Refuse an output that exists, unless it may be replaced."""
        for path in self._keep:
            if _holds(target, path):
                fact = Fact(f"{self._path}, which holds {path}")
                raise invalid(
                    self._owner, "--output", "apart from what is read", fact, "Name another path."
                )
        if not target.exists():
            return
        if not self._overwrite:
            raise invalid(
                self._owner,
                "--output",
                "a path where nothing exists",
                self._path,
                "Add --overwrite to replace an earlier output, or name another path.",
            )
        if not target.is_directory() or self._marker not in target.names():
            raise invalid(
                self._owner,
                "--output with --overwrite",
                f"an earlier output of this job (a directory with {self._marker} in it)",
                self._path,
                "Name another path, or remove it yourself.",
            )

    def _check_writable(self, path: Path) -> None:
        parent = next(above for above in path.parents if above.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise invalid(
                self._owner,
                "--output",
                "a path that can be created",
                self._path,
                f"{parent} is not a directory you may write to.",
            )


def _holds(target: Place, path: str) -> bool:
    """Say whether removing the target would remove the path."""
    if isinstance(target, LocalPlace):
        inner = local_path(path) or Path(path)
        return inner.resolve().is_relative_to(target.path.resolve())
    return f"{path.rstrip('/')}/".startswith(f"{target.uri.rstrip('/')}/")


def _first_missing(path: Path) -> Path | None:
    """Return the topmost directory that creating a path would create."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    return missing[-1] if missing else None


def _remove_empty(first: Path, upto: Path) -> None:
    """Remove directories made for the output, from ``upto`` up to ``first``, while empty."""
    for place in (upto, *upto.parents):
        try:
            place.rmdir()
        except OSError:
            return
        if place == first:
            return
