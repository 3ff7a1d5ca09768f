"""Rows stored as their non-zero entries (CSR), with the few operations a fit needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from localkmeans_spark.kernel.chunks import rows_made_dense, slices


@dataclass(frozen=True)
class SparseRows:
    """A matrix in compressed sparse rows; stands where a dense ``x`` stands in a block.

    ``rows[slice]`` and ``rows[boolean mask]`` stay sparse; ``rows[i]`` and ``rows[indices]``,
    meant for the few rows that a draw picks, come dense.

    Attributes
    ----------
    indptr : ndarray of shape (n + 1,), int32
        Row i has the entries ``indptr[i]`` to ``indptr[i + 1]``.
    indices : ndarray of shape (n_stored,), int32
        Columns, each at most once in a row.
    values : ndarray of shape (n_stored,), float32 or float64
    n_features : int
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    n_features: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features)."""
        return len(self), self.n_features

    @property
    def dtype(self) -> np.dtype:
        """Of the values."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            first, last = self.indptr[start], self.indptr[stop]
            return SparseRows(
                self.indptr[start : stop + 1] - first,
                self.indices[first:last],
                self.values[first:last],
                self.n_features,
            )
        rows = np.asarray(rows)
        if rows.dtype == bool:
            return from_csr(self.matrix()[np.flatnonzero(rows)])
        dense = self.matrix()[np.atleast_1d(rows)].toarray()
        return dense if rows.ndim else dense[0]

    def matrix(self) -> csr_array:
        """Return scipy's view of the same arrays."""
        return csr_array((self.values, self.indices, self.indptr), shape=self.shape)

    def toarray(self) -> np.ndarray:
        """Return all rows dense; only for rows few or narrow enough."""
        return self.matrix().toarray()

    @np.errstate(over="ignore")  # told by the checks of the rows, not by NumPy
    def astype(self, dtype: Any) -> SparseRows:
        """Return the rows in another precision (the same arrays where nothing changes)."""
        values = self.values.astype(dtype, copy=False)
        return SparseRows(self.indptr, self.indices, values, self.n_features)

    def row_of_entry(self) -> np.ndarray:
        """Return the row of each stored entry, shape (n_stored,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def row_sums(self, entries: np.ndarray) -> np.ndarray:
        """Add up one float64 number for each stored entry by row, shape (n,)."""
        return np.bincount(self.row_of_entry(), weights=entries, minlength=len(self))

    @np.errstate(over="ignore")
    def sq_norms(self) -> np.ndarray:
        """Return ``||x||**2`` of each row, shape (n,), float64."""
        wide = self.values.astype(np.float64)
        return self.row_sums(wide * wide)


def from_csr(matrix: Any) -> SparseRows:
    """Take over any scipy sparse matrix (64-bit indices too); repeated entries are added up."""
    matrix = csr_array(matrix)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = matrix.data if matrix.dtype.kind == "f" else matrix.data.astype(np.float64)
    indptr = matrix.indptr.astype(np.int32, copy=False)
    indices = matrix.indices.astype(np.int32, copy=False)
    return SparseRows(indptr, indices, values, matrix.shape[1])


def from_dense(x: np.ndarray) -> SparseRows:
    """Store the entries of a dense matrix that are not 0."""
    return from_csr(csr_array(x))


def concatenate(parts: Sequence[Any]) -> Any:
    """Put rows below each other; all parts dense or all sparse."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], SparseRows):
        return np.concatenate(parts)
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    return SparseRows(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
        parts[0].n_features,
    )


def finite_rows(x: Any) -> np.ndarray | None:
    """Return which rows have finite numbers only; None, the quick answer, when all have.

    Parameters
    ----------
    x : ndarray or SparseRows
    """
    numbers = x.values if isinstance(x, SparseRows) else x
    # One sum finds every NaN and infinity; only then are the rows looked at one by one.
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(numbers.sum()):
            return None
    if isinstance(x, SparseRows):
        return x.row_sums((~np.isfinite(x.values)).astype(np.float64)) == 0
    return np.isfinite(x).all(axis=1)


def rows_within(x: Any, origin: np.ndarray, limit: float) -> np.ndarray | None:
    """Return which rows are nowhere farther than ``limit`` from the origin.

    NaN and infinity count as farther. None, the quick answer, when all rows are near.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), or SparseRows, of float numbers
    origin : ndarray of shape (n_features,), float64
    limit : float
        At most 1e150.
    """
    numbers = (x.values if isinstance(x, SparseRows) else x).reshape(-1)
    near = limit - float(np.abs(origin).max(initial=0.0))
    # One sum of squares bounds every number; only beyond it are the rows looked at one by one.
    with np.errstate(invalid="ignore", over="ignore"):
        if near > 0 and float(numbers @ numbers) <= near * near:
            return None
    if isinstance(x, SparseRows) and not origin.any():
        fine = x.row_sums(~(np.abs(x.values) <= limit)) == 0
        return None if fine.all() else fine
    fine = np.empty(len(x), dtype=bool)
    for rows in slices(len(x), rows_made_dense(x.shape[1])):
        part = x[rows].toarray() if isinstance(x, SparseRows) else x[rows]
        fine[rows] = (np.abs(part - origin) <= limit).all(axis=1)
    return None if fine.all() else fine
