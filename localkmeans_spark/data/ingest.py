"""One partition's Arrow batches → encoded blocks (runs in the Python worker of mapInArrow)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from localkmeans_spark.data.arrow_rows import RowBatch, read_features
from localkmeans_spark.data.block_format import LeftOut, StoredBlock, encode
from localkmeans_spark.kernel.assign import to_frame
from localkmeans_spark.kernel.chunks import rows_made_dense, slices
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.scale import sq_sum
from localkmeans_spark.kernel.sparse import prefers_sparse
from localkmeans_spark.kernel.sparse_rows import SparseRows, concatenate, finite_rows, from_dense
from localkmeans_spark.kernel.spherical import unit_rows
from localkmeans_spark.kernel.typical import origin_of, rows_looked_at

# Just under half a region of G1 on a heap of 8 GiB: a larger byte array is "humongous" there, and
# the JVM then takes twice as long to take the blocks in.
BLOCK_BYTES = 2000 << 10
BLOCK_SCHEMA = StructType([StructField("block", BinaryType())])


class IngestPlan(NamedTuple):
    """How to read a partition.

    Attributes
    ----------
    kind : str
        See ``columns.IngestColumns``.
    n_features : int or None
    is_weighted : bool
    dtype : str
    is_cosine : bool
        Scale rows to length 1.
    """

    kind: str
    n_features: int | None
    is_weighted: bool
    dtype: str
    is_cosine: bool = False


def encode_partition(
    batches: Iterator[pa.RecordBatch], plan: IngestPlan
) -> Iterator[pa.RecordBatch]:
    """Turn a partition into blocks of about 2 MB, one binary row each.

    A partition whose first rows are sparse enough (``prefers_sparse``) keeps its rows sparse.
    Rows that break a rule are counted, not kept; the driver decides what they mean. Rows of
    weight 0 are dropped before. An empty partition gives no block.

    Parameters
    ----------
    batches : iterator of RecordBatch
        Columns: features, weight if there are weights, the partition's number in every row. The
        task's own number would not do: a block that is made again may be made by a task that
        holds several partitions.
    plan : IngestPlan
    """
    builder: _BlockBuilder | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if builder is None:
            builder = _BlockBuilder(batch.column(batch.num_columns - 1)[0].as_py(), plan)
        yield from map(_as_batch, builder.add(batch))
    if builder is not None:
        yield from map(_as_batch, builder.finish())
    # Arrow keeps tens of MB for its next arrays; this process goes on with NumPy's.
    pa.default_memory_pool().release_unused()


def _as_batch(data: bytes) -> pa.RecordBatch:
    ends = pa.py_buffer(np.array([0, len(data)], dtype=np.int32))
    # Around the bytes, not a copy of them.
    block = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(data)])
    return pa.RecordBatch.from_arrays([block], names=["block"])


class _BlockBuilder:
    """Collects rows until a block is full. One per partition."""

    def __init__(self, partition: int, plan: IngestPlan) -> None:
        self._partition = partition
        self._plan = plan
        self._n_features = plan.n_features
        self._origin: np.ndarray | None = None
        self._is_first = True
        self._keeps_sparse: bool | None = None
        # The first dense rows, until there are enough of them to place the origin.
        self._held: list[tuple[np.ndarray, np.ndarray | None]] = []
        self._rows: list[Any] = []
        self._weights: list[np.ndarray] = []
        self._pending = 0
        self._left_out = LeftOut()

    def _count(self, **counts: int) -> None:
        self._left_out = self._left_out.plus(LeftOut(**counts))

    def add(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """Take a batch; yield the blocks that it fills."""
        if self._plan.is_weighted:
            batch = _without_weight_0(batch)
        rows = read_features(batch.column(0), self._plan.kind, self._n_features)
        self._count(
            invalid_features=rows.n_null,
            wrong_length=len(rows.other_lengths),
            other_length=int(rows.other_lengths.max(initial=0)),
        )
        if self._n_features is None and rows.n_null < batch.num_rows:
            self._n_features = rows.x.shape[1]
        if self._n_features is None or len(rows.x) == 0:
            return
        x, weight = self._usable(rows, batch)
        if len(x) == 0:
            return
        if self._keeps_sparse is None:
            self._keeps_sparse = isinstance(x, SparseRows) and prefers_sparse(x)
        for rows_of_part, part in _in_form(x, self._keeps_sparse):
            w = None if weight is None else weight[rows_of_part]
            if self._keeps_sparse or self._origin is not None:
                yield from self._take(part, w)
                continue
            self._held.append((part, w))
            if sum(len(rows) for rows, _ in self._held) >= rows_looked_at(part.shape[1]):
                yield from self._take_held()

    def _take_held(self) -> Iterator[bytes]:
        """Place the origin by the partition's first rows, however they were sent; take them."""
        held, self._held = self._held, []
        if self._plan.is_cosine:  # unit vectors lie around 0, and cosine needs their origin there
            self._origin = np.zeros(held[0][0].shape[1])
        else:
            n_rows = rows_looked_at(held[0][0].shape[1])
            first = np.concatenate([rows[:n_rows] for rows, _ in held])
            self._origin = origin_of(first[:n_rows])
        for rows, weight in held:
            yield from self._take(rows, weight)

    def _take(self, x: Any, weight: np.ndarray | None) -> Iterator[bytes]:
        """Add usable rows, in the partition's form, to the block; yield what they fill."""
        if self._keeps_sparse:
            raw, x = x, x.astype(self._plan.dtype)
            if len(x.values) and not (x.values[0] or x.values.any()) and raw.values.any():
                self._count(vanished_rows=len(x))
            per_block = max(1, BLOCK_BYTES * len(x) // x.nbytes)
        else:
            assert self._origin is not None
            raw, x = x, to_frame(x, self._origin, self._plan.dtype)
            # Seldom more than a look at the first row.
            if not (x[0].any() or x.any()) and (raw != self._origin).any():
                self._count(vanished_rows=len(x))
            per_block = max(1, BLOCK_BYTES // (x.itemsize * max(1, x.shape[1])))
        start = 0
        while start < len(x):
            stop = min(len(x), start + max(1, per_block - self._pending))
            self._rows.append(x[start:stop])
            if weight is not None:
                self._weights.append(weight[start:stop])
            self._pending += stop - start
            start = stop
            if self._pending >= per_block:
                yield self._flush()

    def finish(self) -> Iterator[bytes]:
        """Yield what is left: a last block, or an empty one that carries counts."""
        if self._held:
            yield from self._take_held()
        if self._pending or any(self._left_out):
            yield self._flush()

    def _usable(self, rows: RowBatch, batch: pa.RecordBatch) -> tuple[Any, np.ndarray | None]:
        """Drop rows with unusable features or weights."""
        x, weight = rows.x, None
        if (fine := finite_rows(x)) is not None:
            self._count(invalid_features=int((~fine).sum()))
        if self._plan.is_cosine:
            x, is_zero = unit_rows(x)
            if is_zero is not None:
                self._count(zero_rows=int(is_zero.sum()))
                fine = ~is_zero if fine is None else fine & ~is_zero
        if self._plan.is_weighted:
            weight = batch.column(1).to_numpy(zero_copy_only=False)[rows.kept].astype(np.float64)
            usable = np.isfinite(weight) & (weight > 0)
            self._count(invalid_weights=len(usable) - int(usable.sum()))
            fine = usable if fine is None else fine & usable
        if fine is None or fine.all():
            return x, weight
        return x[fine], None if weight is None else weight[fine]

    @np.errstate(over="ignore")  # told by the checks of the statistics, not by NumPy
    def _flush(self) -> bytes:
        n_features = self._n_features or 0
        is_first, self._is_first = self._is_first, False
        origin = self._origin if is_first and self._origin is not None else np.zeros(n_features)
        if self._pending:
            x = concatenate(self._rows)
        else:
            x = np.empty((0, n_features), dtype=self._plan.dtype)
        x = _without_minus_0(x)
        weight = np.concatenate(self._weights or [np.empty(0)]) if self._plan.is_weighted else None
        stored = StoredBlock(
            partition=self._partition,
            block=Block(x, weight),
            origin=origin,
            sum_weights=float(len(x)) if weight is None else float(weight.sum()),
            sum_sq=sq_sum(x, weight),
            left_out=self._left_out,
        )
        self._rows, self._weights, self._pending = [], [], 0
        self._left_out = LeftOut()
        return encode(stored)


def _without_weight_0(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drop rows of weight 0, whatever their features are: they are as if absent."""
    is_0 = batch.column(1).to_numpy(zero_copy_only=False) == 0
    return batch.filter(pa.array(~is_0)) if is_0.any() else batch


def _in_form(x: Any, keeps_sparse: bool) -> Iterator[tuple[slice, Any]]:
    """Yield the rows, and which they are, as the partition keeps them.

    A partition keeps to the form of its first rows: a dense row among sparse ones is stored by its
    entries, a sparse row among dense ones is filled up, some rows at a time.
    """
    if keeps_sparse == isinstance(x, SparseRows):
        yield slice(0, len(x)), x
        return
    if keeps_sparse:
        yield slice(0, len(x)), from_dense(x)
        return
    for rows in slices(len(x), rows_made_dense(x.shape[1])):
        yield rows, x[rows].toarray()


def _without_minus_0(x: Any) -> Any:
    """Return the rows with 0 for every -0.

    Rows are sorted by a hash that takes the two for equal: with both, bits would depend on the
    order in which the rows arrived.
    """
    if isinstance(x, SparseRows):
        return replace(x, values=x.values + 0)
    return x + 0
