"""How much two clusterings of the same rows agree, from counts of rows by both."""

from __future__ import annotations

import numpy as np


def contingency(first: np.ndarray, second: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the weight of rows by their two labels, shape (n_first, n_second), float64.

    Parameters
    ----------
    first, second : ndarray of shape (n,), int, >= 0
    weight : ndarray of shape (n,), float64, or None
        None counts rows.
    """
    shape = int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1
    flat = np.ravel_multi_index((first, second), shape)
    return np.bincount(flat, weight, shape[0] * shape[1]).reshape(shape).astype(np.float64)


def adjusted_rand(counts: np.ndarray) -> float:
    """Return the adjusted Rand index: 1 for the same clusters, about 0 for unrelated ones.

    The share of pairs of rows on which both agree, together or apart, set so that chance gives 0
    (Hubert and Arabie, 1985).

    Parameters
    ----------
    counts : ndarray of shape (n_first, n_second)
        See :func:`contingency`.

    Returns
    -------
    float
        1 when both hold all rows together, or each row apart.

    Examples
    --------
    >>> adjusted_rand(np.array([[5, 0], [0, 5]]))
    1.0
    >>> round(adjusted_rand(np.array([[5, 5], [0, 5]])), 4)
    0.0789
    """

    def pairs(n: np.ndarray) -> float:
        n = np.asarray(n, dtype=np.float64)
        return float((n * (n - 1.0)).sum()) / 2.0

    both, all_pairs = pairs(counts), pairs(counts.sum())
    first, second = pairs(counts.sum(axis=1)), pairs(counts.sum(axis=0))
    if all_pairs <= 0.0:
        return 1.0
    by_chance, most = first * second / all_pairs, (first + second) / 2.0
    return 1.0 if most == by_chance else (both - by_chance) / (most - by_chance)


def normalized_mutual_info(counts: np.ndarray) -> float:
    """Return the mutual information of two clusterings over the mean of their entropies.

    Parameters
    ----------
    counts : ndarray of shape (n_first, n_second)

    Returns
    -------
    float
        From 0 (unrelated) to 1 (the same clusters).

    Examples
    --------
    >>> normalized_mutual_info(np.array([[5, 0], [0, 5]]))
    1.0
    """
    shares = counts / counts.sum()
    first, second = shares.sum(axis=1), shares.sum(axis=0)
    entropy = _entropy(first) + _entropy(second)
    # Both of a single cluster say the same.
    return 1.0 if entropy == 0.0 else 2.0 * (entropy - _entropy(shares)) / entropy


def _entropy(shares: np.ndarray) -> float:
    shares = shares[shares > 0]
    return -float((shares * np.log(shares)).sum())
