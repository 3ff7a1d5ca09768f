"""Fits of a cached DataFrame, in one session: this library and MLlib in alternation.

The case of a notebook: the session is warm and the data are cached, as vectors (what MLlib
needs) and as arrays (what ours takes, too). Every fit has the same iterations and tol 0; the first
fits of each system are not timed. MLlib uses a native BLAS if one is installed; the figures say.

Example: ``python -m benchmarks.cached --n 400000 --d 64 --k 64``
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.about import environment
from benchmarks.data import write_mixture
from benchmarks.spark_systems import blas, session

# Java compiles what it runs often: the first fits are slower.
_WARM_UPS = 2


def fits(spark: Any, options: argparse.Namespace, source: Path) -> dict[str, Callable[[], Any]]:
    """Return name → a fit of the cached data."""
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.functions import array_to_vector

    from localkmeans_spark import LocalKMeans

    arrays = spark.read.parquet(str(source)).cache()
    vectors = arrays.select(array_to_vector(arrays["features"]).alias("features")).cache()
    assert arrays.count() == vectors.count()
    common: dict[str, Any] = {"k": options.k, "maxIter": options.iterations, "seed": options.seed}
    common["tol"] = 0.0  # all do all iterations
    ours = LocalKMeans(**common, localSteps=options.local_steps)
    found: dict[str, Callable[[], Any]] = {
        "ours, vectors": partial(ours.fit, vectors),
        "ours, arrays": partial(ours.fit, arrays),
    }
    for solver in ("block", "row"):
        found[f"mllib {solver}, vectors"] = partial(KMeans(**common, solver=solver).fit, vectors)
    return found


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=400_000)
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--local-steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--driver-memory", default="8g")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "data"
        write_mixture(source, options.n, options.d, options.k, files=options.cores)
        with session(options) as spark:
            found = _measure(fits(spark, options, source), options.repeats)
            native = blas(spark)
    best = min(row["seconds"] for name, row in found.items() if name.startswith("mllib"))
    print(f"{'fit':24} {'median s':>9} {'all s':>24} {'cost':>13} {'best MLlib / it':>16}")
    for name, row in found.items():
        row["ratio"] = best / row["seconds"]
        every = ", ".join(f"{seconds:.2f}" for seconds in row["every"])
        print(f"{name:24} {row['seconds']:9.2f} {every:>24} {row['cost']:13.6g} "
              f"{row['ratio']:16.2f}")  # fmt: skip
    if options.json is not None:
        shape = {name: getattr(options, name) for name in ("n", "d", "k", "iterations")}
        figures = {**shape, "blas": native, "fits": found, **environment()}
        options.json.write_text(json.dumps(figures) + "\n")


def _measure(fits: dict[str, Callable[[], Any]], repeats: int) -> dict[str, dict[str, Any]]:
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    costs = {}
    for repeat in range(-_WARM_UPS, repeats):
        for name, fit in fits.items():
            if repeat < -1 and name.startswith("mllib"):
                continue  # one fit of MLlib runs its loops often enough
            began = time.perf_counter()
            model = fit()
            if repeat >= 0:
                seconds[name].append(time.perf_counter() - began)
            costs[name] = model.summary.trainingCost
    return {
        name: {"seconds": statistics.median(every), "every": every, "cost": costs[name]}
        for name, every in seconds.items()
    }


if __name__ == "__main__":
    main()
