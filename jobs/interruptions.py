"""Ctrl-C and SIGTERM as exceptions, so that a job can tidy up before it ends."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible(owner: str) -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM end the block by ``KeyboardInterrupt``, once, wherever it is.

    Leaves by ``KeyboardInterrupt`` after Ctrl-C and by ``SystemExit(143)``, as shells know it,
    after SIGTERM, whatever else went wrong on the way out. Further signals are ignored meanwhile.

    Yields
    ------
    callable
        Call it when a Spark session has been opened: PySpark puts a handler of its own in place,
        which calls the JVM in the middle of another call and fills the screen with stack traces.
    """
    received: list[int] = []

    def stop(number: int, frame: object) -> NoReturn:
        received.append(number)
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        # Py4J drops the connection that was waiting, and logs that with a stack trace.
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    def catch() -> None:
        for each in _SIGNALS:
            signal.signal(each, stop)

    before = {each: signal.getsignal(each) for each in _SIGNALS}
    catch()
    try:
        yield catch
    except BaseException:
        if signal.SIGTERM in received:
            print(f"{owner}: error: terminated", file=sys.stderr, flush=True)
            raise SystemExit(128 + signal.SIGTERM) from None
        if received:
            raise KeyboardInterrupt from None
        raise
    finally:
        logging.disable(logging.NOTSET)
        for each, handler in before.items():
            signal.signal(each, handler)
