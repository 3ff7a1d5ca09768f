"""How fits grow: time against rows, features, clusters, machines and local steps; memory by size.

From one base point, one quantity grows at a time, in one warm session; every fit runs the paper's
plain algorithm (``safeguard=False``), so that the number of rounds is known. Memory is measured in
fresh processes (``--memory``). ``--rows`` goes on to more rows than Spark's memory holds (the
driver memory says how many those are). ``--json`` appends one object a fit; ``benchmarks.model``
and ``benchmarks.page`` read them.

Example: ``python -m benchmarks.growth --json benchmarks/results/growth.json``
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.about import environment
from benchmarks.data import write_mixture
from benchmarks.processes import peaks, storage_peak
from benchmarks.spark_systems import session

ITERATIONS = 10
# Clusters overlap: rows keep moving, as in data that is worth clustering.
_NOISE = 2.0


class Point(NamedTuple):
    """One fit to measure: rows, features, clusters, machines, local steps."""

    n: int = 200_000
    d: int = 32
    k: int = 32
    m: int = 8
    local_steps: int = 5


SWEEPS: dict[str, list[int]] = {
    "n": [25_000, 50_000, 100_000, 200_000, 400_000, 800_000],
    "d": [8, 16, 32, 64, 128, 256],
    "k": [8, 16, 32, 64, 128, 256, 512],
    "m": [1, 2, 4, 16, 64, 250, 1000],  # the base has 8
    "local_steps": [1, 2, 5, 10],
}
_MIXED, _WARM_UP = 16, 8
_NARROW = Point(d=16, k=20, m=16)
_MANY_ROWS = [800_000, 3_200_000, 12_500_000, 50_000_000]
_MEMORY_POINTS = [
    Point(n=25_000, d=8, k=8),
    Point(n=200_000), Point(n=800_000), Point(n=800_000, m=2), Point(n=800_000, d=64, m=2),
    Point(n=100_000, d=256, k=512), Point(n=100_000, d=256, k=2048),
]  # fmt: skip


def points(base: Point, names: list[str], largest: int) -> dict[Point, str]:
    """Return points, and the sweep that each belongs to.

    The base point; those that differ from it in one quantity; and, as "mixed", some that differ
    in all, between the ends of the sweeps, on which a cost model can be checked.
    """
    found = {base: "base"}
    for name in (name for name in names if name != "mixed"):
        for value in SWEEPS[name]:
            if name != "n" or value <= largest:
                found.setdefault(base._replace(**{name: value}), name)
    if "mixed" in names:
        rng = np.random.default_rng(0)
        for _ in range(_MIXED):
            chosen = {name: int(rng.choice(values[1:])) for name, values in SWEEPS.items()}
            chosen |= {"n": min(chosen["n"], largest), "m": min(chosen["m"], 64)}
            found.setdefault(Point(**chosen), "mixed")
    return found


def fit(spark: Any, path: Path, point: Point, seed: int, shuffle: bool = True) -> dict[str, Any]:
    """Fit once; return seconds by phase and what the cost model needs to know.

    Without ``shuffle`` the files are the machines.
    """
    from localkmeans_spark import LocalKMeans

    estimator = LocalKMeans(
        k=point.k, maxIter=ITERATIONS, localSteps=point.local_steps, tol=0.0, seed=seed,
        safeguard=False,
    )  # fmt: skip
    if shuffle:
        estimator.setNumPartitions(point.m)
    record = estimator.fit(spark.read.parquet(str(path))).summary.record
    return {
        **point._asdict(),
        "machines": record.n_partitions,
        "iterations": record.n_iter,
        "rounds": [row.seconds for row in record.rounds],
        "seeding_passes": record.seeding_passes,
        "bytes_exchanged": record.bytes_exchanged,
        "seconds": record.seconds,
    }


def measure(options: argparse.Namespace) -> None:
    """Measure all points in one session, in another order every time."""
    chosen = points(Point(*options.base), options.sweeps.split(","), options.largest)
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder, session(options) as spark:
        warm = Path(folder) / "warm-up"
        write_mixture(warm, 100_000, 16, 16, files=8, noise=_NOISE)
        for _ in range(_WARM_UP):
            fit(spark, warm, Point(100_000, 16, 16), 0)
        for seed in range(options.repeats):
            order = rng.permutation(np.array(list(chosen)))
            for i, point in enumerate(Point(*map(int, values)) for values in order):
                path = Path(folder) / f"{point.n}-{point.d}"
                if not path.exists():
                    write_mixture(path, point.n, point.d, 64, files=8, noise=_NOISE)
                found = fit(spark, path, point, seed)
                row = {"kind": "time", "sweep": chosen[point], **found, "cores": options.cores}
                _keep(options.json, row)
                print(f"{i + 1}/{len(chosen)} {point} {found['seconds']['total']:.2f} s",
                      file=sys.stderr)  # fmt: skip


def measure_memory(options: argparse.Namespace) -> None:
    """Measure the memory points, each in a process of its own."""
    for point in _MEMORY_POINTS:
        command = [
            sys.executable, "-m", "benchmarks.growth", "--alone",
            "--base", *map(str, point), "--cores", str(options.cores),
            "--driver-memory", options.driver_memory,
        ]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        _keep(options.json, {"kind": "memory", **found, "cores": options.cores})
        print(f"{point} {found['peak_bytes']}", file=sys.stderr)


def measure_rows(options: argparse.Namespace) -> None:
    """Measure narrow rows, more and more of them, and where their blocks are kept."""
    sizes = [n for n in _MANY_ROWS if n <= options.largest]
    for n in sizes:
        point = _NARROW._replace(n=n)
        with tempfile.TemporaryDirectory() as folder, session(options) as spark:
            warm, path = Path(folder) / "warm-up", Path(folder) / "rows"
            write_mixture(warm, 100_000, point.d, 16, files=point.m, noise=_NOISE)
            write_mixture(path, point.n, point.d, 64, files=point.m, noise=_NOISE)
            for _ in range(_WARM_UP):
                fit(spark, warm, point._replace(n=100_000), 0, shuffle=False)
            with storage_peak(spark, every=0.5) as storage:
                found = fit(spark, path, point, 0, shuffle=False)
            heap = int(spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory())
        row = {"kind": "rows", **found, "kept_bytes": storage, "heap_bytes": heap}
        _keep(options.json, {**row, "cores": options.cores})
        print(f"{point} {found['seconds']['total']:.1f} s, {storage}", file=sys.stderr)


def one_alone(options: argparse.Namespace) -> None:
    """Fit one point in this process and print its memory."""
    point = Point(*options.base)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        # In another process: the memory that making the rows takes is not the fit's.
        writer = multiprocessing.get_context("spawn").Process(
            target=write_mixture,
            args=(path, point.n, point.d, 64),
            kwargs={"files": 8, "noise": _NOISE},
        )
        writer.start()
        writer.join()
        with session(options) as spark:
            before = peaks(os.getpid())
            with storage_peak(spark) as storage:
                found = fit(spark, path, point, 0)
            memory = peaks(os.getpid())
            heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()
    found |= {"before_bytes": before, "heap_bytes": int(heap)}
    found["peak_bytes"] = {**memory, "storage": storage["memory"]}
    print(json.dumps(found))


def _keep(path: Path | None, row: dict[str, Any]) -> None:
    if path is None:
        print(json.dumps(row))
        return
    with path.open("a") as out:
        out.write(json.dumps({**row, **environment()}) + "\n")


class Slope(NamedTuple):
    """Slope of log(seconds) over log(quantity), with the ends of its 95 % interval."""

    slope: float
    low: float
    high: float


def log_slope(x: Any, seconds: Any) -> Slope:
    """Fit a straight line to logarithms."""
    found = stats.linregress(np.log(x), np.log(seconds))
    half = float(stats.t.ppf(0.975, len(x) - 2) * found.stderr)
    return Slope(float(found.slope), float(found.slope) - half, float(found.slope) + half)


class Line(NamedTuple):
    """seconds = fixed + rate * quantity, and the share of the variance it explains."""

    fixed: float
    rate: float
    r_squared: float


def straight_line(x: Any, seconds: Any) -> Line:
    """Fit a straight line, near points counting as much as far ones (relative errors)."""
    x, seconds = np.asarray(x, dtype=float), np.asarray(seconds, dtype=float)
    design = np.stack([np.ones_like(x), x], axis=1) / seconds[:, None]
    (fixed, rate), *_ = np.linalg.lstsq(design, np.ones_like(x), rcond=None)
    residual = seconds - fixed - rate * x
    r_squared = 1.0 - float(residual @ residual) / float(((seconds - seconds.mean()) ** 2).sum())
    return Line(float(fixed), float(rate), r_squared)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=int, nargs=5, default=list(Point()), metavar="N D K M L")
    parser.add_argument(
        "--sweeps", default=",".join([*SWEEPS, "mixed"]), help="(default: %(default)s)"
    )
    parser.add_argument(
        "--largest", type=int, help=f"rows (default: 800,000; {_MANY_ROWS[-1]:,} with --rows)"
    )
    parser.add_argument("--repeats", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="(default: all)")
    parser.add_argument("--driver-memory", default="4g", help="(default: %(default)s)")
    parser.add_argument("--memory", action="store_true", help="measure memory, not time")
    parser.add_argument("--rows", action="store_true", help="more rows than memory holds")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="append one JSON object a fit here")
    options = parser.parse_args()
    options.largest = options.largest or (_MANY_ROWS[-1] if options.rows else 800_000)
    if options.alone:
        one_alone(options)
    elif options.memory:
        measure_memory(options)
    elif options.rows:
        measure_rows(options)
    else:
        measure(options)


if __name__ == "__main__":
    main()
