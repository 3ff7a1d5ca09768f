"""Arrow batches → matrices, dense or sparse, without a Python object per row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from localkmeans_spark.kernel.sparse_rows import SparseRows


class RowBatch(NamedTuple):
    """Rows of one Arrow batch.

    Attributes
    ----------
    x : ndarray of shape (n, n_features), or SparseRows
        Rows of the expected length only; null entries are NaN. Sparse when at least one row of
        the batch is a sparse vector.
    kept : ndarray of shape (n,), int64
        Position of each row of ``x`` in the batch.
    n_null : int
        Null rows, which are not in ``x``.
    other_lengths : ndarray of int
        Of rows of another length, which are not in ``x`` either; the expected one for rows whose
        indices lie outside it.
    """

    x: Any
    kept: np.ndarray
    n_null: int
    other_lengths: np.ndarray


def read_features(column: pa.Array, kind: str, n_features: int | None) -> RowBatch:
    """Read a features column.

    Parameters
    ----------
    column : pyarrow.Array
        As selected by ``columns.ingest_columns``.
    kind : str
        ``"vector"``, ``"array"`` or ``"columns"``.
    n_features : int or None
        Expected length; None takes that of the first row that is not null.

    Returns
    -------
    RowBatch
        With 0 rows and 0 features if every row is null and the length is unknown.
    """
    if kind == "columns":
        x = np.stack([_numbers(column.field(i)) for i in range(column.type.num_fields)], axis=1)
        return RowBatch(x, np.arange(len(x)), 0, np.empty(0, dtype=np.int64))
    valid = _valid(column)
    if kind == "vector":
        return _read_vectors(column, valid, n_features)
    return _read_lists(column, valid, n_features)


def binary_views(column: pa.Array) -> Iterator[pa.Buffer]:
    """Yield the values of a binary column without nulls as views: ``as_buffer()`` copies them."""
    if not len(column):
        return
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, dtype=width)[column.offset :][: len(column) + 1].tolist()
    for start, end in pairwise(places):
        yield data.slice(start, end - start)


def _numbers(array: pa.Array) -> np.ndarray:
    """Numbers of an Arrow array; nulls become NaN."""
    return array.to_numpy(zero_copy_only=False)


def _valid(column: pa.Array) -> np.ndarray:
    if column.null_count == 0:
        return np.ones(len(column), dtype=bool)
    return column.is_valid().to_numpy(zero_copy_only=False)


def _offsets(lists: pa.ListArray) -> tuple[np.ndarray, pa.Array]:
    """Offsets from 0 and the values they point into (a sliced array starts elsewhere)."""
    offsets = lists.offsets.to_numpy()
    values = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
    return offsets - offsets[0], values


def _expected(lengths: np.ndarray, valid: np.ndarray, n_features: int | None) -> int:
    if n_features is not None:
        return n_features
    first = np.flatnonzero(valid)
    return int(lengths[first[0]]) if len(first) else 0


def _read_lists(lists: pa.ListArray, valid: np.ndarray, n_features: int | None) -> RowBatch:
    offsets, values = _offsets(lists)
    numbers = _numbers(values)
    lengths = np.diff(offsets)
    n_features = _expected(lengths, valid, n_features)
    fitting = valid & (lengths == n_features)
    kept = np.flatnonzero(fitting)
    if len(kept) == len(lists):
        x = numbers.reshape(len(lists), n_features)
    else:
        x = numbers[offsets[:-1][kept][:, None] + np.arange(n_features)]
    return _row_batch(x, kept, valid, fitting, lengths)


def _read_vectors(column: pa.StructArray, valid: np.ndarray, n_features: int | None) -> RowBatch:
    is_dense = np.nan_to_num(_numbers(column.field("type"))).astype(bool)
    if valid.all() and is_dense.all():
        return _read_lists(column.field("values"), valid, n_features)
    value_offsets, values = _offsets(column.field("values"))
    index_offsets, indices = _offsets(column.field("indices"))
    counts = np.diff(value_offsets)
    sparse_sizes = np.nan_to_num(_numbers(column.field("size"))).astype(np.int64)
    sizes = np.where(is_dense, counts, sparse_sizes)
    n_features = _expected(sizes, valid, n_features)
    fitting = valid & (sizes == n_features)
    # Where each stored value goes: its own index in a sparse row, its place in a dense one.
    row = np.repeat(np.arange(len(column)), counts)
    place = np.arange(len(row)) - value_offsets[row]
    in_sparse = ~is_dense[row]
    stored = _numbers(indices)
    place[in_sparse] = stored[index_offsets[row[in_sparse]] + place[in_sparse]]
    fitting[row[(place < 0) | (place >= n_features)]] = False
    numbers = _numbers(values)
    used = fitting[row] & (numbers != 0)
    kept = np.flatnonzero(fitting)
    filled = np.bincount(row[used], minlength=len(column))[kept]
    x = SparseRows(
        np.concatenate([[0], np.cumsum(filled)]).astype(np.int32),
        place[used].astype(np.int32),
        numbers[used],
        n_features,
    )
    return _row_batch(x, kept, valid, fitting, sizes)


def _row_batch(
    x: Any, kept: np.ndarray, valid: np.ndarray, fitting: np.ndarray, lengths: np.ndarray
) -> RowBatch:
    return RowBatch(x, kept, int((~valid).sum()), lengths[valid & ~fitting])
