"""The local steps of one round on one partition: each costs less than the one before.

The first step looks at every row. Later ones add up only the rows that changed cluster and, where
products are dear, compute only the rows whose bounds allow a change. Labels and bounds (4 to 16
bytes a row) live for one round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import csr_array

from localkmeans_spark.kernel.bounds import Bounds, half_gaps
from localkmeans_spark.kernel.chunks import rows_per_sum, slices
from localkmeans_spark.kernel.lloyd import (
    Block,
    LocalPhase,
    add_cluster_sums,
    inertia_from_sums,
    lloyd_step,
    means_or_kept,
)
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.kernel.sparse_rows import SparseRows

# Products of fewer multiplications a row than this cost less than keeping bounds.
_MIN_PRODUCT = 2048
# With more rows than this share to compute again, a full step is as cheap.
_FULL_STEP = 0.6
# While more rows than this share change cluster in a step, bounds would hardly serve the next, and
# adding up all rows anew costs less than moving those.
_RESTLESS = 0.1
# Sums that lost most of their rows are added up anew: what is left carries the rounding of what
# was taken away.
_MAX_SHRINKAGE = 0.25


def local_phase(
    blocks: Sequence[Block],
    centers: np.ndarray,
    local_steps: int,
    sum_sq: float,
    enough: float = 0.0,
    update: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = means_or_kept,
) -> LocalPhase:
    """Run the local steps of one round on one partition (Algorithm 1, Machine(i)).

    A cluster with no local rows keeps its center and ends with weight 0.

    Parameters
    ----------
    blocks : sequence of Block
        All rows of the partition.
    centers : ndarray of shape (k, n_features), float64
        The broadcast centers, in the partition's frame.
    local_steps : int
        Steps to do, >= 1.
    sum_sq : float
        Sum of ``w * ||x||**2`` over the partition's rows.
    enough : float, default 0
        Stop after a step whose centers are that near to those it began with: the move, in squared
        distances of the rows' weights, is less than this share of the inertia.
    update : callable (sums, weights, centers) -> centers
        ``means_or_kept``, or ``spherical.directions_or_kept`` for cosine distance.

    Notes
    -----
    The inertia comes from the sums of the first step, at no extra pass. Runs on: executor.
    """
    assignment: PlainSteps | _Assignment
    if wants_plain_steps(blocks):
        assignment = PlainSteps(blocks, centers)
    else:
        assignment = _Assignment(blocks, centers, keep_bounds=local_steps > 1)
    inertia = inertia_from_sums(assignment.sums, assignment.weights, centers, sum_sq)
    steps = 1
    while steps < local_steps:
        moved = update(assignment.sums, assignment.weights, assignment.centers)
        if np.array_equal(moved, assignment.centers):
            break  # a local fixed point: every further step would repeat this one
        if enough and _gain(assignment, moved) < enough * inertia:
            break
        steps += 1
        assignment.step(moved, steps_left=local_steps - steps)
    return LocalPhase(assignment.sums, assignment.weights, inertia, steps)


def _gain(assignment: PlainSteps | _Assignment, moved: np.ndarray) -> float:
    """Return by how much the inertia falls if the centers move and no row changes cluster."""
    difference = moved - assignment.centers
    return float(assignment.weights @ np.einsum("kd,kd->k", difference, difference))


class _Assignment:
    """The labels of a partition's rows and their cluster sums, from step to step.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        Those of the last step.
    sums : ndarray of shape (k, n_features), float64
    weights : ndarray of shape (k,), float64
    """

    def __init__(self, blocks: Sequence[Block], centers: np.ndarray, keep_bounds: bool) -> None:
        k, n_features = centers.shape
        self._changed = 0.0  # as far as is known
        self.centers = centers
        self._rows = [_Rows(block) for block in blocks]
        self.sums = np.zeros(centers.shape)
        scorer = Scorer(centers)
        self._bounds_pay = k > 2 and k * n_features >= _MIN_PRODUCT and not scorer.has_tree
        for rows in self._rows:
            rows.assign(scorer, keep_bounds and self._bounds_pay)
            add_cluster_sums(rows.block, rows.labels, self.sums)
        self.weights = self._most_weight = self._add_weights()

    def step(self, centers: np.ndarray, steps_left: int) -> None:
        """Assign every row to the nearest of new centers."""
        moved = np.sqrt(((centers - self.centers) ** 2).sum(axis=1))
        self.centers = centers
        scorer = Scorer(centers)
        keep_bounds = steps_left > 0 and self._bounds_pay and self._changed <= _RESTLESS
        gaps = half_gaps(centers) if any(rows.has_bounds for rows in self._rows) else None
        before = [rows.labels for rows in self._rows]
        for rows in self._rows:
            if gaps is not None and rows.has_bounds:
                rows.assign_within_bounds(scorer, moved, gaps, keep_bounds)
            else:
                rows.assign(scorer, keep_bounds)
        moves = [
            np.flatnonzero(old != rows.labels) for old, rows in zip(before, self._rows, strict=True)
        ]
        self._changed = sum(map(len, moves)) / max(1, sum(map(len, before)))
        self.weights = self._add_weights()
        self._most_weight = np.maximum(self._most_weight, self.weights)
        shrunk = (self.weights < _MAX_SHRINKAGE * self._most_weight).any()
        if shrunk or self._changed > _RESTLESS:
            self._add_up_anew()
            return
        for rows, old, changed in zip(self._rows, before, moves, strict=True):
            _move_rows(rows.block, old, rows.labels, changed, self.sums)

    def _add_up_anew(self) -> None:
        self.sums[:] = 0.0
        for rows in self._rows:
            add_cluster_sums(rows.block, rows.labels, self.sums)
        self._most_weight = self.weights

    def _add_weights(self) -> np.ndarray:
        weights = np.zeros(len(self.centers))
        for rows in self._rows:
            weights += np.bincount(
                rows.labels, weights=rows.block.weight, minlength=len(self.centers)
            )
        return weights


class _Rows:
    """A block's rows with their labels and, if they pay, their bounds."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.labels = np.empty(0, dtype=np.int32)
        self._bounds: Bounds | None = None

    @property
    def has_bounds(self) -> bool:
        return self._bounds is not None

    def assign(self, scorer: Scorer, keep_bounds: bool) -> None:
        """Compute every row."""
        x = self.block.x
        labels = np.empty(len(x), dtype=np.int32)
        if keep_bounds:
            self._bounds = Bounds(x)
            for rows, found in scorer.nearest_two(x):
                labels[rows] = found.labels
                self._bounds.take(rows, found.best, found.second, scorer.largest_norm)
        else:
            self._bounds = None
            scorer.nearest(x, labels)
        self.labels = labels

    def assign_within_bounds(
        self, scorer: Scorer, moved: np.ndarray, gaps: np.ndarray, keep_bounds: bool
    ) -> None:
        """Compute the rows whose bounds allow a change; all of them if those are many."""
        assert self._bounds is not None
        x = self.block.x
        rows = self._bounds.after_move(self.labels, moved, gaps)
        if len(rows) > _FULL_STEP * len(x):
            self.assign(scorer, keep_bounds=False)  # these served little, the next would, too
            return
        self.labels = self.labels.copy()
        if not keep_bounds:
            self._bounds, few = None, np.empty(len(rows), dtype=np.int32)
            scorer.nearest(x, few, rows)
            self.labels[rows] = few
            return
        for some, found in scorer.nearest_two(x, rows):
            self.labels[rows[some]] = found.labels
            self._bounds.take(rows[some], found.best, found.second, scorer.largest_norm)


def _move_rows(
    block: Block, before: np.ndarray, after: np.ndarray, changed: np.ndarray, sums: np.ndarray
) -> None:
    """Move rows whose label changed from their old cluster's sum to their new one's."""
    x, weight = block
    k, n_features = sums.shape
    for some in slices(len(changed), rows_per_sum(n_features, k)):
        rows = changed[some]
        w = np.ones(len(rows)) if weight is None else weight[rows]
        labels = np.stack([after[rows], before[rows]], axis=1).ravel()
        # Few rows touch few clusters: leave the others' sums alone.
        touched, places = np.unique(labels, return_inverse=True)
        signed = np.stack([w, -w], axis=1).ravel()
        pairs = np.arange(0, 2 * len(rows) + 1, 2)
        one_hot = csr_array((signed, places.ravel(), pairs), shape=(len(rows), len(touched)))
        sums[touched] += one_hot.T @ x[rows].astype(np.float64, copy=False)


def wants_plain_steps(blocks: Sequence[Block]) -> bool:
    """Whether the blocks are sparse: a row's product is cheap then, and bounds need dense rows."""
    return any(isinstance(block.x, SparseRows) for block in blocks)


class PlainSteps:
    """The cluster sums of a partition's rows, from step to step.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        Those of the last step.
    sums : ndarray of shape (k, n_features), float64
    weights : ndarray of shape (k,), float64
    """

    def __init__(self, blocks: Sequence[Block], centers: np.ndarray) -> None:
        self._blocks = blocks
        self.step(centers)

    def step(self, centers: np.ndarray, steps_left: int = 0) -> None:
        """Assign every row to the nearest of new centers."""
        self.centers = centers
        self.sums, self.weights = lloyd_step(self._blocks, centers)
