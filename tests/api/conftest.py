"""Small data sets that several tests use."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession

# Two tight pairs: clusters, centers and costs can be worked out by hand.
PAIRS = [[0.0, 0.0], [1.0, 1.0], [9.0, 8.0], [8.0, 9.0]]


@pytest.fixture(scope="session")
def pairs(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(Vectors.dense(row),) for row in PAIRS], ["features"])


@pytest.fixture(scope="session")
def blob_rows() -> np.ndarray:
    """Three overlapping blobs, 600 rows of 5 numbers that float32 holds exactly."""
    rng = np.random.default_rng(7)
    centers = rng.normal(scale=3.0, size=(3, 5))
    rows = centers[rng.integers(3, size=600)] + rng.normal(size=(600, 5))
    return rows.astype(np.float32).astype(np.float64)


@pytest.fixture(scope="session")
def blobs(spark: SparkSession, blob_rows: np.ndarray) -> DataFrame:
    data = [(i, Vectors.dense(row), float(1 + i % 3)) for i, row in enumerate(blob_rows)]
    return spark.createDataFrame(data, ["id", "features", "weight"]).repartition(4, "id").cache()
