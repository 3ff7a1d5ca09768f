"""What a machine of an experiment does: a leg of local steps, measured at every step.

A machine sends counts, sums and distances of centers, never labels or rows. All functions run on
executors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from localkmeans_spark.kernel.exact_sum import to_grid
from localkmeans_spark.kernel.lloyd import (
    Block,
    add_cluster_sums,
    inertia_from_sums,
    means_or_kept,
)
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.paper.placed import PlacedRows
from localkmeans_spark.paper.quantities import sq_distances_between


class Leg(NamedTuple):
    """Steps every machine of a data set does alone from common centers.

    Attributes
    ----------
    centers : ndarray of shape (K, d)
    steps : int
    """

    centers: np.ndarray
    steps: int


class LegOrder(NamedTuple):
    """The legs of one job.

    Attributes
    ----------
    legs : dict of int to dict of int to Leg
        By data set, then by run.
    truth : dict of int to ndarray of shape (K, d)
        True centers by data set, where there are any.
    grids : dict of int to float
        Spacing to which sums are rounded by data set, so that adding them never rounds.
    """

    legs: dict[int, dict[int, Leg]]
    truth: dict[int, np.ndarray]
    grids: dict[int, float]


@dataclass(frozen=True)
class LegPart:
    """What one or more machines found in a leg, step by step (first axis of everything).

    Attributes
    ----------
    sums : ndarray of shape (steps, K, d), float64
        Sum of each cluster's rows, over the machines.
    sizes : ndarray of shape (steps, K), float64
    moved : ndarray of shape (steps, K, d), float64
        Sum over machines of (local center - center the leg began with): gives the plain mean.
    machines : ndarray of shape (m,), int64
        Numbers of the machines, in the order of the second axis of the next four.
    counts : ndarray of shape (steps, m, K, K), int32
        Confusion counts: true cluster by label.
    inertia : ndarray of shape (steps, m), float64
        Of the rows around the centers they were assigned to.
    sq_moved : ndarray of shape (steps, m), float64
        Sum over clusters of the squared distance from the center the leg began with.
    sq_to_truth : ndarray of shape (steps, m, K, K), float64
        Squared distances of the local centers to the true ones; of shape (steps, m, 0, 0)
        without true centers.
    """

    sums: np.ndarray
    sizes: np.ndarray
    moved: np.ndarray
    machines: np.ndarray
    counts: np.ndarray
    inertia: np.ndarray
    sq_moved: np.ndarray
    sq_to_truth: np.ndarray


_ADDED = ("sums", "sizes", "moved")
_LINED_UP = ("counts", "inertia", "sq_moved", "sq_to_truth")


def merge_parts(left: dict[int, LegPart], right: dict[int, LegPart]) -> dict[int, LegPart]:
    """Merge what two groups of machines found, run by run."""
    merged = {**left, **right}
    for run in left.keys() & right.keys():
        a, b = left[run], right[run]
        merged[run] = LegPart(
            **{name: getattr(a, name) + getattr(b, name) for name in _ADDED},
            **{
                name: np.concatenate([getattr(a, name), getattr(b, name)], axis=1)
                for name in _LINED_UP
            },
            machines=np.concatenate([a.machines, b.machines]),
        )
    return merged


def walk(rows: PlacedRows, order: LegOrder) -> dict[int, LegPart]:
    """Do every leg of this machine's data set (Algorithm 1, Machine(i))."""
    truth, grid = order.truth.get(rows.dataset), order.grids[rows.dataset]
    sum_sq = rows.sum_sq
    return {
        run: walk_leg(rows, leg, truth, grid, sum_sq)
        for run, leg in order.legs.get(rows.dataset, {}).items()
    }


def walk_leg(
    rows: PlacedRows, leg: Leg, truth: np.ndarray | None, grid: float, sum_sq: float
) -> LegPart:
    """Do the steps of one leg on one machine and note what the paper measures.

    A cluster without rows here keeps its local center.
    """
    block = Block(rows.x, None)
    k, d = leg.centers.shape
    n_true = max(k, 1 + int(rows.labels.max(initial=0)))
    n_seen = k if truth is not None else 0
    sums, sizes = np.zeros((leg.steps, k, d)), np.zeros((leg.steps, k))
    moved = np.zeros((leg.steps, k, d))
    counts = np.zeros((leg.steps, 1, k, k), dtype=np.int32)
    inertia, sq_moved = np.zeros((leg.steps, 1)), np.zeros((leg.steps, 1))
    sq_to_truth = np.zeros((leg.steps, 1, n_seen, n_seen))
    labels = np.empty(len(rows.x), dtype=np.int32)
    centers, settled = leg.centers, 0
    if n_true > k:
        raise ValueError(f"true clusters must be below k = {k}; got {n_true - 1}")
    for step in range(leg.steps):
        Scorer(centers).nearest(rows.x, labels)
        add_cluster_sums(block, labels, sums[step])
        sizes[step] = np.bincount(labels, minlength=k)
        pairs = np.bincount(rows.labels.astype(np.int64) * k + labels, minlength=k * k)
        counts[step, 0] = pairs.reshape(k, k)
        inertia[step] = inertia_from_sums(sums[step], sizes[step], centers, sum_sq)
        new = means_or_kept(sums[step], sizes[step], centers)
        moved[step] = new - leg.centers
        sq_moved[step] = np.einsum("kd,kd->", moved[step], moved[step])
        if truth is not None:
            sq_to_truth[step, 0] = sq_distances_between(new, truth)
        settled = step + 1
        if np.array_equal(new, centers):
            break  # a local fixed point: every further step repeats this one
        centers = new
    for array in (sums, sizes, moved, counts, inertia, sq_moved, sq_to_truth):
        array[settled:] = array[settled - 1]
    return LegPart(
        sums=to_grid(sums, grid),
        sizes=sizes,
        moved=to_grid(moved, grid),
        machines=np.array([rows.machine]),
        counts=counts,
        inertia=inertia,
        sq_moved=sq_moved,
        sq_to_truth=sq_to_truth,
    )
