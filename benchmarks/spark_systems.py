"""Systems on Spark: this library and MLlib, each in a session of its own.

Ours fits the Parquet as it is read. MLlib gets its best: vectors cached before the fit, a native
BLAS if one is installed (``blas`` in its figures names it), either solver, k-means||.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.other_systems import Found, Laps
from benchmarks.slow_network import slow_network

# MLlib tells how long its seeding took, and the iterations, by its log alone.
_LOG_SETTINGS = """
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %m%n
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.mllib.name = org.apache.spark.mllib.clustering.KMeans
logger.mllib.level = info
logger.ml.name = org.apache.spark.ml.util.Instrumentation
logger.ml.level = info
"""
_SEEDED = re.compile(r"Initialization with .* took ([\d.]+) (ms|seconds)")


def session(options: argparse.Namespace, log_settings: Path | None = None) -> Any:
    """Open a local session with as many cores as asked for."""
    from localkmeans_spark.cli.session import open_session

    conf = {"spark.driver.memory": options.driver_memory, "spark.ui.enabled": "false"}
    if log_settings is not None:
        option = f"-Dlog4j2.configurationFile={log_settings.as_uri()}"
        conf["spark.driver.extraJavaOptions"] = option
    return open_session("benchmark", master=f"local[{options.cores}]", conf=conf)


def ours(options: argparse.Namespace) -> Found:
    """Fit this library; it reads the source once and keeps the rows itself."""
    laps = Laps()
    with session(options) as spark:
        from localkmeans_spark import LocalKMeans

        laps.stop("start_s")
        text = options.local_steps
        estimator = LocalKMeans(
            k=options.k,
            maxIter=options.iterations,
            localSteps=int(text) if text.isdigit() else text,
            tol=0.0,
            seed=options.seed,
        )
        if options.initial is not None:
            estimator.setInitialCenters(np.load(options.initial).tolist())
        if options.warm_up:
            estimator.fit(spark.read.parquet(str(options.input)))
        began = time.perf_counter()
        with slow_network(options.latency):
            model = estimator.fit(spark.read.parquet(str(options.input)))
        fit_s = time.perf_counter() - began
        record = model.summary.record
        seed_s = record.seconds["seed"]
        rest = record.seconds["iterate"] + record.seconds["final"]
        return {
            "centers": np.array(model.clusterCenters()),
            "iterations": record.n_iter,
            "rounds": record.n_rounds,
            "seconds": record.seconds,
            "round_s": [[row.local_steps, row.seconds] for row in record.rounds],
            "start_s": laps.seconds["start_s"],
            "read_s": fit_s - seed_s - rest,
            "seed_s": seed_s,
            "iterate_s": rest,
        }


def blas(spark: Any) -> str:
    """Name the BLAS that MLlib's products use: "JNIBLAS" if a native one is installed."""
    try:
        native = spark.sparkContext._jvm.dev.ludovic.netlib.blas.NativeBLAS.getInstance()
        return str(native.getClass().getSimpleName())
    except Exception:  # no native library: MLlib computes in Java
        return "Java"


def _mllib(options: argparse.Namespace, solver: str) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        settings, log = Path(folder) / "log4j2.properties", Path(folder) / "mllib.log"
        settings.write_text(_LOG_SETTINGS.format(path=log))
        return _mllib_logged(options, solver, settings, log)


def _mllib_logged(options: argparse.Namespace, solver: str, settings: Path, log: Path) -> Found:
    laps = Laps()
    with session(options, settings) as spark:
        from pyspark.ml.clustering import KMeans
        from pyspark.ml.functions import array_to_vector

        laps.stop("start_s")
        frame = spark.read.parquet(str(options.input))
        frame = frame.select(array_to_vector(frame["features"]).alias("features")).cache()
        frame.count()
        laps.stop("read_s")
        estimator = KMeans(k=options.k, maxIter=options.iterations, tol=0.0, seed=options.seed)
        estimator.setSolver(solver)
        if options.warm_up:
            estimator.fit(frame)
            laps.stop("warm-up")
        model = estimator.fit(frame)
        laps.stop("fit")
        seed_s = _seed_seconds(log.read_text())
        return {
            "centers": np.array(model.clusterCenters()),
            "iterations": model.summary.numIter,
            "blas": blas(spark),
            "start_s": laps.seconds["start_s"],
            "read_s": laps.seconds["read_s"],
            "seed_s": seed_s,
            "iterate_s": laps.seconds["fit"] - seed_s,
        }


def _seed_seconds(log: str) -> float:
    """Find how long the last fit's seeding took; releases and solvers differ in the unit."""
    taken, unit = _SEEDED.findall(log)[-1]
    return float(taken) * (1e-3 if unit == "ms" else 1.0)


def mllib_block(options: argparse.Namespace) -> Found:
    """Fit MLlib's block solver."""
    return _mllib(options, "block")


def mllib_row(options: argparse.Namespace) -> Found:
    """Fit MLlib's row solver."""
    return _mllib(options, "row")
