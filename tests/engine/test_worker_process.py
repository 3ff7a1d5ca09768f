"""Worker processes do not have the garbage collector look at every module after every task."""

from __future__ import annotations

import gc

from localkmeans_spark.engine.worker_process import prepare_worker


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
