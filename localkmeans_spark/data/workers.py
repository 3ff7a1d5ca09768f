"""Spark's Python workers: which interpreter they are, and their errors that the user can fix."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from localkmeans_spark.errors import FULL_DISK, RAISED, Fact, InvalidInputError, invalid

if TYPE_CHECKING:
    from pyspark import SparkContext

_NEEDED = "numpy, scipy, pyarrow, threadpoolctl, localkmeans_spark"
_MISSING = re.compile(
    r"ModuleNotFoundError: No module named "
    r"'(localkmeans_spark|numpy|scipy|pyarrow|pandas|threadpoolctl)"
)
_OTHER_VERSION = re.compile(r"worker has different version:? \(?(\d+)[., ]+(\d+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]*py[^"]*)"')


def use_drivers_python(context: SparkContext) -> None:
    """Start the workers of a local master with this interpreter, if the user named no other.

    PySpark takes ``python3``, which is another one when Python comes from an environment that is
    not activated.
    """
    if context.pythonExec == sys.executable:
        return
    named = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
    is_local = str(context.master).split("[")[0] == "local"
    # An application that embeds Python has a name of its own.
    if is_local and not named and Path(sys.executable).name.startswith(("python", "pypy")):
        context.pythonExec = sys.executable


@contextmanager
def told_plainly(owner: str) -> Iterator[None]:
    """Raise what a worker of this library's jobs raised as an error of the driver.

    Raises
    ------
    InvalidInputError
        For the library's own errors, for workers whose Python is not there, is another version or
        lacks the library or what it needs, and for full disks.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        message = str(error)
        if ours := RAISED.search(message):
            raise InvalidInputError(ours[1]) from None
        if unfit := _unfit(message, owner):
            raise unfit from None
        if full := FULL_DISK.search(message):
            raise invalid(
                owner, "the disks Spark keeps data on", "large enough for it", Fact(full[0]),
                "Free space there, or name other directories (spark.local.dir).",
            ) from None  # fmt: skip
        raise


def _unfit(message: str, owner: str) -> InvalidInputError | None:
    """Say what is wrong with the workers' Python; None if it is not that."""
    version = "{}.{}".format(*sys.version_info)
    rule = f"Python {version}, as the driver's"
    fix = "Name such a one by PYSPARK_PYTHON before the session starts."
    if program := _NO_PROGRAM.search(message):
        found = f"{program[1]}, which is not there"
    elif other := _OTHER_VERSION.search(message):
        found = f"Python {other[1]}.{other[2]}"
    elif missing := _MISSING.search(message):
        rule, found = f"able to import {_NEEDED}", f"one without {missing[1]}"
        fix = "Install it there, or name another one by PYSPARK_PYTHON before the session starts."
        if missing[1] == "localkmeans_spark":
            fix = (
                "Install it there, or pass localkmeans_spark.zip ('make zip' builds it) with "
                "--py-files or sparkContext.addPyFile."
            )
    else:
        return None
    return invalid(owner, "the Python of Spark's workers", rule, Fact(found), fix)
