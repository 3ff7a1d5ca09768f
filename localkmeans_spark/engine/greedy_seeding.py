"""Greedy k-means++: exact draws in a handful of passes, judged on a sample the driver holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.questions import AskArrivals, AskSample, AskTogether, Dialogue
from localkmeans_spark.kernel.draws import Arrivals, generator
from localkmeans_spark.kernel.greedy import greedy_centers, n_trials
from localkmeans_spark.kernel.sample import Sample, settle_on_sample
from localkmeans_spark.kernel.swaps import improve_on_sample

# Rows of the sample, at least; more for many clusters, fewer if they are wide.
_SAMPLE_ROWS, _ROWS_PER_CLUSTER, _SAMPLE_BYTES = 20_000, 20, 16 << 20
# Candidates a pass asks for, per center still missing; each choice uses up several.
_CANDIDATES_PER_CENTER = 64
_MIN_CANDIDATES = 256
_CANDIDATE_BYTES = 64 << 20
# Passes without a new center before the rows left are taken to be copies of the centers.
_FRUITLESS_PASSES = 3
# Lloyd steps on the sample: the rounds that follow begin where its rows have settled.
_STEPS_ON_SAMPLE = 10
# Walks over the candidates, of which the best is kept, as far as the driver's work (in
# multiplications) allows: few clusters are drawn several times, many once.
_WALKS, _WALK_WORK = 3, 1 << 29
# The best walk's centers are exchanged for rows of the sample: in up to so many rounds, as work
# allows, of at least so many tries, with so many Lloyd steps after.
_SWAP_ROUNDS, _SWAP_TRIES, _SWAP_STEPS, _SWAP_WORK = 4, 128, 3, 1 << 31
# Times that all this is done, of which the best is kept, where several are wanted and affordable.
_SEARCHES, _SEARCH_WORK = 3, 1 << 32
# Keys of random streams: the sample's, the walks' and the exchanges'. No partition has such a
# number.
_SAMPLE_KEY, _WALK_KEY, _SWAP_KEY = 2**32 - 3, 2**32 - 2, 2**32 - 1


def draw_greedily(
    data: DataSummary, first: np.ndarray, k: int, seed: int, is_thorough: bool = False
) -> Dialogue[tuple[np.ndarray, int]]:
    """Choose k centers among draws by squared distance, greedily by a sample's cost.

    Parameters
    ----------
    data : DataSummary
    first : ndarray of shape (1, n_features), float64
        A row drawn uniformly, in the shared frame.
    k : int
    seed : int
    is_thorough : bool, default False
        Search several times among a pass's candidates.

    Yields
    ------
    Question

    Returns
    -------
    centers : ndarray of shape (<= k, n_features), float64
        Fewer than k when there are fewer distinct rows.
    passes : int
    """
    centers, passes, fruitless = first, 0, 0
    potential = data.sum_sq + data.sum_weights * float(first[0] @ first[0])
    sample: Sample | None = None
    while len(centers) < k and potential > 0 and fruitless < _FRUITLESS_PASSES:
        passes += 1
        wanted = _wanted(k - len(centers), data.n_features)
        ask = AskArrivals(centers, wanted / potential, seed, passes, wanted)
        if sample is None:
            size = _sample_size(k, data.n_features)
            both = AskTogether((ask, AskSample(size, seed, _SAMPLE_KEY)))
            found, sample = yield both
        else:
            found = yield ask
        before = len(centers)
        # One thread: products split among threads round differently from one driver to another.
        with threadpool_limits(limits=1, user_api="blas"):
            joined = sample.with_arrivals(found, centers)
            # Rows far away that led to the first centers still count when the last are chosen.
            if 4 * joined.x.size <= _CANDIDATE_BYTES:
                sample = joined
            choice = _Choice(found, centers, k, joined, data, (seed, passes))
            centers, remaining = choice.make(is_thorough)
        fruitless = fruitless + 1 if len(centers) == before else 0
        potential = found.potential * remaining
    return centers, passes


class _Found(NamedTuple):
    """Centers, what they cost on the sample, and the share of the potential they leave."""

    centers: np.ndarray
    cost: float
    remaining: float

    @property
    def rank(self) -> tuple[int, float]:
        """Most centers first, then the least cost."""
        return -len(self.centers), self.cost


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
        affordable = _wanted(missing, data.n_features) // (4 * missing)
        self._trials = max(1, min(n_trials(k), affordable))
        self._walk_work = max(1, sample.x.size * self._trials * missing)

    def make(self, is_thorough: bool) -> tuple[np.ndarray, float]:
        """Return the given centers with the new ones, and the share of the potential left."""
        searches = max(1, min(_SEARCHES, _SEARCH_WORK // self._walk_work)) if is_thorough else 1
        best = min((self._search(number) for number in range(searches)), key=lambda it: it.rank)
        return best.centers, best.remaining

    def _search(self, number: int) -> _Found:
        """Walk the candidates once or several times; improve the best walk's centers."""
        walks = max(1, min(_WALKS, _WALK_WORK // self._walk_work))
        best = min((self._walk(number, walk) for walk in range(walks)), key=lambda it: it.rank)
        # Too few rows for each cluster would be fitted better than those they stand for.
        enough = len(self._sample.x) >= _ROWS_PER_CLUSTER * self._k
        if not 1 < len(best.centers) == self._k or not enough:
            return best
        affordable = _SWAP_WORK // (5 * self._sample.x.size * self._k)
        made = improve_on_sample(
            best.centers,
            self._sample,
            generator(*self._key, _SWAP_KEY, number),
            rounds=max(1, min(_SWAP_ROUNDS, affordable)),
            tries=max(_SWAP_TRIES, self._k),
            steps=_SWAP_STEPS if self._may_move else 0,
        )
        return _Found(made, self._sample.cost(made), best.remaining)

    def _walk(self, search: int, walk: int) -> _Found:
        rng = generator(*self._key, _WALK_KEY, search, walk)
        made, remaining = greedy_centers(
            self._found, self._centers, self._k, self._sample, self._resolution, rng, self._trials
        )
        if self._may_move and len(made) == self._k:
            made = settle_on_sample(made, self._sample, _STEPS_ON_SAMPLE)
        return _Found(made, self._sample.cost(made), remaining)


def _wanted(missing: int, n_features: int) -> int:
    affordable = max(missing, _CANDIDATE_BYTES // (8 * n_features))
    return min(max(_CANDIDATES_PER_CENTER * missing, _MIN_CANDIDATES), affordable)


def _sample_size(k: int, n_features: int) -> int:
    affordable = max(1, _SAMPLE_BYTES // (4 * n_features))
    return min(max(_SAMPLE_ROWS, _ROWS_PER_CLUSTER * k), affordable)
