"""Drawing rows without replacement from populations of any size."""

from __future__ import annotations

import numpy as np

_NUMPY_LIMIT = 10**9
"""NumPy draws from fewer rows than this."""


def draw_rows(sizes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n rows at random, without replacement; return how many of each cluster there are.

    Parameters
    ----------
    sizes : ndarray of shape (K,), int64
        Rows of each cluster to draw from.
    n : int
        At most their sum.
    rng : Generator

    Returns
    -------
    ndarray of shape (K,), int64

    Notes
    -----
    The law is exactly the multivariate hypergeometric one. From 10**9 rows on, which NumPy
    refuses, every row is first taken by a chance of its own, n / (all rows); given how many were
    taken, all sets of that many rows are equally likely, and this stays so when rows picked at
    random are put back, or taken too, until there are n. That is about sqrt(n) rows.
    """
    total = int(sizes.sum())
    if total < _NUMPY_LIMIT:
        return rng.multivariate_hypergeometric(sizes, n, method="marginals")
    drawn = rng.binomial(sizes, n / total)
    surplus = int(drawn.sum()) - int(n)
    if surplus > 0:
        return drawn - _pick(drawn, surplus, rng)
    return drawn + _pick(sizes - drawn, -surplus, rng)


def _pick(sizes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Pick n rows one by one: memory and time grow with n, not with the rows there are."""
    rows = rng.choice(int(sizes.sum()), size=n, replace=False, shuffle=False)
    clusters = np.searchsorted(np.cumsum(sizes), rows, side="right")
    return np.bincount(clusters, minlength=len(sizes))
