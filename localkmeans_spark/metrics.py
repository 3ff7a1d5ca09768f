"""How good a clustering and its partitions are: misclustering, center errors, balance, SNR.

The quantities of Section 1.1 of the LocalKMeans paper, for anybody's data. Counts are confusion
counts: ``counts[..., h, k]`` rows have known label h and are in cluster k. A leading axis of
partitions (the paper's machines i) is allowed where a quantity has a version for each of them.
What the theorems make of these numbers is in :mod:`localkmeans_spark.theory`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from localkmeans_spark.data.column_names import quoted
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.kernel.agreement import (  # noqa: F401 — public here
    adjusted_rand,
    normalized_mutual_info,
)
from localkmeans_spark.real_numbers import (
    check_centers,
    check_counts,
    check_number,
    check_wholes,
    wrong_array,
)

MAX_LABELS = 10_000
"""More distinct labels than this are taken for a mistake (an id column, a measurement)."""


@dataclass(frozen=True)
class Confusion:
    """Rows counted by known label and cluster.

    Attributes
    ----------
    labels : list
        The distinct labels, sorted; row i of ``counts`` belongs to ``labels[i]``.
    counts : ndarray of shape (n_labels, k), int64
        ``counts[i, j]`` rows have label ``labels[i]`` and are in cluster ``j``.
    n_unlabelled : int
        Rows whose label is null or NaN; they are not counted above.
    """

    labels: list[Any]
    counts: np.ndarray
    n_unlabelled: int = 0


def confusion(frame: DataFrame, label_col: str, prediction_col: str, k: int) -> Confusion:
    """Count rows by known label and cluster, in one Spark job.

    Parameters
    ----------
    frame : DataFrame
        Holds a label column (any type that can be grouped: integers, strings, ...) and an
        integer prediction column.
    label_col, prediction_col : str
    k : int
        Number of clusters. Rows with a prediction outside 0..k-1 (``handleInvalid="keep"``
        gives rows that cannot be clustered cluster k) are left out.

    Returns
    -------
    Confusion

    Raises
    ------
    InvalidInputError
        When the label column has more than ``MAX_LABELS`` distinct values.
    """
    label, cluster = F.col(quoted(label_col)), F.col(quoted(prediction_col))
    counted = frame.where((cluster >= 0) & (cluster < k)).groupBy(
        label.alias("label"), cluster.cast("int").alias("cluster")
    )
    # Null and one label too many may come on top: enough to tell, never more on the driver.
    rows = counted.count().limit((MAX_LABELS + 2) * k).collect()
    known = [row for row in rows if _is_known(row["label"])]
    labels = sorted({row["label"] for row in known})
    if len(labels) > MAX_LABELS:
        raise invalid(
            "misclustering",
            f"column {label_col!r}",
            f"a label with at most {MAX_LABELS:,} distinct values",
            Fact(f"at least {len(labels):,}"),
            "Name the column that holds the known classes.",
        )
    place = {value: i for i, value in enumerate(labels)}
    counts = np.zeros((len(labels), k), dtype=np.int64)
    for row in known:
        counts[place[row["label"]], row["cluster"]] += row["count"]
    n_all = sum(row["count"] for row in rows)
    return Confusion(labels, counts, n_unlabelled=n_all - int(counts.sum()))


def best_matching(counts: np.ndarray) -> dict[int, int]:
    """Pair clusters with labels, one to one, so that most rows agree.

    Parameters
    ----------
    counts : ndarray of shape (n_labels, k), int
        Confusion counts. The matrix need not be square: the surplus labels or clusters stay
        without a partner.

    Returns
    -------
    dict of int to int
        Row (label) of ``counts`` by column (cluster), for the min(n_labels, k) pairs.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, columns = linear_sum_assignment(counts, maximize=True)
    return {int(column): int(row) for row, column in zip(rows, columns, strict=True)}


def matching(counts: np.ndarray) -> np.ndarray:
    """Return the cluster that stands for each label: :func:`best_matching` as an array.

    Parameters
    ----------
    counts : ndarray of shape (..., K, K), int
        As many labels as clusters. Leading axes are added up: all partitions share one matching.

    Returns
    -------
    ndarray of shape (K,), int64
        ``matching(counts)[h]`` is the cluster of label h.
    """
    total = _square("matching", counts)
    pairs = best_matching(total.reshape(-1, *total.shape[-2:]).sum(axis=0))
    return np.array(sorted(pairs, key=pairs.__getitem__), dtype=np.int64)


def misclustering(counts: np.ndarray) -> float:
    """Return A, the share of rows whose cluster differs from their label.

    Clusters are matched with labels by the best one-to-one assignment (Hungarian method), as
    in the paper: labels are only defined up to a permutation. Rows in a cluster without a
    partner, or with a label without one, count as misclustered.

    Parameters
    ----------
    counts : ndarray of shape (n_labels, k), int
        Confusion counts over all rows.

    Returns
    -------
    float
        Between 0 and 1; NaN when there are no rows.

    Examples
    --------
    >>> import numpy as np
    >>> misclustering(np.array([[0, 50], [45, 5]]))
    0.05
    """
    n_all = int(counts.sum())
    if n_all == 0:
        return float("nan")
    n_agree = sum(int(counts[row, column]) for column, row in best_matching(counts).items())
    return (n_all - n_agree) / n_all


def partition_misclustering(counts: np.ndarray) -> np.ndarray:
    """Return A_i, each partition's share of misclustered rows under one matching for all.

    Parameters
    ----------
    counts : ndarray of shape (m, K, K), int

    Returns
    -------
    ndarray of shape (m,), float64
        NaN for a partition without rows. Weighted by rows, their mean is A.
    """
    agreeing = _aligned("partition_misclustering", counts).diagonal(axis1=-2, axis2=-1).sum(axis=-1)
    total = counts.sum(axis=(-2, -1))
    return np.where(total > 0, 1.0 - agreeing / np.maximum(total, 1), np.nan)


def clusterwise_error(counts: np.ndarray) -> np.ndarray:
    """Return G, the worst cluster's share of false rows or of lost rows (G_i for partitions).

    ``G = max_k max(sum_{h != k} nu_hk / nu_k, sum_{h != k} nu_kh / nu*_k)``, where ``nu_hk`` rows
    of true cluster h are labelled k. A cluster without rows, or a true cluster without rows, has
    no false ones in that term. A <= G.

    Parameters
    ----------
    counts : ndarray of shape (K, K) or (m, K, K), int
        Clusters are matched with labels over all partitions together.

    Returns
    -------
    ndarray of shape () or (m,), float64

    Examples
    --------
    >>> import numpy as np
    >>> round(float(clusterwise_error(np.array([[8, 2], [0, 10]]))), 2)  # 2 of 10 lost
    0.2
    """
    counts = _aligned("clusterwise_error", counts)
    right = counts.diagonal(axis1=-2, axis2=-1)
    labelled, true = counts.sum(axis=-2), counts.sum(axis=-1)
    false = np.where(labelled > 0, 1.0 - right / np.maximum(labelled, 1), 0.0)
    lost = np.where(true > 0, 1.0 - right / np.maximum(true, 1), 0.0)
    return np.maximum(false, lost).max(axis=-1)


def separation(centers: np.ndarray) -> tuple[float, float]:
    """Return Gamma, the smallest distance of two centers, and lambda, the largest over Gamma.

    ``Gamma = min_{k != h} ||theta_k - theta_h||``,
    ``lambda = max_{k != h} ||theta_k - theta_h|| / Gamma``.

    Raises
    ------
    InvalidInputError
        Unless there are at least 2 centers, all different.

    Examples
    --------
    >>> separation([[0, 0], [3, 4], [0, 10]])
    (5.0, 2.0)
    """
    centers = check_centers("separation", "centers", centers)
    if len(centers) < 2:
        raise invalid("separation", "centers", "at least 2", len(centers), "Give more centers.")
    from scipy.spatial.distance import pdist  # slow to import

    apart = pdist(centers)
    if not apart.min() > 0:
        raise invalid(
            "separation", "centers", "different from each other", Fact("two that are equal"),
            "Take them for one cluster.",
        )  # fmt: skip
    return float(apart.min()), float(apart.max() / apart.min())


def sq_distances_between(centers: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return squared distances by differences, shape (..., K, H).

    Parameters
    ----------
    centers : ndarray of shape (..., K, d)
    truth : ndarray of shape (H, d)
    """
    difference = centers[..., :, None, :] - truth
    return np.einsum("...d,...d->...", difference, difference)


def center_error(sq_distances: np.ndarray, matched: np.ndarray, gamma: float) -> np.ndarray:
    """Return Lambda, the largest distance of a center to its true one over Gamma.

    ``Lambda = max_k ||theta^_k - theta_k|| / Gamma``; Lambda_i from a partition's own centers.

    Parameters
    ----------
    sq_distances : ndarray of shape (..., K, K), float64
        ``sq_distances_between(centers, truth)``.
    matched : ndarray of shape (K,), int
        Center of each true center, such as :func:`matching` gives.
    gamma : float

    Returns
    -------
    ndarray of shape (...,), float64
    """
    own = sq_distances[..., matched, np.arange(len(matched))]
    return np.sqrt(own.max(axis=-1)) / gamma


def virtual_iterate(
    local: np.ndarray, sizes: np.ndarray, before: np.ndarray, by_size: bool = True
) -> np.ndarray:
    """Return theta^, what an exchange of the partitions' centers would give now.

    Parameters
    ----------
    local : ndarray of shape (m, K, d)
    sizes : ndarray of shape (m, K)
        Rows of each cluster on each partition.
    before : ndarray of shape (K, d)
        Kept by clusters that are empty everywhere.
    by_size : bool
        The mean weighted by sizes, as Algorithm 1 takes it; False gives the plain mean over
        partitions of Section 1.1.
    """
    if not by_size:
        return local.mean(axis=0)
    total = sizes.sum(axis=0)
    mean = np.einsum("mk,mkd->kd", sizes, local) / np.maximum(total, 1)[:, None]
    return np.where(total[:, None] > 0, mean, before)


def deviation(local: np.ndarray, center: np.ndarray) -> float:
    """Return Delta, the partitions' mean squared distance from the virtual iterate.

    ``Delta = 1/m sum_i ||theta^_i - theta^||**2`` (Lemma "single-step progress"), all K centers
    of shape (m, K, d) and (K, d) taken as one vector.
    """
    return float(((local - center) ** 2).sum(axis=(1, 2)).mean())


def smallest_share(counts: np.ndarray) -> float:
    """Return alpha, the smallest cluster's share of all rows: ``min_k nu*_k / mn``.

    Parameters
    ----------
    counts : ndarray of shape (m, K), int
        Rows of each cluster on each partition.
    """
    sizes = check_counts("smallest_share", counts).sum(axis=0)
    return float(sizes.min() / sizes.sum())


def smallest_spread(counts: np.ndarray) -> float:
    """Return beta, the smallest share of a cluster on a partition: ``min_{i,k} nu*_ki / nu*_k``.

    At most 1 / m, which says that every cluster is spread evenly; 0 when some partition lacks a
    cluster. Counts as for :func:`smallest_share`; clusters without rows are left out.
    """
    counts = check_counts("smallest_spread", counts)
    sizes = counts.sum(axis=0)
    return float((counts[:, sizes > 0] / sizes[sizes > 0]).min())


def snr_two(norm: float, sigma: float, d: int, n_rows: int) -> float:
    """Return r, the signal-to-noise ratio of two clusters at theta* and -theta*.

    ``r = ||theta*|| / (sigma sqrt(1 + 9 d / mn))``; ``snr_two(norm, r, ...)`` gives sigma back.

    Examples
    --------
    >>> round(snr_two(1.0, 0.3, 100, 4000), 2)
    3.01
    """
    check_number("snr_two", "norm", norm)
    check_number("snr_two", "sigma", sigma)
    check_wholes("snr_two", d=d, n_rows=n_rows)
    return norm / (sigma * math.sqrt(1.0 + 9.0 * d / n_rows))


def snr_many(gamma: float, sigma: float, alpha: float, k: int, d: int, n_rows: int) -> float:
    """Return r_K, that of K clusters: ``(Gamma / sigma) sqrt(alpha / (1 + K d / mn))``."""
    check_number("snr_many", "gamma", gamma)
    check_number("snr_many", "sigma", sigma)
    check_number("snr_many", "alpha", alpha, or_zero=True)
    check_wholes("snr_many", k=k, d=d, n_rows=n_rows)
    return gamma / sigma * math.sqrt(alpha / (1.0 + k * d / n_rows))


def _square(owner: str, counts: np.ndarray) -> np.ndarray:
    if counts.ndim < 2 or counts.shape[-1] != counts.shape[-2]:
        rule = "of shape (..., K, K), as many labels as clusters"
        raise wrong_array(owner, "counts", rule, f"shape {counts.shape}")
    return counts


def _aligned(owner: str, counts: np.ndarray) -> np.ndarray:
    """Put each label's cluster in its column, so that the diagonal counts agreement."""
    return np.take(_square(owner, counts), matching(counts), axis=-1)


def _is_known(label: Any) -> bool:
    return label is not None and not (isinstance(label, float) and math.isnan(label))
