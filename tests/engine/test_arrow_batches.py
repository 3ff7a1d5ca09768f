"""Batches that Spark sends: small at any width, and no setting of the session changes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from localkmeans_spark import LocalKMeans
from localkmeans_spark.data.block_frame import small_batches
from localkmeans_spark.spark_private import plan_text, with_settings


def _sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})


def sizes_of(df: DataFrame, kind: str, n_features: int | None) -> list[tuple[int, int]]:
    """Rows and bytes of the batches in which Python gets a DataFrame."""
    found = df.mapInArrow(_sizes, "rows long, bytes long")
    found = with_settings(found, small_batches(df.sparkSession.conf, kind, n_features))
    return [(row.rows, row.bytes) for row in found.collect()]


@pytest.mark.parametrize("width", [3, 2_000, 200_000])
def test_batches_of_rows_of_unknown_width(spark: SparkSession, width: int) -> None:
    if not spark.conf.isModifiable("spark.sql.execution.arrow.maxBytesPerBatch"):
        pytest.skip("Spark 3.5 counts rows only")
    n = 40 if width > 10_000 else 3_000
    df = spark.range(n, numPartitions=1).select(F.array_repeat(F.rand(), width).alias("features"))
    found = sizes_of(df, "array", None)
    assert sum(rows for rows, _ in found) == n
    # Arrow rounds its buffers up to powers of two.
    assert max(size for _, size in found) <= (8 << 20) + 2 * 8 * width
    assert len(found) == 1 or min(size for _, size in found[:-1]) > 3 << 20


def test_batches_of_columns(spark: SparkSession) -> None:
    numbers = [F.col("id").cast("double").alias(f"f{i}") for i in range(500)]
    df = spark.range(5_000, numPartitions=1).select(F.struct(*numbers).alias("features"))
    assert max(rows for rows, _ in sizes_of(df, "columns", 500)) == (8 << 20) // (8 * 500)


def test_the_users_limit_of_rows_holds(spark: SparkSession) -> None:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, "7")
    try:
        df = spark.range(20, numPartitions=1).select(F.array(F.rand()).alias("features"))
        assert [rows for rows, _ in sizes_of(df, "array", None)] == [7, 7, 6]
    finally:
        spark.conf.set(name, before)


def test_no_setting_changes_and_the_cache_is_used(spark: SparkSession) -> None:
    df = spark.range(100).select(F.array(F.rand(), F.rand()).alias("features")).cache()
    df.count()
    before = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    try:
        first = LocalKMeans(k=3, seed=1).fit(df)
        # Rows of F.rand() that are not taken from the cache would be the same, but read anew.
        plan = df.mapInArrow(_sizes, "rows long, bytes long")
        plan = with_settings(plan, small_batches(spark.conf, "array", None))
        assert "InMemoryTableScan" in (plan_text(plan) or "")
        assert first.summary.record.n_points == 100
    finally:
        df.unpersist(blocking=True)
    assert {row["key"]: row["value"] for row in spark.sql("SET").collect()} == before


@pytest.mark.parametrize("length", [0, 10, 100])
def test_a_plan_that_is_cut_is_none(spark, length):
    rows = spark.range(100).repartition(3).selectExpr("id + 1", "id * 2")
    assert "Exchange" in plan_text(rows)
    before = spark.conf.get("spark.sql.maxPlanStringLength")
    spark.conf.set("spark.sql.maxPlanStringLength", str(length))
    try:
        assert plan_text(rows) is None
    finally:
        spark.conf.set("spark.sql.maxPlanStringLength", before)
