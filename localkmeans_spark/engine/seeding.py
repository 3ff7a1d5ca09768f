"""Initial centers, in the shared frame, by a handful of passes over the machines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localkmeans_spark.engine.rounds import SparkMachines
from localkmeans_spark.kernel.draws import generator, weighted_indices
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


def seed_centers(
    machines: SparkMachines, k: int, init_mode: str, init_steps: int, seed: int
) -> Seeding:
    """Make initial centers.

    Parameters
    ----------
    machines : SparkMachines
    k : int
    init_mode : str
        ``"local-k-means++"`` (Algorithm 2), ``"k-means||"`` or ``"random"``.
    init_steps : int
        Steps of ``k-means||``.
    seed : int

    Returns
    -------
    Seeding
    """
    if init_mode == "random":
        return _random(machines, k, seed)
    first = _first_center(machines, seed)
    if init_mode == "k-means||":
        return _parallel(machines, first, k, init_steps, seed)
    return draw_by_distance(machines, first, k, seed, passes=0)


def _first_center(machines: SparkMachines, seed: int) -> np.ndarray:
    """Choose among the rows that the machines drew while they were read; shape (1, d).

    A machine is chosen by its weight and had drawn its row by weight: the law is uniform over
    the rows (weighted by their weights).
    """
    data = machines.data
    mass = np.array([item.sum_weights for item in data.statistics])
    chosen = data.statistics[int(weighted_indices(mass, 1, generator(seed, 0))[0])]
    assert chosen.first_row is not None
    return (chosen.first_row + (chosen.origin - data.frame.mean))[None, :]


def _potential_bound(machines: SparkMachines, centers: np.ndarray) -> float:
    """Potential of the first of ``centers`` alone, in closed form: at least that of all."""
    data = machines.data
    return data.sum_sq + data.sum_weights * float(centers[0] @ centers[0])


def draw_by_distance(
    machines: SparkMachines, centers: np.ndarray, k: int, seed: int, passes: int
) -> Seeding:
    """Draw centers by Algorithm 2 until there are k, in few passes (Poisson clocks, rejection).

    Parameters
    ----------
    machines : SparkMachines
    centers : ndarray of shape (c, n_features), float64, c >= 1
        Centers chosen already.
    k : int
    seed : int
    passes : int
        Passes made so far; they number the random streams.

    Returns
    -------
    Seeding
    """
    potential = _potential_bound(machines, centers)
    fruitless = 0
    while len(centers) < k and potential > 0 and fruitless < _FRUITLESS_PASSES:
        passes += 1
        wanted = _wanted(k - len(centers), centers.shape[1])
        found = machines.arrivals(centers, wanted / potential, seed, passes, wanted)
        before = len(centers)
        centers, remaining = accept_in_time_order(
            found, centers, k, machines.data.resolution, generator(seed, passes)
        )
        fruitless = fruitless + 1 if len(centers) == before else 0
        potential = found.potential * remaining
    return Seeding(centers, passes)


def _wanted(missing: int, n_features: int) -> int:
    affordable = max(missing, _CANDIDATE_BYTES // (8 * n_features))
    return min(max(_CANDIDATES_PER_CENTER * missing, _MIN_CANDIDATES), affordable)


def draw_one_by_one(machines: SparkMachines, k: int, seed: int) -> Seeding:
    """Algorithm 2 to the letter: one pass for every center after the first.

    The reference that the law of :func:`draw_by_distance` is tested against; never faster.
    """
    centers = _first_center(machines, seed)
    passes = 0
    while len(centers) < k:
        passes += 1
        found = machines.one_row_each(centers, seed, passes)
        potentials = np.array([item.potential for item in found])
        if not potentials.any():
            break
        chosen = found[int(weighted_indices(potentials, 1, generator(seed, passes))[0])]
        centers = np.concatenate([centers, chosen.row[None, :]])
    return Seeding(centers, passes)


def _random(machines: SparkMachines, k: int, seed: int) -> Seeding:
    """Draw rows without replacement; copies of a row are replaced by draws by distance."""
    rows = machines.random_rows(k, seed, 1)
    distinct = distinct_rows(rows, machines.data.resolution)
    if len(distinct) == k:
        return Seeding(distinct, 1)
    return draw_by_distance(machines, distinct, k, seed, passes=1)


def _parallel(
    machines: SparkMachines, first: np.ndarray, k: int, init_steps: int, seed: int
) -> Seeding:
    """k-means|| (Bahmani et al. 2012): oversample by distance, then cluster the candidates.

    Each step adds about 2k rows, each with probability proportional to its squared distance to
    the candidates so far; rows then weigh the candidates, and the driver clusters them.
    """
    candidates = first
    potential = _potential_bound(machines, first)
    passes = 0
    for _ in range(init_steps):
        if potential <= 0:
            break
        passes += 1
        # The potential is only known to be about this large, so the clocks run four times as
        # long as should be needed; the pass itself then says where to stop.
        found = machines.arrivals(candidates, 8.0 * k / potential, seed, passes, 8 * k)
        if found.potential <= 0:
            break  # every row is a candidate already
        kept = found.times <= 2.0 * k / found.potential
        together = np.concatenate([candidates, found.rows[kept]])
        candidates = distinct_rows(together, machines.data.resolution)
        potential = found.potential
    if len(candidates) < k:
        return draw_by_distance(machines, candidates, k, seed, passes)
    weights = machines.weigh(candidates)
    centers = reduce_candidates(candidates, weights, k, generator(seed, passes + 1))
    return Seeding(centers, passes + 1)
