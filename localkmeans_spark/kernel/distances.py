"""Distances from rows to all centers."""

from __future__ import annotations

from typing import Any

import numpy as np

from localkmeans_spark.kernel.sparse_rows import SparseRows


def all_sq_distances(x: Any, centers: np.ndarray) -> np.ndarray:
    """Return squared distances, shape (n, k), float64, by differences: 0 for equal rows.

    Parameters
    ----------
    x : ndarray of shape (n, n_features) or SparseRows
    centers : ndarray of shape (k, n_features), float64
        In the frame of ``x``.

    Notes
    -----
    Sparse rows stay sparse: products, exact to rounding of the squared norms.
    """
    if not isinstance(x, SparseRows):
        from scipy.spatial.distance import cdist  # slow to import

        return cdist(x, centers, "sqeuclidean")
    sq = -2.0 * (x.astype(np.float64).matrix() @ centers.T)
    sq += np.einsum("kd,kd->k", centers, centers)
    sq += x.sq_norms()[:, None]
    return np.maximum(sq, 0.0, out=sq)


def second_nearest(distances: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's second nearest center, and how clearly the nearest is nearer.

    Parameters
    ----------
    distances : ndarray of shape (n, k), k >= 2
    labels : ndarray of shape (n,), int

    Returns
    -------
    second : ndarray of shape (n,), int32
    margin : ndarray of shape (n,), float64
        ``1 - nearest / second``: 0 half-way between two centers, 1 on a center.
    """
    rows = np.arange(len(labels))
    others = distances.copy()
    others[rows, labels] = np.inf
    second = others.argmin(axis=1).astype(np.int32)
    far = others[rows, second]
    ratio = np.divide(distances[rows, labels], far, out=np.ones(len(rows)), where=far > 0)
    return second, np.clip(1.0 - ratio, 0.0, 1.0)
