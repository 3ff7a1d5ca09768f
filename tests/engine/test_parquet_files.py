"""Parquet files of one table may differ and be batched in any way: the rows are as Spark's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from localkmeans_spark import LocalKMeans
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.data.block_frame import block_frame
from localkmeans_spark.data.limits import Room
from localkmeans_spark.spark_private import binary_rdd


def blocks_of(df: DataFrame, data: DataConfig) -> list[bytes]:
    """The encoded blocks, in the order of the partitions."""
    config = FitConfig(k=2, data=data)
    blocks = block_frame(df, config, Room(df.sparkSession, (2,)))
    return (
        binary_rdd(blocks)
        .mapPartitions(lambda blocks: [bytes(block) for block in blocks])
        .collect()
    )


def _list(item: pa.DataType, *, nullable: bool = True, name: str = "element") -> pa.DataType:
    return pa.list_(pa.field(name, item, nullable=nullable))


ROWS = np.random.default_rng(0).normal(size=(200, 2)).round(3).tolist()
# name → one column "features" as each of the table's files stores it
DIFFERENCES = {
    "nullability of the column": [
        pa.field("features", _list(pa.float64()), nullable=False),
        pa.field("features", _list(pa.float64()), nullable=True),
    ],
    "nullability of the numbers": [
        pa.field("features", _list(pa.float32(), nullable=False)),
        pa.field("features", _list(pa.float32(), nullable=True)),
    ],
    "names inside lists": [
        pa.field("features", _list(pa.float64(), name="element")),
        pa.field("features", _list(pa.float64(), name="item")),
        pa.field("features", _list(pa.float64(), name="array")),
    ],
    "metadata": [
        pa.field("features", _list(pa.float64())),
        pa.field("features", _list(pa.float64()), metadata={"made": "elsewhere"}),
    ],
}


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("order", [1, -1])
def test_files_that_differ(spark: SparkSession, tmp_path: Path, name: str, order: int) -> None:
    """As after a filter, which made Spark read the rows when workers still read plain files."""
    for i, field in enumerate(DIFFERENCES[name][::order] * 4):
        # Spark packs files by size: this puts both kinds into each partition.
        rows = pa.array(ROWS[: 20 * (i + 1)], field.type)
        table = pa.Table.from_arrays([rows], schema=pa.schema([field]))
        pq.write_table(table, tmp_path / f"part-{i}.parquet")
    df = spark.read.parquet(str(tmp_path))
    _fits_the_same(df, df.where("1=1"), LocalKMeans(k=4, seed=1))


@pytest.mark.skipif(pyspark.__version__ < "4", reason="PySpark 3.5 cannot read int as bigint")
@pytest.mark.parametrize("kinds", [("int32", "int64"), ("int64", "int32")])
def test_integers_of_two_widths(spark: SparkSession, tmp_path: Path, kinds: tuple[str]) -> None:
    """With a schema that names the wider, Spark reads both; a NumPy column may be either."""
    for i, kind in enumerate(kinds * 4):
        column = pa.array(np.arange(50, dtype=kind) % 13 + i)
        pq.write_table(pa.table({"x": column, "y": column}), tmp_path / f"part-{i}.parquet")
    df = spark.read.schema("x bigint, y bigint").parquet(str(tmp_path))
    _fits_the_same(df, df.where("1=1"), LocalKMeans(k=4, seed=1, featuresCols=["x", "y"]))


def test_a_column_that_some_files_lack(spark: SparkSession, tmp_path: Path) -> None:
    """Its rows are null there: refused, or left out, like any other null."""
    pq.write_table(pa.table({"features": pa.array(ROWS)}), tmp_path / "part-0.parquet")
    pq.write_table(pa.table({"id": pa.array([1, 2])}), tmp_path / "part-1.parquet")
    df = spark.read.schema("features array<double>").parquet(str(tmp_path)).coalesce(1)
    with pytest.raises(ValueError, match="2 rows"):
        LocalKMeans(k=2).fit(df)
    assert LocalKMeans(k=2, handleInvalid="skip").fit(df).summary.record.n_skipped == 2


def _fits_the_same(df: DataFrame, filtered: DataFrame, estimator: LocalKMeans) -> None:
    model, other = estimator.fit(df), estimator.fit(filtered)
    np.testing.assert_array_equal(model.clusterCenters(), other.clusterCenters())
    assert model.summary.trainingCost == other.summary.trainingCost
    assert model.summary.record.n_points == filtered.count()


def test_a_file_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(pa.table({"features": pa.array(ROWS)}), tmp_path / f"part-{i}.parquet")
    df = spark.read.parquet(str(tmp_path))
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(Exception, match=r"part-1\.parquet"):
        LocalKMeans(k=2).fit(df)


def test_nothing_stays_cached_when_a_page_is_damaged(
    spark: SparkSession, tmp_path: Path, newly_cached: Callable[[], set[int]]
) -> None:
    file = tmp_path / "part-0.parquet"
    rows = pa.array([[float(i), 1.0] for i in range(3000)])
    pq.write_table(pa.table({"features": rows}), file, use_dictionary=False, compression="none")
    damaged = bytearray(file.read_bytes())
    damaged[10:300] = bytes(range(255, 205, -1)) * 5 + bytes(40)
    file.write_bytes(damaged)
    with pytest.raises(Exception, match=r"part-0\.parquet"):
        LocalKMeans(k=2).fit(spark.read.parquet(str(tmp_path)))
    assert not newly_cached()


@pytest.mark.parametrize("setting", ["maxRecordsPerBatch", "maxBytesPerBatch"])
def test_blocks_do_not_depend_on_the_batches_of_dense_rows(
    spark: SparkSession, setting: str
) -> None:
    """The origin, for one, is placed by the partition's first rows, however they are sent."""
    drift = F.array(F.col("id") / 1000 + 1e6, F.col("id") * -1.0 + 1e9)
    df = spark.range(5000, numPartitions=1).select(drift.alias("features"))
    expected = blocks_of(df, DataConfig())
    name = f"spark.sql.execution.arrow.{setting}"
    before = spark.conf.get(name, None)
    spark.conf.set(name, "700")
    try:
        assert blocks_of(df, DataConfig()) == expected
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)
