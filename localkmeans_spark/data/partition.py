"""One partition: its rows, its frame, work on it. Runs on: executors."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import threadpoolctl
from pyspark import TaskContext

from localkmeans_spark.data.block_format import LeftOut, StoredBlock, decode
from localkmeans_spark.kernel import draws, sparse
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.scale import column_sq_sums
from localkmeans_spark.kernel.sparse_rows import SparseRows
from localkmeans_spark.kernel.spherical import unit_centers
from localkmeans_spark.kernel.typical import Typical, typical


@dataclass(frozen=True)
class Partition:
    """All rows of one partition.

    Attributes
    ----------
    number : int
        Partition number.
    stored : list of StoredBlock
        With rows or without; at least one.
    """

    number: int
    stored: list[StoredBlock]

    @property
    def blocks(self) -> list[Block]:
        """The blocks that have rows."""
        return [item.block for item in self.stored if len(item.block.x)]

    @property
    def origin(self) -> np.ndarray:
        """Frame of the rows, shape (n_features,)."""
        return self.stored[0].origin

    @property
    def sum_sq(self) -> float:
        """Sum of ``w * ||x||**2`` in that frame."""
        return float(sum(item.sum_sq for item in self.stored))

    @property
    def checksum(self) -> int:
        """Of all blocks in their order."""
        found = [item.checksum for item in self.stored]
        return zlib.crc32(np.array(found, dtype=np.int64).tobytes())


Worker = Callable[[Partition, Any], Any]
Merge = Callable[[Any, Any], Any]


class Answer(NamedTuple):
    """What one or more partitions say.

    Attributes
    ----------
    value : object
        What the worker returned, merged; None when it was not run.
    partitions : list of (int, int)
        Number and checksum of every partition that has blocks, those without usable rows included.
    """

    value: Any
    partitions: list[tuple[int, int]]


def merge_answers(left: Answer, right: Answer, merge: Merge) -> Answer:
    """Merge two answers; a value of None is nothing."""
    if left.value is None or right.value is None:
        value = right.value if left.value is None else left.value
    else:
        value = merge(left.value, right.value)
    return Answer(value, left.partitions + right.partitions)


def nothing(*_: Any) -> None:
    """A worker that looks at its blocks' checksums only."""


class Enclosed:
    """A small payload that travels with the task's code, in the place of a broadcast."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def value(self) -> Any:
        """The payload, unpickled anew."""
        return pickle.loads(self._data)  # noqa: S301 — made by this fit's own driver

    def destroy(self) -> None:
        """Nothing to release."""


def run_partitions(
    data: Iterable[bytes | pa.Buffer],
    worker: Worker,
    payload: Any,
    merge: Merge,
    empty_too: bool = False,
) -> Iterator[Answer]:
    """Run a worker on every partition of a task and merge what they return.

    A task may hold several partitions, one after the other; only one partition's blocks are in
    memory at a time. At any width, a task takes the blocks of its largest partition, and beside
    them: chunks and samples of rows, 100 MB; candidates of a seeding pass, 64 MB and their copies;
    about 50 rows in float64 and 12 times the k centers. Reading rows takes batches of 8 MB a few
    times over, and the first 16 rows (``tests/engine/test_task_memory.py``).

    The input is always drained: a task that leaves some of it unread costs about a second,
    because Spark then throws the worker process away.

    Parameters
    ----------
    data : iterable of bytes or pyarrow.Buffer
        Encoded blocks, those of one partition together.
    worker : callable (partition, payload.value) -> summary
    payload : Broadcast, or another object with the payload as ``value``
    merge : callable (summary, summary) -> summary
    empty_too : bool
        Also run it on partitions all of whose rows were left out.
    """
    merged, order = Answer(None, []), payload.value
    with _blas()(limits=blas_threads(), user_api="blas"):
        for number, stored in groupby(map(decode, data), key=lambda item: item.partition):
            partition = Partition(number, list(stored))
            runs = bool(partition.blocks) or empty_too
            found = Answer(
                worker(partition, order) if runs else None, [(number, partition.checksum)]
            )
            merged = merge_answers(merged, found, merge)
            del partition  # before the next one's blocks are read
    yield merged


@cache
def _blas() -> Any:
    """Return what limits BLAS threads; libraries are looked up once, as that takes milliseconds."""
    if hasattr(threadpoolctl, "ThreadpoolController"):
        return threadpoolctl.ThreadpoolController().limit
    return threadpoolctl.threadpool_limits  # before threadpoolctl 3


def blas_threads() -> int:
    """One BLAS thread a task, unless spark.task.cpus gives it more."""
    context = TaskContext.get()
    return context.cpus() if context is not None and hasattr(context, "cpus") else 1


# What is too large is told by the checks of these statistics, not by NumPy.
@np.errstate(over="ignore", invalid="ignore")
def describe(partition: Partition, seeds: Sequence[int], with_squares: bool = False) -> Statistics:
    """Summarise a partition's rows, and draw one of them for every seed (the first pass)."""
    blocks = partition.blocks
    n_features = partition.stored[-1].block.x.shape[1]
    sums, largest = np.zeros(n_features), np.zeros(n_features)
    for x, weight in blocks:
        if isinstance(x, SparseRows):
            of_block = sparse.column_summary(x, weight)
            sums += of_block[0]
            np.maximum(largest, of_block[1], out=largest)
            continue
        sums += x.sum(axis=0, dtype=np.float64) if weight is None else weight @ x
        np.maximum(largest, np.maximum(x.max(axis=0), -x.min(axis=0)), out=largest)
    sq_sums = np.zeros(n_features if with_squares else 0)
    for x, weight in blocks if with_squares else ():
        sq_sums += column_sq_sums(x, weight)
    first_rows = {}
    like = Typical(np.zeros(n_features), np.zeros(n_features), 0.0)
    if blocks:
        like = typical(blocks)
        for seed in seeds:
            first_rows[seed] = draws.draw_row(blocks, draws.generator(seed, 0, partition.number))
    return Statistics(
        partition=partition.number,
        n_points=sum(len(block.x) for block in blocks),
        n_features=n_features,
        sum_weights=float(sum(item.sum_weights for item in partition.stored)),
        sums=sums,
        sq_sums=sq_sums,
        sum_sq=partition.sum_sq,
        largest=largest,
        origin=partition.origin,
        left_out=reduce(LeftOut.plus, [item.left_out for item in partition.stored]),
        first_rows=first_rows,
        middle=like.middle,
        usual=like.usual,
        scale=like.scale,
        least_weight=min((_least(block.weight) for block in blocks), default=1.0),
        checksum=partition.checksum,
    )


def _least(weight: np.ndarray | None) -> float:
    return 1.0 if weight is None else float(weight.min())


class Frame(NamedTuple):
    """Frame shared by the driver and all partitions.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), float64
        Centers travel relative to it.
    sum_grids : ndarray of shape (n_parts, n_features), float64
    weight_grids : ndarray of shape (n_parts,), float64
        Spacings to which sums and weights are rounded so that they add exactly; further, finer
        parts, up to 11 in all, keep what light clusters would lose beside heavy ones, and most
        rows beside values far away.
    is_cosine : bool
        Whether rows and centers have length 1, for cosine distance.
    has_far_rows : bool
        Whether some rows are so far away that sums of squares lose what the others have.
    """

    mean: np.ndarray
    sum_grids: np.ndarray
    weight_grids: np.ndarray
    is_cosine: bool = False
    has_far_rows: bool = False

    def absolute(self, centers: np.ndarray) -> np.ndarray:
        """Return absolute centers as rows are compared with them: of length 1 for cosine."""
        return unit_centers(centers) if self.is_cosine else centers

    def to_partition(self, centers: np.ndarray, partition: Partition) -> np.ndarray:
        """Move centers from the shared frame into a partition's."""
        return centers + (self.mean - partition.origin)

    def from_partition(self, rows: np.ndarray, partition: Partition) -> np.ndarray:
        """Move rows from a partition's frame into the shared one."""
        return rows + (partition.origin - self.mean)

    def sq_rounding(self, centers: np.ndarray, partition: Partition) -> np.ndarray:
        """Return how far rows may lie, squared, from the centers that they became; shape (k,)."""
        # The way there and back adds and subtracts this one difference, however large both are.
        size = np.abs(centers) + np.abs(self.mean - partition.origin)
        size *= 2.0 * np.finfo(np.float64).eps
        return np.einsum("kd,kd->k", size, size)


@dataclass(frozen=True)
class Statistics:
    """What the first pass says of one partition (sums relative to ``origin``).

    ``first_rows`` holds one row drawn by weight for every seed asked for; ``checksum`` is that of
    its blocks; ``sq_sums``, of squares by feature, is empty unless it was asked for; ``middle``,
    ``usual`` and ``scale`` are those of :class:`~kernel.typical.Typical`.
    """

    partition: int
    n_points: int
    n_features: int
    sum_weights: float
    sums: np.ndarray
    sum_sq: float
    largest: np.ndarray
    origin: np.ndarray
    middle: np.ndarray
    usual: np.ndarray
    scale: float
    left_out: LeftOut
    first_rows: dict[int, np.ndarray]
    least_weight: float = 1.0
    checksum: int = 0
    sq_sums: np.ndarray = field(default_factory=lambda: np.empty(0))
