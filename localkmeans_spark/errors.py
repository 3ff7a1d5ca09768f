"""The words shown when something is wrong, and the one formatter that makes them.

Every message reads ``{Owner}: {subject} must be {rule}; got {value!r}. {One fix.}``.
"""

from __future__ import annotations

import re
from typing import Any

# What Spark's errors say, somewhere, when a disk is full.
FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded")
# When a Python worker was killed, or died.
LOST_WORKER = re.compile(r"Python worker exited unexpectedly")
# When a file that Spark had listed is no longer there.
GONE_FILE = re.compile(r"File (\S+) does not exist|FileNotFoundException: (?:File )?(\S+)")

# An error of the library raised by a Python worker, or by a column (PySpark 4, then 3.5).
RAISED = re.compile(
    r"(?:\bInvalidInputError: |(?:\[USER_RAISED_EXCEPTION\]|RuntimeException:) (?=LocalKMeans))"
    r"(.+?)(?: SQLSTATE: \w+)?$",
    re.MULTILINE,
)


class InvalidInputError(ValueError):
    """Raised when a parameter, a column or the data break a documented rule.

    A ``ValueError``, so callers that guard against bad values need not know this library.
    Jobs turn it into one line and exit status 2.
    """


def invalid(owner: str, subject: str, rule: str, value: Any, fix: str) -> InvalidInputError:
    """Build (not raise) the error for one broken rule.

    Parameters
    ----------
    owner : str
        The class or command the user called, for example ``"LocalKMeans"``.
    subject : str
        What is wrong, named as the user knows it: ``"parameter 'k'"``, ``"column 'features'"``.
    rule : str
        What must hold, continuing "must be": ``"an integer >= 1"``, ``"free of nulls"``.
    value : object
        What was received. A string is quoted; pass a :class:`Fact` for a finding in plain words.
    fix : str
        One sentence that tells a tired person what to do.

    Returns
    -------
    InvalidInputError
    """
    return InvalidInputError(f"{owner}: {subject} must be {rule}; got {value!r}. {fix}")


class Fact(str):
    """A finding shown without quotes in a message, such as ``3 rows with NaN``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def count_of(number: int, noun: str) -> str:
    """Return ``1 row`` or ``2,000 rows``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
