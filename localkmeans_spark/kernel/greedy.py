"""Greedy seeding: among several exact draws, the center that lowers the cost of a sample most."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.differences import sq_distances_between
from localkmeans_spark.kernel.draws import Arrivals
from localkmeans_spark.kernel.lloyd import Block, add_cluster_sums
from localkmeans_spark.kernel.nearest import Scorer

# Candidates made ready at a time.
_BATCH = 256
# A center moves with its rows in the sample only if it has as many of them: fewer say little
# about where the rows that are not in the sample lie.
_MIN_ROWS = 8
# Up to here more draws cost the driver little.
_FEW_CLUSTERS = 100
_SMALLEST, _LARGEST = 1e-12, 1e12


class Sample:
    """Rows held by the driver that stand for all rows.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), float
    weight : ndarray of shape (n,), float64
        How much weight of all rows each one stands for.
    """

    def __init__(self, x: np.ndarray, weight: np.ndarray) -> None:
        # Single precision is enough to compare costs, as long as squares stay inside its range.
        scale = float(np.abs(x).max(initial=0.0))
        narrow = scale == 0 or _SMALLEST < scale < _LARGEST
        self.x: np.ndarray = np.ascontiguousarray(x, dtype="float32" if narrow else "float64")
        self.weight = weight
        self._sq_norms = np.einsum("nd,nd->n", self.x, self.x)
        # A second copy: products of few centers with it are twice as fast.
        self._transposed = np.ascontiguousarray(self.x.T)

    def with_arrivals(self, arrivals: Arrivals, centers: np.ndarray) -> Sample:
        """Add a pass's arrivals: rows far from the centers, few as they may be, are in them.

        A row is in the sample at the rate 1 / weight and among the arrivals at a rate
        proportional to its squared distance to ``centers``; together it stands for the inverse
        of the sum of both (the balance heuristic of Veach and Guibas, 1995).

        Parameters
        ----------
        arrivals : Arrivals
        centers : ndarray of shape (c, n_features), float64
            Those the machines knew.
        """
        if not len(arrivals.times) or arrivals.potential <= 0:
            return self
        rate = len(arrivals.times) / arrivals.potential
        usual = float(self.weight.mean())
        nearest = self.nearest_sq_distances(centers).astype(np.float64)
        own = 1.0 / (1.0 / self.weight + rate * nearest)
        theirs = 1.0 / (1.0 / usual + rate * arrivals.sq_distances)
        return Sample(
            np.concatenate([self.x, arrivals.rows]),
            np.concatenate([own, theirs]),
        )

    def sq_distances(self, centers: np.ndarray) -> np.ndarray:
        """Squared distances to centers, shape (n_centers, n), at least 0."""
        narrow = centers.astype(self.x.dtype)
        sq = (-2.0 * narrow) @ self._transposed
        sq += np.einsum("cd,cd->c", narrow, narrow)[:, None]
        sq += self._sq_norms
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
        Of all machines, sorted by time.
    centers : ndarray of shape (c, n_features), float64, c < k
        Centers the machines knew.
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
        number of arrivals.
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
        return max(1.0 / (len(rows) + 1.0), float((now / before[some]).mean()))

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
