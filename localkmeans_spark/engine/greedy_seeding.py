"""Greedy k-means++: exact draws in a handful of passes, judged on a sample the driver holds."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.questions import AskArrivals, AskSample, AskTogether, Dialogue
from localkmeans_spark.kernel.draws import Arrivals, generator
from localkmeans_spark.kernel.greedy import Sample, greedy_centers, n_trials, settle_on_sample

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
# Key of the sample's random stream, and first key of the walks': no partition has such a number.
_SAMPLE_KEY, _WALK_KEY = 2**32 - 2, 2**32 - 1


def draw_greedily(
    data: DataSummary, first: np.ndarray, k: int, seed: int, walks: int = _WALKS
) -> Dialogue[tuple[np.ndarray, int]]:
    """Choose k centers among draws by squared distance, greedily by a sample's cost.

    Parameters
    ----------
    data : DataSummary
    first : ndarray of shape (1, n_features), float64
        A row drawn uniformly, in the shared frame.
    k : int
    seed : int
    walks : int

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
            centers, remaining = _best_walk(found, centers, k, sample, data, (seed, passes), walks)
        fruitless = fruitless + 1 if len(centers) == before else 0
        potential = found.potential * remaining
    return centers, passes


def _best_walk(
    found: Arrivals,
    centers: np.ndarray,
    k: int,
    sample: Sample,
    data: DataSummary,
    key: tuple[int, int],
    walks: int,
) -> tuple[np.ndarray, float]:
    """Walk the candidates once or several times; keep most centers, then the least cost."""
    together = sample.with_arrivals(found, centers)
    # Rows of unit length must stay so: means of cosine's rows would not.
    steps = 0 if data.frame.unit_about is not None else _STEPS_ON_SAMPLE
    missing = k - len(centers)
    # Of wide rows the driver can hold few candidates: better one draw a center than many passes.
    trials = max(1, min(n_trials(k), _wanted(missing, data.n_features) // (4 * missing)))
    work = max(1, together.x.size * trials * missing)
    best: tuple[tuple[int, float], np.ndarray, float] | None = None
    for walk in range(max(1, min(walks, _WALK_WORK // work))):
        rng = generator(*key, _WALK_KEY, walk)
        made, remaining = greedy_centers(found, centers, k, together, data.resolution, rng, trials)
        if len(made) == k:
            made = settle_on_sample(made, together, steps)
        rank = (-len(made), together.cost(made))
        if best is None or rank < best[0]:
            best = (rank, made, remaining)
    assert best is not None
    return best[1], best[2]


def _wanted(missing: int, n_features: int) -> int:
    affordable = max(missing, _CANDIDATE_BYTES // (8 * n_features))
    return min(max(_CANDIDATES_PER_CENTER * missing, _MIN_CANDIDATES), affordable)


def _sample_size(k: int, n_features: int) -> int:
    affordable = max(1, _SAMPLE_BYTES // (4 * n_features))
    return min(max(_SAMPLE_ROWS, _ROWS_PER_CLUSTER * k), affordable)
