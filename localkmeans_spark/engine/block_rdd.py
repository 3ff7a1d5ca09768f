"""DataFrame → RDD of encoded blocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.engine.columns import IngestColumns, ingest_columns
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.ingest import BLOCK_SCHEMA, IngestPlan, encode_partition
from localkmeans_spark.engine.limits import Room

_BATCH_LOCK = threading.Lock()
_BATCH_CONF = "spark.sql.execution.arrow.maxRecordsPerBatch"
# An Arrow batch should not be much larger than a block; rows of unknown width are read in
# batches that stay moderate up to a few thousand columns.
_BATCH_BYTES, _ROWS_UNKNOWN_WIDTH = 8 << 20, 2048
# Wide vectors are mostly sparse: batches of a few of them would cost more than their rows.
_ROWS_IF_SPARSE = 256


def block_rdd(df: DataFrame, config: FitConfig, room: Room) -> RDD:
    """Build (not run) the RDD of encoded blocks, one element a block."""
    data = config.data
    columns = ingest_columns(df, data, config.owner)
    # Rows of unknown width have a feature at least: some k are too large for any rows.
    room.check_centers(1 if columns.n_features is None else columns.n_features)
    plan = IngestPlan(
        columns.kind,
        columns.n_features,
        data.weight_col is not None,
        data.dtype,
        data.distance_measure == "cosine",
    )
    n_rows = _rows_per_batch(df.sparkSession, columns)
    selected = df.select(*columns.selected)
    if data.num_partitions is not None:
        selected = selected.repartition(data.num_partitions)
    return _from_spark(selected, plan, n_rows)


def _rows_per_batch(session: SparkSession, columns: IngestColumns) -> int:
    """Fit Arrow batches to the width of a row."""
    known = columns.n_features
    limit = _ROWS_UNKNOWN_WIDTH if known is None else _BATCH_BYTES // (8 * known)
    if columns.kind == "vector":
        limit = max(limit, _ROWS_IF_SPARSE)
    with _BATCH_LOCK:
        configured = int(session.conf.get(_BATCH_CONF) or 0)
    return max(1, min(limit, configured if configured > 0 else limit))


def _from_spark(selected: DataFrame, plan: IngestPlan, n_rows: int) -> RDD:
    session = selected.sparkSession
    with _records_per_batch(session, n_rows):
        blocks = selected.mapInArrow(partial(encode_partition, plan=plan), BLOCK_SCHEMA)
        # Straight from the JVM's byte arrays: a Python RDD of rows would pickle each block twice.
        jvm: Any = session.sparkContext._jvm
        typed = getattr(blocks._jdf, "as")(jvm.org.apache.spark.sql.Encoders.BINARY())
        return RDD(typed.javaRDD(), session.sparkContext, NoOpSerializer())


@contextmanager
def _records_per_batch(session: SparkSession, n_rows: int) -> Iterator[None]:
    """Set the rows of an Arrow batch while the plan is made."""
    with _BATCH_LOCK:  # fits in several threads share the session's settings
        before = session.conf.get(_BATCH_CONF)
        session.conf.set(_BATCH_CONF, str(n_rows))
        try:
            yield
        finally:
            session.conf.set(_BATCH_CONF, before or "10000")
