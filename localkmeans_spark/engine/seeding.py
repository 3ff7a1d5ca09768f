"""Initial centers, in the shared frame, by a handful of passes over the machines."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.greedy_seeding import draw_greedily
from localkmeans_spark.engine.questions import (
    AskArrivals,
    AskOneRowEach,
    AskRandomRows,
    AskWeights,
    Dialogue,
    Question,
    hold_dialogues,
)
from localkmeans_spark.kernel.draws import Arrivals, generator, weighted_indices
from localkmeans_spark.kernel.seeding import (
    accept_in_time_order,
    distinct_rows,
    reduce_candidates,
)

# Candidates a pass asks for, per center still missing. Clusters found early take most of the
# potential with them, so later centers cost more candidates; 16 lets most data end in 2 passes.
_CANDIDATES_PER_CENTER = 16
_MIN_CANDIDATES = 256
# Memory for one pass's candidates on the driver, unless one a missing center needs more.
_CANDIDATE_BYTES = 64 << 20
# Passes without a new center before the rows left are taken to be copies of the centers.
_FRUITLESS_PASSES = 3
# Part of a random stream's key that no partition number reaches.
_OTHER_WALKS = 2**32 - 1
# Driver's work (multiplications) that choosing among several walks may cost in one pass.
_WALK_WORK = 1 << 28


class Seeding(NamedTuple):
    """Initial centers and what they took.

    Attributes
    ----------
    centers : ndarray of shape (<= k, n_features), float64
        Fewer than k when there are fewer distinct rows.
    passes : int
        Spark jobs over the data after the ingest pass.
    """

    centers: np.ndarray
    passes: int


class Machines(Protocol):
    """Who answers questions: ``SparkMachines``, or machines in one process."""

    data: DataSummary

    def answer(self, questions: list[Question]) -> list[Any]:
        """Answer questions in their order."""


def seed_centers(machines: Machines, k: int, init_mode: str, init_steps: int, seed: int) -> Seeding:
    """Make the initial centers of one run; see :func:`seeding_dialogue`."""
    dialogue = seeding_dialogue(machines.data, k, init_mode, init_steps, seed)
    return hold_dialogues([dialogue], machines.answer)[0]


def seeding_dialogue(
    data: DataSummary, k: int, init_mode: str, init_steps: int, seed: int, walks: int = 1
) -> Dialogue[Seeding]:
    """Make initial centers by asking the machines.

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
    walks : int, default 1
        See :func:`draw_by_distance`; greedy draws are chosen thoroughly if it is above 1.

    Yields
    ------
    Question

    Returns
    -------
    Seeding
    """
    if init_mode == "random":
        return (yield from _random(data, k, seed))
    first = _first_center(data, seed)
    if init_mode == "k-means++":
        return Seeding(*(yield from draw_greedily(data, first, k, seed, is_thorough=walks > 1)))
    if init_mode == "k-means||":
        return (yield from _parallel(data, first, k, init_steps, seed))
    return (yield from draw_by_distance(data, first, k, seed, passes=0, walks=walks))


def _first_center(data: DataSummary, seed: int) -> np.ndarray:
    """Choose among the rows that the machines drew while they were read; shape (1, d).

    A machine is chosen by its weight and had drawn its row by weight: the law is uniform over
    the rows (weighted by their weights).
    """
    mass = np.array([item.sum_weights for item in data.statistics])
    chosen = data.statistics[int(weighted_indices(mass, 1, generator(seed, 0))[0])]
    return (chosen.first_rows[seed] + (chosen.origin - data.frame.mean))[None, :]


def _potential_bound(data: DataSummary, centers: np.ndarray) -> float:
    """Potential of the first of ``centers`` alone, in closed form: at least that of all."""
    return data.sum_sq + data.sum_weights * float(centers[0] @ centers[0])


def draw_by_distance(
    data: DataSummary,
    centers: np.ndarray,
    k: int,
    seed: int,
    passes: int,
    walks: int = 1,
    potential: float | None = None,
) -> Dialogue[Seeding]:
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
    walks : int, default 1
        Times the driver walks the candidates of a pass, each time with other chances; it keeps
        the walk after which the estimated potential is lowest. 1 is the law of Algorithm 2.
    potential : float, optional
        A known upper bound of the inertia of ``centers``.

    Yields
    ------
    AskArrivals

    Returns
    -------
    Seeding
    """
    if potential is None:
        potential = _potential_bound(data, centers)
    fruitless = 0
    while len(centers) < k and potential > 0 and fruitless < _FRUITLESS_PASSES:
        passes += 1
        wanted = _wanted(k - len(centers), centers.shape[1])
        found = yield AskArrivals(centers, wanted / potential, seed, passes, wanted)
        before = len(centers)
        centers, remaining = _best_walk(found, centers, k, data, (seed, passes), walks)
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
    affordable = _WALK_WORK // max(1, found.rows.size * (k - len(centers)))
    for walk in range(1, min(walks, affordable)):
        rng = generator(*key, _OTHER_WALKS, walk)
        other = accept_in_time_order(found, centers, k, data.resolution, rng)
        if (-len(other[0]), other[1]) < (-len(best[0]), best[1]):
            best = other
    return best


def _wanted(missing: int, n_features: int) -> int:
    affordable = max(missing, _CANDIDATE_BYTES // (8 * n_features))
    return min(max(_CANDIDATES_PER_CENTER * missing, _MIN_CANDIDATES), affordable)


def draw_one_by_one(machines: Machines, k: int, seed: int) -> Seeding:
    """Algorithm 2 to the letter: one pass for every center after the first.

    The reference that the law of :func:`draw_by_distance` is tested against; never faster.
    """
    centers = _first_center(machines.data, seed)
    passes = 0
    while len(centers) < k:
        passes += 1
        (found,) = machines.answer([AskOneRowEach(centers, seed, passes)])
        potentials = np.array([item.potential for item in found])
        if not potentials.any():
            break
        chosen = found[int(weighted_indices(potentials, 1, generator(seed, passes))[0])]
        centers = np.concatenate([centers, chosen.row[None, :]])
    return Seeding(centers, passes)


def _random(data: DataSummary, k: int, seed: int) -> Dialogue[Seeding]:
    """Draw rows without replacement; copies of a row are replaced by draws by distance."""
    rows = yield AskRandomRows(k, seed, 1)
    distinct = distinct_rows(rows, data.resolution)
    if len(distinct) == k:
        return Seeding(distinct, 1)
    return (yield from draw_by_distance(data, distinct, k, seed, passes=1))


def _parallel(
    data: DataSummary, first: np.ndarray, k: int, init_steps: int, seed: int
) -> Dialogue[Seeding]:
    """k-means|| (Bahmani et al. 2012): oversample by distance, then cluster the candidates.

    Each step adds about 2k rows, each with probability proportional to its squared distance to
    the candidates so far; rows then weigh the candidates, and the driver clusters them.
    """
    candidates = first
    potential = _potential_bound(data, first)
    passes = 0
    for _ in range(init_steps):
        if potential <= 0:
            break
        passes += 1
        # The potential is only known to be about this large, so the clocks run four times as
        # long as should be needed; the pass itself then says where to stop.
        found = yield AskArrivals(candidates, 8.0 * k / potential, seed, passes, 8 * k)
        if found.potential <= 0:
            break  # every row is a candidate already
        kept = found.times <= 2.0 * k / found.potential
        together = np.concatenate([candidates, found.rows[kept]])
        candidates = distinct_rows(together, data.resolution)
        potential = found.potential
    if len(candidates) < k:
        return (yield from draw_by_distance(data, candidates, k, seed, passes))
    weights = yield AskWeights(candidates)
    centers = reduce_candidates(candidates, weights, k, generator(seed, passes + 1))
    return Seeding(centers, passes + 1)
