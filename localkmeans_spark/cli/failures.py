"""How a command ends when something is wrong: one line on stderr and an exit status."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from localkmeans_spark.cli.text import shown
from localkmeans_spark.errors import Fact, InvalidInputError, invalid

USER_ERROR, FAILURE = 2, 1
_LONGEST_LINE = 500
_SIGNALS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}

# Spark reports some of what a user can fix only when the rows are read, as errors of any class;
# these words tell them.
_USER_SLIPS = re.compile(
    r"PATH_NOT_FOUND|PATH_ALREADY_EXISTS|path does not exist|File \S+ does not exist"
    r"|No FileSystem for scheme|Class \S+FileSystem not found|UnknownHostException"
    r"|AccessControlException|Permission denied"
    r"|CANNOT_READ_FILE_FOOTER|FAILED_READ_FILE|Could not read footer|is not a Parquet file"
    r"|MALFORMED_RECORD|Could not parse Master URL|invalid master URL"
    r"|No space left on device|Disk quota exceeded|File name too long|Read-only file system",
    re.IGNORECASE,
)
# An error of the library raised by a Python worker, or by a column.
_RAISED = re.compile(
    r"(?:\bInvalidInputError: |\[USER_RAISED_EXCEPTION\] (?=LocalKMeans))(.+?)(?: SQLSTATE: \w+)?$",
    re.MULTILINE,
)
# What hides the reason when the disk is full, so it is looked for first.
_FIRST = re.compile(r"No space left on device|Disk quota exceeded")


def debug_wanted() -> bool:
    """Say whether stack traces and Spark's messages are wanted (--debug, LOCALKMEANS_DEBUG=1)."""
    return "--debug" in sys.argv[1:] or os.environ.get("LOCALKMEANS_DEBUG") == "1"


@contextmanager
def user_errors(owner: str, debug: bool | None = None) -> Iterator[None]:
    """End the process in one line when the block fails or a signal asks it to end.

    What the user can fix ends with exit status 2, anything else with 1 and a stack trace only
    where asked for. SIGINT, SIGTERM and SIGHUP end the block by ``KeyboardInterrupt``, so that
    whoever writes can tidy up, and the process with 128 + their number, as shells know it.

    Parameters
    ----------
    owner : str
        The command.
    debug : bool or None
        Whether to write stack traces; None asks :func:`debug_wanted`.
    """
    debug = debug_wanted() if debug is None else debug
    received: list[int] = []
    before = _catch_signals(received)
    try:
        yield
    except BaseException as error:
        # Whatever else went wrong on the way out follows from the signal.
        if received or isinstance(error, KeyboardInterrupt):
            name = signal.Signals(received[0] if received else signal.SIGINT)
            _end(owner, _SIGNALS[name.name], 128 + name)
        if not isinstance(error, Exception):
            raise
        if isinstance(error, BrokenPipeError) and error.filename is None:  # as in `... | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise SystemExit(128 + signal.SIGPIPE) from None
        told = _fixable(error)
        if told is not None:
            _end(owner, told, USER_ERROR)
        if debug:
            traceback.print_exc()
        what = f"{type(error).__name__}: {_telling_line(str(error))}"
        _end(owner, f"{what} (unexpected; --debug shows where)", FAILURE)
    finally:
        logging.disable(logging.NOTSET)
        for number, handler in before.items():
            signal.signal(number, handler)


def _catch_signals(received: list[int]) -> dict[signal.Signals, signal.Handlers]:
    """Let signals raise ``KeyboardInterrupt``, once; return the handlers there were."""

    def stop(number: int, frame: object) -> NoReturn:
        received.append(number)
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        # Py4J drops the connection that was waiting, and logs that with a stack trace.
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    before: dict[signal.Signals, signal.Handlers] = {}
    if threading.current_thread() is threading.main_thread():
        known = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        # nohup and shells that start a job in the background have some ignored: they stay so.
        before = {each: signal.getsignal(each) for each in known}  # type: ignore[misc]
        before = {each: old for each, old in before.items() if old not in (signal.SIG_IGN, None)}
        for each in before:
            signal.signal(each, stop)
    return before


def _end(owner: str, text: str, status: int) -> NoReturn:
    # Messages of the library begin with their owner, which may be the command itself.
    text = " ".join(text.removeprefix(f"{owner}: ").split())
    with suppress(OSError):
        sys.stdout.flush()
    text = shown(text)
    if len(text) > 3 * _LONGEST_LINE:  # a value of thousands of digits; the end says what to do
        text = f"{text[: 2 * _LONGEST_LINE]} … {text[-_LONGEST_LINE:]}"
    print(f"{owner}: error: {text}", file=sys.stderr, flush=True)
    raise SystemExit(status) from None


def _fixable(error: Exception) -> str | None:
    """Return the line to show when the user can fix the error, else None."""
    module, text = type(error).__module__, str(error)
    of_spark = module.startswith(("pyspark", "py4j"))
    raised = _RAISED.search(text) if of_spark else None
    if raised or isinstance(error, InvalidInputError):
        from localkmeans_spark.cli.flags import in_words_of_flags

        text = raised[1] if raised else text
        return in_words_of_flags(re.sub(r"^LocalKMeans(Model)?: ", "", text))
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _not_installed(error.name.split(".")[0])
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if module.startswith("click"):
        return f"{error.format_message().rstrip('.')}. See --help."  # type: ignore[attr-defined]
    if not of_spark:
        return None
    if _FIRST.search(text):
        return _telling_line(text, about=_FIRST)
    from pyspark.errors import AnalysisException

    if isinstance(error, AnalysisException):
        return _telling_line(text)
    return _telling_line(text, about=_USER_SLIPS) if _USER_SLIPS.search(text) else None


def _not_installed(package: str) -> str | None:
    if package == "localkmeans_spark":
        return None
    fix = f"Run: {sys.executable} -m pip install {package}, or use an interpreter that has it."
    subject = f"the Python package {package!r}"
    return str(invalid("", subject, f"installed for {sys.executable}", Fact("none"), fix))[2:]


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
    line = re.sub(r"^(?:Caused by)?:? ?(?:(?:[a-z]\w*\.)+[A-Z]\w*: )+", "", line.strip())  # Java
    line = re.sub(r"^\[[A-Z_.]+\] ?", "", line)
    line = re.sub(r"[;.]? ?SQLSTATE: \w+;?$", "", line).rstrip(";")
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + " …"
