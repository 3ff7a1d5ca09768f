"""Rows held by the driver that stand for all rows, and Lloyd steps on them."""

from __future__ import annotations

import math

import numpy as np

from localkmeans_spark.kernel.draws import Arrivals
from localkmeans_spark.kernel.lloyd import Block, add_cluster_sums
from localkmeans_spark.kernel.nearest import Scorer

# A center moves with its rows in the sample only if it has as many of them: fewer say little
# about where the rows that are not in the sample lie.
_MIN_ROWS = 8
_SMALLEST, _LARGEST = 1e-12, 1e12
# Rows are left out whose squared norm is so many times the usual: beside theirs, costs lose those
# of the others. They are centers by the first draws, and exchanges leave those where they are.
_FAR_SQ = 1e12


class Sample:
    """Rows held by the driver that stand for all rows.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), float
    weight : ndarray of shape (n,), float64
        How much weight of all rows each one stands for.
    dtype : str, default "float32"
        What costs are computed in; float64 also where squares leave the range of float32.
    limit : float, optional
        Squared norm above which rows are left out; 1e12 times the median when missing.

    Attributes
    ----------
    limit : float
        Of all samples made from this one.
    """

    def __init__(
        self,
        x: np.ndarray,
        weight: np.ndarray,
        dtype: str = "float32",
        limit: float | None = None,
    ) -> None:
        wide = x.astype(np.float64, copy=False)
        sq_norms = np.einsum("nd,nd->n", wide, wide)
        if limit is None:
            limit = _FAR_SQ * float(np.median(sq_norms)) or math.inf
        self.limit = limit
        if len(sq_norms) and sq_norms.max() > limit:
            x, weight = x[sq_norms <= limit], weight[sq_norms <= limit]
        scale = float(np.abs(x).max(initial=0.0))
        narrow = scale == 0 or _SMALLEST < scale < _LARGEST
        self.x: np.ndarray = np.ascontiguousarray(x, dtype=dtype if narrow else "float64")
        self.weight = weight
        # The rates at which a row is drawn: by the first draws, then by distance to centers.
        self._uniform_rate = 1.0 / float(weight.mean())
        self._passes: list[tuple[np.ndarray, float]] = []
        self.sq_norms = np.einsum("nd,nd->n", self.x, self.x)
        # A second copy: products of few centers with it are twice as fast.
        self._transposed = np.ascontiguousarray(self.x.T)

    def with_arrivals(self, arrivals: Arrivals, centers: np.ndarray) -> Sample:
        """Add a pass's arrivals: rows far from the centers, few as they may be, are in them.

        A row is in the sample at the rate 1 / weight and among the arrivals at a rate
        proportional to its squared distance to ``centers``; together it stands for the inverse
        of the sum of all rates (the balance heuristic of Veach and Guibas, 1995).

        Parameters
        ----------
        arrivals : Arrivals
        centers : ndarray of shape (c, n_features), float64
            Those the partitions knew.
        """
        if not len(arrivals.times) or arrivals.potential <= 0:
            return self
        rate = len(arrivals.times) / arrivals.potential
        nearest = self.nearest_sq_distances(centers).astype(np.float64)
        own = 1.0 / self.weight + rate * nearest
        theirs = self._uniform_rate + rate * arrivals.sq_distances
        near = np.einsum("nd,nd->n", arrivals.rows, arrivals.rows) <= self.limit
        if not near.any():
            return self
        alone = Sample(arrivals.rows[near], theirs[near], str(self.x.dtype), self.limit)
        theirs = theirs[near]
        for earlier, earlier_rate in self._passes:
            sq_distances = alone.nearest_sq_distances(earlier).astype(np.float64)
            theirs = theirs + earlier_rate * sq_distances
        rates = np.concatenate([own, theirs])
        x = np.concatenate([self.x, alone.x])
        found = Sample(x, 1.0 / rates, str(self.x.dtype), self.limit)
        found._uniform_rate = self._uniform_rate
        found._passes = [*self._passes, (centers, rate)]
        return found

    def sq_distances(self, centers: np.ndarray) -> np.ndarray:
        """Squared distances to centers, shape (n_centers, n), at least 0."""
        narrow = centers.astype(self.x.dtype)
        sq = (-2.0 * narrow) @ self._transposed
        sq += np.einsum("cd,cd->c", narrow, narrow)[:, None]
        sq += self.sq_norms
        return np.maximum(sq, 0.0, out=sq)

    def nearest_sq_distances(self, centers: np.ndarray) -> np.ndarray:
        """Squared distance of each row to the nearest of centers, shape (n,)."""
        nearest = np.full(len(self.x), np.inf, dtype=self.x.dtype)
        step = max(1, (16 << 20) // (4 * max(1, len(self.x))))
        for start in range(0, len(centers), step):
            found = self.sq_distances(centers[start : start + step]).min(axis=0)
            np.minimum(nearest, found, out=nearest)
        return nearest

    def cost(self, centers: np.ndarray) -> float:
        """Estimate of the inertia of centers over all rows."""
        return float(self.nearest_sq_distances(centers).astype(np.float64) @ self.weight)


def settle_on_sample(centers: np.ndarray, sample: Sample, steps: int) -> np.ndarray:
    """Run Lloyd steps on the sample; centers with few rows in it stay where they are.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64
    sample : Sample
    steps : int

    Returns
    -------
    ndarray of shape (k, n_features), float64
    """
    block = Block(sample.x, sample.weight)
    labels = np.empty(len(sample.x), dtype=np.int32)
    for _ in range(steps):
        Scorer(centers).nearest(block.x, labels)
        sums = np.zeros(centers.shape)
        add_cluster_sums(block, labels, sums)
        weights = np.bincount(labels, weights=sample.weight, minlength=len(centers))
        enough = np.bincount(labels, minlength=len(centers)) >= _MIN_ROWS
        moved = centers.copy()
        moved[enough] = sums[enough] / weights[enough, None]
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers
