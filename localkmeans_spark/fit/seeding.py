"""Initial centers, in the shared frame, by a handful of passes over the partitions."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.fit import requests
from localkmeans_spark.fit.held_rows import HeldRows, driver_holds
from localkmeans_spark.fit.one_thread import one_blas_thread
from localkmeans_spark.fit.requests import Asking
from localkmeans_spark.kernel.draws import Arrivals, generator, weighted_indices
from localkmeans_spark.kernel.sample import Sample, improve_on_sample, settle_on_sample
from localkmeans_spark.kernel.seeding import (
    accept_in_time_order,
    distinct_rows,
    greedy_centers,
    n_trials,
    reduce_candidates,
)

logger = logging.getLogger("localkmeans_spark")

# Candidates a pass asks for, per center still missing: clusters found early take most of the
# potential with them, so later centers cost more of them, and a greedy choice uses up several.
_CANDIDATES, _GREEDY_CANDIDATES, _MIN_CANDIDATES = 16, 64, 256
# Memory for one pass's candidates on the driver, unless one a missing center needs more.
_CANDIDATE_BYTES = 64 << 20
# Passes without a new center before the rows left are taken to be copies of the centers.
_FRUITLESS_PASSES = 3
# Times the driver walks the candidates of a pass for Algorithm 2 where restarts compete (each time
# with other chances, of which the best is kept), as far as its work in multiplications allows. On
# CIFAR-10 embeddings, k = 10, the seeds that find all clusters go from 4 to 8 in 10.
_RESTART_WALKS, _RESTART_WALK_WORK = 16, 1 << 28
# Rows of the greedy choice's sample, at least; more for many clusters, fewer if they are wide.
_SAMPLE_ROWS, _ROWS_PER_CLUSTER, _SAMPLE_BYTES = 20_000, 20, 16 << 20
# Lloyd steps on the sample: the rounds that follow begin where its rows have settled.
_STEPS_ON_SAMPLE = 10
# Greedy walks over the candidates, of which the best is kept, as far as work allows.
_WALKS, _WALK_WORK = 3, 1 << 29
# The best walk's centers are exchanged for rows of the sample: in up to so many rounds, as work
# allows, of at least so many tries, with so many Lloyd steps after.
_SWAP_ROUNDS, _SWAP_TRIES, _SWAP_STEPS, _SWAP_WORK = 4, 128, 3, 1 << 31
# Times that all this is done, of which the best is kept, where restarts compete.
_SEARCHES, _SEARCH_WORK = 3, 1 << 32
# From so many multiplications on (some three seconds) the driver says what it is doing.
_TOLD_WORK = 1 << 31
# Keys of the driver's random streams; no partition has such a number.
_HELD_KEY, _SAMPLE_KEY, _WALK_KEY, _SWAP_KEY = 2**32 - 4, 2**32 - 3, 2**32 - 2, 2**32 - 1


class Seeding(NamedTuple):
    """Initial centers and what they took.

    Attributes
    ----------
    centers : ndarray of shape (<= k, n_features), float64
        Fewer than k when there are fewer distinct rows.
    passes : int
        Passes over the data after the first one.
    """

    centers: np.ndarray
    passes: int


def seed_centers(
    data: DataSummary,
    k: int,
    init_mode: str,
    init_steps: int,
    seed: int,
    is_thorough: bool = False,
) -> Asking[Seeding]:
    """Make initial centers by asking the partitions.

    Parameters
    ----------
    data : DataSummary
        Made with ``seed`` among the seeds of its first rows.
    k : int
    init_mode : str
        ``"k-means++"`` (greedy), ``"local-k-means++"`` (Algorithm 2), ``"k-means||"`` or
        ``"random"``.
    init_steps : int
        Steps of ``k-means||``.
    seed : int
    is_thorough : bool, default False
        Choose several times among a pass's candidates; what comes first is the choice of False.
    """
    if init_mode == "random":
        return (yield from _random(data, k, seed))
    held: HeldRows | None = None
    if driver_holds(data, k, passes=0):
        held = HeldRows(*(yield requests.all_rows(data)))
        distinct = distinct_rows(held.rows, data.resolution)
        if len(distinct) <= k:
            return Seeding(distinct, 1)
    first = _first_center(data, seed)
    if init_mode == "k-means++":
        found = yield from _draw_greedily(data, first, k, seed, held, is_thorough)
    elif init_mode == "k-means||":
        found = yield from _parallel(data, first, k, init_steps, seed, held)
    else:
        found = yield from draw_by_distance(
            data, first, k, seed, 0, held=held, is_thorough=is_thorough
        )
    return found._replace(passes=found.passes + (held is not None))


def _first_center(data: DataSummary, seed: int) -> np.ndarray:
    """Choose among the rows that the partitions drew while they were read; shape (1, d).

    A partition is chosen by its weight and had drawn its row by weight: the law is uniform over
    the rows (weighted by their weights).
    """
    mass = np.array([item.sum_weights for item in data.statistics])
    chosen = data.statistics[int(weighted_indices(mass, 1, generator(seed, 0))[0])]
    return (chosen.first_rows[seed] + (chosen.origin - data.frame.mean))[None, :]


def _wanted(missing: int, n_features: int, each: int) -> int:
    affordable = max(missing, _CANDIDATE_BYTES // (8 * n_features))
    return min(max(each * missing, _MIN_CANDIDATES), affordable)


def draw_by_distance(
    data: DataSummary,
    centers: np.ndarray,
    k: int,
    seed: int,
    passes: int,
    *,
    held: HeldRows | None = None,
    is_thorough: bool = False,
    potential: float | None = None,
) -> Asking[Seeding]:
    """Draw centers by Algorithm 2 until there are k, in few passes (Poisson clocks, rejection).

    Parameters
    ----------
    data : DataSummary
    centers : ndarray of shape (c, n_features), float64, c >= 1
        Centers chosen already.
    k : int
    seed : int
    passes : int
        Passes made so far; they number the random streams.
    held : HeldRows, optional
        All rows, if the driver has them already.
    is_thorough : bool, default False
        Walk a pass's candidates several times and keep the walk after which the estimated
        potential is lowest. False is the law of Algorithm 2.
    potential : float, optional
        A known upper bound of the inertia of ``centers``.
    """
    if potential is None:
        # Of the first center alone: at least that of all.
        potential = data.inertia_of(centers[0])
    fruitless, draws = 0, passes
    while len(centers) < k and potential > 0 and fruitless < _FRUITLESS_PASSES:
        draws += 1
        wanted = _wanted(k - len(centers), centers.shape[1], _CANDIDATES)
        if held is None and driver_holds(data, k, passes):
            passes += 1
            held = HeldRows(*(yield requests.all_rows(data)))
        if held is not None:
            found = held.arrivals(centers, wanted, generator(seed, draws, _HELD_KEY))
        else:
            passes += 1
            found = yield requests.arrivals(data, centers, wanted / potential, seed, draws, wanted)
        before = len(centers)
        walks = _RESTART_WALKS if is_thorough else 1
        centers, remaining = _best_walk(found, centers, k, data, (seed, draws), walks)
        fruitless = fruitless + 1 if len(centers) == before else 0
        potential = found.potential * remaining
    return Seeding(centers, passes)


def _best_walk(
    found: Arrivals,
    centers: np.ndarray,
    k: int,
    data: DataSummary,
    key: tuple[int, int],
    walks: int,
) -> tuple[np.ndarray, float]:
    """Walk the candidates once or several times; keep most centers, then least potential."""
    best = accept_in_time_order(found, centers, k, data.resolution, generator(*key))
    affordable = _RESTART_WALK_WORK // max(1, found.rows.size * (k - len(centers)))
    for walk in range(1, min(walks, affordable)):
        rng = generator(*key, 2**32 - 1, walk)
        other = accept_in_time_order(found, centers, k, data.resolution, rng)
        if (-len(other[0]), other[1]) < (-len(best[0]), best[1]):
            best = other
    return best


def _random(data: DataSummary, k: int, seed: int) -> Asking[Seeding]:
    """Draw rows without replacement; copies of a row are replaced by draws by distance."""
    rows = yield requests.random_rows(data, k, seed, 1)
    distinct = distinct_rows(rows, data.resolution)
    if len(distinct) == k:
        return Seeding(distinct, 1)
    return (yield from draw_by_distance(data, distinct, k, seed, passes=1))


def _parallel(
    data: DataSummary,
    first: np.ndarray,
    k: int,
    init_steps: int,
    seed: int,
    held: HeldRows | None,
) -> Asking[Seeding]:
    """k-means|| (Bahmani et al. 2012): oversample by distance, then cluster the candidates.

    Each step adds about 2k rows, each with probability proportional to its squared distance to
    the candidates so far; rows then weigh the candidates, and the driver clusters them.
    """
    candidates = first
    potential = data.inertia_of(first[0])
    passes = 0
    for _ in range(init_steps):
        if potential <= 0:
            break
        passes += 1
        # The potential is only known to be about this large, so the clocks run four times as
        # long as should be needed; the pass itself then says where to stop.
        found = yield requests.arrivals(data, candidates, 8.0 * k / potential, seed, passes, 8 * k)
        if found.potential <= 0:
            break  # every row is a candidate already
        kept = found.times <= 2.0 * k / found.potential
        together = np.concatenate([candidates, found.rows[kept]])
        candidates = distinct_rows(together, data.resolution)
        potential = found.potential
    if len(candidates) < k:
        return (yield from draw_by_distance(data, candidates, k, seed, passes, held=held))
    weights = yield requests.weights_of(data, candidates)
    centers = reduce_candidates(candidates, weights, k, generator(seed, passes + 1))
    return Seeding(centers, passes + 1)


def _draw_greedily(
    data: DataSummary,
    first: np.ndarray,
    k: int,
    seed: int,
    held: HeldRows | None,
    is_thorough: bool,
) -> Asking[Seeding]:
    """Greedy k-means++: exact draws by squared distance, judged on a sample the driver holds."""
    centers, passes, draws, fruitless = first, 0, 0, 0
    potential = data.inertia_of(first[0])
    sample: Sample | None = None
    while len(centers) < k and potential > 0 and fruitless < _FRUITLESS_PASSES:
        draws += 1
        wanted = _wanted(k - len(centers), data.n_features, _GREEDY_CANDIDATES)
        passes += held is None
        if held is None and driver_holds(data, k, passes - 1):
            held = HeldRows(*(yield requests.all_rows(data)))
            sample = None
        if held is not None and sample is None:
            sample = Sample(held.rows, held.weights, data.dtype)
        ask = requests.arrivals(data, centers, wanted / potential, seed, draws, wanted)
        if held is not None:
            found = held.arrivals(centers, wanted, generator(seed, draws, _HELD_KEY))
        elif sample is None:
            size = _sample_size(k, data.n_features)
            both = requests.together([ask, requests.sample(data, size, seed, _SAMPLE_KEY)])
            found, sample = yield both
        else:
            found = yield ask
        assert sample is not None
        before = len(centers)
        with one_blas_thread:
            joined = sample if held is not None else sample.with_arrivals(found, centers)
            # Rows far away that led to the first centers still count when the last are chosen.
            if 4 * joined.x.size <= _CANDIDATE_BYTES:
                sample = joined
            choice = _Choice(found, centers, k, joined, data, (seed, draws))
            centers, remaining = choice.make(is_thorough)
        fruitless = fruitless + 1 if len(centers) == before else 0
        potential = found.potential * remaining
    return Seeding(centers, passes)


def _sample_size(k: int, n_features: int) -> int:
    affordable = max(1, _SAMPLE_BYTES // (4 * n_features))
    return min(max(_SAMPLE_ROWS, _ROWS_PER_CLUSTER * k), affordable)


class _Found(NamedTuple):
    """Centers, and the share of the potential they leave."""

    centers: np.ndarray
    remaining: float


class _Choice:
    """How a pass's candidates become centers."""

    def __init__(
        self,
        found: Arrivals,
        centers: np.ndarray,
        k: int,
        sample: Sample,
        data: DataSummary,
        key: tuple[int, int],
    ) -> None:
        self._found, self._centers, self._k, self._sample = found, centers, k, sample
        self._resolution = data.resolution
        self._key = key
        # Rows of unit length must stay so: means of cosine's rows would not.
        self._may_move = data.frame.unit_about is None
        missing = k - len(centers)
        # Of wide rows the driver can hold few candidates: better one draw a center than many
        # passes.
        affordable = _wanted(missing, data.n_features, _GREEDY_CANDIDATES) // (4 * missing)
        self._trials = max(1, min(n_trials(k), affordable))
        self._walk_work = max(1, sample.x.size * self._trials * missing)
        # Lloyd steps on the sample that the fit's own steps would not outdo in the same time.
        step_work = max(1, sample.x.size * k)
        self._step_work, self._fit_work = step_work, data.n_points * data.n_features * k
        self._steps = min(_STEPS_ON_SAMPLE, max(_SWAP_WORK, self._fit_work) // step_work)

    def make(self, is_thorough: bool) -> tuple[np.ndarray, float]:
        """Return the given centers with the new ones, and the share of the potential left."""
        if self._walk_work >= _TOLD_WORK:
            logger.info(
                "seeding: the driver chooses up to %d centers among %d candidates",
                self._k - len(self._centers), len(self._found.times),
            )  # fmt: skip
        searches = max(1, min(_SEARCHES, _SEARCH_WORK // self._walk_work)) if is_thorough else 1
        best = self._best_of([self._search(number) for number in range(searches)])
        return best.centers, best.remaining

    def _best_of(self, found: list[_Found]) -> _Found:
        """Most centers first, then the least cost on the sample."""
        if len(found) == 1:  # with many clusters a cost is dear
            return found[0]
        return min(found, key=lambda it: (-len(it.centers), self._sample.cost(it.centers)))

    def _search(self, number: int) -> _Found:
        """Walk the candidates once or several times; improve the best walk's centers."""
        walks = max(1, min(_WALKS, _WALK_WORK // self._walk_work))
        best = self._best_of([self._walk(number, walk) for walk in range(walks)])
        # Too few rows for each cluster would be fitted better than those they stand for.
        enough = len(self._sample.x) >= _ROWS_PER_CLUSTER * self._k
        rounds = min(_SWAP_ROUNDS, max(_SWAP_WORK, self._fit_work) // (5 * self._step_work))
        if not 1 < len(best.centers) == self._k or not enough or not rounds:
            return best
        made = improve_on_sample(
            best.centers,
            self._sample,
            generator(*self._key, _SWAP_KEY, number),
            rounds=rounds,
            tries=max(_SWAP_TRIES, self._k),
            steps=_SWAP_STEPS if self._may_move else 0,
        )
        return _Found(made, best.remaining)

    def _walk(self, search: int, walk: int) -> _Found:
        rng = generator(*self._key, _WALK_KEY, search, walk)
        made, remaining = greedy_centers(
            self._found, self._centers, self._k, self._sample, self._resolution, rng, self._trials
        )
        if self._may_move and len(made) == self._k:
            made = settle_on_sample(made, self._sample, self._steps)
        return _Found(made, remaining)
