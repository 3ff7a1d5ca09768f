"""Two settings of a worker process that make its tasks cheaper."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache

from pyspark import TaskContext

# Codes of glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# Arrays of a chunk are at most a few MB; a process keeps up to this much that is free.
_KEPT_BYTES, _LARGEST_KEPT = 64 << 20, 16 << 20


def prepare_worker() -> None:
    """Prepare a worker process for many short tasks, once; leave the driver alone.

    Runs on: executor.
    """
    if TaskContext.get() is not None:
        _spare_the_collector()
        _keep_freed_memory()


@cache
def _spare_the_collector() -> None:
    """Hide what is imported from the garbage collector.

    A PySpark worker collects garbage after every task and looks at every object it has. With
    NumPy, SciPy and pyarrow imported these are several hundred thousand, which takes 40 ms and
    more, longer than most tasks. What is alive now, mostly modules, will never be garbage: frozen
    objects are still freed when nothing refers to them.
    """
    gc.collect()  # what is garbage now should not be kept
    gc.freeze()


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep some memory instead of giving it back after every chunk.

    By default glibc hands arrays of more than 128 KiB, and the free end of its heap, back to the
    system, and fetches them anew, page fault by page fault, for the next chunk: a seeding pass
    over 200,000 x 64 then took 120 ms, of which 100 in the operating system, instead of 20.
    Nothing is done where the C library is another one.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
