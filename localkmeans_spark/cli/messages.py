"""What a command says: progress, tables, JSON, and one line when something is wrong.

Nothing here shows secrets of URLs or control characters.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from localkmeans_spark.errors import FULL_DISK, RAISED, Fact, InvalidInputError, count_of, invalid

if TYPE_CHECKING:
    from localkmeans_spark.records import FitRecord

_LONGEST_LINE = 500
MOST_SHOWN = 40  # clusters, or lines of a table, that somebody reads
_SIGNALS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}

# The container of an Azure URL stands where other URLs have a name and a secret.
_AZURE = r"(?!(?:abfss?|wasbs?)://[^\s/@:'\"]+@)"
# A secret may hold a slash that nobody escaped; digits after a colon are a port.
_SECRET = r"(?:[^\s/@:'\"]*:(?!\d+/)[^\s'\"]*?@(?![^\s/'\"]*@)|[^\s/@:'\"]+@)"
_USER = re.compile(rf"{_AZURE}\b([A-Za-z][\w+.-]*:/+){_SECRET}")
_QUERY = re.compile(
    r"([?&;](?:sig|[^=&?\s]*(?:token|secret|key|password|credential|signature)[^=&\s]*)=)"
    r"[^&\s'\"]+",
    re.IGNORECASE,
)

# Spark reports some of what a user can fix only when the rows are read, as errors of any class;
# these words tell them. A full disk hides behind other words, so it is looked for first.
_SLIPS = re.compile(
    r"PATH_NOT_FOUND|PATH_ALREADY_EXISTS|path does not exist|File \S+ does not exist"
    r"|No FileSystem for scheme|Class \S+FileSystem not found|UnknownHostException"
    r"|AccessControlException|Permission denied|MALFORMED_RECORD"
    r"|CANNOT_READ_FILE_FOOTER|FAILED_READ_FILE|Could not read footer|is not a Parquet file"
    r"|Could not parse Master URL|invalid master URL|Asked to run locally"
    r"|File name too long|Read-only file system",
    re.IGNORECASE,
)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:\s.*\n)*(\S.*)")


def masked(text: str) -> str:
    """Return text with ``***`` for what stands before @ in a URL, and for tokens in its query."""
    return _QUERY.sub(r"\1***", _USER.sub(r"\1***@", text))


def printable(text: str) -> str:
    r"""Return text in which what does not show, as an escape sequence, reads ``\x1b``."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def json_line(values: dict[str, Any]) -> str:
    """Return one line of standard JSON; numbers that JSON cannot hold become null."""

    def clean(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return masked(value) if isinstance(value, str) else value

    text = json.dumps({key: clean(value) for key, value in values.items()}, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def say(owner: str, text: str) -> None:
    """Write one line of progress on stderr."""
    print(f"{owner}: {printable(masked(text))}", file=sys.stderr, flush=True)


def tell_invalid(owner: str, n_rows: int, k: int) -> None:
    """Say what cluster k is, where rows were put into it."""
    if n_rows:
        what = "null, NaN or infinity among the features, or zeros only with cosine distance"
        say(owner, f"cluster {k} holds {count_of(n_rows, 'row')} that no center is near to: {what}")


def round_note(record: FitRecord, place: int) -> str:
    """Say in a few words what was special about a round; empty for most."""
    row = record.rounds[place]
    if row.reverted:
        return row.note.replace("went back", "taken back", 1) or "taken back"
    notes = []
    if place > 0 and row.local_steps != record.rounds[place - 1].local_steps:
        notes.append(f"L is now {row.local_steps}")
    if row.empty_clusters:
        reseeded = f", {row.reseeded} reseeded" if row.reseeded else ""
        notes.append(f"{row.empty_clusters} empty{reseeded}")
    return ", ".join(notes)


def rounds_table(record: FitRecord) -> str:
    """Return the rounds as lines of text, with a last line for the returned centers.

    The inertia of a line is that of the centers the round began with.
    """
    rows = [
        (
            f"{row.round}",
            f"{row.iteration}",
            f"{row.local_steps}",
            f"{row.inertia:.8g}",
            "" if row.reverted else f"{row.center_shift:.3g}",
            f"{row.max_local_drift:.3g}",
            round_note(record, place),
        )
        for place, row in enumerate(record.rounds)
    ]
    end = "converged" if record.converged else "end"
    rows.append((end, f"{record.n_iter}", "", f"{record.inertia:.8g}", "", "", ""))
    head = ("round", "iteration", "local steps", "inertia", "shift", "drift", "note")
    legend = (
        "shift: farthest that a center moved in the round; "
        "drift: farthest that a partition's own center went in its local steps"
    )
    note = restarts_note(record)
    return "\n".join([_table(head, rows), legend, *([f"restarts: {note}"] if note else [])])


def restarts_note(record: FitRecord) -> str:
    """Say how the restarts of a fit ended; empty when there was only one."""
    if len(record.restarts) < 2:
        return ""
    dropped = Counter(row.dropped for row in record.restarts if row.dropped is not None)
    parts = [f"{dropped[number]} dropped after round {number}" for number in sorted(dropped)]
    worst = max(row.inertia for row in record.restarts)
    text = ", ".join([f"{len(record.restarts)} in all", *parts])
    return f"{text}; the worst stood at {worst:.6g} or less"


def sizes_table(sizes: dict[int, int]) -> str:
    """Return rows by cluster as lines of text, the largest clusters first."""
    total = sum(sizes.values()) or 1
    order = sorted(sizes, key=lambda cluster: (-sizes[cluster], cluster))
    return _table(
        ("cluster", "rows", "share"), [(i, sizes[i], f"{sizes[i] / total:.1%}") for i in order]
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(head)).to_string(index=False, max_rows=MOST_SHOWN)


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
            _end(owner, told, 2)
        if debug:
            traceback.print_exc()
        what = f"{type(error).__name__}: {_telling_line(str(error))}"
        _end(owner, f"{what} (unexpected; --debug shows where)", 1)
    finally:
        logging.disable(logging.NOTSET)
        for number, handler in before.items():
            signal.signal(number, handler)


def _catch_signals(received: list[int]) -> dict[signal.Signals, Any]:
    """Let signals raise ``KeyboardInterrupt``, once; return the handlers there were."""

    def stop(number: int, frame: object) -> NoReturn:
        received.append(number)
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        # Py4J drops the connection that was waiting, and logs that with a stack trace.
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for each in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
            # nohup and shells that start a job in the background have some ignored: they stay so.
            if signal.getsignal(each) not in (signal.SIG_IGN, None):
                before[each] = signal.signal(each, stop)
    return before


def _end(owner: str, text: str, status: int) -> NoReturn:
    # Messages of the library begin with their owner, which may be the command itself.
    text = " ".join(text.removeprefix(f"{owner}: ").split())
    with suppress(OSError):
        sys.stdout.flush()
    text = printable(masked(text))
    if len(text) > 3 * _LONGEST_LINE:  # a value of thousands of digits; the end says what to do
        text = f"{text[: 2 * _LONGEST_LINE]} … {text[-_LONGEST_LINE:]}"
    print(f"{owner}: error: {text}", file=sys.stderr, flush=True)
    raise SystemExit(status) from None


def _fixable(error: Exception) -> str | None:
    """Return the line to show when the user can fix the error, else None."""
    module, text = type(error).__module__, str(error)
    of_spark = module.startswith(("pyspark", "py4j"))
    raised = RAISED.search(text) if of_spark else None
    if raised or isinstance(error, InvalidInputError):
        from localkmeans_spark.cli.flags import in_words_of_flags

        text = raised[1] if raised else text
        return in_words_of_flags(re.sub(r"^LocalKMeans(Model)?: ", "", text))
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.split(".")[0]
        if package == "localkmeans_spark":
            return None
        fix = f"Run: {sys.executable} -m pip install {package}, or use an interpreter that has it."
        rule = f"installed for {sys.executable}"
        return str(invalid("", f"the Python package {package!r}", rule, Fact("none"), fix))[2:]
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if module.startswith("click"):
        return f"{error.format_message().rstrip('.')}. See --help."  # type: ignore[attr-defined]
    if not of_spark:
        return None
    from pyspark.errors import AnalysisException

    for about in (FULL_DISK, _SLIPS):
        if about.search(text):
            return _telling_line(text, about)
    return _telling_line(text) if isinstance(error, AnalysisException) else None


def _telling_line(text: str, about: re.Pattern[str] | None = None) -> str:
    """Return the line of an error that says what is wrong, without Spark's decoration.

    It is the first line that matches ``about``, else the end of the Python traceback inside the
    message, else the first line.
    """
    text = re.sub(r"^An error occurred while calling .*\n: ", "", text)
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    matching = [line for line in lines if about and about.search(line)]
    raised = _TRACEBACK.search(text)
    line = matching[0] if matching else raised[1] if raised else lines[0]
    line = re.sub(r"^.*most recent failure: Lost task .*?\): ", "", line)
    line = re.sub(r"^(?:Caused by)?:? ?(?:(?:[a-z]\w*\.)+[A-Z]\w*: )+", "", line.strip())  # Java
    line = re.sub(r"^\[[A-Z_.]+\] ?", "", line)
    return re.sub(r"[;.]? ?SQLSTATE: \w+;?$", "", line).rstrip(";")
