"""The fits of the soak: every kind of data in every layout, each with bits to compare."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.ml.linalg import SparseVector
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark import LocalKMeans, LocalKMeansModel

LAYOUTS = (1, 2, 12, 60)
KINDS = (
    "dense", "far", "sparse", "weighted", "cosine", "restarts", "checkpointed", "repartitioned",
)  # fmt: skip
_ROWS, _FEATURES = 6_000, 6


class Case(NamedTuple):
    """A fit: what data, in how many partitions.

    Tests of faults in tasks write ``folder/fail`` or ``folder/sleep``: the next task that reads
    rows takes the file away and fails or sleeps, once.
    """

    kind: str
    partitions: int
    folder: str

    @property
    def reads_markers(self) -> bool:
        """Whether the tasks that read the rows look for files that tell them to misbehave."""
        return self.kind not in ("far", "sparse")

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows: a function of kind and partitions alone."""
        if self.kind == "far":
            return spark.read.parquet(_far_files(Path(self.folder), self.partitions))
        if self.kind == "sparse":
            rows = [(i, _sparse_row(i)) for i in range(1_200)]
            spread = spark.sparkContext.parallelize(rows, self.partitions)
            return spark.createDataFrame(spread, ["id", "features"])
        columns = ", ".join(
            # Blobs that overlap, so that a fit takes many rounds.
            f"((id % 9) * {7 * j + 5} % 11) / 2D + (hash(id, {j}) % 1000) / 300D"
            for j in range(_FEATURES)
        )
        ids = spark.range(0, _ROWS, 1, self.partitions)
        rows = ids.selectExpr("id", f"array({columns}) features", "1D + id % 3 weight")
        return rows.mapInArrow(_Misbehaving(self.folder), rows.schema)

    def estimator(self, checkpoint: str | None = None) -> LocalKMeans:
        """Return the estimator of the fit; many rounds, so that faults find their moment."""
        kmeans = LocalKMeans(k=9, maxIter=24, tol=0.0, localSteps=2, seed=self.partitions)
        if self.kind == "weighted":
            kmeans.setWeightCol("weight")
        elif self.kind == "cosine":
            kmeans.setDistanceMeasure("cosine")
        elif self.kind == "restarts":
            kmeans.setNInit(3)
        elif self.kind == "checkpointed":
            kmeans.setCheckpointDir(checkpoint or f"{self.folder}/checkpoint")
        elif self.kind == "repartitioned":
            kmeans.setNumPartitions(self.partitions + 3)
        return kmeans


class _Misbehaving:
    """Passes rows on; the first task that takes a marker file away fails, or sleeps."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if _taken(f"{self._folder}/sleep"):
            time.sleep(3)
        must_fail = _taken(f"{self._folder}/fail")
        for batch in batches:
            yield batch
            if must_fail:
                raise RuntimeError("a fault of the soak")


def _taken(path: str) -> bool:
    try:
        os.unlink(path)  # noqa: PTH108 — only one task succeeds
    except OSError:
        return False
    return True


def _far_files(folder: Path, count: int) -> str:
    """Write one file for each partition, each far from 0 at a place of its own."""
    target = folder / f"far-{count}"
    if not target.is_dir():
        target.mkdir(parents=True)
        for number in range(count):
            rng = np.random.default_rng(number)
            n = _ROWS // count
            near = rng.normal(size=n) + 9 * rng.integers(0, 5, n)
            far = 1.7e9 + 1000.0 * number + rng.normal(size=n)
            table = pa.table({"features": list(np.column_stack([near, far, -near]))})
            pyarrow.parquet.write_table(table, target / f"part-{number:03}.parquet")
    return str(target)


def _sparse_row(i: int) -> SparseVector:
    rng = np.random.default_rng(i)
    places = np.sort(rng.choice(200, 8, replace=False)) % 200
    return SparseVector(200, places.tolist(), (rng.normal(size=8) + i % 9).tolist())


def bits(model: LocalKMeansModel) -> str:
    """Return a digest of all that must not change: centers, cost, sizes, iterations."""
    summary = model.summary
    inertias = [row.inertia for row in summary.record.rounds]
    numbers = np.array([summary.trainingCost, *inertias, *map(float, summary.clusterSizes)])
    digest = hashlib.sha256(model.centers.tobytes() + numbers.tobytes())
    return f"{digest.hexdigest()[:16]} cost {summary.trainingCost!r} iterations {summary.numIter}"
