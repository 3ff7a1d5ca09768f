"""Exact labels and distances: what predictions and the final cost are made of."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel import sparse
from localkmeans_spark.kernel.chunks import rows_per_chunk, slices
from localkmeans_spark.kernel.differences import sq_distance_to
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.kernel.scale import scaled_rows
from localkmeans_spark.kernel.sparse_rows import SparseRows


def exact_nearest(
    x: np.ndarray | SparseRows, centers: np.ndarray, with_distances: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's nearest center and squared distance, free of product rounding.

    A product in x's dtype (or a k-d tree) proposes; every row whose runner-up is within rounding of
    the winner is decided by float64 differences. So a row's label depends on the row and the
    centers alone, never on the rows around it.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), float32 or float64, or SparseRows
    centers : ndarray of shape (k, n_features), float64
        In the frame of ``x``.
    with_distances : bool
        False saves the distances' time, of rows that are not sparse.

    Returns
    -------
    labels : ndarray of shape (n,), int32
        Ties go to the lowest index.
    sq_distances : ndarray of shape (n,), float64
        Never negative; exactly 0 for a row equal to its center. Empty without distances.
    """
    if isinstance(x, SparseRows):
        return sparse.exact_nearest(x, centers)
    labels = np.zeros(len(x), dtype=np.int32)
    sq_distances = np.empty(len(x) if with_distances else 0)
    scorer = Scorer(centers)
    for rows in slices(len(x), rows_per_chunk(centers.shape[1], len(centers), x.itemsize)):
        labels[rows] = scorer.exact(x[rows])
        if with_distances:
            sq_distances[rows] = sq_distance_to(x[rows], centers, labels[rows])
    return labels, sq_distances


def assign_rows(
    x: np.ndarray | SparseRows,
    centers: np.ndarray,
    origin: np.ndarray,
    dtype: str,
    with_distances: bool = True,
    factors: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Label raw rows exactly as the fit labelled them.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), any real dtype, or SparseRows
        Raw rows, finite.
    centers : ndarray of shape (k, n_features), float64
    origin : ndarray of shape (n_features,), float64
        Frame in which the fit kept its rows (``FitResult.origin``).
    dtype : str
        Precision in which the fit kept its rows.
    with_distances : bool
        False saves the distances' time.
    factors : ndarray of shape (n_features,), float64, or None
        By which rows are multiplied first; ``centers`` are in their units, ``origin`` is not.

    Returns
    -------
    labels : ndarray of shape (n,), int32
        Ties go to the lowest index.
    sq_distances : ndarray of shape (n,), float64
        Empty without distances.
    """
    if isinstance(x, SparseRows) and sparse.prefers_sparse(x) and not origin.any():
        x = x.astype(dtype)
        return sparse.exact_nearest(x if factors is None else scaled_rows(x, factors), centers)
    labels = np.empty(len(x), dtype=np.int32)
    sq_distances = np.empty(len(x) if with_distances else 0)
    moved = centers - (origin if factors is None else origin * factors)
    scorer = Scorer(moved)
    # Chunk by chunk from raw rows to labels: nothing of the size of x is made.
    for rows in slices(len(x), rows_per_chunk(centers.shape[1], len(centers), 8)):
        part = x[rows].toarray() if isinstance(x, SparseRows) else x[rows]
        part = to_frame(part, origin, dtype)
        if factors is not None:
            part = scaled_rows(part, factors)
        labels[rows] = scorer.exact(part)
        if with_distances:
            sq_distances[rows] = sq_distance_to(part, moved, labels[rows])
    return labels, sq_distances


def to_frame(x: np.ndarray, origin: np.ndarray, dtype: str) -> np.ndarray:
    """Return ``dtype(x - origin)``, subtracting in float64; a C-contiguous array."""
    if origin.any():
        x = x.astype(np.float64, copy=False) - origin
    with np.errstate(over="ignore"):  # told by the row checks, not by NumPy
        return np.ascontiguousarray(x, dtype=dtype)
