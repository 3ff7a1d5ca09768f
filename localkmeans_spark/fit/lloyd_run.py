"""The driver's side of Algorithm 1 and its safeguard: decisions only, no Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from localkmeans_spark.fit.exchange import Exchange
from localkmeans_spark.records import RoundRecord

# Where partitions differ no more than chance makes them (this many times its share of the scatter),
# averaging cancels most of the difference: what is left of it grows with chance's share, and is all
# of it from 1 / 30 on. Without this, cached fits of 400,000 x 64 took 8 rounds in the place of 4.
_BY_CHANCE, _LEFT_BY_AVERAGING = 2.0, 30.0
# Partitions whose centers differ by more than this share of the scatter hold different kinds of
# rows (sorted tables: 0.37 to 0.97) or ran into different local optima (at random placement
# mostly under 0.2). Averaging such centers undoes the work, at once, not one round late.
_DISAGREEMENT = 0.25
# A rise of less than this share is rounding, not a worse result.
_ROUNDING = 1e-9
# localSteps="auto": partitions stop when a step moves the centers by less than this share of the
# inertia. Much more would be too early: where clusters overlap, a step that gains little is often
# followed by some that gain more. More than 20 steps gain nothing anywhere (the partitions' own
# rows are fitted by then); from rough centers more than 5 lead partitions to different places.
_ENOUGH, _MOST_STEPS, _FIRST_STEPS = 0.00003, 20, 5


class Order(NamedTuple):
    """What a round asks of every partition.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        In the shared frame.
    local_steps : int
    enough : float
        Partitions stop early when a step gains less than this share of the inertia.
    """

    centers: np.ndarray
    local_steps: int
    enough: float = 0.0


class Traffic(NamedTuple):
    """What a round cost: bytes of centers sent down, of sums sent up, and wall seconds."""

    bytes_down: int
    bytes_up: int
    seconds: float


@dataclass
class _Known:
    """Centers whose inertia is known."""

    inertia: float
    centers: np.ndarray
    iteration: int


# What changes from round to round in a run, beside arrays and records.
_PLAIN_STATE = "n_iter", "converged", "bound", "_local_steps", "_last_inertia", "_last_steps"


class LloydRun:
    """One run of LocalKMeans from given centers: a state machine that the driver feeds.

    ``next_order`` says what to do, ``absorb`` takes what came of it, until ``next_order`` gives
    None; then ``settle`` takes the exact inertia of ``centers`` from a last pass, and may ask
    for more rounds. Several runs can share the same Spark jobs.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64
        Initial centers, in the shared frame.
    local_steps : int or "auto"
        L; with "auto" partitions stop by themselves when a step gains little, after 20 steps (5 in
        the first round) and half of the iterations left at most.
    max_iter : int
        T: Lloyd iterations behind the result. Iterations that were taken back do not count.
    tol : float
    safeguard : bool
        False runs the paper's plain algorithm: T iterations with the same L, then the last
        centers, whatever their inertia.
    sum_sq : float
        Sum of ``w * ||x - mean||**2``: the scale of rounding errors in the inertia.
    reseed : bool, default False
        Ask for new centers for clusters without a row on any partition (``empty``, ``place``).

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        Current centers.
    bound : float or None
        The inertia of ``centers`` is at most this; None when no round has told, as after going
        back.
    empty : ndarray of int
        Clusters that want new centers before the next order; empty unless ``reseed``.
    """

    def __init__(
        self,
        centers: np.ndarray,
        *,
        local_steps: int | str,
        max_iter: int,
        tol: float,
        safeguard: bool,
        sum_sq: float,
        reseed: bool = False,
    ) -> None:
        self.centers = centers
        self.n_iter = 0
        self.converged = False
        self.rounds: list[RoundRecord] = []
        self._is_auto = local_steps == "auto"
        self._local_steps = _MOST_STEPS if self._is_auto else int(local_steps)
        self._max_iter = max_iter
        self._tol = tol
        self._safeguard = safeguard
        self._noise = 1e-12 * sum_sq
        self._reseed = reseed
        self.bound: float | None = None
        self.empty = np.empty(0, dtype=np.int64)
        self._best: _Known | None = None
        self._last_inertia: float | None = None
        self._last_steps = 0

    @property
    def reverts(self) -> int:
        """Rounds taken back so far."""
        return sum(row.reverted for row in self.rounds)

    def next_order(self) -> Order | None:
        """Return the next round's centers and local steps; None when there is no more to do."""
        remaining = self._max_iter - self.n_iter
        if self.converged or remaining <= 0:
            return None
        most, enough = remaining, 0.0
        if self._is_auto:  # half is left for rounds that begin where all partitions' rows lead
            half = remaining // 2
            most, enough = max(1, half if self.rounds else min(half, _FIRST_STEPS)), _ENOUGH
        return Order(self.centers, min(self._local_steps, most), enough)

    def absorb(self, order: Order, found: Exchange, traffic: Traffic) -> RoundRecord:
        """Take the result of a round; decide from where, and with how many steps, to go on."""
        iteration = self.n_iter
        if self._is_auto:  # steps that partitions had no use for do not count
            order = order._replace(local_steps=found.local_steps)
        self.bound, note = None, ""
        if self._is_worse(found.inertia):
            note = "went back: the local steps before had raised the inertia"
            self._go_back(self._fewer_steps())
        elif self._disagrees(order, found):
            note = "went back: the partitions' centers disagree"
            self._remember(found.inertia, order.centers)
            self._go_back(1)
        else:
            self._go_on(order, found)
            self.bound = found.bound
            if self._reseed and found.filled is not None:
                self.empty = np.flatnonzero(~found.filled)
        reverted = bool(note)
        record = RoundRecord(
            round=len(self.rounds) + 1,
            iteration=iteration,
            local_steps=order.local_steps,
            inertia=found.inertia,
            center_shift=0.0 if reverted else found.center_shift,
            max_local_drift=found.max_local_drift,
            rms_deviation=found.rms_deviation,
            empty_clusters=found.empty_clusters,
            reverted=reverted,
            bytes_down=traffic.bytes_down,
            bytes_up=traffic.bytes_up,
            seconds=traffic.seconds,
            disagreement=found.disagreement,
            note=note,
        )
        self.rounds.append(record)
        return record

    def place(self, rows: np.ndarray) -> None:
        """Put the first of the empty clusters on ``rows``, as many as there are.

        The others, for which no row is left that is not a center already, keep their centers.
        """
        placed, self.empty = self.empty[: len(rows)], self.empty[:0]
        if not len(placed):
            return
        self.centers = self.centers.copy()
        self.centers[placed] = rows
        self.converged = False
        self.rounds[-1] = replace(self.rounds[-1], reseeded=len(placed))

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``restore`` needs to go on from here, as JSON-ready values and arrays."""
        best = self._best
        values = {name: getattr(self, name) for name in _PLAIN_STATE}
        values["empty"] = self.empty.tolist()
        values["rounds"] = [asdict(row) for row in self.rounds]
        values["best"] = None if best is None else [best.inertia, best.iteration]
        arrays = {"centers": self.centers}
        if best is not None:
            arrays["best"] = best.centers
        return values, arrays

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go on from where another run with the same parameters gave its ``state``."""
        self.centers = arrays["centers"]
        for name in _PLAIN_STATE:
            setattr(self, name, values[name])
        self.empty = np.array(values["empty"], dtype=np.int64)
        self.rounds = [RoundRecord(**row) for row in values["rounds"]]
        if values["best"] is not None:
            inertia, iteration = values["best"]
            self._best = _Known(inertia, arrays["best"], iteration)

    def settle(self, inertia: float) -> bool:
        """Take the exact inertia of ``centers``; return True when the run is over.

        False means that the last local steps made things worse: the run went back to the best
        centers and has iterations left to do better with fewer local steps. If it has none left,
        ``centers`` are now the best ones and want a last pass of their own.
        """
        if not self._is_worse(inertia):
            return True
        self._go_back(self._fewer_steps())
        return False

    def _is_worse(self, inertia: float) -> bool:
        """Whether the current centers came from local steps that raised the inertia."""
        if not self._safeguard or self._best is None or self._last_steps <= 1:
            return False
        return inertia > self._best.inertia * (1.0 + _ROUNDING) + self._noise

    def _disagrees(self, order: Order, found: Exchange) -> bool:
        """Whether a round's local steps led the partitions to different places."""
        return self._safeguard and order.local_steps > 1 and found.disagreement > _DISAGREEMENT

    def _fewer_steps(self) -> int:
        """Return how many steps to take after some that raised the inertia."""
        taken = self._last_steps if self._is_auto else self._local_steps
        return max(1, taken // 2)

    def _remember(self, inertia: float, centers: np.ndarray) -> None:
        if self._best is None or inertia < self._best.inertia:
            self._best = _Known(inertia, centers, self.n_iter)

    def _go_back(self, local_steps: int) -> None:
        assert self._best is not None
        self.centers, self.n_iter = self._best.centers, self._best.iteration
        self._local_steps = local_steps
        self._last_inertia, self._last_steps = None, 0
        self.converged = False

    def _go_on(self, order: Order, found: Exchange) -> None:
        self._remember(found.inertia, order.centers)
        self.centers = found.centers
        self.n_iter += order.local_steps
        exact = order.local_steps == 1 or not self._safeguard
        if found.center_shift <= self._tol:
            # Between local steps a standstill is not yet a fixed point of Lloyd's algorithm.
            self.converged = exact
            self._local_steps = self._local_steps if exact else 1
        elif (
            self._safeguard
            and self._last_inertia is not None
            and self._last_inertia - found.inertia < _bias(found) * self._last_inertia
        ):
            # Local steps fit each partition's own rows: once a round gains less than partitions
            # differ, only single steps lead to a fixed point of Lloyd's algorithm.
            self._local_steps = 1
        self._last_inertia, self._last_steps = found.inertia, order.local_steps


def _bias(found: Exchange) -> float:
    """Return about how far, as a share of the scatter, averaged local steps may lead astray."""
    by_chance = found.spread - found.disagreement
    if found.disagreement > _BY_CHANCE * by_chance:
        return found.spread
    return found.spread * min(1.0, _LEFT_BY_AVERAGING * by_chance)
