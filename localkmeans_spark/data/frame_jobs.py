"""Jobs on the blocks of a fit in a session of Spark Connect: ``mapInArrow`` on a DataFrame."""

from __future__ import annotations

import pickle
import re
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from localkmeans_spark.data.arrow_rows import binary_views
from localkmeans_spark.data.block_frame import BATCH_BYTES, BYTES_PER_BATCH
from localkmeans_spark.data.limits import SUMMARY_BYTES
from localkmeans_spark.data.partition import (
    Answer,
    Enclosed,
    Merge,
    Worker,
    merge_answers,
    run_partitions,
)
from localkmeans_spark.spark_private import plan_text

# Payloads up to this size travel with the query, larger ones as a file that the session keeps: a
# query of 32 MB takes seconds, one of 128 MB is refused.
_ENCLOSED_BYTES = 8 << 20
_ANSWERS = "task long, answer binary"
_SPLITS = re.compile(r"splits=(\d+)")


class FrameJobs:
    """Jobs on a DataFrame of encoded blocks; with the attributes of ``RddJobs``.

    Answers come to the client and are merged there; where they are large, some at a time are
    merged by a task before.

    Parameters
    ----------
    blocks : DataFrame
        As ``block_frame`` makes it.
    """

    def __init__(self, blocks: DataFrame) -> None:
        self._blocks = self._tasks = blocks
        self._session = blocks.sparkSession
        self._n_lanes = _count_lanes(self._session)
        self.n_partitions = self._n_tasks = self._n_lanes
        self.n_executors = 1
        try:
            blocks.persist(StorageLevel.MEMORY_AND_DISK_DESER)
            self._is_kept = True
        except PySparkException as error:  # serverless computes keep nothing
            if "NOT_SUPPORTED" not in str(error):
                raise
            self._is_kept = False
        _small_batches.begin(self._session)

    def all_read(self) -> None:
        """Let later tasks take several partitions: each costs some 0.1 s, ten times an RDD's."""
        self._n_tasks = self.n_partitions
        if int(self._session.version.split(".")[0]) >= 4:
            # Before, one Arrow batch would hold all blocks of a task: 10,000, whatever their size.
            self._n_tasks = min(self.n_partitions, self._n_lanes)
        self._tasks = self._blocks.coalesce(self._n_tasks)

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
        answers = self._tasks.mapInArrow(partial(_answer, run=run), _ANSWERS)
        # Merging by tasks first about doubles the time of a job.
        if self._n_tasks * summary_bytes > SUMMARY_BYTES:
            n_groups = max(1, round(self._n_tasks**0.5))
            grouped = answers.repartition(n_groups, "task")
            answers = grouped.mapInArrow(partial(_merged, merge=merge), _ANSWERS)
        found, n_tasks = Answer(None, []), 0
        for row in answers.collect():
            n_tasks += 1
            # Made by this fit's own workers.
            found = merge_answers(found, pickle.loads(bytes(row.answer)), merge)  # noqa: S301
        self.n_partitions = max(1, len(found.partitions))
        return found, max(1, n_tasks)

    def close(self) -> None:
        """Release the blocks."""
        _small_batches.end(self._session)
        if self._is_kept:
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


class _SmallBatches:
    """Keeps the Arrow batches of sessions small while fits run there.

    Blocks of 2 MB go in batches of 64 MB by Spark's default, which it makes by copying them to a
    larger place again and again: a pass takes two to three times as long. Settings belong to the
    session, so the last of the fits that run in it sets the user's value back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fits: Counter[str] = Counter()
        self._before: dict[str, str] = {}

    def begin(self, session: Any) -> None:
        """A fit begins in a session."""
        with self._lock:
            self._fits[session.session_id] += 1
            # PySpark 3.5 has no such setting, serverless computes have it and refuse to change it.
            with suppress(PySparkException):
                if self._fits[session.session_id] == 1:
                    before = str(session.conf.get(BYTES_PER_BATCH))
                    session.conf.set(BYTES_PER_BATCH, str(BATCH_BYTES))
                    self._before[session.session_id] = before

    def end(self, session: Any) -> None:
        """A fit ends."""
        with self._lock:
            self._fits[session.session_id] -= 1
            if not self._fits[session.session_id]:
                before = self._before.pop(session.session_id, None)
                if before is not None:
                    session.conf.set(BYTES_PER_BATCH, before)


_small_batches = _SmallBatches()


def _count_lanes(session: SparkSession) -> int:
    """Return how many tasks run side by side, as far as a session tells."""
    # No context says how many cores there are; a table of numbers has a partition for each.
    told = _SPLITS.search(plan_text(session.range(1)) or "")
    if told:
        return int(told[1])
    numbers = session.range(1 << 16).select(F.spark_partition_id())
    return max(1, numbers.distinct().count())


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
    blocks = (block for batch in batches for block in binary_views(batch.column(0)))
    for found in run(blocks):
        if found.partitions:
            yield _as_batch(found)


def _merged(batches: Iterator[pa.RecordBatch], merge: Merge) -> Iterator[pa.RecordBatch]:
    """Merge the answers of some tasks (``mapInArrow``)."""
    found = Answer(None, [])
    for value in (value for batch in batches for value in batch.column(1)):
        found = merge_answers(found, pickle.loads(value.as_py()), merge)  # noqa: S301
    if found.partitions:
        yield _as_batch(found)


def _as_batch(found: Answer) -> pa.RecordBatch:
    data = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    return pa.RecordBatch.from_pydict(
        {"task": pa.array([found.partitions[0][0]], pa.int64()), "answer": [data]}
    )
