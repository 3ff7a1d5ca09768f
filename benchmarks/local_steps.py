"""How many local steps pay: time to come within 0.1 % of the centralized result, by latency.

All fits of a repeat start from the same centers, those of the default seeding: from random rows
they end in different optima, and the time to come near one of them says little. The centralized
result is plain Lloyd's (``localSteps=1``, 20 iterations). Latency is added to every exchange
(``benchmarks.slow_network``), as a network or a busy driver would. ``--json`` appends one object a
size, latency and number of local steps.

Example: ``python -m benchmarks.local_steps --sizes 400000,64,64 --latencies 0 0.5``
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.about import environment
from benchmarks.data import write_mixture
from benchmarks.slow_network import slow_network
from benchmarks.spark_systems import session

_CLOSE, _ITERATIONS, _MOST_ITERATIONS = 1.001, 20, 40
_NOISE = 2.0
_SIZES = ["400000,64,64", "200000,784,10", "1000000,16,20"]
_STEPS = "1,2,3,5,10,20,auto"


def seconds_to(record: Any, goal: float) -> float | None:
    """Return the seconds of the rounds up to the first centers at least as good as ``goal``.

    A round tells the inertia of the centers it began with; the last pass that of the last ones.
    None if the fit never came there.
    """
    spent = 0.0
    for row in record.rounds:
        if row.inertia <= goal:
            return spent
        spent += row.seconds
    return spent if record.inertia <= goal else None


def measure(
    spark: Any, path: Path, size: tuple[int, int, int], latency: float, options: argparse.Namespace
) -> Any:
    """Yield one row for every number of local steps."""
    from localkmeans_spark import LocalKMeans

    n, d, k = size
    frame = spark.read.parquet(str(path))

    seeding = [LocalKMeans(k=k, maxIter=0, seed=seed) for seed in range(options.repeats)]
    starts = [estimator.fit(frame).clusterCenters() for estimator in seeding]

    def fit(steps: str, seed: int, max_iter: int) -> Any:
        local_steps: Any = int(steps) if steps.isdigit() else steps
        estimator = LocalKMeans(k=k, maxIter=max_iter, tol=0.0, seed=seed, localSteps=local_steps)
        estimator.setInitialCenters(starts[seed])
        return estimator.fit(frame).summary.record

    goals = [_CLOSE * fit("1", seed, _ITERATIONS).inertia for seed in range(options.repeats)]
    for steps in options.local_steps.split(","):
        with slow_network(latency):
            records = [fit(steps, seed, _MOST_ITERATIONS) for seed in range(options.repeats)]
        found = [seconds_to(record, goal) for record, goal in zip(records, goals, strict=True)]
        reached = [item for item in found if item is not None]
        yield {
            "n": n, "d": d, "k": k, "latency": latency, "local_steps": steps,
            "reached": len(reached), "repeats": len(found),
            "seconds": median(reached) if len(reached) == len(found) else None,
            "rounds": median(len(record.rounds) for record in records),
        }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", nargs="+", default=_SIZES, metavar="N,D,K", help="(default: %(default)s)"
    )
    parser.add_argument("--latencies", nargs="+", type=float, default=[0.0, 0.5], metavar="S")
    parser.add_argument("--local-steps", default=_STEPS, help="(default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--driver-memory", default="8g")
    parser.add_argument("--json", type=Path, help="append one JSON object a line here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, session(options) as spark:
        for text in options.sizes:
            n, d, k = (int(item) for item in text.split(","))
            path = Path(folder) / text
            write_mixture(path, n, d, k, files=2 * options.cores, noise=_NOISE)
            for latency in options.latencies:
                for row in measure(spark, path, (n, d, k), latency, options):
                    print(json.dumps(row), file=sys.stderr)
                    if options.json is not None:
                        with options.json.open("a") as out:
                            out.write(json.dumps({**row, **environment()}) + "\n")


if __name__ == "__main__":
    main()
