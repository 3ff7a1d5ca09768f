"""What a command says on stderr while it works."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from localkmeans_spark.cli.text import shown
from localkmeans_spark.errors import count_of


def say(owner: str, text: str) -> None:
    """Write one line of progress."""
    print(f"{owner}: {shown(text)}", file=sys.stderr, flush=True)


def tell_invalid(owner: str, n_rows: int, k: int) -> None:
    """Say what cluster k is, where rows were put into it."""
    if n_rows:
        what = "null, NaN or infinity among the features, or zeros only with cosine distance"
        say(owner, f"cluster {k} holds {count_of(n_rows, 'row')} that no center is near to: {what}")


def duration(seconds: float) -> str:
    """Say a time span in words, ``"42 s"`` or ``"3 min 5 s"``."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def told_rounds(owner: str, max_iter: int) -> Iterator[None]:
    """Tell the library's log on stderr, with the time left after each round.

    Parameters
    ----------
    owner : str
    max_iter : int
        Most Lloyd iterations of the fit.
    """
    log = logging.getLogger("localkmeans_spark")
    handler = _Rounds(owner, max_iter)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _Rounds(logging.Handler):
    """Writes messages; those about a round carry its record as ``round_record``."""

    def __init__(self, owner: str, max_iter: int) -> None:
        super().__init__()
        self._owner, self._max_iter = owner, max_iter
        self._seconds: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message of a record."""
        text = record.getMessage().removeprefix("LocalKMeans: ")
        if record.levelno >= logging.WARNING:
            text = f"{record.levelname.lower()}: {text}"
        done = getattr(record, "round_record", None)
        if done is not None:
            self._seconds.append(done.seconds)
            text += f", {self._time_left(done.iteration, done.local_steps, done.reverted)}"
        say(self._owner, text)

    def _time_left(self, iteration: int, local_steps: int, reverted: bool) -> str:
        left = self._max_iter - iteration - (0 if reverted else local_steps)
        if left <= 0:
            return "the last"
        # An upper bound: L may fall to 1, most fits converge before max_iter, and a round of one
        # step is no slower than one of several. The last rounds count, because the first ones are
        # slow for reasons of their own (JIT, cold caches).
        recent = self._seconds[-3:]
        return f"at most about {duration(left * sum(recent) / len(recent))} left"
