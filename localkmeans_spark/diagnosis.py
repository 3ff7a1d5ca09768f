"""What the theory says of somebody's partitions, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.theory import (
    Clusters,
    check_many,
    describe_clusters,
    exchanges_needed,
    steps_needed,
)

# With beta m from it on partitions are alike, and several local steps do no harm.
_EVEN = 0.5
# Fewer rows of a cluster on a partition than this make a poor local mean.
_FEW_ROWS = 10
# Overlap of the two nearest clusters: up to the first they are apart, up to the second they touch.
# A cloud without clusters, cut in two by k-means, has more than the first.
_APART, _TOUCHING = 0.01, 0.1


@dataclass(frozen=True)
class Diagnosis:
    """Figures of a table's clusters and partitions, and the advice that follows.

    Attributes
    ----------
    clusters : Clusters
    sigma : float
        Root mean square distance from the center in one coordinate.
    overlap : float
        Share of rows of two round Gaussian clusters, as far apart as the two nearest, that are
        nearer to the other one's center.
    scarcest : tuple of (str, int, float)
        Cluster and partition with the smallest share, and that share over an even one (beta m).
    rows_a_cell : float
        Mean number of rows of the smallest cluster on a partition that holds rows.
    local_steps : int
        L to use.
    n_empty : int
        Partitions without rows. They change nothing, as exchanges weigh by size: all other figures
        are those of the rest.
    """

    clusters: Clusters
    sigma: float
    overlap: float
    scarcest: tuple[str, int, float]
    rows_a_cell: float
    local_steps: int
    n_empty: int = 0

    @property
    def separation(self) -> str:
        """Whether the two nearest clusters are ``apart``, ``touching`` or ``overlapping``."""
        if self.overlap <= _APART:
            return "apart"
        return "touching" if self.overlap <= _TOUCHING else "overlapping"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values (JSON-ready)."""
        c = self.clusters
        n_rows = c.m * c.n
        return {
            "k": c.k,
            "partitions": c.m + self.n_empty,
            "empty_partitions": self.n_empty,
            "beta_m": round(c.beta * c.m, 6),
            "alpha": round(c.alpha, 6),
            "r_k": round(c.r_k, 4) if math.isfinite(c.r_k) else None,
            "lambda": round(c.ratio, 4),
            "gamma_over_sigma": round(c.gamma / self.sigma, 4) if self.sigma > 0 else None,
            "overlap": round(self.overlap, 6),
            "separation": self.separation,
            "local_steps": self.local_steps,
            "steps_needed": steps_needed(n_rows, self.local_steps),
            "exchanges_needed": exchanges_needed(n_rows, self.local_steps),
            "assumptions": {check.name: bool(check.holds) for check in check_many(c)},
        }

    def text(self) -> str:
        """Return the diagnosis in words, a few lines."""
        advice = self._advice()
        if self.separation == "overlapping":
            advice += " That is for the partitions' sake; the clusters come first, see above."
        return "\n".join([self._spread(), self._separation(), advice])

    def _spread(self) -> str:
        c, (name, place, share) = self.clusters, self.scarcest
        empty = ""
        if self.n_empty:
            have = "has" if self.n_empty == 1 else "have"
            empty = f"{count_of(self.n_empty, 'more partition')} {have} no rows. "
        if c.m == 1:
            return f"Partitions: 1 partition holds all {c.k} clusters. {empty}".rstrip()
        words = "evenly" if share >= _EVEN else "unevenly"
        return (
            f"Partitions: {c.m} partitions hold {c.k} clusters {words}. {empty}The scarcest is "
            f"{name} on partition {place}: {share:.0%} of an even share."
        )

    def _separation(self) -> str:
        c = self.clusters
        if self.sigma == 0:
            return "Clusters: apart; all rows lie on their centers."
        verdict = {
            "apart": "far enough apart.",
            "touching": "not quite far enough apart: rows between the two nearest may be "
            "labelled either way, whatever L is.",
            "overlapping": "not far enough apart: k-means cannot tell the two nearest from each "
            "other, whatever L is. Use fewer clusters, or other or better scaled features.",
        }[self.separation]
        return (
            f"Clusters: {verdict} The two nearest centers are {c.gamma / self.sigma:.1f} standard "
            "deviations of the rows around them apart: of two round clusters, about "
            f"{self.overlap:.1%} of the rows would be nearer to the other one's center."
        )

    def _advice(self) -> str:
        c, share = self.clusters, self.scarcest[2]
        if c.m == 1:
            return "Advice: one partition, so any L gives plain Lloyd steps."
        if self.rows_a_cell < _FEW_ROWS:
            return f"Advice: L = {self.local_steps}. {self._fewer_partitions()}"
        if share >= _EVEN:
            return f"Advice: L = {self.local_steps}."
        return (
            f"Advice: L = {self.local_steps}, or keep the safeguard on, which finds out by itself. "
            f"Shuffling the rows first, df.repartition({c.m}), would allow L = 5."
        )

    def _fewer_partitions(self) -> str:
        c = self.clusters
        rows = self.rows_a_cell
        enough = max(1, int(rows * c.m) // _FEW_ROWS)
        few = (
            f"a partition has only about {rows:.1f} rows of the smallest cluster, too few for a "
            "local mean"
        )
        if self.scarcest[2] >= _EVEN:
            return f"For more, use fewer partitions, {enough} at most: {few}."
        return (
            "For more, shuffle the rows into fewer partitions, "
            f"df.repartition({enough}) or fewer: the clusters lie unevenly, and {few}."
        )


def diagnose(centers: np.ndarray, counts: np.ndarray, sigma: float, names: list[str]) -> Diagnosis:
    """Judge partitions by counts of rows.

    Parameters
    ----------
    centers : ndarray of shape (K, d), K >= 2
    counts : ndarray of shape (m, K), int
        Rows of each cluster on each partition, by partition number; no column is all 0.
    sigma : float
    names : list of str
        Of the clusters.

    Raises
    ------
    InvalidInputError
        When two centers are equal.
    """
    _, first, times = np.unique(centers, axis=0, return_index=True, return_counts=True)
    if len(first) < len(centers):
        twice = centers[first[int(times.argmax())]]
        same = [names[i] for i in np.flatnonzero((centers == twice).all(axis=1))[:2]]
        raise invalid(
            "diagnose", "the clusters", "different from each other",
            Fact(f"{same[0]} and {same[1]} with the same center"), "Take them for one.",
        )  # fmt: skip
    numbers = np.flatnonzero(counts.sum(axis=1) > 0)
    n_empty = len(counts) - len(numbers)
    counts = counts[numbers]
    clusters = describe_clusters(centers, counts, sigma)
    shares = counts / counts.sum(axis=0)
    place, cluster = np.unravel_index(int(shares.argmin()), shares.shape)
    even = float(shares[place, cluster]) * clusters.m
    rows_a_cell = float(counts.sum(axis=0).min()) / clusters.m
    steps = 1 if clusters.m > 1 and (rows_a_cell < _FEW_ROWS or even < _EVEN) else 5
    overlap = float(ndtr(-clusters.gamma / (2.0 * sigma))) if sigma > 0 else 0.0
    scarcest = (names[int(cluster)], int(numbers[place]), even)
    return Diagnosis(clusters, sigma, overlap, scarcest, rows_a_cell, steps, n_empty)
