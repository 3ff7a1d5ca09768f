"""Better centers for a sample: exchange one of them for one of its rows, again and again.

Lloyd steps move centers to where their rows are; two centers that share a cluster stay there. An
exchange takes one of them away and puts it where rows are far from all centers (local search;
Lattanzi and Sohler, 2019, give the draws by distance and a guarantee).
"""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.chunks import slices
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.kernel.sample import Sample, settle_on_sample

# Rows drawn at a time: products with a few rows take hardly less time. And how many of them compete
# to be the new center of an exchange.
_AT_ONCE, _COMPETING = 32, 8
# An exchange must lower the sample's cost by this share, and by more than rounding of the rows'
# squared norms makes up (in units of the dtype's resolution).
_LEAST_GAIN, _ROUNDING = 1e-5, 8.0


def improve_on_sample(
    centers: np.ndarray,
    sample: Sample,
    rng: np.random.Generator,
    *,
    rounds: int,
    tries: int,
    steps: int,
) -> np.ndarray:
    """Exchange centers and run Lloyd steps on the sample, several times; keep what is better.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64, k >= 2
    sample : Sample
    rng : numpy.random.Generator
    rounds : int
    tries : int
        Rows drawn a round, by their squared distance to the nearest center.
    steps : int
        Lloyd steps after the exchanges of a round.

    Returns
    -------
    ndarray of shape (k, n_features), float64
        Of at most the sample's cost of ``centers``.
    """
    best, cost = centers, sample.cost(centers)
    for _ in range(rounds):
        exchange = _Exchange(best, sample)
        for _ in range(max(1, tries // _AT_ONCE)):
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
            if gain > max(_LEAST_GAIN * mass[-1], self._noise):
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
