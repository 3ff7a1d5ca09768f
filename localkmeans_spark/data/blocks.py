"""DataFrame → checked, cached NumPy blocks, read from the source once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add
from typing import Any

from pyspark.sql import DataFrame

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.block_frame import block_frame
from localkmeans_spark.data.frame_jobs import FrameJobs
from localkmeans_spark.data.limits import FirstPassOrder, Room, describe_within, unpack
from localkmeans_spark.data.partition import Merge, Worker, nothing
from localkmeans_spark.data.rdd_jobs import RddJobs
from localkmeans_spark.data.standardize import on_scaled, standardised
from localkmeans_spark.data.summary import DataSummary, summarise
from localkmeans_spark.data.workers import use_drivers_python
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.spark_private import Py4JError, is_connect

Jobs = RddJobs | FrameJobs  # one for each kind of session; RddJobs says what they have


@dataclass(frozen=True)
class Blocks:
    """The cached data of one fit, and how to run jobs on it.

    Attributes
    ----------
    jobs : Jobs
    data : DataSummary
    max_job_bytes : int
        Most that one job's centers may take.
    partitions : list of (int, int)
        Number and checksum of every partition with blocks, as the first pass found them.
    owner : str
        Class shown in messages.
    """

    jobs: Jobs
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
        if self.data.factors is not None:
            worker, payload = on_scaled, (self.data.factors, worker, payload)
        try:
            answer, n_tasks = self.jobs.run(worker, payload, merge, description, summary_bytes)
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
            answer, _ = self.jobs.run(nothing, None, nothing, "comparing the rows")
        except Exception:
            return  # the first failure is all there is to tell
        self.check(answer.partitions)

    def check(self, partitions: list[tuple[int, int]]) -> None:
        """Compare what a job read with the first pass: every partition once, with the same rows."""
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
    room = Room(session, (config.k,) if ks is None else ks, config.owner)
    blocks = block_frame(df, config, room)
    jobs = RddJobs(blocks, config.owner) if has_context else FrameJobs(blocks, config.owner)
    try:
        order = FirstPassOrder(
            (config.seed,) if seeds is None else tuple(seeds),
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
        partitions = sorted(dict(found.partitions).items())
        read = Blocks(jobs, data, room.for_centers, partitions, config.owner)
        read.check(found.partitions)  # no number twice
        yield read
    finally:
        jobs.close()
