"""Squared distances by float64 differences, and labels settled by them."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.chunks import rows_made_dense, slices


def score_rounding(n_features: int, dtype: np.dtype) -> float:
    """Return the rounding of a score ``x.c - ||c||**2 / 2``, relative to ``|c| (|x| + |c|)``.

    sqrt(d) products of size |x||c| plus the norm's own rounding. 4 is generous; a row flagged for
    nothing only costs a few more differences.
    """
    return (4.0 * np.sqrt(n_features) + 8.0) * float(np.finfo(dtype).eps)


def decide(x: np.ndarray, centers: np.ndarray, close: np.ndarray, labels: np.ndarray) -> None:
    """Settle rows with several close centers by float64 distances.

    Parameters
    ----------
    x : ndarray of shape (n, n_features)
    centers : ndarray of shape (k, n_features), float64
    close : ndarray of shape (n, k), bool
        The centers that may be a row's nearest; at least one a row.
    labels : ndarray of shape (n,), int32
        Written where several centers are close. Ties go to the lowest index.
    """
    several = np.flatnonzero(close.sum(axis=1) > 1)
    # A few MB of index pairs and of differences at a time, even if every center is close.
    step = max(1, (4 << 20) // (32 * max(x.shape[1], len(centers))))
    for some in slices(len(several), step):
        rows = several[some]
        row, cluster = np.nonzero(close[rows])
        starts = np.searchsorted(row, np.arange(len(rows)))
        sq = np.concatenate(
            [
                sq_distance_to(x[rows[row[pairs]]], centers, cluster[pairs])
                for pairs in slices(len(row), 4 * step)
            ]
        )
        smallest = np.minimum.reduceat(sq, starts)
        # The first pair of a row that reaches the minimum: clusters ascend within a row.
        winners = np.flatnonzero(sq == smallest[row])
        first = winners[np.searchsorted(row[winners], np.arange(len(rows)))]
        labels[rows] = cluster[first]


def sq_distance_to(x: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return ``||x_n - centers[labels_n]||**2`` by float64 differences, shape (n,), float64."""
    difference = x.astype(np.float64)
    difference -= centers[labels]
    difference *= difference
    return difference.sum(axis=1)


def sq_gaps(centers: np.ndarray) -> np.ndarray:
    """Return each center's squared distance to the nearest other one, shape (k,); k >= 2."""
    half_sq_norms = 0.5 * np.einsum("kd,kd->k", centers, centers)
    nearest = np.empty(len(centers), dtype=np.int64)
    for some in slices(len(centers), rows_made_dense(len(centers))):  # nothing of size k * k
        scores = centers[some] @ centers.T - half_sq_norms
        scores[np.arange(len(scores)), np.arange(len(centers))[some]] = -np.inf  # not to itself
        nearest[some] = scores.argmax(axis=1)
    return sq_distance_to(centers, centers, nearest)
