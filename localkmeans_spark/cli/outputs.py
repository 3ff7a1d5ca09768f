"""An output directory that never looks whole before it is, and replaces nobody else's.

It is written beside its place under another name, then renamed; the file by which readers tell a
complete one is written last. A marker file lists what the command wrote: ``--overwrite`` removes a
directory only if all in it is listed there.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import Any

from pyspark.sql import SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.places import LocalPlace, Place, find_place, local_path
from localkmeans_spark.errors import Fact, InvalidInputError, invalid

MARKER = ".localkmeans.json"
_READ = ("input", "model", "config", "checkpoint_dir")


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
            self._check(LocalPlace(sure))
            above = next(above for above in sure.absolute().parents if above.exists())
            if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
                fix = f"{above} is not a directory you may write to."
                raise self._refused("a path that can be created", fix)

    def begin(self, spark: SparkSession) -> Place:
        """Create and return the directory to write into, beside the output."""
        try:
            self._target = find_place(spark, self._path)
            self._check(self._target)
        except OSError as error:
            rule = "on a file system that Spark can reach"
            raise self._refused(rule, f"Choose another place: {_reason(error)}.") from None
        aside = self._target.beside(f".localkmeans-{secrets.token_hex(4)}")
        self._aside = aside
        try:
            aside.create()
        except OSError as error:
            rule = "in a directory that can be written to"
            raise self._refused(rule, f"Choose another place: {_reason(error)}.") from None
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
        if earlier:
            target.rename(earlier)
        try:
            aside.rename(target)
            target.child(last).write(data)
        except BaseException:
            if not aside.exists():
                target.remove()
            if earlier:
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


def _reason(error: OSError) -> str:
    return error.strerror or str(error).split("\n")[0]


def _holds(path: str, folder: str) -> bool:
    """Say whether a path is a folder or lies in it."""
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
