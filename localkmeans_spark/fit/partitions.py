"""The door to Spark: whoever does requests on every partition of a DataFrame."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import add
from typing import Any, Protocol

from pyspark.sql import DataFrame

from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.block_frame import block_frame
from localkmeans_spark.data.frame_jobs import FrameJobs
from localkmeans_spark.data.limits import (
    SUMMARY_BYTES,
    FirstPassOrder,
    Room,
    describe_within,
    unpack,
)
from localkmeans_spark.data.partition import nothing
from localkmeans_spark.data.rdd_jobs import RddJobs
from localkmeans_spark.data.standardize import on_scaled, standardised
from localkmeans_spark.data.summary import DataSummary, summarise
from localkmeans_spark.data.workers import use_drivers_python
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.fit.requests import Request, together
from localkmeans_spark.fit.run import JobCost
from localkmeans_spark.spark_private import Py4JError, is_connect


class Partitions(Protocol):
    """The rows of a fit, and how requests are done on them."""

    data: DataSummary

    def run(self, requests: Sequence[Request]) -> list[tuple[Any, JobCost]]:
        """Do requests on every partition, in as few jobs as fit; return answers in their order."""


@contextmanager
def open_partitions(
    df: DataFrame, config: FitConfig, seeds: Sequence[int], ks: Sequence[int]
) -> Iterator[BlockPartitions]:
    """Read, check and cache the rows of a fit; release them at the end, also on failure.

    Parameters
    ----------
    df : DataFrame
        Read once; its own cache, if any, is left alone.
    config : FitConfig
    seeds : sequence of int
        Each gets a first random row of its own.
    ks : sequence of int
        Clusters of every set of centers that will be in memory.

    Raises
    ------
    InvalidInputError
        For columns that cannot serve, no rows, bad rows, bad weights, rows of several lengths,
        numbers outside the range of the dtype, or more than fits into memory.

    Notes
    -----
    One job: the source is read, turned into blocks, cached and summarised in the same tasks.
    """
    session = df.sparkSession
    has_context = not is_connect(session)
    if has_context:
        use_drivers_python(session.sparkContext)
    room = Room(session, ks)
    blocks = block_frame(df, config, room)
    jobs = RddJobs(blocks) if has_context else FrameJobs(blocks)
    try:
        order = FirstPassOrder(
            seeds,
            room.max_features,
            room.for_first_pass // max(1, jobs.n_partitions),
            config.data.standardize,
        )
        found, _ = jobs.run(describe_within, order, add, "reading the data", empty_too=True)
        statistics = unpack(found.value or [], room, config)
        data = summarise(statistics, config)
        if config.data.standardize:
            data = standardised(data, statistics, config)
        jobs.all_read()
        job_bytes = min(SUMMARY_BYTES, room.for_centers)
        partitions = BlockPartitions(jobs, data, dict(found.partitions), job_bytes)
        partitions.check(found.partitions)  # no number twice
        yield partitions
    finally:
        jobs.close()


class BlockPartitions:
    """Partitions of a DataFrame, read into blocks.

    Parameters
    ----------
    jobs : RddJobs or FrameJobs
        One for each kind of session; RddJobs says what they have.
    data : DataSummary
    checksums : dict of int
        Of every partition with blocks, by its number, as the first pass found them.
    job_bytes : int
        Most that one job's summaries may take.
    """

    def __init__(
        self,
        jobs: RddJobs | FrameJobs,
        data: DataSummary,
        checksums: dict[int, int],
        job_bytes: int,
    ) -> None:
        self.jobs, self.data = jobs, data
        self._checksums, self._job_bytes = checksums, job_bytes

    def run(self, requests: Sequence[Request]) -> list[tuple[Any, JobCost]]:
        """Do requests on every partition, in as few jobs as fit; return answers in their order.

        Raises
        ------
        InvalidInputError
            If a block was lost and made again with other rows than in the first pass.
        """
        answers: list[tuple[Any, JobCost]] = []
        for group in groups_of(requests, self._job_bytes):
            began = time.perf_counter()
            job = together(group)
            worker, order = job.worker, job.order
            if self.data.factors is not None:
                worker, order = on_scaled, (self.data.factors, worker, order)
            try:
                found, n_tasks = self.jobs.run(
                    worker, order, job.merge, job.description, job.nbytes
                )
            except Exception as error:
                # Rows of another shape can make workers, or the merging here, fail.
                if not isinstance(error, Py4JError) or "PythonException" in str(error):
                    self._compare()
                raise
            self.check(found.partitions)
            cost = JobCost(time.perf_counter() - began, n_tasks, self.jobs.n_executors)
            answers += [(answer, cost) for answer in job.finish(found.value)]
        return answers

    def _compare(self) -> None:
        """Compare the partitions with the first pass in a job of its own, after another failed."""
        try:
            found, _ = self.jobs.run(nothing, None, nothing, "comparing the rows")
        except Exception:
            return  # the first failure is all there is to tell
        self.check(found.partitions)

    def check(self, partitions: list[tuple[int, int]]) -> None:
        """Compare what a job read with the first pass: every partition once, with the same rows."""
        seen, expected = Counter(partitions), Counter(self._checksums.items())
        if seen == expected:
            return
        n_odd = len({number for number, _ in (seen - expected) + (expected - seen)})
        raise invalid(
            OWNER, "the rows", "the same each time Spark reads them",
            Fact(f"other rows in {count_of(n_odd, 'partition')} of {len(self._checksums):,} when "
                 "lost blocks were read again"),
            "The source or a function is not deterministic, or a file was rewritten: write the "
            "rows to a table first, or call checkpoint() on the DataFrame, and fit what comes out.",
        )  # fmt: skip


def groups_of(requests: Sequence[Request], limit: int) -> list[list[Request]]:
    """Cut requests, in their order, into groups of at most ``limit`` bytes or of one request."""
    groups: list[list[Request]] = []
    total = 0
    for request in requests:
        if not groups or total + request.nbytes > limit:
            groups.append([])
            total = 0
        groups[-1].append(request)
        total += request.nbytes
    return groups
