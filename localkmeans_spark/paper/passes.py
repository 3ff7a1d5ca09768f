"""One pass over a machine's rows: drawing a row for Algorithm 2, and the objective of centers.

All functions run on executors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from localkmeans_spark.kernel.draws import sq_distances_to_nearest, weighted_indices
from localkmeans_spark.paper.mixture import generator
from localkmeans_spark.paper.placed import PlacedRows


class DrawOrder(NamedTuple):
    """One draw of Algorithm 2 for several states at once.

    Attributes
    ----------
    centers : dict of int to dict of int to ndarray of shape (c, d)
        Centers so far, by data set, then by state.
    candidates : int
        Rows every machine draws.
    power : int
        2 weighs by squared distance, 1 by distance.
    seed, number : int
        Number of the draw.
    """

    centers: dict[int, dict[int, np.ndarray]]
    candidates: int
    power: int
    seed: int
    number: int


class Drawn(NamedTuple):
    """E_i and the rows one machine drew for one state."""

    state: int
    machine: int
    potential: float
    rows: np.ndarray


def draw(rows: PlacedRows, order: DrawOrder) -> list[Drawn]:
    """Draw rows with probability E_ij / E_i (Algorithm 2, inside the machine)."""
    drawn = []
    for state, centers in order.centers.get(rows.dataset, {}).items():
        rng = generator(order.seed, order.number, state, rows.machine)
        mass = np.ones(len(rows.x))
        if len(centers):
            mass = sq_distances_to_nearest(rows.x, centers) ** (order.power / 2)
        potential = float(mass.sum())
        chosen = np.empty(0, dtype=np.int64)
        if potential > 0:
            chosen = weighted_indices(mass, order.candidates, rng)
        drawn.append(Drawn(state, rows.machine, potential, rows.x[chosen].astype(np.float64)))
    return drawn


class CostOrder(NamedTuple):
    """Sets of centers whose objective is wanted, by data set, then by name."""

    centers: dict[int, dict[Any, np.ndarray]]


def costs(rows: PlacedRows, order: CostOrder) -> dict[Any, dict[int, float]]:
    """Return the objective on this machine of every set of centers: by name, then machine."""
    wanted = order.centers.get(rows.dataset, {})
    return {
        name: {rows.machine: float(sq_distances_to_nearest(rows.x, centers).sum())}
        for name, centers in wanted.items()
    }


def merge_costs(
    left: dict[Any, dict[int, float]], right: dict[Any, dict[int, float]]
) -> dict[Any, dict[int, float]]:
    """Line up the machines' objectives."""
    merged = dict(left)
    for name, by_machine in right.items():
        merged[name] = {**merged.get(name, {}), **by_machine}
    return merged
