"""What makes the tasks of worker processes cheaper: two settings of theirs, and sharing them."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from pyspark import SparkContext, TaskContext

# Codes of glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# Arrays of a chunk are at most a few MB; a process keeps up to this much that is free.
_KEPT_BYTES, _LARGEST_KEPT = 64 << 20, 16 << 20


def prepare_worker() -> None:
    """Prepare a worker process for many short tasks; leave the driver alone.

    Runs on: executor.
    """
    if TaskContext.get() is not None:
        _spare_the_collector(len(sys.modules))
        _keep_freed_memory()


@cache
def _spare_the_collector(n_modules: int) -> None:
    """Hide what is imported from the garbage collector, again when there is more of it.

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


# What Spark SQL, but not an RDD, puts into the environment of its Python workers by default.
_MARK_OF_SQL = "SPARK_SIMPLIFIED_TRACEBACK"


@contextmanager
def workers_of_sql(context: SparkContext) -> Iterator[None]:
    """Let RDD functions made inside run in the worker processes that Spark SQL started.

    Spark keeps a pool of workers for every environment. SQL's differs from that of RDDs in one
    variable, which shortens tracebacks. With the same one, the passes of a fit go on in the
    processes that took the rows in, and its ``transform`` as well: half as many processes that
    each take a second to start and import.
    """
    environment = context.environment
    if _MARK_OF_SQL in environment:
        yield
        return
    environment[_MARK_OF_SQL] = "1"
    try:
        yield
    finally:
        environment.pop(_MARK_OF_SQL, None)
