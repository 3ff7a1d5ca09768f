"""The driver's share of seeding: choosing among candidates that the partitions sent."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.differences import sq_distances_by_product
from localkmeans_spark.kernel.draws import Arrivals, sq_distances_to_nearest, weighted_indices
from localkmeans_spark.kernel.lloyd import Block, lloyd_step, means_or_kept
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.kernel.sample import Sample

# Candidates made ready at a time, at least.
_BATCH = 256
# Pairs of close rows that are listed at once.
_MANY_PAIRS = 1 << 22
# Up to here more draws for each center cost the driver little.
_FEW_CLUSTERS = 100
# From so many centers on, a draw is judged by the rows around it, about so many.
_MANY_CLUSTERS, _ROWS_AROUND = 500, 2048


def reduce_candidates(
    candidates: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator, steps: int = 30
) -> np.ndarray:
    """Cluster weighted candidates on the driver into k centers (the last step of k-means||).

    Weighted k-means++, then Lloyd steps until nothing moves or ``steps`` are done.

    Parameters
    ----------
    candidates : ndarray of shape (n, n_features), float64, distinct rows, n >= k
    weights : ndarray of shape (n,), float64
        Weight of the rows nearest each candidate.
    k : int
    rng : numpy.random.Generator
    steps : int, default 30

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
    blocks = [Block(np.ascontiguousarray(candidates), mass)]
    for _ in range(steps):
        moved = means_or_kept(*lloyd_step(blocks, centers), centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


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
    if tree.count_neighbors(tree, 1.0, p=np.inf) - len(rows) <= _MANY_PAIRS:
        kept[tree.query_pairs(r=1.0, p=np.inf, output_type="ndarray").max(axis=1)] = False
        return rows[kept]
    for place in range(len(rows)):
        if kept[place]:
            later = np.flatnonzero(kept[place + 1 :]) + place + 1
            kept[later[(np.abs(scaled[later] - scaled[place]) <= 1.0).all(axis=1)]] = False
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
        judge = (_Judge if k - len(centers) < _MANY_CLUSTERS else _LocalJudge)(sample, centers)
    while pool.count < k:
        rows = pool.candidates(trials)
        if not len(rows):
            break
        pool.choose(0 if judge is None else judge.best_of(rows))
    return pool.centers, pool.remaining()


def n_trials(k: int) -> int:
    """Draws to choose each center among: scikit-learn's 2 + ln k, twice that up to 100 clusters."""
    return (2 if k <= _FEW_CLUSTERS else 1) * (2 + int(np.log(k)))


def _sq_distances_to_nearest(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    if len(centers) < _MANY_CLUSTERS:
        return sq_distances_by_product(rows, centers).min(axis=1)
    return sq_distances_to_nearest(rows, centers)


class _Judge:
    """Which candidate lowers the sample's cost most; keeps its distances to the centers."""

    def __init__(self, sample: Sample, centers: np.ndarray) -> None:
        self._sample = sample
        self._nearest = sample.nearest_sq_distances(centers)
        # Ratios are enough to tell which is best, and stay in the range of single precision.
        self._weight = (sample.weight / sample.weight.max()).astype(sample.x.dtype)

    def best_of(self, rows: np.ndarray) -> int:
        """Return the row with which the sample costs least, now one of the centers."""
        with_each = np.minimum(self._sample.sq_distances(rows), self._nearest)
        best = int((with_each @ self._weight).argmin())
        self._nearest = with_each[best]
        return best


class _LocalJudge:
    """The same for many centers: a candidate is judged by the sample's rows nearest one anchor.

    A new center among many takes few rows, and most of them from its own surroundings. So the
    work is that of a few thousand rows a candidate, however large the sample.
    """

    def __init__(self, sample: Sample, centers: np.ndarray) -> None:
        self._anchors = sample.x[::_ROWS_AROUND]
        self._half_sq_norms = 0.5 * sample.sq_norms[::_ROWS_AROUND]
        labels = np.empty(len(sample.x), dtype=np.int32)
        Scorer(self._anchors.astype(np.float64)).nearest(sample.x, labels)
        order = np.argsort(labels, kind="stable")
        self._bounds = np.searchsorted(labels[order], np.arange(len(self._anchors) + 1))
        self._x, self._sq_norms = sample.x[order], sample.sq_norms[order]
        self._nearest = sample.nearest_sq_distances(centers)[order]
        self._weight = (sample.weight / sample.weight.max()).astype(self._x.dtype)[order]

    def best_of(self, rows: np.ndarray) -> int:
        """Return the row with which the rows around it gain most, now one of the centers."""
        narrow = rows.astype(self._x.dtype)
        places = (narrow @ self._anchors.T - self._half_sq_norms).argmax(axis=1)
        gains, found = [], []
        for row, place in zip(narrow, places, strict=True):
            around = slice(self._bounds[place], self._bounds[place + 1])
            sq = self._x[around] @ (-2.0 * row)
            sq += self._sq_norms[around]
            sq += row @ row
            np.maximum(sq, 0.0, out=sq)
            np.minimum(sq, self._nearest[around], out=sq)
            gains.append(float((self._nearest[around] - sq) @ self._weight[around]))
            found.append((around, sq))
        best = int(np.argmax(gains))
        around, sq = found[best]
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
        now = np.minimum(before[some], _sq_distances_to_nearest(rows[some], self.centers))
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
            np.minimum(now, _sq_distances_to_nearest(rows, new), out=now)
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
