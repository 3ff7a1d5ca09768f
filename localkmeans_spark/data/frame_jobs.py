"""Jobs on the blocks of a fit in a session of Spark Connect: ``mapInArrow`` on a DataFrame."""

from __future__ import annotations

import pickle
import tempfile
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from localkmeans_spark.data.partition import (
    Answer,
    Enclosed,
    Merge,
    Worker,
    merge_answers,
    run_partitions,
)
from localkmeans_spark.data.rdd_jobs import tree_depth

# Payloads up to this size travel with the query, larger ones as a file that the session keeps: a
# query of 32 MB takes seconds, one of 128 MB is refused.
_ENCLOSED_BYTES = 8 << 20
_ANSWERS = "task long, answer binary"
_lanes: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


class FrameJobs:
    """Jobs on a DataFrame of encoded blocks; with the attributes of ``RddJobs``.

    Answers come to the client and are merged there; where they are large, some at a time are
    merged by a task before.

    Parameters
    ----------
    blocks : DataFrame
        As ``block_frame`` makes it.
    owner : str
    """

    def __init__(self, blocks: DataFrame, owner: str) -> None:
        self._blocks = blocks
        self._session = blocks.sparkSession
        self.n_lanes = _count_lanes(self._session)
        self.n_partitions = self.n_lanes
        self.n_executors = 1
        try:
            blocks.persist(StorageLevel.MEMORY_AND_DISK)
            self.is_kept = True
        except PySparkException as error:  # serverless computes keep nothing
            if "NOT_SUPPORTED" not in str(error):
                raise
            self.is_kept = False

    def all_read(self) -> None:
        """Nothing to do: partitions stay as they are."""

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
        run = partial(
            run_partitions,
            worker=worker,
            payload=self._share(payload),
            merge=merge,
            empty_too=empty_too,
        )
        answers = self._blocks.mapInArrow(partial(_answer, run=run), _ANSWERS)
        if tree_depth(self.n_partitions, summary_bytes) > 2:
            n_groups = max(1, round(self.n_partitions**0.5))
            group = (F.col("task") % n_groups).alias("group")
            both = answers.select(group, "task", "answer").groupBy("group")
            answers = both.applyInArrow(partial(_merged, merge=merge), _ANSWERS)
        found, n_tasks = Answer(None, []), 0
        for row in answers.collect():
            n_tasks += 1
            # Made by this fit's own workers.
            found = merge_answers(found, pickle.loads(bytes(row.answer)), merge)  # noqa: S301
        self.n_partitions = max(1, len(found.partitions))
        return found, max(1, n_tasks)

    def close(self) -> None:
        """Release the blocks."""
        if self.is_kept:
            self._blocks.unpersist()

    def _share(self, payload: Any) -> Any:
        data = pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
        if len(data) <= _ENCLOSED_BYTES:
            return Enclosed(data)
        # The server takes a name once, and keeps the file as long as the session.
        path = Path(tempfile.gettempdir()) / f"localkmeans-{uuid.uuid4().hex}.pickle"
        try:
            path.write_bytes(data)
            self._session.addArtifact(str(path), file=True)
        finally:
            path.unlink(missing_ok=True)
        return SentFile(path.name)


def _count_lanes(session: SparkSession) -> int:
    """Return how many tasks run side by side, as far as a session tells; asked for once."""
    if session not in _lanes:
        # No context says how many cores there are; a table of numbers has a partition for each.
        numbers = session.range(1 << 16).select(F.spark_partition_id())
        _lanes[session] = max(1, numbers.distinct().count())
    return _lanes[session]


class SentFile:
    """A payload that lies as a file beside the workers, in the place of a broadcast."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def value(self) -> Any:
        """The payload, read anew."""
        from pyspark import SparkFiles  # `pyspark-client` has none, but workers do

        with Path(SparkFiles.get(self._name)).open("rb") as file:
            return pickle.load(file)  # noqa: S301 — made by this fit's own driver


def _answer(batches: Iterator[pa.RecordBatch], run: Any) -> Iterator[pa.RecordBatch]:
    """Run a request on a task's blocks (``mapInArrow``)."""
    blocks = (value.as_py() for batch in batches for value in batch.column(0))
    for found in run(blocks):
        if found.partitions:
            yield _as_batch(found)


def _merged(table: pa.Table, merge: Merge) -> pa.Table:
    """Merge the answers of some tasks (``applyInArrow``)."""
    found = Answer(None, [])
    for value in table.column("answer"):
        found = merge_answers(found, pickle.loads(value.as_py()), merge)  # noqa: S301
    return pa.Table.from_batches([_as_batch(found)])


def _as_batch(found: Answer) -> pa.RecordBatch:
    data = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    return pa.RecordBatch.from_pydict(
        {"task": pa.array([found.partitions[0][0]], pa.int64()), "answer": [data]}
    )
