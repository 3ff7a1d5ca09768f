"""Fits of a cached DataFrame, in one session: this library and MLlib in alternation.

The case of a notebook: the session is warm and the data are cached, as vectors (what MLlib
needs) and as arrays (what ours takes, too). Every fit has the same iterations and tol 0; the first
fits of each system are not timed. MLlib uses a native BLAS if one is installed; the figures say.
``--connect`` does the same in a session of Spark Connect, with its server on this machine.

Example: ``python -m benchmarks.cached --n 400000 --d 64 --k 64``
"""

from __future__ import annotations

import os
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from benchmarks.about import keep, parser
from benchmarks.data import write_mixture
from benchmarks.systems import blas, session

# Java compiles what it runs often: the first fits are slower.
_WARM_UPS = 2


@contextmanager
def connect_session(options: Namespace) -> Iterator[Any]:
    """Start a server of Spark Connect and open a session of it."""
    from pyspark.sql import SparkSession

    from localkmeans_spark.cli.session import FAST_SETTINGS, ensure_java

    ensure_java()
    # As the classic session has them.
    fast = {**FAST_SETTINGS, "spark.python.daemon.module": "localkmeans_spark.daemon"}
    words = [f"--conf {name}={value}" for name, value in fast.items()]
    words.append(f"--driver-memory {options.driver_memory} pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(words)
    spark = SparkSession.builder.remote(f"local[{options.cores}]").getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def cached_frames(spark: Any, path: Path) -> tuple[Any, Any]:
    """Return the rows cached as arrays and as vectors."""
    from pyspark.ml.functions import array_to_vector

    arrays = spark.read.parquet(str(path)).cache()
    vectors = arrays.select(array_to_vector(arrays["features"]).alias("features")).cache()
    assert arrays.count() == vectors.count()
    return arrays, vectors


def fits(spark: Any, options: Namespace, path: Path) -> dict[str, Callable[[], Any]]:
    """Return name → a fit of the cached data."""
    from pyspark.ml.clustering import KMeans

    from localkmeans_spark import LocalKMeans

    arrays, vectors = cached_frames(spark, path)
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


def measure(fits: dict[str, Callable[[], Any]], repeats: int) -> dict[str, dict[str, Any]]:
    """Fit in turn; return name → seconds (median, and all), cost, and MLlib's best / it."""
    found: dict[str, dict[str, Any]] = {name: {"every": []} for name in fits}
    for repeat in range(-_WARM_UPS, repeats):
        for name, fit in fits.items():
            if repeat < -1 and name.startswith("mllib"):
                continue  # one fit of MLlib runs its loops often enough
            began = time.perf_counter()
            model = fit()
            if repeat >= 0:
                found[name]["every"].append(time.perf_counter() - began)
            found[name]["cost"] = model.summary.trainingCost
    for row in found.values():
        row["seconds"] = median(row["every"])
    best = min(row["seconds"] for name, row in found.items() if name.startswith("mllib"))
    return {name: {**row, "ratio": best / row["seconds"]} for name, row in found.items()}


def main() -> None:
    """Run and print."""
    flags = parser(__doc__, n=400_000, d=64, k=64, iterations=20, local_steps=5, seed=0, repeats=3)
    flags.add_argument("--connect", action="store_true", help="fit in a session of Spark Connect")
    options = flags.parse_args()
    opened = connect_session(options) if options.connect else session(options)
    with tempfile.TemporaryDirectory() as folder, opened as spark:
        path = Path(folder) / "rows"
        write_mixture(path, options.n, options.d, options.k, files=options.cores)
        found = measure(fits(spark, options, path), options.repeats)
        native = None if options.connect else blas(spark)  # the same jars, where nobody can ask
    print(pd.DataFrame(found).T.to_string())
    shape = {name: getattr(options, name) for name in ("n", "d", "k", "iterations", "connect")}
    keep(options.json, [{**shape, "blas": native, "fits": found}])


if __name__ == "__main__":
    main()
