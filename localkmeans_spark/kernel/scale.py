"""Rows with each feature multiplied by a factor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from localkmeans_spark.kernel.sparse_rows import SparseRows


def factors_of(scales: np.ndarray, dtype: str | np.dtype) -> np.ndarray:
    """Return ``1 / scales`` as float64 numbers that ``dtype`` holds exactly.

    Fits and predictions multiply rows by them in ``dtype``, to the same bits.
    """
    return (1.0 / scales).astype(dtype).astype(np.float64)


def scaled_rows(x: Any, factors: np.ndarray) -> Any:
    """Return the rows, ndarray of shape (n, n_features) or SparseRows, times the factors."""
    own = factors.astype(x.dtype)
    if isinstance(x, SparseRows):
        return SparseRows(x.indptr, x.indices, x.values * own[x.indices], x.n_features)
    return x * own


def sq_sum(x: Any, weight: np.ndarray | None) -> float:
    """Return the weighted sum of the rows' squared norms."""
    if isinstance(x, SparseRows):
        sq = x.sq_norms()
    else:
        wide = x.astype(np.float64, copy=False)
        sq = np.einsum("nd,nd->n", wide, wide)
    return float(sq.sum() if weight is None else sq @ weight)


def column_sq_sums(x: Any, weight: np.ndarray | None) -> np.ndarray:
    """Return the weighted sum of squares of every feature, shape (n_features,), float64."""
    if isinstance(x, SparseRows):
        sq = x.values.astype(np.float64) ** 2
        if weight is not None:
            sq *= weight[x.row_of_entry()]
        return np.bincount(x.indices, sq, x.n_features)
    wide = x.astype(np.float64, copy=False)
    if weight is None:
        return np.einsum("nd,nd->d", wide, wide)
    return np.einsum("n,nd,nd->d", weight, wide, wide)
