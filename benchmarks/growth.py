"""How fits grow: time against rows, features, clusters, partitions and local steps; memory.

From one base point, one quantity grows at a time, in one warm session; every fit runs the paper's
plain algorithm (``safeguard=False``), so that the number of rounds is known. ``--memory`` measures
the peaks of one fit instead, that of ``--base``; with more rows than Spark's memory holds, their
blocks go to disk (``make bench`` names the sizes). Started by ``jobs/local_cluster.py``, it fits on
that cluster. ``--json`` appends one object a fit.

Example: ``python -m benchmarks.growth --json benchmarks/results/growth.json``
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.about import keep, parser
from benchmarks.data import write_mixture
from benchmarks.systems import cluster, session
from localkmeans_spark.data.rdd_jobs import tree_depth

_ITERATIONS, _WARM_UPS = 10, 8
# Clusters overlap: rows keep moving, as in data that is worth clustering.
_NOISE = 2.0
_FILES = 16


class Point(NamedTuple):
    """One fit to measure: rows, features, clusters, partitions (0: one a file), local steps."""

    n: int = 200_000
    d: int = 32
    k: int = 32
    m: int = 8
    local_steps: int = 5


SWEEPS: dict[str, list[int]] = {
    "n": [25_000, 50_000, 100_000, 200_000, 400_000, 800_000],
    "d": [8, 16, 32, 64, 128, 256],
    "k": [8, 16, 32, 64, 128, 256, 512],
    "m": [1, 2, 4, 8, 16, 64, 250, 1000],
    "local_steps": [1, 2, 5, 10],
}


def fit(spark: Any, path: Path, point: Point, seed: int) -> dict[str, Any]:
    """Fit once; return the point with seconds by phase, and what a round sends."""
    from localkmeans_spark import LocalKMeans

    estimator = LocalKMeans(
        k=point.k, maxIter=_ITERATIONS, localSteps=point.local_steps, tol=0.0, seed=seed,
        safeguard=False,
    )  # fmt: skip
    if point.m:
        estimator.setNumPartitions(point.m)
    record = estimator.fit(spark.read.parquet(str(path))).summary.record
    last = record.rounds[-1]
    n_tasks, rest = divmod(last.bytes_up, 8 * point.k * point.d)
    assert rest == 0, "sums in several grids"
    return {
        **point._asdict(),
        "partitions": record.n_partitions,
        "iterations": record.n_iter,
        "rounds": record.n_rounds,
        "seconds": record.seconds,
        "round_s": last.seconds,
        "bytes_down": last.bytes_down,
        "tasks": n_tasks,
        "depth": tree_depth(n_tasks, 8 * point.k * point.d),
    }


def _warm_up(spark: Any, folder: str) -> None:
    path = Path(folder) / "warm-up"
    write_mixture(path, 100_000, 16, 16, files=_FILES, noise=_NOISE)
    for _ in range(_WARM_UPS):
        fit(spark, path, Point(100_000, 16, 16), 0)


def measure(options: Namespace) -> None:
    """Measure all points in one session, in another order every time."""
    base = Point(*options.base)
    sweeps = {name: SWEEPS[name] for name in options.sweeps.split(",")}
    chosen = {base._replace(**{name: n}) for name, values in sweeps.items() for n in values}
    order = sorted({base, *chosen})
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder, session(options) as spark:
        _warm_up(spark, folder)
        for seed in range(options.repeats):
            for i in rng.permutation(len(order)):
                point = order[i]
                path = Path(folder) / f"{point.n}-{point.d}"
                if not path.exists():
                    write_mixture(path, point.n, point.d, 64, files=8, noise=_NOISE)
                found = fit(spark, path, point, seed)
                keep(options.json, [{"kind": "time", **found, "cores": options.cores}])
                print(f"{point} {found['seconds']['total']:.2f} s", file=sys.stderr)


def measure_memory(options: Namespace) -> None:
    """Fit the base point, after warming up on other rows, and watch the memory."""
    point = Point(*options.base)
    with tempfile.TemporaryDirectory() as folder, session(options) as spark:
        path = Path(folder) / "rows"
        # In another process: the memory that making the rows takes is not the fit's.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            size = {"files": _FILES, "noise": _NOISE}
            pool.apply(write_mixture, (path, point.n, point.d, 64), size)
        _warm_up(spark, folder)
        with watched(spark) as peak:
            found = fit(spark, path, point, 0)
        heap = int(spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory())
    memory = {"heap_bytes": heap, "peak_bytes": peak}
    kind = "cluster" if cluster() else "memory"
    keep(options.json, [{"kind": kind, **found, **memory, "cores": options.cores}])
    print(f"{point} {found} {peak}", file=sys.stderr)


@contextmanager
def watched(spark: Any, every: float = 0.1) -> Iterator[dict[str, int]]:
    """Watch memory; yield the peaks so far, in bytes.

    Resident memory of the Python ``driver``, the largest ``jvm`` and Python ``worker``; blocks
    that Spark keeps in memory (``kept``) and on ``disk``. Peaks between two looks are missed.
    """
    import psutil

    context, driver = spark.sparkContext._jsc.sc(), psutil.Process()
    # A cluster's processes are children of what started it, as this one is.
    root = driver.parent() if cluster() else driver
    peak = dict.fromkeys(("driver", "jvm", "worker", "kept", "disk"), 0)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(every):
            seen = [("driver", driver.memory_info().rss)]
            for process in root.children(recursive=True):
                if process.pid == driver.pid:
                    continue
                with contextlib.suppress(psutil.Error):  # ended while it was looked at
                    name = "jvm" if process.name().startswith("java") else "worker"
                    seen.append((name, process.memory_info().rss))
            with contextlib.suppress(Exception):  # a status that vanishes while it is read
                rdds = list(context.getRDDStorageInfo())
                seen.append(("kept", sum(int(rdd.memSize()) for rdd in rdds)))
                seen.append(("disk", sum(int(rdd.diskSize()) for rdd in rdds)))
            for name, nbytes in seen:
                peak[name] = max(peak[name], nbytes)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def main() -> None:
    """Measure."""
    flags = parser(__doc__, sweeps=",".join(SWEEPS), repeats=2, driver_memory="4g")
    flags.add_argument("--base", type=int, nargs=5, default=list(Point()), metavar="N D K M L")
    flags.add_argument("--memory", action="store_true", help="peaks of the base point, not time")
    options = flags.parse_args()
    (measure_memory if options.memory else measure)(options)


if __name__ == "__main__":
    main()
