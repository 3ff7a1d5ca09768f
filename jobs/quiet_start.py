"""Keep the chatter of a starting JVM off stderr."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Lines that Java and native libraries write by themselves, whatever the log settings say.
_CHATTER = (
    b"Picked up ",  # JAVA_TOOL_OPTIONS and its kin
    b"WARNING: Using incubator modules",  # Spark asks for one in every JVM it starts
    b"WARNING: package sun.security.action not in java.base",  # from Java 24 on
    b"netlib-blas: ",  # MLlib looks for a BLAS and falls back without harm
    b":: ",  # Ivy's headings when spark.jars.packages is set
)
# PySpark's worker daemon, when Spark lets workers go that were idle for a minute: a traceback
# through nothing but the daemon, on unix-domain sockets. Nothing is lost.
_TRACEBACK, _DAEMON, _BROKEN_PIPE = b"Traceback (", b"/pyspark/daemon.py", b"BrokenPipeError"

_muted = threading.Event()


@contextmanager
def quiet_start() -> Iterator[None]:
    """Filter the stderr of processes started inside the block, for as long as they live.

    They get a pipe for stderr; a thread copies it line by line to the stderr of this process and
    leaves out :data:`_CHATTER` and the complaints of idle workers. This process's own stderr is as
    before after the block.
    """
    sys.stderr.flush()
    real = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    threading.Thread(target=_copy, args=(reader, real), name="stderr-filter", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(real, 2)


def mute_filtered() -> None:
    """Leave out everything until the next :func:`unmute_filtered`.

    For the end of a session: Python workers told to end may complain of broken pipes.
    """
    _muted.set()


def unmute_filtered() -> None:
    """Take :func:`mute_filtered` back."""
    _muted.clear()


def _copy(reader: int, real: int) -> None:
    held: list[bytes] = []  # tracebacks as long as they may be ones to leave out
    open_ones = 0  # several workers may write theirs at once, line by line
    with os.fdopen(reader, "rb") as lines, os.fdopen(real, "wb", buffering=0) as out:
        for line in lines:
            if _muted.is_set() or line.startswith(_CHATTER):
                continue
            begins, ends = line.startswith(_TRACEBACK), line.startswith(_BROKEN_PIPE)
            if begins or (open_ones and (ends or _DAEMON in line)):
                held.append(line)
                open_ones += begins - ends
                if not open_ones:
                    held = []
                continue
            out.writelines([*held, line])
            held, open_ones = [], 0
        out.writelines(held)
