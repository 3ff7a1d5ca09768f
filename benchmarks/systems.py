"""The systems compared: each fits once, in a process of its own that ``compare`` starts.

``python -m benchmarks.systems OPTIONS`` takes one JSON object, writes one to stdout, and the
centers to a file. Seconds:

- ``start_s``: imports and, with Spark, the session.
- ``read_s``: Parquet to rows in memory, in the form the system's fit works on.
- ``seed_s``: initial centers.
- ``iterate_s``: everything after that until the fitted model is there.

Every peer gets its best. MLlib: vectors cached before the fit, a native BLAS if one is installed
(``blas`` in its figures names it), k-means||. scikit-learn and faiss: all cores, float32 rows in
memory, their own k-means++.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import read_rows

Found = dict[str, Any]

# MLlib tells how long its seeding took, and the iterations, by its log alone.
_LOG_SETTINGS = """
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %m%n
logger.mllib.name = org.apache.spark.mllib.clustering.KMeans
logger.mllib.level = info
logger.ml.name = org.apache.spark.ml.util.Instrumentation
logger.ml.level = info
"""
_SEEDED = re.compile(r"Initialization with .* took ([\d.]+) (ms|seconds)")


class Laps:
    """Seconds from one call to the next, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def stop(self, name: str) -> None:
        """Note the seconds since the call before."""
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


def cluster() -> str | None:
    """Return the master of the cluster that ``jobs/local_cluster.py`` started for this process."""
    return os.environ.get("MASTER")


def session(options: Namespace, log_settings: Path | None = None) -> Any:
    """Open a session of :func:`cluster`, else a local one with as many cores as asked for."""
    from localkmeans_spark.cli.session import open_session

    conf = {"spark.driver.memory": options.driver_memory, "spark.ui.enabled": "false"}
    if log_settings is not None:
        option = f"-Dlog4j2.configurationFile={log_settings.as_uri()}"
        conf["spark.driver.extraJavaOptions"] = option
    master = cluster() or f"local[{options.cores}]"
    return open_session("benchmark", master=master, conf=conf)


def ours(options: Namespace) -> Found:
    """Fit this library; it reads the source once and keeps the rows itself."""
    laps = Laps()
    with session(options) as spark:
        from localkmeans_spark import LocalKMeans

        laps.stop("start_s")
        text = options.local_steps
        estimator = LocalKMeans(
            k=options.k, maxIter=options.iterations, tol=0.0, seed=options.seed,
            localSteps=int(text) if text.isdigit() else text,
        )  # fmt: skip
        if options.warm_up:
            estimator.fit(spark.read.parquet(options.input))
        laps.stop("before")
        model = estimator.fit(spark.read.parquet(options.input))
        laps.stop("fit")
        record = model.summary.record
        seed_s = record.seconds["seed"]
        iterate_s = record.seconds["iterate"] + record.seconds["final"]
        return {
            "centers": np.array(model.clusterCenters()),
            "iterations": record.n_iter,
            "rounds": record.n_rounds,
            "start_s": laps.seconds["start_s"],
            "read_s": laps.seconds["fit"] - seed_s - iterate_s,
            "seed_s": seed_s,
            "iterate_s": iterate_s,
        }


def mllib(options: Namespace) -> Found:
    """Fit MLlib with the solver that the system's name ends with."""
    laps = Laps()
    with tempfile.TemporaryDirectory() as folder:
        settings, log = Path(folder) / "log4j2.properties", Path(folder) / "mllib.log"
        settings.write_text(_LOG_SETTINGS.format(path=log))
        with session(options, settings) as spark:
            from pyspark.ml.clustering import KMeans
            from pyspark.ml.functions import array_to_vector

            laps.stop("start_s")
            frame = spark.read.parquet(options.input)
            frame = frame.select(array_to_vector(frame["features"]).alias("features")).cache()
            frame.count()
            laps.stop("read_s")
            estimator = KMeans(k=options.k, maxIter=options.iterations, tol=0.0, seed=options.seed)
            estimator.setSolver(options.system.removeprefix("mllib-"))
            if options.warm_up:
                estimator.fit(frame)
            laps.stop("before")
            model = estimator.fit(frame)
            laps.stop("fit")
            seed_s = seeding_seconds(log.read_text())
            return {
                "centers": np.array(model.clusterCenters()),
                "iterations": model.summary.numIter,
                "blas": blas(spark),
                "start_s": laps.seconds["start_s"],
                "read_s": laps.seconds["read_s"],
                "seed_s": seed_s,
                "iterate_s": laps.seconds["fit"] - seed_s,
            }


def seeding_seconds(log: str) -> float:
    """Find how long the last fit's seeding took; releases and solvers differ in the unit."""
    taken, unit = _SEEDED.findall(log)[-1]
    return float(taken) * (1e-3 if unit == "ms" else 1.0)


def blas(spark: Any) -> str:
    """Name the BLAS that MLlib's products use: "JNIBLAS" if a native one is installed."""
    try:
        native = spark.sparkContext._jvm.dev.ludovic.netlib.blas.NativeBLAS.getInstance()
        return str(native.getClass().getSimpleName())
    except Exception:  # no native library: MLlib computes in Java
        return "Java"


def sklearn(options: Namespace) -> Found:
    """Run scikit-learn's Lloyd iterations after its greedy k-means++."""
    laps = Laps()
    from sklearn.cluster import KMeans, kmeans_plusplus

    laps.stop("start_s")
    x = read_rows(Path(options.input))
    laps.stop("read_s")
    initial, _ = kmeans_plusplus(x, options.k, random_state=options.seed)
    laps.stop("seed_s")
    fit = KMeans(options.k, init=initial, n_init=1, max_iter=options.iterations, tol=0.0).fit(x)
    laps.stop("iterate_s")
    return {"centers": fit.cluster_centers_, "iterations": int(fit.n_iter_), **laps.seconds}


def faiss(options: Namespace) -> Found:
    """Run faiss's Kmeans on all rows (by itself it takes 256 a cluster) after its k-means++."""
    laps = Laps()
    import faiss as library

    library.omp_set_num_threads(options.cores)
    laps.stop("start_s")
    x = read_rows(Path(options.input))
    n, d = x.shape
    laps.stop("read_s")
    initial = np.empty((options.k, d), dtype=np.float32)
    seeding: Any = vars(library)["ClusteringInitialization"](d, options.k)
    seeding.method = library.ClusteringInitMethod_KMEANS_PLUS_PLUS
    seeding.seed = options.seed
    seeding.init_centroids(n, library.swig_ptr(x), library.swig_ptr(initial), 0, None)
    laps.stop("seed_s")
    fit = library.Kmeans(
        d, options.k, niter=options.iterations, seed=options.seed,
        max_points_per_centroid=n, min_points_per_centroid=1,
    )  # fmt: skip
    fit.train(x, init_centroids=initial)
    laps.stop("iterate_s")
    return {"centers": fit.centroids, "iterations": options.iterations, **laps.seconds}


# Name, solver that it is asked to use, and what runs it.
SYSTEMS: dict[str, tuple[str, str, Callable[[Namespace], Found]]] = {
    "ours": ("ours", "local steps", ours),
    "mllib-block": ("mllib", "block", mllib),
    "mllib-row": ("mllib", "row", mllib),
    "sklearn": ("sklearn", "lloyd", sklearn),
    "faiss": ("faiss", "lloyd", faiss),
}


def main() -> None:
    """Run one system once."""
    options = Namespace(**json.loads(sys.argv[1]))
    if hasattr(os, "sched_setaffinity"):  # the same cores for everyone, JVM and threads included
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    try:
        found = SYSTEMS[options.system][-1](options)
    except ImportError as error:
        print(json.dumps({"skipped": f"cannot be imported here: {error}"}))
        return
    np.save(options.centers, np.asarray(found.pop("centers"), dtype=np.float64))
    found["total_s"] = sum(found[part] for part in ("start_s", "read_s", "seed_s", "iterate_s"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
