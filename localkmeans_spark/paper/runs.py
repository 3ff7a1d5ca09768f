"""One run of Algorithm 1 as the driver sees it: what it asks for, and what it notes a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from localkmeans_spark.kernel.lloyd import means_or_kept
from localkmeans_spark.paper.legs import Leg, LegPart
from localkmeans_spark.paper.placed import DatasetInfo


class Run(NamedTuple):
    """One run of Algorithm 1.

    Attributes
    ----------
    dataset : int
    centers : ndarray of shape (K, d)
        Initial centers, the same on every machine.
    local_steps : int or None
        L; None for Lloyd's without aggregation.
    by_size : bool
        False exchanges the plain mean over machines instead of the size-weighted one.
    """

    dataset: int
    centers: np.ndarray
    local_steps: int | None
    by_size: bool = True


@dataclass(frozen=True)
class Trace:
    """One run at every step t = 1, ..., T (first axis; t as in Algorithm 1).

    Attributes
    ----------
    counts : ndarray of shape (T, m, K, K), int32
        Confusion counts of the labels z^(t): true cluster by label. Entry 0 is z^(1), the
        assignment by the initial centers.
    centers : ndarray of shape (T, K, d)
        Virtual iterate: what an exchange at t would give.
    plain_means : ndarray of shape (T, K, d)
        The plain mean over machines of their centers.
    inertia : ndarray of shape (T, m)
        Squared distances of every machine's rows to its own centers that labelled them.
    deviation : ndarray of shape (T,)
        Delta: mean over machines of the squared distance to the virtual iterate.
    sq_to_truth : ndarray of shape (T, m, K, K)
        Squared distances of local to true centers; (T, m, 0, 0) without true centers.
    exchanges : list of int
        The t at which machines exchanged centers, 0 included.
    """

    counts: np.ndarray
    centers: np.ndarray
    plain_means: np.ndarray
    inertia: np.ndarray
    deviation: np.ndarray
    sq_to_truth: np.ndarray
    exchanges: list[int]


class Walk:
    """The driver's side of one run (Algorithm 1, Server)."""

    def __init__(self, run: Run, info: DatasetInfo, n_steps: int) -> None:
        self._run, self._info, self._n_steps = run, info, n_steps
        self._centers = run.centers
        self._parts: list[dict[str, np.ndarray]] = []
        self._exchanges: list[int] = []
        self._t = 0

    def next_leg(self) -> Leg | None:
        """Return the steps up to the next exchange; None after T steps."""
        left = self._n_steps - self._t
        steps = min(self._run.local_steps or left, left)
        return Leg(self._centers, steps) if left else None

    def absorb(self, part: LegPart) -> None:
        """Note a leg; form the next exchange's centers, or repeat a leg that changed nothing."""
        began, steps = self._centers, len(part.sizes)
        measured = self._measure(part)
        self._note(measured, steps)
        self._centers = measured["centers"][-1]
        if np.array_equal(self._centers, began):
            while self._t < self._n_steps:  # every further leg repeats this one
                left = min(steps, self._n_steps - self._t)
                self._note({name: value[:left] for name, value in measured.items()}, left)

    def _note(self, measured: dict[str, np.ndarray], steps: int) -> None:
        self._exchanges.append(self._t)
        self._parts.append(measured)
        self._t += steps

    def _measure(self, part: LegPart) -> dict[str, np.ndarray]:
        """Turn a leg's sums into virtual iterates and the machines' deviation from them."""
        order = np.argsort(part.machines)
        m = len(order)
        plain = self._centers + part.moved / m
        virtual = plain
        if self._run.by_size:
            # A cluster empty everywhere keeps the center of the last exchange.
            steps = zip(part.sums, part.sizes, strict=True)
            virtual = np.stack([means_or_kept(*step, self._centers) for step in steps])
        shift = virtual - self._centers
        # With v virtual and c the leg's start, mean_i |theta_i - v|^2 =
        # mean_i |theta_i - c|^2 - 2 (v - c).mean_i(theta_i - c) + |v - c|^2
        cross = np.einsum("tkd,tkd->t", shift, part.moved) / m
        deviation = part.sq_moved.mean(axis=1) - 2.0 * cross + np.einsum("tkd,tkd->t", shift, shift)
        return {
            "counts": part.counts[:, order],
            "centers": virtual,
            "plain_means": plain,
            "inertia": part.inertia[:, order],
            "deviation": np.maximum(deviation, 0.0),
            "sq_to_truth": part.sq_to_truth[:, order],
        }

    def finish(self) -> Trace:
        """Return what was noted at all steps."""
        joined = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        return Trace(exchanges=self._exchanges, **joined)
