"""Comparison of scores for rows with few features: one row of scores a center, not a row.

NumPy's argmax along short rows costs 30 ns a row and more, several times the product of 8 to 32
features. Whole vectors of scores, one a center, are compared at memory speed instead.
"""

from __future__ import annotations

import numpy as np

# Products with the rows transposed take longer; up to here the comparison makes up for it.
_MAX_FEATURES, _MAX_CENTERS = 32, 64


def is_narrow(n_features: int, k: int) -> bool:
    """Whether scores are to be kept one row a center."""
    return n_features <= _MAX_FEATURES and k <= _MAX_CENTERS


def highest(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each column the row of its highest score, and that score.

    Parameters
    ----------
    scores : ndarray of shape (k, n), float32 or float64; k <= 64

    Returns
    -------
    labels : ndarray of shape (n,), int32
        Ties go to the lowest row; k - 1 where a score is NaN.
    best : ndarray of shape (n,), dtype of ``scores``
    """
    k = len(scores)
    best = scores.max(axis=0)
    # The row counted from the end, so that the largest number is the first row; 0 for none.
    codes = np.arange(k, 0, -1, dtype=np.uint8)
    found = (scores == best).view(np.uint8)
    found *= codes[:, None]
    labels = k - found.max(axis=0).astype(np.int32)
    return np.minimum(labels, k - 1, out=labels), best
