"""Jobs on the blocks of a fit in a classic session: a cached RDD, broadcasts, ``treeAggregate``."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from localkmeans_spark.data.limits import SUMMARY_BYTES
from localkmeans_spark.data.partition import (
    Answer,
    Enclosed,
    Merge,
    Worker,
    merge_answers,
    run_partitions,
)
from localkmeans_spark.data.workers import check_workers
from localkmeans_spark.spark_private import binary_rdd, count_executors, workers_of_sql

if TYPE_CHECKING:
    from pyspark import SparkContext

# Summaries of all tasks together up to this size go straight to the driver.
DIRECT_BYTES = 32 << 20


def tree_depth(n_tasks: int, summary_bytes: int) -> int:
    """Return the least depth of ``RDD.treeAggregate`` that leaves no more than the driver can hold.

    A tree of depth D leaves about the D-th root of the number of tasks for the driver to merge.

    Parameters
    ----------
    n_tasks : int
    summary_bytes : int
        Of one task.
    """
    if n_tasks * summary_bytes <= DIRECT_BYTES:
        return 1
    for depth in (2, 3, 4):  # every level is a stage of its own
        if n_tasks ** (1.0 / depth) * summary_bytes <= SUMMARY_BYTES:
            return depth
    return 5


# Tasks a core: enough to even out partitions of different sizes, few enough to keep the fixed cost
# of a task (about 10 ms) small.
_TASKS_PER_CORE = 3
# Payloads up to this size travel with the task's code, once a task; larger ones once an executor.
_ENCLOSED_BYTES = 128 << 10


class RddJobs:
    """Jobs on a cached RDD of encoded blocks.

    Parameters
    ----------
    blocks : DataFrame
        As ``block_frame`` makes it.

    Attributes
    ----------
    n_partitions : int
        Of the blocks; a guess before the first job of Spark Connect.
    n_executors : int
    """

    def __init__(self, blocks: DataFrame) -> None:
        self._context = blocks.sparkSession.sparkContext
        check_workers(self._context)
        self._cached = self._tasks = binary_rdd(blocks)
        self._cached.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self.n_partitions = self._cached.getNumPartitions()
        self.n_executors = count_executors(self._context)

    def all_read(self) -> None:
        """Let later tasks take several partitions, now that the blocks are where they stay."""
        # Coalescing never splits a partition, and follows where the cached blocks are.
        most = _TASKS_PER_CORE * self._context.defaultParallelism
        self._tasks = self._cached.coalesce(min(self.n_partitions, most))

    def run(
        self,
        worker: Worker,
        payload: Any,
        merge: Merge,
        description: str,
        summary_bytes: int = 0,
        empty_too: bool = False,
    ) -> tuple[Answer, int]:
        """Run ``worker`` on every partition; return their merged answers and how many tasks ran."""
        context = self._context
        before = context.getLocalProperty("spark.job.description")
        context.setJobDescription(f"LocalKMeans: {description}")
        shared = _share(context, payload)
        run = partial(
            run_partitions, worker=worker, payload=shared, merge=merge, empty_too=empty_too
        )
        add = partial(merge_answers, merge=merge)
        n_tasks = self._tasks.getNumPartitions()
        try:
            with workers_of_sql(context):
                found = self._tasks.mapPartitions(run).treeAggregate(
                    Answer(None, []), add, add, depth=tree_depth(n_tasks, summary_bytes)
                )
        finally:
            # A failed job may still have tasks running that read it: those fail, harmlessly.
            shared.destroy()
            context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]
        return found, n_tasks

    def close(self) -> None:
        """Release the blocks."""
        self._cached.unpersist()


def _share(context: SparkContext, payload: Any) -> Any:
    """Broadcast a payload; if it is small, spare the 10 ms and more that a broadcast takes."""
    data = pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
    return Enclosed(data) if len(data) <= _ENCLOSED_BYTES else context.broadcast(payload)
