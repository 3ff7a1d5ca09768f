"""Errors of Python workers that the user can fix, told without the workers' stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from localkmeans_spark.errors import Fact, InvalidInputError, invalid

_OURS = re.compile(rf"\b{InvalidInputError.__name__}: (.+)")
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
        For the library's own errors, and for workers that lack the library or what it needs.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        ours, missing = _OURS.search(str(error)), _MISSING.search(str(error))
        if ours:
            raise InvalidInputError(ours[1]) from None
        if missing:
            raise invalid(
                owner, f"the module {missing[1]}", "installed where Spark runs Python workers",
                Fact("workers without it"),
                "Install it for their Python (PYSPARK_PYTHON), or pass localkmeans_spark.zip "
                "('make zip' builds it) with --py-files or sparkContext.addPyFile.",
            ) from None  # fmt: skip
        raise
