"""Initial centers, in the shared frame, by a handful of passes over the partitions."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.fit import requests
from localkmeans_spark.fit.held_rows import PASS_BYTES, draw_held, driver_holds
from localkmeans_spark.fit.one_thread import one_blas_thread
from localkmeans_spark.fit.requests import Asking
from localkmeans_spark.kernel.draws import (
    HELD,
    SAMPLE,
    SEARCH,
    Arrivals,
    generator,
    weighted_indices,
)
from localkmeans_spark.kernel.nearest import are_mixed_up
from localkmeans_spark.kernel.sample import (
    ROUNDS,
    STEPS,
    SWAP_STEPS,
    Sample,
    improve_on_sample,
    rows_in_sample,
    settle_on_sample,
)
from localkmeans_spark.kernel.seeding import (
    choose_centers,
    distinct_rows,
    n_trials,
    reduce_candidates,
)

logger = logging.getLogger("localkmeans_spark")

# Candidates a pass asks for, per center still missing: clusters found early take most of the
# potential with them, so later centers cost more of them, and a greedy choice uses up several.
_CANDIDATES, _LEAST_MISSING = 64, 4
# Passes without a new center before the rows left are taken to be copies of the centers.
_FRUITLESS_PASSES = 3
# Rows of the greedy choice's sample, at least; more for many clusters, fewer if they are wide.
_SAMPLE_ROWS, _ROWS_PER_CLUSTER = 20_000, 20
# Multiplications of some three seconds: the least work that may go into improving centers on the
# sample; and from where on the driver says what it is doing.
_LONG_WORK = 1 << 31

# All rows and their weights, where the driver holds them.
Held = tuple[np.ndarray, np.ndarray]


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
    data: DataSummary, k: int, init_mode: str, init_steps: int, seed: int
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
    """
    if init_mode == "random":
        return (yield from _random(data, k, seed))
    held: Held | None = None
    if driver_holds(data, k, passes=0):
        held = yield requests.sample(data)
        distinct = distinct_rows(held[0], data.resolution)
        if len(distinct) <= k:
            return Seeding(distinct, 1)
    first = _first_center(data, seed)
    if init_mode == "k-means||":
        found = yield from _parallel(data, first, k, init_steps, seed, held)
    else:
        is_greedy = init_mode == "k-means++"
        found = yield from draw_by_distance(data, first, k, seed, held=held, is_greedy=is_greedy)
    return found._replace(passes=found.passes + (held is not None))


def _first_center(data: DataSummary, seed: int) -> np.ndarray:
    """Choose among the rows that the partitions drew while they were read; shape (1, d).

    A partition is chosen by its weight and had drawn its row by weight: the law is uniform over
    the rows (weighted by their weights).
    """
    mass = np.array([item.sum_weights for item in data.statistics])
    chosen = data.statistics[int(weighted_indices(mass, 1, generator(seed, 0))[0])]
    return (chosen.first_rows[seed] + (chosen.origin - data.frame.mean))[None, :]


def _wanted(missing: int, n_features: int) -> int:
    affordable = max(missing, PASS_BYTES // (8 * n_features))
    return min(_CANDIDATES * max(missing, _LEAST_MISSING), affordable)


def draw_by_distance(
    data: DataSummary,
    centers: np.ndarray,
    k: int,
    seed: int,
    passes: int = 0,
    *,
    held: Held | None = None,
    is_greedy: bool = False,
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
    passes : int, default 0
        Passes made so far; they number the random streams.
    held : pair of ndarray, optional
        All rows and their weights, if the driver has them already.
    is_greedy : bool, default False
        Choose each center among several draws, judged on a sample the driver holds, and improve
        the centers on that sample. False is the law of Algorithm 2.
    potential : float, optional
        A known upper bound of the inertia of ``centers``.
    """
    if potential is None:
        # Of the first center alone: at least that of all.
        potential = data.inertia_of(centers[0])
    sample: Sample | None = None
    fruitless, draws = 0, passes
    while len(centers) < k and potential > 0 and fruitless < _FRUITLESS_PASSES:
        draws += 1
        wanted = _wanted(k - len(centers), data.n_features)
        if held is None:
            passes += 1
            if driver_holds(data, k, passes - 1):
                held, sample = (yield requests.sample(data)), None
        if held is not None:
            found = draw_held(*held, centers, wanted, generator(seed, draws, HELD))
            if is_greedy and sample is None:
                sample = Sample(*held, data.dtype)
        else:
            ask = requests.arrivals(data, centers, wanted / potential, seed, draws, wanted)
            if is_greedy and sample is None:
                size = _sample_size(k, data.n_features)
                both = requests.together([ask, requests.sample(data, size, seed, SAMPLE)])
                found, drawn = yield both
                sample = Sample(drawn[0], drawn[1], data.dtype)
            else:
                found = yield ask
        before = len(centers)
        if sample is None:
            rng = generator(seed, draws)
            centers, remaining = choose_centers(found, centers, k, data.resolution, rng)
        else:
            with one_blas_thread:
                joined = sample.with_arrivals(found, centers) if held is None else sample
                # Rows far away that led to the first centers still count when the last are chosen.
                if 4 * joined.x.size <= PASS_BYTES:
                    sample = joined
                centers, remaining = _choose_greedily(
                    found, centers, k, joined, data, (seed, draws)
                )
        fruitless = fruitless + 1 if len(centers) == before else 0
        potential = found.potential * remaining
    return Seeding(centers, passes)


def _random(data: DataSummary, k: int, seed: int) -> Asking[Seeding]:
    """Draw rows without replacement; copies of a row are replaced by draws by distance."""
    rows = yield requests.random_rows(data, k, seed, 1)
    distinct = distinct_rows(rows, data.resolution)
    if len(distinct) == k:
        return Seeding(distinct, 1)
    return (yield from draw_by_distance(data, distinct, k, seed, 1))


def _parallel(
    data: DataSummary,
    first: np.ndarray,
    k: int,
    init_steps: int,
    seed: int,
    held: Held | None,
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


def _sample_size(k: int, n_features: int) -> int:
    return min(max(_SAMPLE_ROWS, _ROWS_PER_CLUSTER * k), rows_in_sample(n_features))


def _choose_greedily(
    found: Arrivals,
    centers: np.ndarray,
    k: int,
    sample: Sample,
    data: DataSummary,
    key: tuple[int, int],
) -> tuple[np.ndarray, float]:
    """Choose among a pass's candidates by the sample's cost; with all k, improve them on it."""
    missing = k - len(centers)
    # Of wide rows the driver can hold few candidates: better one draw a center than many passes.
    affordable = _wanted(missing, data.n_features) // (4 * missing)
    trials = max(1, min(n_trials(k), affordable))
    if sample.x.size * trials * missing >= _LONG_WORK:
        logger.info(
            "seeding: the driver chooses up to %d centers among %d candidates",
            missing, len(found.times),
        )  # fmt: skip
    rng = generator(*key, SEARCH)
    made, remaining = choose_centers(found, centers, k, data.resolution, rng, sample, trials)
    # Steps on the sample that the fit's own steps would not outdo in the same time.
    work = max(_LONG_WORK, data.n_points * data.n_features * k)
    steps = work // max(1, sample.x.size * k)
    # Rows of unit length must stay so: means of cosine's rows would not.
    may_move = not data.frame.is_cosine
    if may_move and len(made) == k:
        made = settle_on_sample(made, sample, min(STEPS, steps))
    if are_mixed_up(made, sample.x.dtype):
        return _choose_greedily(found, centers, k, sample.in_float64(), data, key)
    rounds = steps // (2 * SWAP_STEPS)
    # Too few rows for each cluster would be fitted better than those they stand for.
    if rounds and len(made) == k and len(sample.x) >= _ROWS_PER_CLUSTER * k:
        made = improve_on_sample(
            made, sample, rng, rounds=min(ROUNDS, rounds), steps=SWAP_STEPS if may_move else 0
        )
    return made, remaining
