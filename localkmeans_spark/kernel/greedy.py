"""Greedy seeding: among several exact draws, the center that lowers the cost of a sample most."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.differences import sq_distances_between
from localkmeans_spark.kernel.draws import Arrivals
from localkmeans_spark.kernel.sample import Sample

# Candidates made ready at a time.
_BATCH = 256
# Up to here more draws cost the driver little.
_FEW_CLUSTERS = 100


def greedy_centers(
    arrivals: Arrivals,
    centers: np.ndarray,
    k: int,
    sample: Sample,
    resolution: np.ndarray,
    rng: np.random.Generator,
    trials: int,
) -> tuple[np.ndarray, float]:
    """Choose centers among arrivals, each the best of several draws.

    A candidate that arrived in proportion to its squared distance then is kept while a chance
    drawn for it once is below (distance now) / (distance then): those kept are draws by squared
    distance to the centers so far, as in k-means++. The first few of them are judged by the cost
    that the sample would have with them. The best becomes a center; the others are not asked
    again, so that each center is chosen among fresh draws.

    Parameters
    ----------
    arrivals : Arrivals
        Of all partitions, sorted by time.
    centers : ndarray of shape (c, n_features), float64, c < k
        Centers the partitions knew.
    k : int
    sample : Sample
    resolution : ndarray of shape (n_features,), float64
        Two rows closer than this in every column count as the same.
    rng : numpy.random.Generator
    trials : int
        Draws to choose each center among; see :func:`n_trials`.

    Returns
    -------
    centers : ndarray of shape (<= k, n_features), float64
        The given centers, then the chosen ones.
    remaining : float
        Estimate of (potential now) / (potential when the pass began), at least one part in the
        number of arrivals looked at.
    """
    pool = _Pool(arrivals, centers, k, resolution, rng)
    nearest = sample.nearest_sq_distances(centers)
    # Ratios are enough to tell which is best, and stay in the range of single precision.
    weight = (sample.weight / sample.weight.max()).astype(sample.x.dtype)
    while pool.count < k:
        rows = pool.candidates(trials)
        if not len(rows):
            break
        with_each = np.minimum(sample.sq_distances(rows), nearest)
        best = int((with_each @ weight).argmin())
        nearest = with_each[best]
        pool.choose(best)
    return pool.centers, pool.remaining()


def n_trials(k: int) -> int:
    """Draws to choose each center among: scikit-learn's 2 + ln k, twice that up to 100 clusters."""
    return (2 if k <= _FEW_CLUSTERS else 1) * (2 + int(np.log(k)))


class _Pool:
    """Arrivals that still count as draws, in the order of their times."""

    def __init__(
        self,
        arrivals: Arrivals,
        centers: np.ndarray,
        k: int,
        resolution: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self._arrivals = arrivals
        self._resolution = resolution
        self._found = np.empty((k, centers.shape[1]))
        self._found[: len(centers)] = centers
        self._start = self.count = len(centers)
        self._chances = rng.random(len(arrivals.times))
        self._ready = 0  # arrivals looked at so far
        self._alive = np.empty(0, dtype=np.int64)
        self._now = np.empty(0)  # squared distances of the living to the centers so far
        self._shown = 0

    @property
    def centers(self) -> np.ndarray:
        return self._found[: self.count]

    def candidates(self, wanted: int) -> np.ndarray:
        """Return the first ``wanted`` living candidates; fewer at the end of the arrivals."""
        while len(self._alive) < wanted and self._ready < len(self._chances):
            self._look_at_more()
        self._shown = min(wanted, len(self._alive))
        return self._arrivals.rows[self._alive[: self._shown]]

    def choose(self, which: int) -> None:
        """Make one of the candidates shown a center."""
        chosen = self._arrivals.rows[self._alive[which]]
        self._found[self.count] = chosen
        self.count += 1
        difference = self._arrivals.rows[self._alive]
        difference -= chosen
        same = (np.abs(difference) <= self._resolution).all(axis=1)
        np.minimum(self._now, np.einsum("nd,nd->n", difference, difference), out=self._now)
        same[: self._shown] = True  # each center is chosen among fresh draws
        self._keep(~same)

    def remaining(self) -> float:
        """Mean share of the arrivals' squared distances that is left."""
        rows, before = self._arrivals.rows, self._arrivals.sq_distances
        if not len(rows):
            return 1.0
        # A few thousand say enough.
        some = slice(0, 4096)
        now = np.minimum(before[some], sq_distances_between(rows[some], self.centers).min(axis=1))
        return max(1.0 / (len(now) + 1.0), float((now / before[some]).mean()))

    def _look_at_more(self) -> None:
        more = np.arange(self._ready, min(self._ready + _BATCH, len(self._chances)))
        self._ready += len(more)
        rows = self._arrivals.rows[more]
        now = self._arrivals.sq_distances[more].copy()
        new = self._found[self._start : self.count]
        if len(new):
            np.minimum(now, sq_distances_between(rows, new).min(axis=1), out=now)
        self._alive = np.concatenate([self._alive, more])
        self._now = np.concatenate([self._now, now])
        fresh = np.ones(len(self._alive), dtype=bool)
        for place in range(len(fresh) - len(more), len(fresh)):
            row = self._arrivals.rows[self._alive[place]]
            gap = self._resolution
            fresh[place] = not (np.abs(self.centers - row) <= gap).all(axis=1).any()
        self._keep(fresh)

    def _keep(self, fresh: np.ndarray) -> None:
        before = self._arrivals.sq_distances[self._alive]
        kept = fresh & (self._chances[self._alive] * before < self._now)
        self._alive, self._now = self._alive[kept], self._now[kept]
