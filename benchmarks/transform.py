"""Rows a second of ``transform``: ours and MLlib's, in one session, in turn, on the same rows.

``python -m benchmarks.transform`` prints one line for each way to hold the features. Both
models have the same centers; the output goes to Spark's "noop" sink. "Vectors" are what MLlib
takes; arrays, as Parquet holds them, are ours alone and are compared with MLlib on vectors.
"Arrays to Python" sends the arrays there and no more: the least that anything in Python can take.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.about import environment
from benchmarks.data import write_mixture


def _drain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield from ()


def _seconds(frame: Any) -> float:
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def _measure(spark: Any, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    from pyspark.ml.functions import array_to_vector

    from localkmeans_spark import LocalKMeansModel

    arrays = spark.read.parquet(str(path)).cache()
    vectors = arrays.select(array_to_vector(arrays["features"]).alias("features")).cache()
    n = vectors.count()
    centers = np.random.default_rng(0).normal(size=(options.k, options.d))
    # As a fit leaves it: rows compared in float32.
    ours = LocalKMeansModel(centers, np.zeros(options.d), "float32")
    mllib = ours.toMLlib()
    ours.setPredictionCol("ours")
    both = ours.transform(mllib.transform(vectors))
    ways = {
        "mllib, vectors": lambda: mllib.transform(vectors).select("prediction"),
        "ours, vectors": lambda: ours.transform(vectors).select("ours"),
        "ours, arrays": lambda: ours.transform(arrays).select("ours"),
        "arrays to Python": lambda: arrays.mapInArrow(_drain, "nothing int"),
        "read vectors only": lambda: vectors,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(options.repeats + 1):
        for name, frame in ways.items():
            taken = _seconds(frame())
            if turn:  # the first turn warms up compilers and workers
                seconds[name].append(taken)
    return {
        "rows": n,
        "d": options.d,
        "k": options.k,
        "seconds": seconds,
        "rows_with_other_labels": both.where("ours <> prediction").count(),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000, help="rows")
    parser.add_argument("--d", type=int, default=64, help="features")
    parser.add_argument("--k", type=int, default=100, help="clusters")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--driver-memory", default="4g")
    parser.add_argument("--json", type=Path, help="append one JSON object here")
    options = parser.parse_args()
    from localkmeans_spark.cli.session import open_session

    conf = {"spark.driver.memory": options.driver_memory, "spark.ui.enabled": "false"}
    master = f"local[{options.cores}]"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows"
        write_mixture(path, options.n, options.d, options.k, files=2 * options.cores)
        with open_session("transform", master=master, conf=conf) as spark:
            found = _measure(spark, path, options)
    best = {name: min(taken) for name, taken in found["seconds"].items()}
    for name, taken in best.items():
        ratio = best["mllib, vectors"] / taken
        print(f"{name:>18}: {taken:6.2f} s, {found['rows'] / taken:12,.0f} rows/s, {ratio:5.1f} x")
    if options.json is not None:
        with options.json.open("a") as out:
            out.write(json.dumps({**found, **environment()}) + "\n")


if __name__ == "__main__":
    main()
