"""Spark's Python workers: looked at before a fit, and their errors that the user can fix."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from localkmeans_spark.config import OWNER
from localkmeans_spark.errors import (
    FULL_DISK,
    GONE_FILE,
    LOST_WORKER,
    RAISED,
    Fact,
    InvalidInputError,
    invalid,
)
from localkmeans_spark.spark_private import Py4JError

if TYPE_CHECKING:
    from pyspark import SparkContext

_NEEDED = ("numpy", "scipy", "pyarrow", "threadpoolctl", "localkmeans_spark")
_OTHER_VERSION = re.compile(r"worker has different version:? \(?(\d+)[., ]+(\d+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
# Contexts whose workers were found fit, by their applications' ids.
_looked_at: set[str] = set()


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


def check_workers(context: SparkContext) -> None:
    """Raise unless the workers' Python is the driver's version and has what a fit needs.

    Runs a job of one task, once in a Spark application; none where workers use this interpreter.
    """
    use_drivers_python(context)
    name = context.applicationId
    if name in _looked_at or context.pythonExec == sys.executable:
        return
    try:
        program, missing = _look(context)
    except (Py4JError, PySparkException) as error:
        raise _unfit(context, str(error)) or error from None
    if missing:
        raise invalid(
            OWNER, "the Python of Spark's workers", f"able to import {', '.join(_NEEDED)}",
            Fact(f"{program} without {', '.join(missing)}"), _fix(missing),
        )  # fmt: skip
    _looked_at.add(name)


def _look(context: SparkContext) -> tuple[str, list[str]]:
    """Return the interpreter of a worker, and which modules it lacks."""

    # Sent whole, because it stands in a function: workers may lack this module.
    def look(names: Any) -> Any:
        import sys
        from importlib.util import find_spec

        yield sys.executable, [name for name in names if find_spec(name) is None]

    return context.parallelize(_NEEDED, 1).mapPartitions(look).collect()[0]


def _unfit(context: SparkContext, message: str) -> InvalidInputError | None:
    """Say what is wrong with a worker's Python that cannot do anything; None if it is not that."""
    program, version = _NO_PROGRAM.search(message), _OTHER_VERSION.search(message)
    if not (program or version):
        return None
    found = f"{program[1]}, which is not there" if program else ""
    if version:
        found = f"{context.pythonExec}, which is Python {version[1]}.{version[2]}"
    return invalid(
        OWNER, "the Python of Spark's workers", f"Python {context.pythonVer}, as the driver's",
        Fact(found), "Name such a one by PYSPARK_PYTHON before the session starts.",
    )  # fmt: skip


def _fix(missing: list[str]) -> str:
    if missing == ["localkmeans_spark"]:
        return (
            "Install it there, or pass localkmeans_spark.zip ('make zip' builds it) with "
            "--py-files or sparkContext.addPyFile."
        )
    return "Install them there, or name another one by PYSPARK_PYTHON before the session starts."


_MISSING = re.compile(
    r"ModuleNotFoundError: No module named "
    r"'(localkmeans_spark|numpy|scipy|pyarrow|pandas|threadpoolctl)"
)


@contextmanager
def told_plainly(owner: str) -> Iterator[None]:
    """Raise what a worker of this library's jobs raised as an error of the driver.

    Raises
    ------
    InvalidInputError
        For the library's own errors, for workers that lack the library or what it needs, and for
        full disks, dead workers and files that are gone.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        ours, missing = RAISED.search(str(error)), _MISSING.search(str(error))
        if ours:
            raise InvalidInputError(ours[1]) from None
        if missing:
            raise invalid(
                owner, f"the module {missing[1]}", "installed where Spark runs Python workers",
                Fact("workers without it"),
                "Install it for their Python (PYSPARK_PYTHON), or pass localkmeans_spark.zip "
                "('make zip' builds it) with --py-files or sparkContext.addPyFile.",
            ) from None  # fmt: skip
        if full := FULL_DISK.search(str(error)):
            raise invalid(
                owner, "the disks Spark keeps data on", "large enough for it", Fact(full[0]),
                "Free space there, or name other directories (spark.local.dir).",
            ) from None  # fmt: skip
        if LOST_WORKER.search(str(error)):
            raise invalid(
                owner, "Spark's Python workers", "alive until their tasks end",
                Fact("one that was killed, or ran out of memory"),
                "A cluster tries the task again (spark.task.maxFailures), a local master only as "
                "'local[N, 4]'; give workers more memory, or read in more partitions.",
            ) from None  # fmt: skip
        if gone := GONE_FILE.search(str(error)):
            raise invalid(
                owner, "the rows' files", "there until the fit ends",
                Fact(f"{gone[1] or gone[2]}, which is gone"), "Make the DataFrame anew.",
            ) from None  # fmt: skip
        raise
