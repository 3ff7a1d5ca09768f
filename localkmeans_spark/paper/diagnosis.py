"""What the theory says of somebody's partitions, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from localkmeans_spark.paper.theory import (
    Clusters,
    check_many,
    describe_clusters,
    exchanges_needed,
    steps_needed,
)

# With beta m above it partitions are alike and several local steps do no harm; below the lower
# one some partition hardly knows some cluster. Between them a few steps go well.
_EVEN, _UNEVEN = 0.5, 0.1
# Fewer rows of a cluster on a machine than this make a poor local mean.
_FEW_ROWS = 10


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
        Cluster and machine with the smallest share, and that share over an even one (beta m).
    rows_a_cell : float
        Mean number of rows of the smallest cluster on a machine.
    local_steps : int
        L to use.
    """

    clusters: Clusters
    sigma: float
    overlap: float
    scarcest: tuple[str, int, float]
    rows_a_cell: float
    local_steps: int

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values (JSON-ready)."""
        c = self.clusters
        n_rows = c.m * c.n
        return {
            "k": c.k,
            "partitions": c.m,
            "beta_m": round(c.beta * c.m, 6),
            "alpha": round(c.alpha, 6),
            "r_k": round(c.r_k, 4) if math.isfinite(c.r_k) else None,
            "lambda": round(c.ratio, 4),
            "gamma_over_sigma": round(c.gamma / self.sigma, 4) if self.sigma > 0 else None,
            "overlap": round(self.overlap, 6),
            "local_steps": self.local_steps,
            "steps_needed": steps_needed(n_rows, self.local_steps),
            "exchanges_needed": exchanges_needed(n_rows, self.local_steps),
            "assumptions": {check.name: bool(check.holds) for check in check_many(c)},
        }

    def text(self) -> str:
        """Return the diagnosis in words, a few lines."""
        return "\n".join([self._spread(), self._separation(), self._advice(), self._theory()])

    def _spread(self) -> str:
        c, (name, machine, share) = self.clusters, self.scarcest
        words = "evenly" if share >= _EVEN else "unevenly" if share >= _UNEVEN else "very unevenly"
        return (
            f"Partitions: {c.m} partitions hold {c.k} clusters {words}. The scarcest is {name} on "
            f"partition {machine}: {share:.0%} of an even share (beta*m = {share:.3g}; 1 is best)."
        )

    def _separation(self) -> str:
        c = self.clusters
        if self.sigma == 0:
            return "Clusters: all rows lie on their centers."
        return (
            f"Clusters: the two nearest centers are {c.gamma / self.sigma:.1f} noise deviations "
            f"apart (r_K = {c.r_k:.2f}); if they were round, about {self.overlap:.1%} of their "
            "rows would be nearer to the other one."
        )

    def _advice(self) -> str:
        c, share = self.clusters, self.scarcest[2]
        if c.m == 1:
            return "Advice: one partition, so any L gives plain Lloyd steps."
        if self.rows_a_cell < _FEW_ROWS:
            return (
                f"Advice: a partition holds only about {self.rows_a_cell:.1f} rows of the smallest "
                f"cluster. Use fewer partitions, or L = {self.local_steps}."
            )
        if share >= _EVEN:
            return f"Advice: L = {self.local_steps}."
        shuffle = "Shuffling the rows first (df.repartition(m)) would allow L = 5."
        if share >= _UNEVEN:
            return f"Advice: L = {self.local_steps}. {shuffle}"
        return (
            f"Advice: L = {self.local_steps}, or keep the safeguard on, which finds out by itself. "
            f"{shuffle}"
        )

    def _theory(self) -> str:
        failing = [check.name for check in check_many(self.clusters) if not check.holds]
        n_rows = self.clusters.m * self.clusters.n
        words = "all hold" if not failing else "do not hold: " + "; ".join(failing)
        return (
            f"Theory: {steps_needed(n_rows, self.local_steps)} steps, "
            f"{exchanges_needed(n_rows, self.local_steps)} exchanges, reach the final order of the "
            f"error at this L. Theorem 2's assumptions, with constants of 1, {words}."
        )


def diagnose(centers: np.ndarray, counts: np.ndarray, sigma: float, names: list[str]) -> Diagnosis:
    """Judge partitions by counts of rows.

    Parameters
    ----------
    centers : ndarray of shape (K, d), K >= 2
    counts : ndarray of shape (m, K), int
        Rows of each cluster on each partition; no column is all 0.
    sigma : float
    names : list of str
        Of the clusters.
    """
    clusters = describe_clusters(centers, counts, sigma)
    shares = counts / counts.sum(axis=0)
    machine, cluster = np.unravel_index(int(shares.argmin()), shares.shape)
    even = float(shares[machine, cluster]) * clusters.m
    rows_a_cell = float(counts.sum(axis=0).min()) / clusters.m
    steps = 5
    if clusters.m > 1 and rows_a_cell < _FEW_ROWS:
        steps = 1
    elif clusters.m > 1 and even < _EVEN:
        steps = 2 if even >= _UNEVEN else 1
    overlap = float(ndtr(-clusters.gamma / (2.0 * sigma))) if sigma > 0 else 0.0
    return Diagnosis(
        clusters, sigma, overlap, (names[int(cluster)], int(machine), even), rows_a_cell, steps
    )
