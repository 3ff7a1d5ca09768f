"""Lloyd steps, exact labels and statistics of sparse rows, without making them dense.

Rows keep the origin 0: moving them would fill every entry. Beside a column far from zero in every
row, products therefore have fewer digits than those of dense rows, and so do float32 values.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from localkmeans_spark.kernel import differences
from localkmeans_spark.kernel.chunks import rows_made_dense, rows_per_chunk, slices
from localkmeans_spark.kernel.differences import decide, score_rounding
from localkmeans_spark.kernel.exact_sum import grid_for, to_grid
from localkmeans_spark.kernel.sparse_rows import SparseRows

# Squared distances that rounding may change by more than this share are computed of dense rows.
_ROUGH = 1e-9


def prefers_sparse(x: SparseRows) -> bool:
    """Whether these rows are better kept sparse: at least 64 features, at most a tenth stored.

    Measured: below about a tenth the sparse product is the faster one for k = 10 to 50, and the
    rows take less than a fifth of the memory.
    """
    n, n_features = x.shape
    return n_features >= 64 and len(x.values) * 10 <= n * n_features


def _narrowed(x: SparseRows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centers at the columns that rows use, and the place of each entry among them.

    A few rows use few columns: then nothing as large as the centers is made. All centers, as they
    are, when most columns are used.
    """
    is_used = np.zeros(x.n_features, dtype=bool)
    is_used[x.indices] = True
    used = np.flatnonzero(is_used)
    if 4 * len(used) > x.n_features:
        return centers, x.indices
    place = (np.cumsum(is_used, dtype=np.int32) - np.int32(1))[x.indices]
    return np.take(centers, used, axis=1), place


def _scores(
    x: SparseRows, narrow: np.ndarray, place: np.ndarray, sq_norms: np.ndarray, dtype: np.dtype
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield ``x.c - ||c||**2 / 2`` chunk by chunk; ``narrow`` has the used columns only."""
    n, k = len(x), len(narrow)
    half_sq_norms = (0.5 * sq_norms).astype(dtype)
    transposed = np.ascontiguousarray(narrow.T, dtype=dtype)
    values = x.values.astype(dtype, copy=False)
    step = rows_per_chunk(len(values) // max(1, n) + 1, k, dtype.itemsize)
    for rows in slices(n, step):
        indptr = x.indptr[rows.start : rows.stop + 1]
        entries = slice(indptr[0], indptr[-1])
        part = csr_array(
            (values[entries], place[entries], indptr - indptr[0]),
            shape=(rows.stop - rows.start, narrow.shape[1]),
        )
        scores = part @ transposed
        scores -= half_sq_norms
        yield rows, scores


def nearest(x: SparseRows, centers: np.ndarray) -> np.ndarray:
    """Return the index of each row's nearest center, by a product in x's dtype.

    Parameters
    ----------
    x : SparseRows
    centers : ndarray of shape (k, n_features), float64
        In the frame of the rows (origin 0).

    Returns
    -------
    ndarray of shape (n,), int32
        Ties go to the lowest index.

    Notes
    -----
    Costs k multiplications a stored entry, and memory for the columns that these rows use, times
    k. Runs on: executor.
    """
    labels = np.zeros(len(x), dtype=np.int32)
    if len(centers) > 1:
        narrow, place = _narrowed(x, centers)
        sq_norms = np.einsum("kd,kd->k", centers, centers)
        for rows, scores in _scores(x, narrow, place, sq_norms, x.dtype):
            labels[rows] = scores.argmax(axis=1)
    return labels


def add_cluster_sums(
    x: SparseRows, weight: np.ndarray | None, labels: np.ndarray, sums: np.ndarray
) -> None:
    """Add weighted rows to the sums of their clusters, (k, n_features) float64, C-contiguous.

    Nothing of ``sums`` is touched where rows have no entries.
    """
    row = x.row_of_entry()
    values = x.values.astype(np.float64)
    if weight is not None:
        values *= weight[row]
    target = labels[row].astype(np.int64) * x.n_features + x.indices
    np.add.at(sums.reshape(-1), target, values)


def exact_nearest(x: SparseRows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's nearest center and squared distance, computed in float64.

    A row's label depends on the row and the centers alone, and is that of the same row stored
    dense: rows whose runner-up is within rounding are made dense, a few at a time, and settled by
    the same differences.

    Parameters
    ----------
    x : SparseRows
    centers : ndarray of shape (k, n_features), float64

    Returns
    -------
    labels : ndarray of shape (n,), int32
        Ties go to the lowest index.
    sq_distances : ndarray of shape (n,), float64
        See :func:`sq_distance_to`.
    """
    narrow, place = _narrowed(x, centers)
    grid, sq_norms = _exact_sq_norms(centers)
    labels = np.zeros(len(x), dtype=np.int32)
    if len(centers) > 1:
        norms, largest = np.sqrt(x.sq_norms()), float(np.sqrt(sq_norms.max()))
        slack = score_rounding(x.n_features, np.dtype(np.float64)) * largest * (norms + largest)
        for rows, scores in _scores(x, narrow, place, sq_norms, np.dtype(np.float64)):
            labels[rows] = scores.argmax(axis=1)
            least = scores.max(axis=1) - slack[rows]
            close = ~(scores < least[:, None])
            _settle(x[rows], centers, close, labels[rows])
    return labels, _sq_distances(x, centers, labels, (narrow, place), grid, sq_norms)


def _settle(x: SparseRows, centers: np.ndarray, close: np.ndarray, labels: np.ndarray) -> None:
    """Settle the rows with several close centers; writes ``labels``."""
    several = np.flatnonzero(close.sum(axis=1) > 1)
    for some in slices(len(several), rows_made_dense(x.n_features)):
        rows = several[some]
        few = labels[rows]
        decide(x[rows], centers, close[rows], few)
        labels[rows] = few


def sq_distance_to(x: SparseRows, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return ``||x_n - centers[labels_n]||**2``, shape (n,), float64.

    The part of a center outside a row's entries is ``||c||**2`` less the squares at the entries.
    Squares are rounded to a grid on which that difference is exact: the result is never negative,
    and 0 for a row that equals its center. Where so little is left of ``||c||**2`` that rounding
    would count, as beside a column far from 0, rows are made dense, a few at a time.
    """
    grid, sq_norms = _exact_sq_norms(centers)
    return _sq_distances(x, centers, labels, _narrowed(x, centers), grid, sq_norms)


def _exact_sq_norms(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each center a grid, and the sum of its squares rounded to that grid."""
    grid = grid_for(np.einsum("kd,kd->k", centers, centers))
    # One center at a time: a second (k, n_features) array may be large.
    totals = [to_grid(c * c, g).sum() for c, g in zip(centers, grid, strict=True)]
    return grid, np.array(totals)


def _sq_distances(
    x: SparseRows,
    centers: np.ndarray,
    labels: np.ndarray,
    used: tuple[np.ndarray, np.ndarray],
    grid: np.ndarray,
    sq_norms: np.ndarray,
) -> np.ndarray:
    row, (narrow, place) = x.row_of_entry(), used
    cluster = labels[row]
    at_entries = narrow[cluster, place]
    difference = x.values.astype(np.float64)
    difference -= at_entries
    difference *= difference
    squares = to_grid(at_entries * at_entries, grid[cluster])
    outside = sq_norms[labels] - np.bincount(row, weights=squares, minlength=len(x))
    found = np.bincount(row, weights=difference, minlength=len(x)) + outside
    rough = np.sqrt(x.n_features) * grid[labels] > _ROUGH * found
    if rough.any():
        # Not where the center is 0 outside the row's entries.
        inside = np.bincount(row, weights=at_entries != 0, minlength=len(x))
        rough &= inside < np.count_nonzero(centers, axis=1)[labels]
        places = np.flatnonzero(rough)
        for some in slices(len(places), rows_made_dense(x.n_features)):
            few = places[some]
            found[few] = differences.sq_distance_to(x[few], centers, labels[few])
    return found


def column_summary(x: SparseRows, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted sum and the largest magnitude of each column, float64."""
    values = x.values.astype(np.float64)
    largest = np.zeros(x.n_features)
    np.maximum.at(largest, x.indices, np.abs(values))
    if weight is not None:
        values *= weight[x.row_of_entry()]
    return np.bincount(x.indices, weights=values, minlength=x.n_features), largest
