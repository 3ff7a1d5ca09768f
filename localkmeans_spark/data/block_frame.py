"""DataFrame of rows → DataFrame of encoded blocks, which Spark can make again with the same bits.

A block that is lost with its executor is made again, by a task that may hold several partitions
and in which rows that come through a shuffle arrive in another order. So every row brings the
number of its partition along, and rows of a shuffle are sorted by a hash of their values.
"""

from __future__ import annotations

import re
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.conf import RuntimeConfig

from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.columns import ingest_columns
from localkmeans_spark.data.ingest import BLOCK_SCHEMA, IngestPlan, encode_partition
from localkmeans_spark.data.limits import Room
from localkmeans_spark.spark_private import binary_rdd, is_connect, plan_text, with_settings


def block_frame(df: DataFrame, config: FitConfig, room: Room) -> DataFrame:
    """Build (not run) the DataFrame of encoded blocks: one binary column, a row a block."""
    data = config.data
    columns = ingest_columns(df, data, OWNER)
    # Rows of unknown width have a feature at least: some k are too large for any rows.
    room.check_centers(1 if columns.n_features is None else columns.n_features)
    plan = IngestPlan(
        columns.kind,
        columns.n_features,
        data.weight_col is not None,
        data.dtype,
        data.distance_measure == "cosine",
    )
    rows = df.select(*columns.selected)
    if data.num_partitions is not None:
        return _blocks_of(_sorted(rows.repartition(data.num_partitions)), plan)
    nodes = _plan_nodes(_numbered(rows))
    if nodes is None or any(map(_is_shuffle, nodes)):
        return _blocks_of(_sorted(rows), plan)
    if nodes[0] == "LocalTableScan":
        # Rows the driver holds: it would number them itself, all 0, but for a step in between.
        # This one leaves them in their order.
        rows = rows.sortWithinPartitions(F.monotonically_increasing_id())
    blocks = _blocks_of(rows, plan)
    if not is_connect(df.sparkSession) and _has_shuffle(binary_rdd(blocks).toDebugString()):
        # In an RDD that the DataFrame was made of, which sessions of Spark Connect do not have.
        return _blocks_of(_sorted(rows), plan)
    return blocks


def _numbered(rows: DataFrame) -> DataFrame:
    """Add the number of each row's partition, whatever task makes it."""
    return rows.select("*", F.spark_partition_id().alias("partition"))


def _sorted(rows: DataFrame) -> DataFrame:
    """Put the rows of each partition into an order that depends on their values alone."""
    return rows.sortWithinPartitions(F.xxhash64(*rows.columns))


# A step of a plan: its name after the lines and marks of the tree.
_NODE = re.compile(r"^[ :+\-|]*(?:\*\(\d+\) )?(\w+)", re.MULTILINE)


def _plan_nodes(rows: DataFrame) -> list[str] | None:
    """Return the names of the steps by which Spark would make the rows, from the last on.

    Those of cached tables that the rows come from are among them. None if Spark does not say.
    """
    text = plan_text(rows)
    return None if text is None else _NODE.findall(text)


def _is_shuffle(node: str) -> bool:
    """Whether rows come out of this step of a plan in any order.

    Spark calls it Exchange, ReusedExchange, ShuffleQueryStage or AQEShuffleRead; plugins have
    names that contain one of the two words. A table that is broadcast keeps its order.
    """
    return ("Exchange" in node or "Shuffle" in node) and "Broadcast" not in node


def _has_shuffle(lineage: bytes | None) -> bool:
    """Whether there is a shuffle in what an RDD is made of: ``toDebugString`` indents it."""
    return lineage is None or b"+-(" in lineage


def _blocks_of(rows: DataFrame, plan: IngestPlan) -> DataFrame:
    blocks = _numbered(rows).mapInArrow(partial(encode_partition, plan=plan), BLOCK_SCHEMA)
    if is_connect(rows.sparkSession):  # no settings for a query alone: see frame_jobs
        return blocks
    settings = small_batches(rows.sparkSession.conf, plan.kind, plan.n_features)
    return with_settings(blocks, settings)


_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"  # Spark 4 and newer
# A batch need not be much larger than a block.
BATCH_BYTES = 8 << 20
# Spark 3.5 counts rows alone. Those of arrays have any width; and wide vectors are mostly sparse:
# batches of less than 256 would cost more than their rows.


def small_batches(conf: RuntimeConfig, kind: str, n_features: int | None) -> dict[str, str]:
    """Return the settings under which Spark feeds a Python function batches of 8 MB.

    Parameters
    ----------
    conf : RuntimeConfig
        The user's settings, which are not changed; a smaller limit of theirs stays.
    kind, n_features
        Of the features sent; see ``columns.IngestColumns``.

    Notes
    -----
    A row larger than a batch is sent alone. With Spark 3.5 a batch may be larger: 256 rows, of
    vectors and of arrays.
    """
    if kind == "columns":
        limit = max(1, BATCH_BYTES // (8 * max(1, n_features or 1)))
    elif conf.isModifiable(BYTES_PER_BATCH):
        return {BYTES_PER_BATCH: str(BATCH_BYTES)}
    else:
        limit = max(256, BATCH_BYTES // (8 * (n_features or BATCH_BYTES)))
    configured = int(conf.get(_ROWS) or 0)
    return {} if 0 < configured <= limit else {_ROWS: str(limit)}
