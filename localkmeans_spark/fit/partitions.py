"""The door to Spark: whoever does requests on every partition of a DataFrame."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from pyspark.sql import DataFrame

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.blocks import Blocks, open_blocks
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.fit.requests import Request, together
from localkmeans_spark.fit.run import JobCost

# Memory that the summaries of one job may take on an executor; more requests make more jobs.
_JOB_BYTES = 256 << 20


class Partitions(Protocol):
    """The rows of a fit, and how requests are done on them."""

    data: DataSummary

    def run(self, requests: Sequence[Request]) -> list[tuple[Any, JobCost]]:
        """Do requests on every partition, in as few jobs as fit; return answers in their order."""


@contextmanager
def open_partitions(
    df: DataFrame, config: FitConfig, seeds: Sequence[int], ks: Sequence[int]
) -> Iterator[Partitions]:
    """Read, check and keep the rows of a fit; release them at the end, also on failure.

    See :func:`~localkmeans_spark.data.blocks.open_blocks`.
    """
    with open_blocks(df, config, seeds, ks) as blocks:
        yield BlockPartitions(blocks)


class BlockPartitions:
    """Partitions of a DataFrame, read into blocks."""

    def __init__(self, blocks: Blocks) -> None:
        self.data = blocks.data
        self._blocks = blocks
        self._job_bytes = min(_JOB_BYTES, blocks.max_job_bytes)

    def run(self, requests: Sequence[Request]) -> list[tuple[Any, JobCost]]:
        """Do requests on every partition, in as few jobs as fit; return answers in their order."""
        answers: list[tuple[Any, JobCost]] = []
        for group in groups_of(requests, self._job_bytes):
            began = time.perf_counter()
            job = together(group)
            found, n_tasks = self._blocks.run(
                job.worker, job.order, job.merge, job.description, job.nbytes
            )
            cost = JobCost(
                seconds=time.perf_counter() - began,
                n_tasks=n_tasks,
                n_executors=self._blocks.jobs.n_executors,
            )
            answers += [(answer, cost) for answer in job.finish(found)]
        return answers


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
