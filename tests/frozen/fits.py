"""About forty fits whose results are kept in ``fits.json``, from every corner of the estimator."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark import LocalKMeans
from tests.engine.frames import frame_of


def _blobs(n: int = 1500, d: int = 6, groups: int = 8, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(7)
    middles = rng.normal(0, 6, size=(groups, d))
    return middles[rng.integers(groups, size=n)] + rng.normal(0, spread, size=(n, d))


def _random(x: np.ndarray, parts: int) -> list[np.ndarray]:
    return np.array_split(x[np.random.default_rng(3).permutation(len(x))], parts)


def _sorted(x: np.ndarray, parts: int) -> list[np.ndarray]:
    return np.array_split(x[np.argsort(x[:, 0], kind="stable")], parts)


def _dense(spark: SparkSession) -> DataFrame:
    return frame_of(spark, _random(_blobs(), 5))


def _overlapping(spark: SparkSession) -> DataFrame:
    return frame_of(spark, _random(_blobs(spread=5.0), 6))


def _by_label(spark: SparkSession) -> DataFrame:
    return frame_of(spark, _sorted(_blobs(spread=3.0), 7))


def _floats(spark: SparkSession) -> DataFrame:
    return frame_of(spark, _random(_blobs(), 5), element="float")


def _weighted(spark: SparkSession) -> DataFrame:
    parts = _random(_blobs(), 4)
    rng = np.random.default_rng(5)
    return frame_of(spark, parts, [rng.integers(0, 4, size=len(part)) / 2 for part in parts])


def _far(spark: SparkSession) -> DataFrame:
    x = _blobs()
    x[:, 1] += 1.7e9
    return frame_of(spark, _random(x, 4))


def _gaps(spark: SparkSession) -> DataFrame:
    parts = _random(_blobs(n=300), 3)
    return frame_of(spark, [parts[0], parts[0][:0], parts[1][:2], parts[2], parts[2][:0]])


def _sparse(spark: SparkSession) -> DataFrame:
    rng = np.random.default_rng(9)
    rows = []
    for _ in range(600):
        group = rng.integers(5)
        where = np.sort(rng.choice(np.arange(20 * group, 20 * group + 30), size=6, replace=False))
        rows.append((Vectors.sparse(130, where.tolist(), rng.normal(2, 1, size=6).tolist()),))
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 4), ["features"])


def _columns(spark: SparkSession) -> DataFrame:
    frame = _dense(spark)
    return frame.select(*(frame.features[i].alias(f"c{i}") for i in range(4)))


def _given() -> np.ndarray:
    return _blobs()[:8].copy()


def _far_given() -> np.ndarray:
    centers = _given()
    centers[3] = 1e4
    return centers


FITS: dict[str, tuple[Callable[[SparkSession], DataFrame], dict[str, Any]]] = {
    "dense": (_dense, {}),
    "dense L=1": (_dense, {"localSteps": 1}),
    "dense L=20": (_dense, {"localSteps": 20, "maxIter": 40}),
    "dense float64": (_dense, {"dtype": "float64"}),
    "dense one iteration": (_dense, {"maxIter": 1}),
    "dense no iteration": (_dense, {"maxIter": 0}),
    "dense k=1": (_dense, {"k": 1}),
    "dense k=40": (_dense, {"k": 40, "maxIter": 30}),
    "dense tol=0": (_dense, {"tol": 0.0, "maxIter": 60}),
    "dense canonical order": (_dense, {"canonicalOrder": True}),
    "dense given centers": (_dense, {"initialCenters": _given}),
    "dense local-k-means++": (_dense, {"initMode": "local-k-means++"}),
    "dense k-means||": (_dense, {"initMode": "k-means||"}),
    "dense random": (_dense, {"initMode": "random"}),
    "dense five restarts": (_dense, {"nInit": 5}),
    "dense five restarts, paper's seeding": (_dense, {"nInit": 5, "initMode": "local-k-means++"}),
    "floats": (_floats, {}),
    "columns": (_columns, {"featuresCols": ["c0", "c1", "c2", "c3"]}),
    "overlapping": (_overlapping, {"k": 20}),
    "overlapping L=1": (_overlapping, {"k": 20, "localSteps": 1}),
    "overlapping restarts": (_overlapping, {"k": 20, "nInit": 4, "initMode": "random"}),
    "overlapping float64": (_overlapping, {"k": 20, "dtype": "float64"}),
    "sorted": (_by_label, {"maxIter": 40}),
    "sorted L=20": (_by_label, {"localSteps": 20, "maxIter": 60}),
    "sorted no safeguard": (_by_label, {"safeguard": False}),
    "sorted random rows": (_by_label, {"initMode": "random", "maxIter": 40}),
    "weighted": (_weighted, {"weightCol": "weight"}),
    "weighted k-means||": (_weighted, {"weightCol": "weight", "initMode": "k-means||"}),
    "weighted restarts": (_weighted, {"weightCol": "weight", "nInit": 3, "dtype": "float64"}),
    "far": (_far, {}),
    "far float64": (_far, {"dtype": "float64"}),
    "empty partitions": (_gaps, {"k": 5}),
    "empty clusters kept": (_dense, {"initialCenters": _far_given}),
    "empty clusters reseeded": (
        _dense, {"initialCenters": _far_given, "emptyClusters": "reseed", "seed": 4},
    ),
    "sparse": (_sparse, {"k": 5}),
    "sparse restarts": (_sparse, {"k": 5, "nInit": 3, "initMode": "local-k-means++"}),
    "sparse cosine": (_sparse, {"k": 5, "distanceMeasure": "cosine"}),
    "cosine": (_dense, {"distanceMeasure": "cosine", "tol": 0.0}),
    "cosine weighted float64": (
        _weighted, {"distanceMeasure": "cosine", "weightCol": "weight", "dtype": "float64"},
    ),
    "cosine sorted": (_by_label, {"distanceMeasure": "cosine", "localSteps": 10, "maxIter": 40}),
}  # fmt: skip


def result_of(spark: SparkSession, name: str) -> dict[str, Any]:
    """Run one of the fits; return what is kept of it."""
    frame, values = FITS[name]
    values = {key: value() if callable(value) else value for key, value in values.items()}
    values = {"k": 8, "seed": 1, **values}
    if "initialCenters" in values:
        del values["k"]
    model = LocalKMeans(**values).fit(frame(spark))
    summary = model.summary
    centers = np.array(model.clusterCenters())
    rounds = summary.history
    steps = rounds[["iteration", "local_steps", "reverted", "empty_clusters", "reseeded"]]
    bits = hashlib.sha256(centers.tobytes())
    for column in ("inertia", "center_shift", "max_local_drift", "rms_deviation", "disagreement"):
        bits.update(rounds[column].to_numpy(dtype=np.float64).tobytes())
    bits.update(np.array(summary.trainingCost).tobytes())
    return {
        "cost": float(summary.trainingCost),
        "sizes": [int(size) for size in summary.clusterSizes],
        "rounds": [[int(value) for value in row] for row in steps.itertuples(index=False)],
        "dropped": [None if pd.isna(at) else int(at) for at in summary.restarts["dropped"]],
        "bits": bits.hexdigest()[:16],
    }
