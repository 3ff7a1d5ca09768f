"""Rows held by the driver that stand for all rows: Lloyd steps on them, and exchanges of centers.

Lloyd steps move centers to where their rows are; two centers that share a cluster stay there. An
exchange takes one of them away and puts it where rows are far from all centers (local search;
Lattanzi and Sohler, 2019, give the draws by distance and a guarantee).
"""

from __future__ import annotations

import math

import numpy as np

from localkmeans_spark.kernel.chunks import slices
from localkmeans_spark.kernel.draws import Arrivals, sq_distances_to_nearest
from localkmeans_spark.kernel.lloyd import Block, lloyd_steps
from localkmeans_spark.kernel.nearest import Scorer

# Rows are left out whose squared norm is so many times the usual: beside theirs, costs lose those
# of the others. They are centers by the first draws, and exchanges leave those where they are.
_FAR_SQ = 1e12


def rows_in_sample(n_features: int) -> int:
    """Say how many rows a sample may have: those of 4 million numbers, 16 MB of float32."""
    return max(1, (4 << 20) // max(1, n_features))


class Sample:
    """Rows held by the driver that stand for all rows.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), float
    weight : ndarray of shape (n,), float64
        How much weight of all rows each one stands for.
    dtype : str, default "float32"
        What costs are computed in; float64 also where squares leave the range of float32, or where
        beside the largest ones it keeps less than three digits of the usual ones.
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
        usual = float(np.median(sq_norms[sq_norms > 0])) if sq_norms.any() else 0.0
        self.limit = limit or _FAR_SQ * usual or math.inf
        if (is_far := sq_norms > self.limit).any():
            x, weight, sq_norms = x[~is_far], weight[~is_far], sq_norms[~is_far]
        largest = float(sq_norms.max(initial=0.0))
        narrow = 1e-24 < largest < min(1e24, 1e4 * usual)
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
        # As many as there are rows are enough.
        rows, sq_distances = arrivals.rows[: len(self.x)], arrivals.sq_distances[: len(self.x)]
        rate = len(rows) / arrivals.potential
        with np.errstate(over="ignore"):  # rows of next to no weight
            own = 1.0 / self.weight + rate * sq_distances_to_nearest(self.x, centers)
        theirs = self._uniform_rate + rate * sq_distances
        near = np.einsum("nd,nd->n", rows, rows) <= self.limit
        if not near.any():
            return self
        rows, theirs = rows[near].astype(self.x.dtype), theirs[near]
        for earlier, earlier_rate in self._passes:
            theirs = theirs + earlier_rate * sq_distances_to_nearest(rows, earlier)
        x, rates = np.concatenate([self.x, rows]), np.concatenate([own, theirs])
        found = Sample(x, 1.0 / rates, str(self.x.dtype), self.limit)
        found._uniform_rate = self._uniform_rate
        found._passes = [*self._passes, (centers, rate)]
        return found

    def in_float64(self) -> Sample:
        """Return the same rows, with costs in float64."""
        found = Sample(self.x, self.weight, "float64", self.limit)
        found._uniform_rate, found._passes = self._uniform_rate, self._passes
        return found

    def taken(self, order: np.ndarray) -> Sample:
        """Return the same rows in another order."""
        return Sample(self.x[order], self.weight[order], str(self.x.dtype), math.inf)

    def sq_distances(self, centers: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Squared distances of some rows to centers, shape (n_centers, n), at least 0."""
        narrow = centers.astype(self.x.dtype)
        sq = (-2.0 * narrow) @ self._transposed[:, rows]
        sq += np.einsum("cd,cd->c", narrow, narrow)[:, None]
        sq += self.sq_norms[rows]
        return np.maximum(sq, 0.0, out=sq)

    def cost(self, centers: np.ndarray) -> float:
        """Estimate of the inertia of centers over all rows."""
        return float(sq_distances_to_nearest(self.x, centers) @ self.weight)


# Lloyd steps on the sample, and after each round of exchanges.
STEPS, SWAP_STEPS = 10, 3


def settle_on_sample(centers: np.ndarray, sample: Sample, steps: int = STEPS) -> np.ndarray:
    """Run Lloyd steps on the sample; centers without rows in it stay where they are."""
    return lloyd_steps([Block(sample.x, sample.weight)], centers, steps)


# Rows drawn at a time: products with a few rows take hardly less time. And how many of them compete
# to be the new center of an exchange.
_AT_ONCE, _COMPETING = 32, 8
# Rounds of exchanges, and rows drawn in one, at least: two for each center (half as many make fits
# of 1,000 clusters 0.5 to 1.5 % worse).
ROUNDS, _TRIES = 4, 128
# An exchange must lower the cost by more than rounding of the rows' squared norms makes up, in
# units of the dtype's resolution.
_ROUNDING = 8.0


def improve_on_sample(
    centers: np.ndarray,
    sample: Sample,
    rng: np.random.Generator,
    *,
    rounds: int = ROUNDS,
    steps: int = SWAP_STEPS,
) -> np.ndarray:
    """Exchange centers and run Lloyd steps on the sample, several times; keep what is better.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64
    sample : Sample
    rng : numpy.random.Generator
    rounds : int, default 4
    steps : int, default 3
        Lloyd steps after the exchanges of a round.

    Returns
    -------
    ndarray of shape (k, n_features), float64
        Of at most the sample's cost of ``centers``.
    """
    if len(centers) < 2:
        return centers
    best, cost = centers, sample.cost(centers)
    for _ in range(rounds):
        exchange = _Exchange(best, sample)
        for _ in range(max(_TRIES, 2 * len(centers)) // _AT_ONCE):
            exchange.try_some_rows(rng)
        if not exchange.count:
            continue
        made = settle_on_sample(exchange.centers, sample, steps)
        if (found := sample.cost(made)) < cost:
            best, cost = made, found
    return best


class _Exchange:
    """Centers, and the two nearest of them to every row of the sample.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
    count : int
        Exchanges made.
    """

    def __init__(self, centers: np.ndarray, sample: Sample) -> None:
        self.centers = centers.copy()
        self.count = 0
        self._sample = sample
        self._weight = sample.weight / sample.weight.max()
        resolution = _ROUNDING * float(np.finfo(sample.x.dtype).eps)
        self._noise = resolution * float(self._weight @ sample.sq_norms)
        # Centers of rows too far away to be in the sample.
        self._stays = np.einsum("kd,kd->k", centers, centers) > sample.limit
        n = len(sample.x)
        self._labels = np.empty((2, n), dtype=np.int64)
        self._sq = np.empty((2, n), dtype=sample.x.dtype)
        self._look_at(np.arange(n))

    def _look_at(self, rows: np.ndarray) -> None:
        for some, two in Scorer(self.centers).nearest_two(self._sample.x, rows):
            at = rows[some]
            self._labels[:, at] = two.labels, two.second_labels
            norms = self._sample.sq_norms[at]
            self._sq[:, at] = norms - 2.0 * two.best, norms - 2.0 * two.second
        self._sq[:, rows] = np.maximum(self._sq[:, rows], 0.0)

    def try_some_rows(self, rng: np.random.Generator) -> None:
        """Draw some rows by distance; put those that lower the cost in the place of centers."""
        mass = np.cumsum(self._sq[0] * self._weight)
        drawn = np.searchsorted(mass, rng.random(_AT_ONCE) * mass[-1], side="right")
        rows = self._sample.x[np.minimum(drawn, len(mass) - 1)].astype(np.float64)
        sq = self._sample.sq_distances(rows)
        for some in slices(_AT_ONCE, _COMPETING):
            which, leaving, gain = self._best(sq[some])
            if gain > self._noise:
                self._put(leaving, rows[some][which], sq[some][which])

    def _best(self, sq: np.ndarray) -> tuple[int, int, float]:
        """Return which row should come, which center go, and by how much the cost would fall.

        ``sq`` are the rows' squared distances to the sample, of shape (n_rows, n).
        """
        k = len(self.centers)
        # Only rows of the sample that the new center would be one of the two nearest to matter.
        new, at = np.nonzero(sq < self._sq[1])
        distance, weight = sq[new, at], self._weight[at]
        first, second = self._sq[:, at]
        gains = np.bincount(new, weight * np.maximum(first - distance, 0.0), minlength=len(sq))
        # A center that goes leaves its rows to their second nearest, or to the new one.
        alone = np.bincount(
            self._labels[0], (self._sq[1] - self._sq[0]) * self._weight, minlength=k
        )
        spared = np.bincount(
            new * k + self._labels[0, at],
            weight * (second - np.maximum(first, distance)),
            minlength=k * len(sq),
        )
        net = gains[:, None] + spared.reshape(len(sq), k) - alone
        net[:, self._stays] = -np.inf
        which, leaving = np.unravel_index(int(net.argmax()), net.shape)
        return int(which), int(leaving), float(net[which, leaving])

    def _put(self, place: int, center: np.ndarray, sq: np.ndarray) -> None:
        self.count += 1
        self.centers[place] = center
        orphans = np.flatnonzero((self._labels == place).any(axis=0))
        first = sq < self._sq[0]
        second = ~first & (sq < self._sq[1])
        self._labels[1, first], self._sq[1, first] = self._labels[0, first], self._sq[0, first]
        self._labels[0, first], self._sq[0, first] = place, sq[first]
        self._labels[1, second], self._sq[1, second] = place, sq[second]
        self._look_at(orphans)
