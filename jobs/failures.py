"""How a job ends when something is wrong: one line on stderr and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localkmeans_spark.errors import InvalidInputError

USER_ERROR = 2
FAILURE = 1
INTERRUPTED = 130  # as shells report a process ended by Ctrl-C

_LONGEST_LINE = 500
_PYSPARK_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

# Python's errors about a file that the user named.
_FILE_ERRORS = (
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
)

# Spark reports some of the user's slips only when the rows are read, as errors of any class; these
# words give them away.
_USER_SLIPS = re.compile(
    r"PATH_NOT_FOUND|PATH_ALREADY_EXISTS|path does not exist|File \S+ does not exist"
    r"|No FileSystem for scheme|UnknownHostException|AccessControlException|Permission denied"
    r"|CANNOT_READ_FILE_FOOTER|FAILED_READ_FILE|Could not read footer|is not a Parquet file"
    r"|MALFORMED_RECORD|Could not parse Master URL|[Ii]nvalid master URL",
    re.IGNORECASE,
)


def debug_wanted() -> bool:
    """Say whether stack traces and Spark's warnings are wanted (--debug, LOCALKMEANS_DEBUG=1)."""
    return "--debug" in sys.argv[1:] or os.environ.get("LOCALKMEANS_DEBUG") == "1"


@contextmanager
def user_errors(prog: str | None = None, debug: bool | None = None) -> Iterator[None]:
    """End the process in one line when the block fails (context manager or decorator).

    What the user can mend, such as a bad value or a missing path, ends with exit status 2;
    anything else with 1, and its stack trace is written only when asked for.

    Parameters
    ----------
    prog : str or None
        Name of the command; None takes it from ``sys.argv``.
    debug : bool or None
        Whether to write stack traces; None asks :func:`debug_wanted`.
    """
    prog = Path(prog or sys.argv[0]).stem  # as argparse and the progress lines call it
    if debug is None:
        debug = debug_wanted()
    try:
        with contextlib.nullcontext() if debug else _pyspark_unheard():
            yield
    except KeyboardInterrupt:
        _end(prog, "interrupted", INTERRUPTED)
    except Exception as error:
        told = _user_message(error)
        if told is not None:
            _end(prog, told, USER_ERROR)
        if debug:
            traceback.print_exc()
        what = f"{type(error).__name__}: {_telling_line(str(error))}"
        _end(prog, f"{what} (unexpected; --debug shows where)", FAILURE)


@contextmanager
def _pyspark_unheard() -> Iterator[None]:
    """Keep PySpark 4 from writing an analysis error to stderr as JSON before it raises it."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3.5
        yield
        return
    loggers = [PySparkLogger.getLogger(name) for name in _PYSPARK_LOGGERS]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


def _end(prog: str, text: str, status: int) -> None:
    # Messages of the library begin with their owner, which may be the command itself.
    text = text.removeprefix(f"{prog}: ")
    sys.stdout.flush()
    print(f"{prog}: error: {text}", file=sys.stderr, flush=True)
    raise SystemExit(status) from None


def _user_message(error: Exception) -> str | None:
    """Return the line to show when the user can mend ``error``, else None."""
    if isinstance(error, InvalidInputError | argparse.ArgumentTypeError | argparse.ArgumentError):
        return " ".join(str(error).split())
    if isinstance(error, _FILE_ERRORS) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if not type(error).__module__.startswith(("pyspark", "py4j")):
        return None
    from pyspark.errors import AnalysisException

    if isinstance(error, AnalysisException):
        return _telling_line(str(error))
    slip = _USER_SLIPS.search(str(error))
    return _telling_line(str(error), about=slip.re) if slip else None


def _telling_line(text: str, about: re.Pattern[str] | None = None) -> str:
    """Return the line of a Spark error that says what is wrong, without Spark's decoration.

    It is the first line that matches ``about``, else the end of the Python traceback inside the
    message, else the first line.
    """
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    matching = [line for line in lines if about and about.search(line)]
    raised = _raised_in_python(lines)
    if matching:
        return _plain(matching[0])
    if raised:
        return _plain(raised)
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return _plain(lines[1].removeprefix(": "))
    return _plain(lines[0])


def _raised_in_python(lines: list[str]) -> str | None:
    """Return the line that ends the first Python traceback among ``lines``, if there is one."""
    inside = False
    for line in lines:
        if inside and not line.startswith(" "):
            return line
        inside = inside or line.endswith("Traceback (most recent call last):")
    return None


def _plain(line: str) -> str:
    line = re.sub(r"^.*most recent failure: Lost task .*?\): ", "", line)
    line = re.sub(r"^(?:Caused by)?:? ?(?:[a-z]\w*\.)+[A-Z]\w*: ", "", line.strip())  # Java's class
    line = re.sub(r"^\[[A-Z_.]+\] ?", "", line)
    line = re.sub(r"[;.]? ?SQLSTATE: \w+;?$", "", line).rstrip(";")
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + " …"
