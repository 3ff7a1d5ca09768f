"""Rows of a table with their clusters: for the output, for counting, for looking at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from localkmeans_spark.cli.columns import ADDED, Table, column
from localkmeans_spark.cli.places import LocalPlace, Place
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.model import LocalKMeansModel

# Names for the model's columns on the way, whatever columns the input has.
_CLUSTER, _DISTANCE = "localkmeans_cluster", "localkmeans_distance"
LABEL = "localkmeans_label"
SETTINGS = {"spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false"}
"""PySpark 4.3 hands Parquet batches to pandas UDFs as they are, and fails if one has a vector."""

_SAMPLE_ROWS = 5_000
_SAMPLE_NUMBERS = 16_000_000


def labelled(model: LocalKMeansModel, table: Table) -> DataFrame:
    """Return id columns, ``prediction``, ``distance`` and, if there is one, :data:`LABEL`."""
    label = [column(table.label_col).alias(LABEL)] if table.label_col else []
    return _scored(model, table.frame).select(
        *(column(name) for name in table.id_cols),
        *(column(own).alias(name) for own, name in zip((_CLUSTER, _DISTANCE), ADDED, strict=True)),
        *label,
    )


def sampled(
    model: LocalKMeansModel, table: Table, n_rows: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows at random, at most 5,000 and fewer when they are very wide.

    Returns
    -------
    rows : ndarray of shape (m, d), float64
        Finite: rows that cannot be clustered are left out.
    clusters : ndarray of shape (m,), int
    """
    k, d = model.centers.shape
    wanted = min(_SAMPLE_ROWS, max(100, _SAMPLE_NUMBERS // d))
    frame = table.frame
    if n_rows > wanted:
        # A little more than wanted, so that the draw seldom falls short; the rest is cut below.
        share: float = (wanted + 4 * math.sqrt(wanted)) / n_rows
        frame = frame.sample(fraction=min(1.0, share), seed=seed)
    found: Any = (
        _scored(model, frame)
        .where((column(_CLUSTER) >= 0) & (column(_CLUSTER) < k))
        .select(features_array(table).alias("features"), column(_CLUSTER).alias("cluster"))
        .toPandas()
    )
    if len(found) > wanted:
        found = found.sample(wanted, random_state=seed % 2**32)
    if not len(found):
        return np.empty((0, d)), np.empty(0, dtype=int)
    return np.stack(found["features"].to_list()).astype(float), found["cluster"].to_numpy(int)


def feature_names(table: Table) -> list[str]:
    """Return the features' names: columns, or what a VectorAssembler noted; empty if unknown."""
    if table.features_col is None:
        return list(table.feature_cols)
    attributes = table.frame.schema[table.features_col].metadata.get("ml_attr", {}).get("attrs", {})
    listed = [item for group in attributes.values() for item in group if "name" in item]
    return [item["name"] for item in sorted(listed, key=lambda item: item["idx"])]


def check_written(owner: str, place: Place, n_least: int) -> None:
    """Make sure that rows written to a local disk are there.

    On a cluster every executor writes to its own machine's disk: without a disk that all
    machines share, the output would be silently incomplete.
    """
    if not isinstance(place, LocalPlace):
        return
    n_found = sum(pq.read_metadata(file).num_rows for file in place.path.rglob("*.parquet"))
    if n_found < n_least:
        raise invalid(
            owner, "--output", "on a file system that all machines share",
            Fact(f"{n_found:,} of {count_of(n_least, 'row')} on this machine"),
            "Name a path on such a file system, for example hdfs:// or s3a://.",
        )  # fmt: skip


def _scored(model: LocalKMeansModel, frame: DataFrame) -> DataFrame:
    own = model.copy()
    own.setPredictionCol(_CLUSTER)
    own.setDistanceCol(_DISTANCE)
    return own.transform(frame)


def features_array(table: Table) -> Column:
    """Return the features as one array column."""
    if table.features_col is None:
        return F.array(*(column(name).cast("double") for name in table.feature_cols))
    if isinstance(table.frame.schema[table.features_col].dataType, VectorUDT):
        return vector_to_array(column(table.features_col))
    return column(table.features_col)
