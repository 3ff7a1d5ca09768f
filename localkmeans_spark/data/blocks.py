"""DataFrame → checked, cached NumPy blocks, read from the source once."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.sql import DataFrame

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.block_rdd import block_rdd
from localkmeans_spark.data.first_pass import FirstPassOrder, describe_within, unpack
from localkmeans_spark.data.limits import Room
from localkmeans_spark.data.merge_tree import tree_depth
from localkmeans_spark.data.partition import (
    Answer,
    Enclosed,
    Merge,
    Worker,
    merge_answers,
    nothing,
    run_partitions,
)
from localkmeans_spark.data.statistics import concatenate
from localkmeans_spark.data.summary import DataSummary, summarise
from localkmeans_spark.data.worker_python import check_workers, use_drivers_python
from localkmeans_spark.errors import Fact, count_of, invalid

# Tasks a core: enough to even out partitions of different sizes, few enough to keep the fixed cost
# of a task (about 10 ms) small.
_TASKS_PER_CORE = 3
# Payloads up to this size travel with the task's code, once a task; larger ones once an executor.
_ENCLOSED_BYTES = 128 << 10


@dataclass(frozen=True)
class Blocks:
    """The cached data of one fit, and how to run jobs on it.

    Attributes
    ----------
    tasks : RDD
        Encoded blocks; a task of it holds several partitions when there are many.
    data : DataSummary
    max_job_bytes : int
        Most that one job's centers may take.
    partitions : list of (int, int)
        Number and checksum of every partition with blocks, as the first pass found them.
    owner : str
        Class shown in messages.
    """

    tasks: RDD
    data: DataSummary
    max_job_bytes: int
    partitions: list[tuple[int, int]]
    owner: str

    def run(
        self, worker: Worker, payload: Any, merge: Merge, description: str, summary_bytes: int
    ) -> tuple[Any, int]:
        """Run ``worker`` on every partition and merge what they return.

        Parameters
        ----------
        worker : callable (partition, payload) -> summary
            A module-level function.
        payload : object
            Broadcast unless it is small; destroyed afterwards.
        merge : callable (summary, summary) -> summary
            Associative and commutative.
        description : str
            Shown in the Spark UI.
        summary_bytes : int
            About how large a summary is.

        Returns
        -------
        summary : object
            Of all partitions.
        n_tasks : int
            Tasks that sent a summary.

        Raises
        ------
        InvalidInputError
            If a block was lost and made again with other rows than in the first pass.
        """
        n_tasks = self.tasks.getNumPartitions()
        depth = tree_depth(n_tasks, summary_bytes)
        try:
            answer = _run(self.tasks, worker, payload, merge, description, depth)
        except Exception as error:
            # Rows of another shape can make workers, or the merging here, fail.
            if not isinstance(error, Py4JError) or "PythonException" in str(error):
                self._compare()
            raise
        self.check(answer.partitions)
        return answer.value, n_tasks

    def _compare(self) -> None:
        """Compare the partitions with the first pass in a job of its own, after another failed."""
        try:
            answer = _run(self.tasks, nothing, None, nothing, "comparing the rows", depth=1)
        except Exception:
            return  # the first failure is all there is to tell
        self.check(answer.partitions)

    def check(self, partitions: list[tuple[int, int]]) -> None:
        """Compare what a job read with the first pass: every partition once, with the same rows.

        Raises
        ------
        InvalidInputError
        """
        if sorted(partitions) == self.partitions:
            return
        seen, expected = Counter(partitions), Counter(self.partitions)
        n_odd = len({number for number, _ in (seen - expected) + (expected - seen)})
        raise invalid(
            self.owner, "the rows", "the same each time Spark reads them",
            Fact(f"other rows in {count_of(n_odd, 'partition')} of {len(self.partitions):,} when "
                 "lost blocks were read again"),
            "The source or a function is not deterministic, or a file was rewritten: write the "
            "rows to a table first, or call checkpoint() on the DataFrame, and fit what comes out.",
        )  # fmt: skip


def _run(
    rdd: RDD,
    worker: Worker,
    payload: Any,
    merge: Merge,
    description: str,
    depth: int,
    empty_too: bool = False,
) -> Answer:
    context = rdd.context
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(f"LocalKMeans: {description}")
    shared = _share(context, payload)
    run = partial(run_partitions, worker=worker, payload=shared, merge=merge, empty_too=empty_too)
    add = partial(merge_answers, merge=merge)
    try:
        return rdd.mapPartitions(run).treeAggregate(Answer(None, []), add, add, depth=depth)
    finally:
        # A failed job may still have tasks running that read it: those fail, harmlessly.
        shared.destroy()
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]


def _share(context: SparkContext, payload: Any) -> Any:
    """Broadcast a payload; if it is small, spare the 10 ms and more that a broadcast takes."""
    data = pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
    return Enclosed(data) if len(data) <= _ENCLOSED_BYTES else context.broadcast(payload)


@contextmanager
def open_blocks(
    df: DataFrame,
    config: FitConfig,
    seeds: Sequence[int] | None = None,
    ks: Sequence[int] | None = None,
) -> Iterator[Blocks]:
    """Read, check and cache the data of a fit; release it at the end, also on failure.

    Parameters
    ----------
    df : DataFrame
        Read once; its own cache, if any, is left alone.
    config : FitConfig
    seeds : sequence of int, optional
        Each gets a first random row of its own; only the config's when missing.
    ks : sequence of int, optional
        Clusters of every set of centers that will be in memory; the config's when missing.

    Yields
    ------
    Blocks

    Raises
    ------
    InvalidInputError
        For columns that cannot serve, no rows, bad rows, bad weights, rows of several lengths,
        numbers outside the range of the dtype, or more than fits into memory.

    Notes
    -----
    One job: the source is read, turned into blocks, cached and summarised in the same tasks.
    """
    use_drivers_python(df.sparkSession.sparkContext)
    room = Room(df.sparkSession, (config.k,) if ks is None else ks, config.owner)
    cached = block_rdd(df, config, room)
    check_workers(cached.context, config.owner)
    cached.persist(StorageLevel.MEMORY_AND_DISK_DESER)
    try:
        order = FirstPassOrder(
            (config.seed,) if seeds is None else tuple(seeds),
            room.max_features,
            room.for_first_pass // max(1, cached.getNumPartitions()),
        )
        found = _run(
            cached, describe_within, order, concatenate, "reading the data", depth=1, empty_too=True
        )
        data = summarise(unpack(found.value or [], room, config), config)
        n_tasks = _TASKS_PER_CORE * cached.context.defaultParallelism
        # Coalescing never splits a partition, and follows where the cached blocks are.
        tasks = cached.coalesce(min(cached.getNumPartitions(), n_tasks))
        partitions = sorted(dict(found.partitions).items())
        blocks = Blocks(tasks, data, room.for_centers, partitions, config.owner)
        blocks.check(found.partitions)  # no number twice
        yield blocks
    finally:
        cached.unpersist()
