"""Spherical k-means: rows and centers of length 1, so that Euclidean distance ranks angles.

For unit vectors ``||x - c||**2 = 2 (1 - cos(x, c))``: labels, draws by distance and the inertia of
the Euclidean kernel serve as they are, up to the factor 2. Only the update differs: the new
center is the direction of the cluster's sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from localkmeans_spark.kernel.lloyd import means_or_kept
from localkmeans_spark.kernel.sparse_rows import SparseRows

# Squared distance of unit vectors to cosine distance.
COSINE_OF_SQ = 0.5
# Centers this near to length 1 are left as they are, bit for bit.
_UNIT = 1e-12


def unit_rows(x: Any) -> tuple[Any, np.ndarray | None]:
    """Scale rows to length 1.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), any real dtype, or SparseRows
        Rows with NaN or infinite numbers come out unusable, too.

    Returns
    -------
    units : ndarray or SparseRows, float64
        Zero rows stay zero.
    is_zero : ndarray of shape (n,), bool, or None
        Rows of zeros, which have no direction; None when there is none.
    """
    wide = x.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        # By a power of two first, which is exact: then no square overflows or vanishes.
        _, exponents = np.frexp(_largest(wide))
        wide = _divided(wide, np.ldexp(1.0, exponents - 1))
        norms = _norms(wide)
        is_zero = norms == 0
        units = _divided(wide, np.where(is_zero, 1.0, norms))
    return units, is_zero if is_zero.any() else None


def _norms(x: Any) -> np.ndarray:
    if isinstance(x, SparseRows):
        return np.sqrt(x.sq_norms())
    return np.sqrt(np.einsum("nd,nd->n", x, x))


def _largest(x: Any) -> np.ndarray:
    if not isinstance(x, SparseRows):
        return np.abs(x).max(axis=1, initial=0.0)
    largest = np.zeros(len(x))
    np.maximum.at(largest, x.row_of_entry(), np.abs(x.values))
    return largest


def _divided(x: Any, divisors: np.ndarray) -> Any:
    if not isinstance(x, SparseRows):
        return x / divisors[:, None]
    values = x.values / divisors[x.row_of_entry()]
    return SparseRows(x.indptr, x.indices, values, x.n_features)


def unit_centers(centers: np.ndarray) -> np.ndarray:
    """Scale centers to length 1; those that have it already keep every bit.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64, no row of zeros
    """
    is_unit = np.abs(np.einsum("kd,kd->k", centers, centers) - 1.0) <= _UNIT
    if is_unit.all():
        return centers
    units, _ = unit_rows(centers)
    units[is_unit] = centers[is_unit]
    return units


def directions_or_kept(sums: np.ndarray, weights: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the directions of cluster sums: the centers of spherical k-means.

    The old center stays where a cluster is empty, or where its rows cancel out and the sum has no
    direction. What :func:`means_or_kept` is for Euclidean distance.

    Parameters
    ----------
    sums : ndarray of shape (k, n_features), float64
        Of unit rows, about the origin 0.
    weights : ndarray of shape (k,), float64
    centers : ndarray of shape (k, n_features), float64
        Of length 1.

    Returns
    -------
    ndarray of shape (k, n_features), float64, rows of length 1
    """
    means = means_or_kept(sums, weights, centers)
    norms = _norms(means)
    # Sums of unit vectors that cancel leave rounding, not a direction.
    lost = norms <= _UNIT
    means[lost], norms[lost] = centers[lost], 1.0
    means /= norms[:, None]
    return means
