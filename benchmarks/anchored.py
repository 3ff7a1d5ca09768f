"""Anchored rounds (docs/LOCAL_STEPS.md): measured here, not part of the library.

For centers c, an exact Lloyd step gave the global means G. A partition labels its rows with c once
more and so knows its own means m0 and weights w0 of the same clusters. In its local steps from G,
with means m and weights w, its centers are ::

    a = m + min(1, w0 / w) (G - m0)    where w > 0 and w0 > 0
    a = G                              elsewhere

If no row changes its cluster then a = G, so a fixed point of Lloyd's algorithm stays where it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.in_process import InProcessPartitions
from localkmeans_spark.data.partition import Frame, Partition
from localkmeans_spark.fit.exchange import Exchange
from localkmeans_spark.fit.lloyd_run import LloydRun, Order, Traffic
from localkmeans_spark.kernel.lloyd import inertia_from_sums, means_or_kept
from localkmeans_spark.kernel.local_steps import PlainSteps
from localkmeans_spark.records import RoundRecord

# An exact step is followed by anchored ones if the last round gained at least this share of what
# the one before it did. Where gains fall faster, single steps are soon done; and anchored steps
# that gained less than that were no better than the single step before them.
_SLOW = 0.5


def anchored_steps(
    partition: Partition, frame: Frame, anchor: np.ndarray, centers: np.ndarray, local_steps: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Do anchored local steps on one partition.

    Returns
    -------
    moves : ndarray of shape (k, n_features)
        Weighted moves w (a - G); exactly 0 where nothing moves.
    weights : ndarray of shape (k,)
    inertia : float
        Of G.
    """
    anchor, centers = (frame.to_partition(it, partition) for it in (anchor, centers))
    rows = PlainSteps(partition.blocks, anchor)
    before, own = rows.weights, means_or_kept(rows.sums, rows.weights, anchor)
    rows.step(centers)
    inertia = inertia_from_sums(rows.sums, rows.weights, centers, partition.sum_sq)
    moved = centers
    for step in range(local_steps):
        known = (rows.weights > 0) & (before > 0)
        now = means_or_kept(rows.sums, rows.weights, centers)
        ratio = np.minimum(1.0, before[known] / rows.weights[known])[:, None]
        off = centers[known] - own[known]
        moved = centers.copy()
        # In this order, means that stand still leave G as it is, to the bit.
        moved[known] = centers[known] + (now[known] - own[known]) - (1.0 - ratio) * off
        if step + 1 < local_steps:
            rows.step(moved)
    return rows.weights[:, None] * (moved - centers), rows.weights, inertia


def anchored_round(
    partitions: InProcessPartitions, anchor: np.ndarray, centers: np.ndarray, local_steps: int
) -> Exchange:
    """Do anchored local steps on every partition and exchange."""
    frame = partitions.data.frame
    found = [
        anchored_steps(item, frame, anchor, centers, local_steps) for item in partitions.partitions
    ]
    weights = np.sum([weights for _, weights, _ in found], axis=0)
    total = np.sum([moves for moves, _, _ in found], axis=0)
    moves = means_or_kept(total, weights, np.zeros(centers.shape))
    shift = float(np.sqrt((moves**2).sum(axis=1).max()))
    inertia = float(sum(inertia for _, _, inertia in found))
    return Exchange(centers + moves, inertia, shift, 0.0, 0.0, 0.0, 0)


class AnchoredRun(LloydRun):
    """The safeguard with an exact step and anchored ones in turns, in the place of single steps.

    Attributes
    ----------
    anchor : ndarray of shape (k, n_features), or None
        The next order is of anchored steps if it is given.
    kinds : str
        A letter a round: P (plain), s (single step), A (anchored).
    """

    def __init__(self, centers: np.ndarray, **options: Any) -> None:
        super().__init__(centers, **options)
        self.anchor: np.ndarray | None = None
        self.kinds = ""
        self._anchored_steps = self._local_steps

    def next_order(self) -> Order | None:
        """As many iterations are left for rounds that can tell what anchored steps did."""
        order = super().next_order()
        steps = min(self._anchored_steps, (self._max_iter - self.n_iter) // 2)
        if order is None or self.anchor is None or steps < 2:
            self.anchor = None
            return order
        return order._replace(local_steps=steps)

    def absorb(self, order: Order, found: Exchange, traffic: Traffic) -> RoundRecord:
        """Take the result of a round, anchored if ``anchor`` is given."""
        is_anchored, self.anchor = self.anchor is not None, None
        if self.kinds.endswith("A") and self._is_worse(found.inertia):
            self._anchored_steps //= 2
            if self._best is not None and found.bound < self._best.inertia:
                self._last_steps = 1  # the exact step made up for it
        record = super().absorb(order, found, traffic)
        if is_anchored:
            self.kinds += "A"
            return record
        self.kinds += "s" if order.local_steps == 1 else "P"
        is_best = self._best is not None and self._best.centers is order.centers
        if self._local_steps == order.local_steps == 1 and is_best and self._is_slow():
            self.anchor = order.centers
        return record

    def _is_slow(self) -> bool:
        if len(self.rounds) < 3 or self.rounds[-2].reverted or self.rounds[-1].reverted:
            return False
        if self.kinds[-2] == "P":
            return True  # plain rounds end where little is left to gain
        before, last, now = self.rounds[-3:]
        gains = before.inertia - last.inertia, last.inertia - now.inertia
        return not before.reverted and gains[1] >= _SLOW * gains[0]
