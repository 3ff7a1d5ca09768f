"""Cached blocks that are lost in the middle of a fit change no bit, whatever the rows come from."""

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as F

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit.driver import fit

COLUMNS = ["a", "b", "c"]
N_FILES = 12


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """Twelve Parquet files whose second column lies far from 0, each file elsewhere."""
    folder = tmp_path_factory.mktemp("files")
    for number in range(N_FILES):
        rng = np.random.default_rng(number)
        x = rng.normal(size=(50 + number, 3)) + 4.0 * rng.integers(3, size=(50 + number, 1))
        x[:, 1] += 1.7e9 + 1000 * number
        pd.DataFrame(x, columns=COLUMNS).to_parquet(folder / f"part-{number:02d}.parquet")
    return str(folder)


@pytest.fixture
def a_file_a_partition(spark):
    name = "spark.sql.files.openCostInBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, str(1 << 30))
    yield
    spark.conf.set(name, before)


def ranged(spark, n=900, parts=9):
    base = spark.range(n, numPartitions=parts)
    return base.select(
        (F.sin(F.col("id") * 12.9898) * 10).alias("a"),
        (F.floor(F.col("id") / 100) * 1e6 + F.cos("id")).alias("b"),
        F.cos(F.col("id") * 78.233).alias("c"),
    )


def parallelized(spark):
    rows = ranged(spark).collect()
    return spark.createDataFrame(
        spark.sparkContext.parallelize(rows, 10), "a double, b double, c double"
    )


def with_empty_partitions(spark):
    return ranged(spark).where("id < 200 or id > 750")


def from_pandas(spark):
    name = "spark.sql.execution.arrow.pyspark.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    try:
        return spark.createDataFrame(ranged(spark).toPandas())
    finally:
        spark.conf.set(name, before)


KINDS = {
    "files": lambda spark, files: spark.read.parquet(files),
    "range": lambda spark, files: ranged(spark),
    "parallelized": lambda spark, files: parallelized(spark),
    "cached": lambda spark, files: ranged(spark).cache(),
    "coalesced": lambda spark, files: ranged(spark, parts=40).coalesce(13),
    "union": lambda spark, files: spark.read.parquet(files).union(ranged(spark)),
    "union of pandas": lambda spark, files: from_pandas(spark).union(ranged(spark, 100, 2)),
    "pandas": lambda spark, files: from_pandas(spark),
    "empty partitions": lambda spark, files: with_empty_partitions(spark),
    "shuffled": lambda spark, files: ranged(spark).repartition(11),
    "sorted": lambda spark, files: ranged(spark).orderBy("c"),
    "rdd shuffled": lambda spark, files: spark.createDataFrame(
        ranged(spark).rdd.repartition(8), "a double, b double, c double"
    ),
}


# Fewer than a coalesced job has tasks.
FEW_PARTITIONS = {"pandas", "union of pandas", "empty partitions", "sorted"}


def config_of(**data):
    return FitConfig(
        k=3, seed=3, local_steps=2, max_iter=4, tol=0.0,
        data=DataConfig(features_cols=COLUMNS, dtype="float64", **data),
    )  # fmt: skip


@pytest.mark.usefixtures("a_file_a_partition")
@pytest.mark.parametrize("kind", KINDS)
def test_lost_blocks_change_no_bit(spark, files, lose_blocks, kind):
    frame = KINDS[kind](spark, files)
    config = config_of()
    whole = fit(frame, config)
    jobs = lose_blocks()
    again = fit(frame, config)
    assert len(jobs) >= 4, "blocks were lost between seeding, rounds and the last pass"
    if kind not in FEW_PARTITIONS:
        assert whole.record.n_partitions > 3 * spark.sparkContext.defaultParallelism
    assert again.centers.tobytes() == whole.centers.tobytes()
    assert again.record.inertia == whole.record.inertia
    assert again.record.cluster_sizes == whole.record.cluster_sizes
    frame.unpersist()


def test_with_a_number_of_partitions(spark, files, lose_blocks):
    frame = spark.read.parquet(files)
    config = config_of(num_partitions=10)
    whole = fit(frame, config)
    lose_blocks()
    again = fit(frame, config)
    assert again.centers.tobytes() == whole.centers.tobytes()
