"""Which rows are sorted before they are cached: those whose order Spark leaves open."""

import numpy as np
import pandas as pd
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.data import block_frame
from localkmeans_spark.data.limits import Room
from localkmeans_spark.fit.driver import fit


@pytest.fixture
def is_sorted(spark, monkeypatch):
    """Return a function that says whether the rows of a frame are sorted."""
    calls = []

    def noted(rows, sort=block_frame._sorted):
        calls.append(rows)
        return sort(rows)

    monkeypatch.setattr(block_frame, "_sorted", noted)

    def asked(frame, **data):
        calls.clear()
        config = FitConfig(data=DataConfig(features_cols=("id",), **data))
        block_frame.block_frame(frame, config, Room(spark, (2,)))
        return bool(calls)

    return asked


def test_rows_of_scans_keep_their_order(spark, is_sorted, tmp_path):
    pd.DataFrame({"id": np.arange(9.0)}).to_parquet(tmp_path / "rows.parquet")
    scan = spark.read.parquet(str(tmp_path))
    small = spark.range(5)
    rows = spark.createDataFrame([(1,), (2,)], "id int")
    for frame in (
        scan,
        scan.cache(),
        scan.where("id > 1").select((F.col("id") + 1).alias("id")),
        spark.range(9, numPartitions=3),
        spark.range(9, numPartitions=3).coalesce(2),
        spark.range(9).union(small),
        spark.range(9).join(F.broadcast(small), "id"),
        rows,
        rows.withColumnRenamed("id", "Exchange").select("Exchange", F.lit(1).alias("id")),
    ):
        assert not is_sorted(frame), frame
    scan.unpersist()


def test_rows_of_a_shuffle_are_sorted(spark, is_sorted):
    rows = spark.range(9, numPartitions=3)
    cached = rows.repartition(2).cache()
    shuffled = spark.createDataFrame(rows.rdd.repartition(2), "id long")
    for frame in (
        rows.repartition(4),
        rows.repartition(4).coalesce(2).where("id > 1"),
        rows.groupBy((F.col("id") % 5).alias("id")).count(),
        rows.orderBy(-F.col("id")),
        cached,
        rows.union(cached),
        shuffled,
        shuffled.cache(),
    ):
        assert is_sorted(frame), frame
    cached.unpersist()
    shuffled.unpersist()
    assert is_sorted(rows, num_partitions=4)


def test_rows_are_sorted_when_spark_does_not_say(spark, is_sorted, monkeypatch):
    monkeypatch.setattr(block_frame, "_plan_nodes", lambda rows: None)
    assert is_sorted(spark.range(9))


def rows_of_all_kinds(n):
    """Vectors dense and sparse, arrays, weights; repeated rows, and rows of 0 and of -0."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(n, 4)), 1)
    x[::7] = -0.0
    x[1::7] = 0.0
    dense = [Vectors.dense(row) for row in x]
    sparse = [Vectors.sparse(4, list(enumerate(row))) for row in x]
    return [
        (dense[i] if i % 3 else sparse[i], x[i].tolist(), float(w))
        for i, w in enumerate(rng.integers(1, 4, size=n))
    ]


@pytest.mark.parametrize("column", ["vector", "array"])
def test_the_order_in_which_rows_arrive_changes_no_bit(spark, column):
    rows = rows_of_all_kinds(300)
    schema = ["vector", "array", "weight"]
    found = set()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(rows))
        shuffled = spark.createDataFrame([rows[i] for i in order], schema).repartition(4, "array")
        config = FitConfig(
            k=5, local_steps=3, data=DataConfig(features_col=column, weight_col="weight")
        )
        result = fit(shuffled, config)
        found.add((result.centers.tobytes(), result.record.inertia))
    assert len(found) == 1
