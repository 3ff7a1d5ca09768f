"""Each system as a function from a Parquet directory to a fitted model and its times.

Run as a process of its own: ``python -m benchmarks.systems NAME --input DIR --k 64 ...`` prints
one JSON object on stdout. Seconds: ``start_s`` (session), ``read_s`` (to cached data, and the
warm-up if one is asked for), ``fit_s`` (seeding and iterations on cached data), ``seed_s`` and
``iterate_s`` where known.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import read_rows

Found = dict[str, Any]


def _session(cores: int) -> Any:
    from jobs.session import open_session

    conf = {"spark.driver.memory": "8g", "spark.ui.enabled": "false"}
    return open_session("benchmark", master=f"local[{cores}]", conf=conf)


def _warm_up(estimator: Any, frame: Any, options: argparse.Namespace) -> None:
    """Fit once before, as a session in use has: compiled code, Python workers started."""
    if options.warm_up:
        estimator.fit(frame)


def _ours(options: argparse.Namespace) -> Found:
    began = time.perf_counter()
    with _session(options.cores) as spark:
        started = time.perf_counter()
        from localkmeans_spark import LocalKMeans

        frame = spark.read.parquet(str(options.input)).cache()
        frame.count()
        estimator = LocalKMeans(
            k=options.k,
            maxIter=options.iterations,
            localSteps=options.local_steps,
            tol=0.0,
            seed=options.seed,
        )
        _warm_up(estimator, frame, options)
        read = time.perf_counter()
        model = estimator.fit(frame)
        done = time.perf_counter()
        record = model.summary.record
        return {
            "centers": np.array(model.clusterCenters()),
            "iterations": record.n_iter,
            "rounds": record.n_rounds,
            "start_s": started - began,
            "read_s": read - started,
            "fit_s": done - read,
            "ingest_s": record.seconds["ingest"],
            "seed_s": record.seconds["seed"],
            "iterate_s": record.seconds["iterate"],
        }


def _blas(spark: Any) -> str:
    """Name the BLAS that MLlib's products use: "JNIBLAS" if a native one is installed."""
    try:
        native = spark.sparkContext._jvm.dev.ludovic.netlib.blas.NativeBLAS.getInstance()
        return native.getClass().getSimpleName()
    except Exception:  # no native library: MLlib computes in Java
        return "Java"


def _mllib(options: argparse.Namespace, solver: str) -> Found:
    began = time.perf_counter()
    with _session(options.cores) as spark:
        started = time.perf_counter()
        from pyspark.ml.clustering import KMeans
        from pyspark.ml.functions import array_to_vector

        frame = spark.read.parquet(str(options.input))
        frame = frame.select(array_to_vector("features").alias("features")).cache()
        frame.count()
        estimator = KMeans(k=options.k, maxIter=options.iterations, tol=0.0, seed=options.seed)
        estimator.setSolver(solver)
        _warm_up(estimator, frame, options)
        read = time.perf_counter()
        model = estimator.fit(frame)
        done = time.perf_counter()
        return {
            "centers": np.array(model.clusterCenters()),
            "iterations": model.summary.numIter,
            "start_s": started - began,
            "read_s": read - started,
            "fit_s": done - read,
            "blas": _blas(spark),
        }


def _mllib_block(options: argparse.Namespace) -> Found:
    return _mllib(options, "block")


def _mllib_row(options: argparse.Namespace) -> Found:
    return _mllib(options, "row")


def _sklearn(options: argparse.Namespace) -> Found:
    began = time.perf_counter()
    from sklearn.cluster import KMeans, kmeans_plusplus

    started = time.perf_counter()
    x = read_rows(options.input)
    read = time.perf_counter()
    init, _ = kmeans_plusplus(x, options.k, random_state=options.seed)
    seeded = time.perf_counter()
    model = KMeans(options.k, init=init, n_init=1, max_iter=options.iterations, tol=0.0).fit(x)
    done = time.perf_counter()
    return {
        "centers": model.cluster_centers_,
        "iterations": int(model.n_iter_),
        "start_s": started - began,
        "read_s": read - started,
        "fit_s": done - read,
        "seed_s": seeded - read,
        "iterate_s": done - seeded,
    }


SYSTEMS: dict[str, Callable[[argparse.Namespace], Found]] = {
    "ours": _ours,
    "mllib-block": _mllib_block,
    "mllib-row": _mllib_row,
    "sklearn": _sklearn,
}


def main() -> None:
    """Run one system once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--centers", type=Path, required=True, help="where to put them (.npy)")
    parser.add_argument("--k", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--local-steps", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--warm-up", action="store_true", help="fit once before, untimed")
    options = parser.parse_args()
    began = time.perf_counter()
    found = SYSTEMS[options.system](options)
    np.save(options.centers, np.asarray(found.pop("centers"), dtype=np.float64))
    found["total_s"] = found["start_s"] + found["read_s"] + found["fit_s"]
    found["process_s"] = time.perf_counter() - began
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
