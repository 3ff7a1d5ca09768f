"""Peak memory of the driver, its JVM and its Python workers (Linux: read from /proc)."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def peaks(driver: int) -> dict[str, int]:
    """Return the largest resident memory so far, in bytes.

    Parameters
    ----------
    driver : int
        Process number of the Python driver; the JVM is its child, the workers the JVM's.

    Returns
    -------
    dict
        ``driver``, ``jvm``, and ``worker``: that of the largest worker.
    """
    parents, names = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = stat.read_text()
            pid, name = int(stat.parent.name), text[text.index("(") + 1 : text.rindex(")")]
            names[pid] = name
            parents[pid] = int(text[text.rindex(")") + 2 :].split()[1])
    found = {"driver": _peak(driver), "jvm": 0, "worker": 0}
    for pid, name in names.items():
        if _descends(pid, driver, parents):
            kind = "jvm" if name.startswith("java") else "worker"
            found[kind] = max(found[kind], _peak(pid))
    return found


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _peak(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


@contextmanager
def storage_peak(spark: Any, every: float = 0.1) -> Iterator[dict[str, int]]:
    """Watch how many bytes of blocks Spark keeps: the peaks in ``memory`` and on ``disk``."""
    context = spark.sparkContext._jsc.sc()
    peak, done = {"memory": 0, "disk": 0}, threading.Event()

    def watch() -> None:
        while not done.is_set():
            with contextlib.suppress(Exception):  # a status that vanishes while it is read
                kept = list(context.getRDDStorageInfo())
                peak["memory"] = max(peak["memory"], sum(int(each.memSize()) for each in kept))
                peak["disk"] = max(peak["disk"], sum(int(each.diskSize()) for each in kept))
            time.sleep(every)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
