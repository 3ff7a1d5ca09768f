"""What a fit says while it runs: a bar where somebody looks, a line for each round elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

logger = logging.getLogger("localkmeans_spark")

_BAR = "{desc}: {n_fmt}/{total_fmt} |{bar:10}| {elapsed}<{remaining}{postfix}"

# The log's level before each of the blocks that have set it: fits in threads end in any order, and
# the last to end finds the level that the first found.
_levels: list[int] = []
_lock = threading.Lock()


@contextmanager
def logged() -> Iterator[None]:
    """Let the library's log through while the block runs; to stderr unless it goes elsewhere."""
    with _lock:
        _levels.append(logger.level)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        with _lock:
            logger.setLevel(_levels.pop())


def is_listened_to() -> bool:
    """Whether the program has set up logging; what fits in other threads show does not count."""
    at: logging.Logger | None = logger
    while at is not None:
        if any(not isinstance(handler, _Follower) for handler in at.handlers):
            return True
        at = at.parent if at.propagate else None
    return False


@contextmanager
def followed(title: str, most_iterations: int, write: Callable[[str], Any]) -> Iterator[None]:
    """Show this thread's part of the library's log on stderr while the block runs.

    Parameters
    ----------
    title : str
        Stands before the bar.
    most_iterations : int
        Most Lloyd iterations of a fit.
    write : callable (line) -> None
        Writes a line on stderr: every message, or (stderr is a terminal, or the program a
        notebook's) warnings only, above a bar for the others.
    """
    watched = sys.stderr.isatty() or _in_notebook()
    with _bar(title, most_iterations) if watched and find_spec("tqdm") else nullcontext() as bar:
        handler = _Follower(most_iterations, write, bar)
        logger.addHandler(handler)
        try:
            with logged():
                yield
        finally:
            logger.removeHandler(handler)


def _in_notebook() -> bool:
    # PySpark imports IPython and its kernel in programs of any kind: a shell is what tells.
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return bool(shell and "IPKernelApp" in shell.config)


def _bar(title: str, total: int) -> Any:
    from tqdm import tqdm

    bar = tqdm(total=total, desc=title, bar_format=_BAR, file=sys.stderr, dynamic_ncols=True)
    bar.set_postfix_str("reading and seeding")
    return bar


def duration(seconds: float) -> str:
    """Say a time span in words, ``"42 s"`` or ``"3 min 5 s"``."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class _Follower(logging.Handler):
    """Shows messages; those about a round carry its record as ``round_record``."""

    def __init__(self, most_iterations: int, write: Callable[[str], Any], bar: Any) -> None:
        super().__init__()
        self._most, self._write, self._bar = most_iterations, write, bar
        self._seconds: list[float] = []
        thread = threading.get_ident()
        self.addFilter(lambda record: record.thread == thread)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message."""
        text = record.getMessage().removeprefix("LocalKMeans: ")
        done = getattr(record, "round_record", None)
        iterations = 0
        if done:
            iterations = done.iteration + (0 if done.reverted else done.local_steps)
        if record.levelno >= logging.WARNING:
            text = f"{record.levelname.lower()}: {text}"
            with self._bar.external_write_mode(sys.stderr) if self._bar else nullcontext():
                self._write(text)
        elif self._bar:
            # Fits that run together tell one after the other how far they are.
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(max(0, iterations - self._bar.n))
            self._bar.refresh()
        elif done:
            # An upper bound: L may fall to 1, most fits converge before max_iter, and a round of
            # one step is no slower than one of several. The last rounds count, because the first
            # ones are slow for reasons of their own (JIT, cold caches).
            self._seconds = [*self._seconds[-2:], done.seconds]
            time = duration((self._most - iterations) * sum(self._seconds) / len(self._seconds))
            last = iterations >= self._most
            self._write(text + (", the last" if last else f", at most about {time} left"))
        else:
            self._write(text)
