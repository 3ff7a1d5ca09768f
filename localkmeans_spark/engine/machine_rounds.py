"""What a machine does with centers: the local steps of a round, and the last, exact labelling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localkmeans_spark.engine.aggregate import Assignment, RoundSummary
from localkmeans_spark.engine.machine import Frame, Machine
from localkmeans_spark.kernel import sparse
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.exact_sum import on_grids
from localkmeans_spark.kernel.lloyd import means_or_kept
from localkmeans_spark.kernel.local_steps import local_phase
from localkmeans_spark.kernel.sparse_rows import SparseRows
from localkmeans_spark.kernel.spherical import COSINE_OF_SQ, directions_or_kept, unit_centers


class RoundOrder(NamedTuple):
    """What machines are asked to do in a round: one entry per set of centers."""

    frame: Frame
    centers: list[np.ndarray]
    local_steps: list[int]
    settled: list[bool]
    enough: list[float]


def local_round(machine: Machine, order: RoundOrder) -> list[RoundSummary]:
    """Do the local steps of a round for every set of centers (Algorithm 1, Machine(i))."""
    return [
        _one_local_round(machine, order.frame, *one)
        for one in zip(order.centers, order.local_steps, order.settled, order.enough, strict=True)
    ]


def _one_local_round(
    machine: Machine,
    frame: Frame,
    centers: np.ndarray,
    local_steps: int,
    settled: bool,
    enough: float,
) -> RoundSummary:
    began = frame.to_machine(centers, machine)
    update = means_or_kept
    if machine.is_unit:
        began, update = unit_centers(began), directions_or_kept
    phase = local_phase(machine.blocks, began, local_steps, machine.sum_sq, settled, enough, update)
    filled = phase.weights > 0
    explained = np.einsum("kd,kd->k", phase.sums, phase.sums)[filled] / phase.weights[filled]
    moved = means_or_kept(phase.sums, phase.weights, began) - began
    sq_moved = sq_drift = np.einsum("kd,kd->k", moved, moved)
    if machine.is_unit:
        # The scatter is about the means, as ever; centers drift as directions.
        moved = directions_or_kept(phase.sums, phase.weights, began) - began
        sq_drift = np.einsum("kd,kd->k", moved, moved)
    shift = machine.origin - frame.mean
    return RoundSummary(
        sums=on_grids(phase.sums + phase.weights[:, None] * shift, frame.sum_grids[:, None]),
        weights=on_grids(phase.weights, frame.weight_grids),
        machines=np.array([machine.number]),
        inertia=np.array([phase.inertia]),
        sq_drift=np.array([sq_drift.max()]),
        sq_moved=np.array([phase.weights @ sq_moved]),
        within=np.array([machine.sum_sq - explained.sum()]),
        filled=np.array([filled.sum()]),
        n_points=np.array([sum(len(block.x) for block in machine.blocks)]),
        first_seconds=np.array([phase.first_seconds]),
        later_seconds=np.array([phase.later_seconds]),
        steps=np.array([phase.steps]),
    )


class CentersOrder(NamedTuple):
    """Absolute centers, for the last pass with them."""

    centers: np.ndarray


def assign(machine: Machine, order: CentersOrder) -> Assignment:
    """Label every row exactly; return sizes, weights and inertia per cluster."""
    centers = order.centers - machine.origin
    if machine.is_unit:
        centers = unit_centers(centers)
    k = len(centers)
    sizes = np.zeros(k, dtype=np.int64)
    weights, inertia = np.zeros(k), np.zeros(k)
    for x, weight in machine.blocks:
        find = sparse.exact_nearest if isinstance(x, SparseRows) else exact_nearest
        labels, sq_distances = find(x, centers)
        sizes += np.bincount(labels, minlength=k)
        weights += np.bincount(labels, weights=weight, minlength=k)
        weighted = sq_distances if weight is None else sq_distances * weight
        inertia += np.bincount(labels, weights=weighted, minlength=k)
    if machine.is_unit:
        inertia *= COSINE_OF_SQ
    return Assignment(np.array([machine.number]), sizes, weights[None], inertia[None])
