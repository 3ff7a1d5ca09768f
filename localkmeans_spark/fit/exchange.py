"""An exchange: partitions' summaries of a round, merged, and the new centers made of them.

Sums and weights lie on a common power-of-two grid, so merging adds them exactly; what cannot add
exactly stays one number a partition and is added by the driver without rounding. Either way the
order in which tasks finish changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from localkmeans_spark.data.partition import Frame, Partition
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.exact_sum import on_grids
from localkmeans_spark.kernel.lloyd import Block, LocalPhase, add_cluster_sums, means_or_kept
from localkmeans_spark.kernel.spherical import COSINE_OF_SQ, directions_or_kept, unit_centers


class Findings(NamedTuple):
    """What a round found on one partition; or on all, then each is an array."""

    inertia: Any  # of the centers the round began with
    sq_drift: Any  # largest squared distance from a center of the partition to the one before
    sq_moved: Any  # sum over clusters of weight times that squared distance
    within: Any  # weighted scatter of the rows around the partition's centers after the last step
    filled: Any  # clusters with rows here
    n_points: Any
    steps: Any  # local steps done


class RoundSummary(NamedTuple):
    """What a round found on one or more partitions.

    Attributes
    ----------
    sums : ndarray of shape (n_parts, k, n_features), float64
        Cluster sums after the last local step, in the shared frame, on the grids.
    weights : ndarray of shape (n_parts, k), float64
        Cluster weights, on the grids.
    findings : ndarray of shape (m, 7), float64
        A row of :class:`Findings` for each of the m partitions.
    """

    sums: np.ndarray
    weights: np.ndarray
    findings: np.ndarray


def summarise_phase(
    phase: LocalPhase, began: np.ndarray, partition: Partition, frame: Frame
) -> RoundSummary:
    """Summarise what the local steps of a round did on one partition. Runs on: executor.

    Parameters
    ----------
    phase : LocalPhase
    began : ndarray of shape (k, n_features), float64
        The centers before them, in the partition's frame.
    partition : Partition
    frame : Frame
    """
    filled = phase.weights > 0
    explained = np.einsum("kd,kd->k", phase.sums, phase.sums)[filled] / phase.weights[filled]
    sq_moved = sq_drift = _sq_shift(means_or_kept(phase.sums, phase.weights, began), began)
    if frame.is_cosine:
        # The scatter is about the means, as ever; centers drift as directions.
        sq_drift = _sq_shift(directions_or_kept(phase.sums, phase.weights, began), began)
    inertia, within = phase.inertia, partition.sum_sq - explained.sum()
    if frame.has_far_rows:  # whose squares leave nothing of the others' in these sums
        inertia = float(assign_blocks(partition.blocks, began)[2].sum())
        within = inertia - float(phase.weights @ sq_moved)
    found = Findings(
        inertia=inertia,
        sq_drift=sq_drift.max(),
        sq_moved=phase.weights @ sq_moved,
        within=within,
        filled=filled.sum(),
        n_points=sum(len(block.x) for block in partition.blocks),
        steps=phase.steps,
    )
    shift = partition.origin - frame.mean
    return RoundSummary(
        sums=on_grids(phase.sums + phase.weights[:, None] * shift, frame.sum_grids[:, None]),
        weights=on_grids(phase.weights, frame.weight_grids),
        findings=np.array([found], dtype=np.float64),
    )


def assign_blocks(
    blocks: Sequence[Block], centers: np.ndarray, sums: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label rows exactly; return sizes (k,), weights (k,) and inertia (k,).

    The rows are added to the clusters' ``sums``, (k, n_features) float64, if these are given.
    """
    k = len(centers)
    sizes = np.zeros(k, dtype=np.int64)
    weights, inertia = np.zeros(k), np.zeros(k)
    for block in blocks:
        x, weight = block
        labels, sq_distances = exact_nearest(x, centers)
        if sums is not None:
            add_cluster_sums(block, labels, sums)
        sizes += np.bincount(labels, minlength=k)
        weights += np.bincount(labels, weights=weight, minlength=k)
        weighted = sq_distances if weight is None else sq_distances * weight
        inertia += np.bincount(labels, weights=weighted, minlength=k)
    return sizes, weights, inertia


def merge(left: RoundSummary, right: RoundSummary) -> RoundSummary:
    """Merge the summaries of two groups of partitions."""
    return RoundSummary(
        left.sums + right.sums,
        left.weights + right.weights,
        np.concatenate([left.findings, right.findings]),
    )


@dataclass(frozen=True)
class Exchange:
    """What the driver learns from a round.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        Size-weighted means of the partitions' centers; a cluster empty everywhere keeps its own.
    inertia : float
        Of the centers the round began with.
    center_shift : float
        Largest distance a center moved.
    max_local_drift, rms_deviation, disagreement : float
        See :class:`RoundRecord`.
    empty_clusters : int
    spread : float
        Share of the scatter that lies between the partitions' centers, chance included.
    bound : float
        The inertia of ``centers`` is at most this: rows with the labels of the last local step.
    filled : ndarray of shape (k,), bool, or None
        False for the clusters without a row on any partition.
    local_steps : int
        Most that a partition did.
    """

    centers: np.ndarray
    inertia: float
    center_shift: float
    max_local_drift: float
    rms_deviation: float
    disagreement: float
    empty_clusters: int
    spread: float = 0.0
    bound: float = math.inf
    filled: np.ndarray | None = None
    local_steps: int = 1


def finish(summary: RoundSummary, centers: np.ndarray, frame: Frame) -> Exchange:
    """Form the new centers (Algorithm 1, Server) from all partitions' merged summary.

    Parameters
    ----------
    summary : RoundSummary
    centers : ndarray of shape (k, n_features), float64
        Those the round began with.
    frame : Frame
        For cosine distance centers are scaled to length 1 about the origin 0, and inertia, shift
        and drift are cosine distances.
    """
    sums, weights = summary.sums.sum(axis=0), summary.weights.sum(axis=0)
    found = Findings(*summary.findings.T)
    if frame.is_cosine:
        centers = unit_centers(centers + frame.mean)
        sums = sums + weights[:, None] * frame.mean
    new = means_or_kept(sums, weights, centers)
    sq_shift = _sq_shift(new, centers)
    total = float(weights.sum())
    # sum_i W_ki |theta_ki - c_k|^2 - W_k |theta_k - c_k|^2 = sum_i W_ki |theta_ki - theta_k|^2
    sq_deviation = math.fsum(found.sq_moved) - float(weights @ sq_shift)
    sq_deviation = max(0.0, sq_deviation)
    scatter = sq_deviation + max(0.0, math.fsum(found.within))
    spread, by_chance = _spread(found, int((weights > 0).sum()), sq_deviation, scatter)
    inertia, sq_drift = math.fsum(found.inertia), float(found.sq_drift.max())
    if not frame.is_cosine:
        shift, drift = math.sqrt(sq_shift.max()), math.sqrt(sq_drift)
    else:
        new = directions_or_kept(sums, weights, centers)
        inertia, drift = COSINE_OF_SQ * inertia, COSINE_OF_SQ * sq_drift
        shift = COSINE_OF_SQ * float(_sq_shift(new, centers).max())
        new = new - frame.mean
    return Exchange(
        centers=new,
        inertia=inertia,
        center_shift=shift,
        max_local_drift=drift,
        rms_deviation=math.sqrt(sq_deviation / total),
        disagreement=spread - by_chance,
        empty_clusters=int((weights == 0).sum()),
        spread=spread,
        bound=scatter,
        filled=weights > 0,
        local_steps=int(found.steps.max()),
    )


def _sq_shift(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    moved = new - old
    return np.einsum("kd,kd->k", moved, moved)


def _spread(found: Findings, n_filled: int, between: float, scatter: float) -> tuple[float, float]:
    """Return the share of the scatter between the partitions' centers, and what chance makes it.

    As in an analysis of variance: if every partition held a random share of the rows, the centers
    of (partitions x clusters) groups would take up (groups - clusters) / rows of the scatter.
    """
    if scatter <= 0:
        return 0.0, 0.0
    groups = int(found.filled.sum()) - n_filled
    return between / scatter, groups / int(found.n_points.sum())
