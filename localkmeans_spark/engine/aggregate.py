"""Summaries of machines: merging two of them, and turning the last one into new centers.

Sums and weights lie on a common power-of-two grid, so merging adds them exactly; what cannot add
exactly stays one number a machine and is added by the driver in the order of the machines. Either
way the order in which tasks finish changes no bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from localkmeans_spark.kernel.draws import Arrivals, smallest_keys
from localkmeans_spark.kernel.lloyd import means_or_kept
from localkmeans_spark.kernel.spherical import COSINE_OF_SQ, directions_or_kept, unit_centers


@dataclass(frozen=True)
class Statistics:
    """What the first pass says of one machine (sums relative to ``origin``).

    ``first_rows`` holds one row drawn by weight for every seed asked for.
    """

    machine: int
    n_points: int
    n_features: int
    sum_weights: float
    sums: np.ndarray
    sum_sq: float
    largest: np.ndarray
    origin: np.ndarray
    invalid_features: int
    invalid_weights: int
    wrong_length: int
    first_rows: dict[int, np.ndarray]
    zero_rows: int = 0
    vanished_rows: int = 0
    least_weight: float = 1.0


def concatenate(left: list, right: list) -> list:
    """Merge lists of per-machine findings."""
    return left + right


@dataclass(frozen=True)
class RoundSummary:
    """What a round found on one or more machines for one set of centers.

    Attributes
    ----------
    sums : ndarray of shape (n_parts, k, n_features), float64
        Cluster sums after the last local step, in the shared frame, on the grids.
    weights : ndarray of shape (n_parts, k), float64
        Cluster weights, on the grids.
    machines : ndarray of shape (m,), int64
        Partition numbers, in the order of the next three.
    inertia : ndarray of shape (m,), float64
        Of the centers the round began with.
    sq_drift : ndarray of shape (m,), float64
        Largest squared distance from a machine's center to the one the round began with.
    sq_moved : ndarray of shape (m,), float64
        Sum over clusters of weight times that squared distance.
    within : ndarray of shape (m,), float64
        Weighted scatter of the machine's rows around its own centers after the last step.
    filled : ndarray of shape (m,), int64
        Clusters with rows on the machine.
    n_points : ndarray of shape (m,), int64
        Rows of the machine.
    first_seconds, later_seconds : ndarray of shape (m,), float64
        What its first local step took, and all later ones.
    steps : ndarray of shape (m,), int64
        Local steps it did.
    """

    sums: np.ndarray
    weights: np.ndarray
    machines: np.ndarray
    inertia: np.ndarray
    sq_drift: np.ndarray
    sq_moved: np.ndarray
    within: np.ndarray
    filled: np.ndarray
    n_points: np.ndarray
    first_seconds: np.ndarray
    later_seconds: np.ndarray
    steps: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in vars(self).values())


_BY_MACHINE = [f.name for f in fields(RoundSummary) if f.name not in ("sums", "weights")]


def merge_rounds(left: list[RoundSummary], right: list[RoundSummary]) -> list[RoundSummary]:
    """Merge the summaries of two groups of machines, set of centers by set of centers."""
    return [
        RoundSummary(
            sums=a.sums + b.sums,
            weights=a.weights + b.weights,
            **{name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in _BY_MACHINE},
        )
        for a, b in zip(left, right, strict=True)
    ]


@dataclass(frozen=True)
class Exchange:
    """What the driver learns from a round.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        Size-weighted means of the machines' centers; a cluster empty everywhere keeps its own.
    inertia : float
        Of the centers the round began with.
    center_shift : float
        Largest distance a center moved.
    max_local_drift, rms_deviation, disagreement : float
        See :class:`RoundRecord`.
    empty_clusters : int
    spread : float
        Share of the scatter that lies between the machines' centers, chance included.
    bound : float
        The inertia of ``centers`` is at most this: rows with the labels of the last local step.
    filled : ndarray of shape (k,), bool, or None
        False for the clusters without a row on any machine.
    local_steps : int
        Most that a machine did.
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


def exchange(
    summary: RoundSummary, centers: np.ndarray, unit_about: np.ndarray | None = None
) -> Exchange:
    """Form the new centers (Algorithm 1, Server) from all machines' merged summary.

    Parameters
    ----------
    summary : RoundSummary
    centers : ndarray of shape (k, n_features), float64
        Those the round began with.
    unit_about : ndarray of shape (n_features,), or None
        For cosine distance, where the shared frame lies: centers are scaled to length 1 about the
        origin 0, and inertia, shift and drift are cosine distances.
    """
    sums, weights = summary.sums.sum(axis=0), summary.weights.sum(axis=0)
    if unit_about is not None:
        centers = unit_centers(centers + unit_about)
        sums = sums + weights[:, None] * unit_about
    new = means_or_kept(sums, weights, centers)
    sq_shift = _sq_shift(new, centers)
    total = float(weights.sum())
    # sum_i W_ki |theta_ki - c_k|^2 - W_k |theta_k - c_k|^2 = sum_i W_ki |theta_ki - theta_k|^2
    sq_deviation = math.fsum(summary.sq_moved) - float(weights @ sq_shift)
    sq_deviation = max(0.0, sq_deviation)
    scatter = sq_deviation + max(0.0, math.fsum(summary.within))
    spread, by_chance = _spread(summary, int((weights > 0).sum()), sq_deviation, scatter)
    inertia, sq_drift = math.fsum(summary.inertia), float(summary.sq_drift.max())
    if unit_about is None:
        shift, drift = math.sqrt(sq_shift.max()), math.sqrt(sq_drift)
    else:
        new = directions_or_kept(sums, weights, centers)
        inertia, drift = COSINE_OF_SQ * inertia, COSINE_OF_SQ * sq_drift
        shift = COSINE_OF_SQ * float(_sq_shift(new, centers).max())
        new = new - unit_about
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
        local_steps=int(summary.steps.max()),
    )


def _sq_shift(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    moved = new - old
    return np.einsum("kd,kd->k", moved, moved)


def _spread(
    summary: RoundSummary, n_filled: int, between: float, scatter: float
) -> tuple[float, float]:
    """Return the share of the scatter between the machines' centers, and what chance makes it.

    As in an analysis of variance: if every machine held a random share of the rows, the centers
    of (machines x clusters) groups would take up (groups - clusters) / rows of the scatter.
    """
    if scatter <= 0:
        return 0.0, 0.0
    groups = int(summary.filled.sum()) - n_filled
    return between / scatter, groups / int(summary.n_points.sum())


@dataclass(frozen=True)
class Assignment:
    """Sizes (k,), and weights and inertia (machines, k), of exact labels."""

    machines: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray
    inertia: np.ndarray


def merge_assignments(left: Assignment, right: Assignment) -> Assignment:
    """Merge two groups of machines."""
    return Assignment(
        np.concatenate([left.machines, right.machines]),
        left.sizes + right.sizes,
        np.concatenate([left.weights, right.weights]),
        np.concatenate([left.inertia, right.inertia]),
    )


@dataclass(frozen=True)
class TimedRows:
    """Arrivals of one or more machines, rows in the shared frame."""

    machines: np.ndarray
    potential: np.ndarray
    times: np.ndarray
    rows: np.ndarray
    sq_distances: np.ndarray


def merge_arrivals(left: TimedRows, right: TimedRows) -> TimedRows:
    """Merge two groups of machines (sorted by time only at the end)."""
    return TimedRows(*(np.concatenate([getattr(left, n), getattr(right, n)]) for n in vars(left)))


def in_time_order(found: TimedRows) -> Arrivals:
    """Sort all machines' arrivals by time; the potential is added without rounding."""
    order = np.argsort(found.times, kind="stable")
    return Arrivals(
        found.times[order],
        found.rows[order],
        found.sq_distances[order],
        math.fsum(found.potential),
    )


@dataclass(frozen=True)
class CandidateRows:
    """The ``size`` rows with the smallest keys so far, in the shared frame."""

    keys: np.ndarray
    rows: np.ndarray
    size: int


def merge_candidates(left: CandidateRows, right: CandidateRows) -> CandidateRows:
    """Keep the smallest keys of both."""
    keys, rows = smallest_keys(
        np.concatenate([left.keys, right.keys]), [left.rows, right.rows], left.size
    )
    return CandidateRows(keys, rows, left.size)
