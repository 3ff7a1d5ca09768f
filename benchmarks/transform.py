"""Rows a second of ``transform``: ours and MLlib's, in one session, in turn, on the same rows.

Both models have the same centers; the output goes to Spark's "noop" sink. "Vectors" are what MLlib
takes; arrays, as Parquet holds them, are ours alone and are compared with MLlib on vectors.
"Arrays to Python" sends the arrays there and no more: the least that anything in Python can take.

Example: ``python -m benchmarks.transform --n 1000000 --d 64 --k 100``
"""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.about import keep, parser
from benchmarks.cached import cached_frames
from benchmarks.data import write_mixture
from benchmarks.systems import session


def _drain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield from ()


def measure(spark: Any, path: Path, options: Namespace) -> dict[str, Any]:
    """Label all rows in every way, in turn; return the seconds of every turn."""
    from localkmeans_spark import LocalKMeansModel

    arrays, vectors = cached_frames(spark, path)
    centers = np.random.default_rng(0).normal(size=(options.k, options.d))
    # As a fit leaves it: rows compared in float32.
    ours = LocalKMeansModel(centers, np.zeros(options.d), "float32")
    mllib = ours.toMLlib()
    ours.setPredictionCol("ours")
    ways = {
        "mllib, vectors": lambda: mllib.transform(vectors).select("prediction"),
        "ours, vectors": lambda: ours.transform(vectors).select("ours"),
        "ours, arrays": lambda: ours.transform(arrays).select("ours"),
        "arrays to Python": lambda: arrays.mapInArrow(_drain, "nothing int"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(options.repeats + 1):
        for name, frame in ways.items():
            began = time.perf_counter()
            frame().write.format("noop").mode("overwrite").save()
            if turn:  # the first turn warms up compilers and workers
                seconds[name].append(time.perf_counter() - began)
    both = ours.transform(mllib.transform(vectors))
    others = both.where("ours <> prediction").count()
    shape = {"n": options.n, "d": options.d, "k": options.k}
    return {**shape, "seconds": seconds, "rows_with_other_labels": others}


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, n=1_000_000, d=64, k=100, repeats=3).parse_args()
    with tempfile.TemporaryDirectory() as folder, session(options) as spark:
        path = Path(folder) / "rows"
        write_mixture(path, options.n, options.d, options.k, files=2 * options.cores)
        found = measure(spark, path, options)
    best = {name: min(taken) for name, taken in found["seconds"].items()}
    for name, taken in best.items():
        ratio = best["mllib, vectors"] / taken
        print(f"{name:>18}: {taken:6.2f} s, {found['n'] / taken:12,.0f} rows/s, {ratio:5.1f} x")
    keep(options.json, [found])


if __name__ == "__main__":
    main()
