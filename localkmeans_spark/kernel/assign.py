"""Exact labels and distances: what predictions and the final cost are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from localkmeans_spark.kernel import sparse
from localkmeans_spark.kernel.chunks import rows_per_chunk, slices
from localkmeans_spark.kernel.differences import decide, score_rounding, sq_distance_to
from localkmeans_spark.kernel.nearest import highest, is_narrow, tree_of
from localkmeans_spark.kernel.scale import scaled_rows
from localkmeans_spark.kernel.sparse_rows import SparseRows

# Far above what float64 rounds off the distances of a k-d tree.
_TREE_ROUNDING = 1e-12


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
    label = _labeller(centers, x.dtype)
    for rows in slices(len(x), rows_per_chunk(centers.shape[1], len(centers), x.itemsize)):
        labels[rows] = label(x[rows])
        if with_distances:
            sq_distances[rows] = sq_distance_to(x[rows], centers, labels[rows])
    return labels, sq_distances


def _labeller(centers: np.ndarray, dtype: np.dtype) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that labels a chunk of rows of this dtype exactly."""
    k, n_features = centers.shape
    sq_norms = np.einsum("kd,kd->k", centers, centers)
    half_sq_norms = (0.5 * sq_norms).astype(dtype)
    transposed = np.ascontiguousarray(centers.T, dtype=dtype)
    unit = score_rounding(n_features, dtype)
    largest = float(np.sqrt(sq_norms.max()))
    compare = _compare_narrow if is_narrow(n_features, k) else _compare
    tree = tree_of(centers)

    def by_tree(x: np.ndarray) -> np.ndarray:
        distances, nearest = tree.query(x, k=2)
        labels = nearest[:, 0].astype(np.int32)
        # Not >=: distances that overflowed are close, too.
        close = np.flatnonzero(~(distances[:, 0] < (1.0 - _TREE_ROUNDING) * distances[:, 1]))
        labels[close] = by_products(x[close])
        return labels

    def by_products(x: np.ndarray) -> np.ndarray:
        if k == 1:
            return np.zeros(len(x), dtype=np.int32)
        labels, best, second, scores = compare(x, transposed, half_sq_norms)
        norms = np.sqrt(np.einsum("nd,nd->n", x, x))
        least = best - (unit * largest) * (norms + largest)
        # Not >=: a row whose scores overflowed to NaN must be settled, too.
        several = np.flatnonzero(~(second < least))
        if len(several):
            close = ~(scores(several) < least[several, None])
            few = close.argmax(axis=1).astype(np.int32)
            decide(x[several], centers, close, few)
            labels[several] = few
        return labels

    return by_products if tree is None else by_tree


class _Compared(NamedTuple):
    """Labels and the two highest scores of some rows; ``scores(rows)`` gives all of a few rows."""

    labels: np.ndarray
    best: np.ndarray
    second: np.ndarray
    scores: Callable[[np.ndarray], np.ndarray]


def _compare(x: np.ndarray, transposed: np.ndarray, half_sq_norms: np.ndarray) -> _Compared:
    scores = x @ transposed
    scores -= half_sq_norms
    labels = scores.argmax(axis=1).astype(np.int32)
    flat = scores.reshape(-1)
    starts = np.arange(0, flat.size, scores.shape[1])
    at = starts + labels
    best = flat[at]
    flat[at] = -np.inf
    second = flat[scores.argmax(axis=1) + starts]  # twice as fast as max

    def of(rows: np.ndarray) -> np.ndarray:
        flat[at] = best
        return scores[rows]

    return _Compared(labels, best, second, of)


def _compare_narrow(x: np.ndarray, transposed: np.ndarray, half_sq_norms: np.ndarray) -> _Compared:
    scores = transposed.T @ x.T
    scores -= half_sq_norms[:, None]
    labels, best = highest(scores)
    columns = np.arange(len(x))
    scores[labels, columns] = -np.inf
    second = scores.max(axis=0)

    def of(rows: np.ndarray) -> np.ndarray:
        scores[labels, columns] = best
        return scores[:, rows].T

    return _Compared(labels, best, second, of)


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
    label = _labeller(moved, np.dtype(dtype))
    # Chunk by chunk from raw rows to labels: nothing of the size of x is made.
    for rows in slices(len(x), rows_per_chunk(centers.shape[1], len(centers), 8)):
        part = x[rows].toarray() if isinstance(x, SparseRows) else x[rows]
        part = to_frame(part, origin, dtype)
        if factors is not None:
            part = scaled_rows(part, factors)
        labels[rows] = label(part)
        if with_distances:
            sq_distances[rows] = sq_distance_to(part, moved, labels[rows])
    return labels, sq_distances


def to_frame(x: np.ndarray, origin: np.ndarray, dtype: str) -> np.ndarray:
    """Return ``dtype(x - origin)``, subtracting in float64; a C-contiguous array."""
    if origin.any():
        x = x.astype(np.float64, copy=False) - origin
    with np.errstate(over="ignore"):  # told by the row checks, not by NumPy
        return np.ascontiguousarray(x, dtype=dtype)
