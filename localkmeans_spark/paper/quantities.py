"""The paper's quantities as functions of confusion counts and centers.

Counts have shape (..., K, K): ``counts[..., h, k]`` rows of true cluster h are labelled k. Leading
axes (steps t, machines i) are free. Section 1.1 of the paper defines all of them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linear_sum_assignment

from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.paper.checks import center_rows, check_positive, check_wholes


def matching(counts: np.ndarray) -> np.ndarray:
    """Return the cluster that stands for each true cluster: the best one-to-one assignment.

    Parameters
    ----------
    counts : ndarray of shape (K, K), int

    Returns
    -------
    ndarray of shape (K,), int64
        ``matched[h]`` is the cluster of true cluster h; most rows agree.
    """
    rows, clusters = linear_sum_assignment(counts, maximize=True)
    matched = np.empty(len(counts), dtype=np.int64)
    matched[rows] = clusters
    return matched


def reordered(counts: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """Put cluster ``matched[h]`` in column h, so that the diagonal counts agreement."""
    return np.take(counts, matched, axis=-1)


def agreement_error(counts: np.ndarray) -> np.ndarray:
    """Return 1 - (rows on the diagonal) / (rows), shape (...,); NaN without rows (A_i, or A)."""
    total = counts.sum(axis=(-2, -1))
    agreeing = np.trace(counts, axis1=-2, axis2=-1)
    with np.errstate(invalid="ignore"):
        return np.where(total > 0, 1.0 - agreeing / np.maximum(total, 1), np.nan)


def misclustering(counts: np.ndarray, matched: np.ndarray | None = None) -> float:
    """Return A: the share of all rows that are misclustered, machines together.

    Parameters
    ----------
    counts : ndarray of shape (m, K, K) or (K, K), int
    matched : ndarray of shape (K,), int, or None
        None takes the best matching on the counts of all machines.
    """
    total = counts.reshape(-1, *counts.shape[-2:]).sum(axis=0)
    return float(agreement_error(reordered(total, matching(total) if matched is None else matched)))


def misclustering_own_matching(counts: np.ndarray) -> float:
    """Return the share of misclustered rows when every machine has a matching of its own.

    Parameters
    ----------
    counts : ndarray of shape (m, K, K), int
    """
    agreeing = sum(int(np.trace(reordered(one, matching(one)))) for one in counts)
    total = int(counts.sum())
    return 1.0 - agreeing / total if total else math.nan


def clusterwise_error(counts: np.ndarray) -> np.ndarray:
    """Return G (or G_i): the worst cluster's false share, of its rows or of its true rows.

    ``max_k max(sum_{h != k} nu_hk / nu_k, sum_{h != k} nu_kh / nu*_k)``. A cluster without rows,
    or a true cluster without rows, has no false ones in that term (0 / 0 counts as 0).

    Parameters
    ----------
    counts : ndarray of shape (..., K, K), int
        With matched clusters on the diagonal (:func:`reordered`).

    Returns
    -------
    ndarray of shape (...,)
    """
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    labelled, true = counts.sum(axis=-2), counts.sum(axis=-1)
    false_in = np.where(labelled > 0, 1.0 - right / np.maximum(labelled, 1), 0.0)
    false_out = np.where(true > 0, 1.0 - right / np.maximum(true, 1), 0.0)
    return np.maximum(false_in, false_out).max(axis=-1)


def separation(centers: np.ndarray) -> tuple[float, float]:
    """Return Gamma and lambda: the smallest distance of two centers, and largest / smallest.

    Raises
    ------
    InvalidInputError
        Unless there are at least 2 centers, all different.
    """
    centers = center_rows("separation", "centers", centers)
    if len(centers) < 2:
        raise invalid("separation", "centers", "at least 2", len(centers), "Give more centers.")
    difference = centers[:, None, :] - centers[None, :, :]
    distances = np.sqrt((difference**2).sum(axis=-1))[np.triu_indices(len(centers), 1)]
    if not distances.min() > 0:
        raise invalid(
            "separation", "centers", "different from each other", Fact("two that are equal"),
            "Take them for one cluster.",
        )  # fmt: skip
    return float(distances.min()), float(distances.max() / distances.min())


def center_error(sq_distances: np.ndarray, matched: np.ndarray, gamma: float) -> np.ndarray:
    """Return Lambda (or Lambda_i): the largest distance of a center to its truth over Gamma.

    Parameters
    ----------
    sq_distances : ndarray of shape (..., K, K), float64
        ``sq_distances[..., k, h]``: squared distance of estimated center k to true center h.
    matched : ndarray of shape (K,), int
        Cluster of each true cluster.
    gamma : float
    """
    own = sq_distances[..., matched, np.arange(len(matched))]
    return np.sqrt(own.max(axis=-1)) / gamma


def sq_distances_between(centers: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return squared distances by differences, shape (..., K, K): estimate by truth."""
    difference = centers[..., :, None, :] - truth
    return np.einsum("...d,...d->...", difference, difference)


def virtual_iterate(
    local: np.ndarray, sizes: np.ndarray, before: np.ndarray, by_size: bool = True
) -> np.ndarray:
    """Return what an exchange of the machines' centers would give now.

    Parameters
    ----------
    local : ndarray of shape (m, K, d)
    sizes : ndarray of shape (m, K)
        Rows of each cluster on each machine.
    before : ndarray of shape (K, d)
        Kept by clusters that are empty everywhere.
    by_size : bool
        False takes the plain mean over machines, as Section 1.1 and the 2-cluster theory do.
    """
    if not by_size:
        return local.mean(axis=0)
    total = sizes.sum(axis=0)
    mean = np.einsum("mk,mkd->kd", sizes, local) / np.maximum(total, 1)[:, None]
    return np.where(total[:, None] > 0, mean, before)


def deviation(local: np.ndarray, center: np.ndarray) -> float:
    """Return Delta: mean over machines of the squared distance to the virtual iterate.

    For K clusters the squared distances of all K centers are added.
    """
    return float(((local - center) ** 2).sum(axis=(1, 2)).mean())


def smallest_share(counts: np.ndarray) -> float:
    """Return alpha: the smallest true cluster's share of all rows; counts of shape (m, K)."""
    sizes = counts.sum(axis=0)
    return float(sizes.min() / sizes.sum())


def smallest_spread(counts: np.ndarray) -> float:
    """Return beta: the smallest share of a true cluster that a machine holds; at most 1 / m."""
    sizes = counts.sum(axis=0)
    return float((counts[:, sizes > 0] / sizes[sizes > 0]).min())


def snr_two(norm: float, sigma: float, d: int, n_rows: int) -> float:
    """Return r = ||theta*|| / (sigma sqrt(1 + 9 d / mn)), the signal-to-noise ratio of 2 clusters.

    Examples
    --------
    >>> round(snr_two(1.0, 0.3, 100, 4000), 2)
    3.01
    """
    _check_scale("snr_two", norm=norm, sigma=sigma)
    check_wholes("snr_two", d=d, n_rows=n_rows)
    return norm / (sigma * math.sqrt(1.0 + 9.0 * d / n_rows))


def sigma_of_snr_two(r: float, norm: float, d: int, n_rows: int) -> float:
    """Return the sigma that gives r; the inverse of :func:`snr_two`."""
    _check_scale("sigma_of_snr_two", norm=norm, r=r)
    check_wholes("sigma_of_snr_two", d=d, n_rows=n_rows)
    return norm / (r * math.sqrt(1.0 + 9.0 * d / n_rows))


def snr_many(gamma: float, sigma: float, alpha: float, k: int, d: int, n_rows: int) -> float:
    """Return r_K = (Gamma / sigma) sqrt(alpha / (1 + K d / mn))."""
    _check_scale("snr_many", gamma=gamma, sigma=sigma)
    check_positive("snr_many", "alpha", alpha, or_zero=True)
    check_wholes("snr_many", k=k, d=d, n_rows=n_rows)
    return gamma / sigma * math.sqrt(alpha / (1.0 + k * d / n_rows))


def sigma_of_snr_many(r: float, gamma: float, alpha: float, k: int, d: int, n_rows: int) -> float:
    """Return the sigma that gives r_K; the inverse of :func:`snr_many`."""
    _check_scale("sigma_of_snr_many", gamma=gamma, r=r, alpha=alpha)
    check_wholes("sigma_of_snr_many", k=k, d=d, n_rows=n_rows)
    return gamma / r * math.sqrt(alpha / (1.0 + k * d / n_rows))


def _check_scale(owner: str, **values: float) -> None:
    for name, value in values.items():
        check_positive(owner, name, value)


def objective(x: np.ndarray, centers: np.ndarray) -> float:
    """Return the K-means objective: the sum of squared distances to the nearest center."""
    return float(sq_distances_between(x, centers).min(axis=1).sum())
