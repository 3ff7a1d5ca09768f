"""Keeping Python's garbage collector short in worker processes."""

from __future__ import annotations

import gc
from functools import cache

from pyspark import TaskContext


def spare_the_collector() -> None:
    """Hide what is imported from the garbage collector, once a worker process.

    A PySpark worker collects garbage after every task and looks at every object it has. With
    NumPy, SciPy and pyarrow imported these are several hundred thousand, which takes 40 ms and
    more, longer than most tasks. What is alive now, mostly modules, will never be garbage: frozen
    objects are still freed when nothing refers to them. Runs on: executor.
    """
    if TaskContext.get() is not None:
        _freeze()


@cache
def _freeze() -> None:
    gc.collect()  # what is garbage now should not be kept
    gc.freeze()
