"""The driver's share of seeding: choosing among candidates that the partitions sent."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.draws import Arrivals, sq_distances_to_nearest, weighted_indices
from localkmeans_spark.kernel.lloyd import Block, lloyd_steps
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.kernel.sample import Sample

# Candidates made ready at a time, at least.
_BATCH = 256
# Up to here more draws for each center cost the driver little.
_FEW_CLUSTERS = 100
# From so many centers on, a draw is judged by the rows around it, about so many.
_MANY_CLUSTERS, _ROWS_AROUND = 500, 2048


def reduce_candidates(
    candidates: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Cluster weighted candidates on the driver into k centers (the last step of k-means||).

    Weighted k-means++, then Lloyd steps until nothing moves, 30 at most.

    Parameters
    ----------
    candidates : ndarray of shape (n, n_features), float64, distinct rows, n >= k
    weights : ndarray of shape (n,), float64
        Weight of the rows nearest each candidate.
    k : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (k, n_features), float64
    """
    # A candidate that no row is nearest to may still be needed to reach k.
    mass = np.maximum(weights, 1e-12 * max(float(weights.max()), 1e-300))
    centers = candidates[weighted_indices(mass, 1, rng)]
    nearest = sq_distances_to_nearest(candidates, centers)
    while len(centers) < k:
        new = candidates[weighted_indices(mass * nearest, 1, rng)]
        centers = np.concatenate([centers, new])
        np.minimum(nearest, sq_distances_to_nearest(candidates, new), out=nearest)
    return lloyd_steps([Block(np.ascontiguousarray(candidates), mass)], centers, 30)


def distinct_rows(rows: np.ndarray, resolution: np.ndarray) -> np.ndarray:
    """Drop rows that repeat an earlier one up to rounding; keeps the order.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features), float64
    resolution : ndarray of shape (n_features,), float64
        Two rows closer than this in every column count as the same.
    """
    scaled = rows / np.where(resolution > 0, resolution, 1.0)
    for column in np.flatnonzero(resolution <= 0):  # numbers that differ are never close there
        scaled[:, column] = 2.0 * np.unique(rows[:, column], return_inverse=True)[1]
    # Of the rows in a cell the first alone is looked at: many copies would make too many pairs.
    _, first = np.unique(np.floor(scaled), axis=0, return_index=True)
    first.sort()
    rows, scaled = rows[first], scaled[first]
    from scipy.spatial import cKDTree  # 0.15 s to import, on the driver alone

    tree = cKDTree(scaled)
    kept = np.ones(len(rows), dtype=bool)
    n_close = tree.query_ball_point(scaled, 1.0, p=np.inf, return_length=True)
    for place in np.flatnonzero(n_close > 1):
        if kept[place]:
            close = np.array(tree.query_ball_point(scaled[place], 1.0, p=np.inf))
            kept[close[close > place]] = False
    return rows[kept]


def choose_centers(
    arrivals: Arrivals,
    centers: np.ndarray,
    k: int,
    resolution: np.ndarray,
    rng: np.random.Generator,
    sample: Sample | None = None,
    trials: int = 1,
) -> tuple[np.ndarray, float]:
    """Choose centers among arrivals: exact k-means++ draws, or each the best of several draws.

    A candidate arrived in proportion to its squared distance to the centers known when the pass
    began. Kept while a chance drawn for it once is below (distance now) / (distance then), those
    left are exact draws by squared distance to the centers so far. They are taken by time until k
    centers are found or the arrivals run out; what is left of the clock does not matter, because
    a Poisson process has no memory.

    With a sample the choice is greedy: the first few draws are judged by the cost that the sample
    would have with them. The best becomes a center; the others are not asked again, so that each
    center is chosen among fresh draws.

    Parameters
    ----------
    arrivals : Arrivals
        Of all partitions, sorted by time.
    centers : ndarray of shape (c, n_features), float64, c < k
        Centers the partitions knew.
    k : int
    resolution : ndarray of shape (n_features,), float64
        Two rows closer than this in every column count as the same.
    rng : numpy.random.Generator
    sample : Sample, optional
    trials : int, default 1
        Draws to choose each center among, with a sample; see :func:`n_trials`.

    Returns
    -------
    centers : ndarray of shape (<= k, n_features), float64
        The given centers, then the chosen ones.
    remaining : float
        Estimate of (potential now) / (potential when the pass began): a mean over the first few
        thousand arrivals, at least one part in their number.
    """
    pool = _Pool(arrivals, centers, k, resolution, rng)
    judge = None
    if sample is not None:
        is_local = k - len(centers) >= _MANY_CLUSTERS
        judge = _Judge(sample, centers, _ROWS_AROUND if is_local else len(sample.x))
    while pool.count < k:
        rows = pool.candidates(trials)
        if not len(rows):
            break
        pool.choose(0 if judge is None else judge.best_of(rows))
    return pool.centers, pool.remaining()


def n_trials(k: int) -> int:
    """Draws to choose each center among: scikit-learn's 2 + ln k, twice that up to 100 clusters."""
    return (2 if k <= _FEW_CLUSTERS else 1) * (2 + int(np.log(k)))


class _Judge:
    """Which candidate lowers the sample's cost most, as the rows around it tell.

    A new center among many takes few rows, and most of them from its own surroundings: the rows
    nearest the same anchor. So the work is that of a few thousand rows a candidate, however large
    the sample. With one anchor, for few centers, all rows tell.

    Parameters
    ----------
    sample : Sample
    centers : ndarray of shape (c, n_features), float64
        Those chosen already.
    rows_around : int
        About how many rows there are to an anchor.
    """

    def __init__(self, sample: Sample, centers: np.ndarray, rows_around: int) -> None:
        self._anchors = sample.x[::rows_around]
        self._half_sq_norms = 0.5 * sample.sq_norms[::rows_around]
        labels = np.empty(len(sample.x), dtype=np.int32)
        Scorer(self._anchors.astype(np.float64)).nearest(sample.x, labels)
        order = np.argsort(labels, kind="stable")
        self._bounds = np.searchsorted(labels[order], np.arange(len(self._anchors) + 1))
        self._sample = sample.taken(order)
        self._nearest = sq_distances_to_nearest(self._sample.x, centers).astype(sample.x.dtype)
        # Ratios are enough to tell which is best, and stay in the range of single precision.
        weight = self._sample.weight
        self._weight = (weight / weight.max()).astype(sample.x.dtype)

    def best_of(self, rows: np.ndarray) -> int:
        """Return the row with which the rows around it gain most, now one of the centers."""
        narrow = rows.astype(self._anchors.dtype)
        places = (narrow @ self._anchors.T - self._half_sq_norms).argmax(axis=1)
        best, most, now = 0, -1.0, (slice(0), self._nearest[:0])
        for place in np.unique(places):
            mine = np.flatnonzero(places == place)
            around = slice(self._bounds[place], self._bounds[place + 1])
            before = self._nearest[around]
            sq = np.minimum(self._sample.sq_distances(rows[mine], around), before)
            gains = (before - sq) @ self._weight[around]
            first = int(gains.argmax())
            if gains[first] > most:
                best, most, now = int(mine[first]), float(gains[first]), (around, sq[first])
        around, sq = now
        self._nearest[around] = sq
        return best


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
        now = np.minimum(before[some], sq_distances_to_nearest(rows[some], self.centers))
        return max(1.0 / (len(now) + 1.0), float((now / before[some]).mean()))

    def _look_at_more(self) -> None:
        # Of many centers each takes many arrivals, and a tree of them should serve many rows.
        batch = max(_BATCH, self.count)
        more = np.arange(self._ready, min(self._ready + batch, len(self._chances)))
        self._ready += len(more)
        rows = self._arrivals.rows[more]
        now = self._arrivals.sq_distances[more].copy()
        new = self._found[self._start : self.count]
        if len(new):
            np.minimum(now, sq_distances_to_nearest(rows, new), out=now)
        self._alive = np.concatenate([self._alive, more])
        self._now = np.concatenate([self._now, now])
        fresh = np.ones(len(self._alive), dtype=bool)
        # Only a row this near to a center can be a copy of it; at 0 it is no draw any more.
        gap = self._resolution
        near = now <= 16.0 * (gap @ gap) + 1e-9 * np.einsum("nd,nd->n", rows, rows)
        for place in np.flatnonzero(near & (now > 0)):
            copies = (np.abs(self.centers - rows[place]) <= gap).all(axis=1)
            fresh[len(fresh) - len(more) + place] = not copies.any()
        self._keep(fresh)

    def _keep(self, fresh: np.ndarray) -> None:
        before = self._arrivals.sq_distances[self._alive]
        kept = fresh & (self._chances[self._alive] * before < self._now)
        self._alive, self._now = self._alive[kept], self._now[kept]
