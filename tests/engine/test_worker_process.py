"""Worker processes are spared garbage collection, and serve SQL and RDD functions alike."""

from __future__ import annotations

import gc
import os

import pyarrow as pa

from localkmeans_spark.engine.worker_process import prepare_worker, workers_of_sql


def _freeze_counts(tasks):
    prepare_worker()
    list(tasks)
    yield gc.get_freeze_count()


def test_workers_freeze_what_is_imported(spark):
    numbers = spark.sparkContext.parallelize(range(4), 2)
    counts = numbers.mapPartitions(_freeze_counts).collect()
    assert all(count > 10_000 for count in counts)


def test_driver_is_left_alone(spark):
    before = gc.get_freeze_count()
    prepare_worker()
    assert gc.get_freeze_count() == before


def _pools_of_sql(batches):
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([os.getppid()] * batch.num_rows)], names=["id"])


def _pools_of_rdd(tasks):
    return [os.getppid() for _ in tasks]


def test_rdd_functions_run_in_the_workers_of_sql(spark):
    context = spark.sparkContext
    before = dict(context.environment)
    of_sql = {row.id for row in spark.range(4).mapInArrow(_pools_of_sql, "id long").collect()}
    with workers_of_sql(context):
        of_rdd = set(context.parallelize(range(4), 2).mapPartitions(_pools_of_rdd).collect())
    assert of_rdd == of_sql
    assert len(of_sql) == 1
    assert context.environment == before
