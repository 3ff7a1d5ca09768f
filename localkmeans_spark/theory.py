"""The paper's theorems: assumptions as checks, bounds up to constants, steps they ask for.

The paper leaves its constants c_1, c_2, ... open. Checks take them as 1, so "holds" means: would
hold with constants of 1; the margin tells by how much.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.metrics import separation, smallest_share, smallest_spread, snr_many
from localkmeans_spark.real_numbers import check_counts, check_number, check_wholes


class Check(NamedTuple):
    """One assumption.

    Attributes
    ----------
    name : str
        The assumption in the paper's symbols.
    value, limit : float
        Left and right side.
    holds : bool
    """

    name: str
    value: float
    limit: float
    holds: bool

    @property
    def margin(self) -> float:
        """How far the value is on the right side of the limit; negative when it is not."""
        gap = abs(self.value - self.limit)
        return gap if self.holds else -gap


def _at_most(name: str, value: float, limit: float) -> Check:
    return Check(name, value, limit, value <= limit)


def _at_least(name: str, value: float, limit: float) -> Check:
    return Check(name, value, limit, value >= limit)


def initial_limit_two(r: float, n_rows: int) -> float:
    """Return the largest initial A that Assumption 1 allows (2 clusters); may be negative."""
    if r <= 1.0:
        return -math.inf
    return 0.5 - 1.0 / math.sqrt(n_rows) - (2.56 + math.sqrt(math.log(r))) / r


def initial_limit_g(r_k: float, ratio: float) -> float:
    """Return the G that the initial centers must stay below (Assumption 2); may be negative."""
    if r_k <= 0.0:
        return -math.inf
    return (0.5 - 6.0 / math.sqrt(r_k)) / ratio


def initial_limit_lambda(r_k: float) -> float:
    """Return the largest initial Lambda that Assumption 2 allows; may be negative."""
    if r_k <= 0.0:
        return -math.inf
    return 0.5 - 4.0 / math.sqrt(r_k)


def check_two(initial_error: float, r: float, m: int, n: int, d: int) -> list[Check]:
    """Check what Theorem 1 assumes of 2 symmetric clusters.

    Parameters
    ----------
    initial_error : float
        A of the initial centers.
    r : float
        :func:`localkmeans_spark.metrics.snr_two`.
    m, n, d : int
        Partitions, rows a partition, dimensions.
    """
    check_wholes("check_two", m=m, n=n, d=d)
    limit = initial_limit_two(r, m * n)
    return [
        _at_most("A(0) <= 1/2 - 1/sqrt(mn) - (2.56 + sqrt(log r)) / r", initial_error, limit),
        _at_least("r >= max(sqrt(d/n), 1)", r, max(math.sqrt(d / n), 1.0)),
        _at_least("n >= log m", n, math.log(m)),
    ]


class Clusters(NamedTuple):
    """What Theorem 2 looks at.

    Attributes
    ----------
    r_k, gamma, ratio, alpha, beta : float
        Signal-to-noise ratio, Gamma, lambda, alpha, beta.
    k, m, n, d : int
        Clusters, partitions, mean number of rows a partition, dimensions.
    """

    r_k: float
    gamma: float
    ratio: float
    alpha: float
    beta: float
    k: int
    m: int
    n: int
    d: int


def describe_clusters(centers: np.ndarray, counts: np.ndarray, sigma: float) -> Clusters:
    """Gather a table's figures from its centers, rows by partition and cluster, and noise.

    Parameters
    ----------
    centers : ndarray of shape (K, d)
    counts : ndarray of shape (m, K), int
    sigma : float
        Standard deviation of the noise in one coordinate.
    """
    gamma, ratio = separation(centers)
    k, d = np.shape(centers)
    counts = check_counts("describe_clusters", counts, k)
    check_number("describe_clusters", "sigma", sigma, or_zero=True)
    n_rows, m = int(counts.sum()), len(counts)
    alpha, beta = smallest_share(counts), smallest_spread(counts)
    r_k = snr_many(gamma, sigma, alpha, k, d, n_rows) if sigma > 0 else math.inf
    return Clusters(r_k, gamma, ratio, alpha, beta, k, m, max(1, n_rows // m), d)


def check_many(
    clusters: Clusters, initial_g: float | None = None, initial_lambda: float | None = None
) -> list[Check]:
    """Check what Theorem 2 assumes; the initial centers may satisfy either of the first two.

    Parameters
    ----------
    clusters : Clusters
    initial_g, initial_lambda : float or None
        G and Lambda of the initial centers; None leaves the check out.
    """
    r_k, _, ratio, alpha, beta, k, m, n, d = clusters
    checks = []
    if initial_g is not None:
        limit = initial_limit_g(r_k, ratio)
        checks.append(Check("G(0) < (1/2 - 6/sqrt(r_K)) / lambda", initial_g, limit,
                            initial_g < limit))  # fmt: skip
    if initial_lambda is not None:
        limit = initial_limit_lambda(r_k)
        checks.append(_at_most("Lambda(0) <= 1/2 - 4/sqrt(r_K)", initial_lambda, limit))
    n_rows = m * n
    return [
        *checks,
        _at_least("alpha >= sqrt(K log(mn) / mn)", alpha, math.sqrt(k * math.log(n_rows) / n_rows)),
        _at_least("beta m >= 1/2 (beta of the order of 1/m)", beta * m, 0.5),
        _at_least("n >= log m", n, math.log(m)),
        _at_least("r_K >= sqrt(K/alpha) max(sqrt(d/n), 1)", r_k,
                  math.sqrt(k / alpha) * max(math.sqrt(d / n), 1.0) if alpha > 0 else math.inf),
        _at_most("lambda <= 10 (of the order of 1)", ratio, 10.0),
    ]  # fmt: skip


def bound_two(r: float, m: int, n: int, d: int, local_steps: int, q_power: float) -> float:
    """Return Theorem 1's bound on the final A, up to its constant and 1/zeta."""
    check_number("bound_two", "r", r)
    check_wholes("bound_two", m=m, n=n, d=d, local_steps=local_steps)
    extra = math.exp(-q_power * local_steps) / (m * n) ** q_power
    return math.exp(-n) + max(d / n, 1.0) / r**2 + extra + math.exp(-(r**2))


def bound_many(clusters: Clusters, local_steps: int, q_power: float) -> float:
    """Return Theorem 2's bound on the final A, up to its constant and 1/xi."""
    check_wholes("bound_many", local_steps=local_steps)
    if not clusters.alpha > 0:
        raise invalid(
            "bound_many", "clusters", "free of empty ones", Fact("an empty cluster (alpha = 0)"),
            "Leave out its center and its column of counts.",
        )  # fmt: skip
    r_k, m, n, d = clusters.r_k, clusters.m, clusters.n, clusters.d
    extra = math.exp(-q_power * local_steps) / (m * n) ** q_power
    main = max(d / n, 1.0) * clusters.k / (clusters.alpha * r_k**2)
    return math.exp(-n) + main + extra + math.exp(-(r_k**2))


def steps_needed(n_rows: int, local_steps: int) -> int:
    """Return t_0 = 2 (ceil(log mn) + L), the steps after which the error is of its final order.

    Examples
    --------
    >>> steps_needed(4000, 3)
    24
    """
    check_wholes("steps_needed", n_rows=n_rows, local_steps=local_steps)
    return 2 * (math.ceil(math.log(n_rows)) + local_steps)


def exchanges_needed(n_rows: int, local_steps: int) -> int:
    """Return how many exchanges those steps hold; at least 2.

    Examples
    --------
    >>> exchanges_needed(4000, 3), exchanges_needed(4000, 100)
    (8, 3)
    """
    return max(2, math.ceil(steps_needed(n_rows, local_steps) / local_steps))
