"""The engine's machines in one process: the same workers and merges, without Spark.

For simulations and for tests that need thousands of fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from localkmeans_spark.engine import aggregate, machine, machine_rounds
from localkmeans_spark.engine.block_format import StoredBlock
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.data_summary import summarise
from localkmeans_spark.engine.loop import LloydRun, Order, Traffic
from localkmeans_spark.engine.questions import Question
from localkmeans_spark.kernel.lloyd import Block

_NO_TRAFFIC = Traffic(0, 0, 0.0)


class InProcessMachines:
    """What ``engine.rounds.SparkMachines`` offers, for rows in memory.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_i, n_features), float64
        The rows of each machine.
    weights : sequence of ndarray of shape (n_i,), or None
    seed : int
    """

    def __init__(
        self,
        parts: Sequence[np.ndarray],
        weights: Sequence[np.ndarray] | None = None,
        seed: int = 0,
    ) -> None:
        self.machines = []
        for i, part in enumerate(parts):
            x = np.ascontiguousarray(part, dtype=np.float64)
            weight = None if weights is None else np.asarray(weights[i], dtype=np.float64)
            w = np.ones(len(x)) if weight is None else weight
            sum_sq = float(w @ (x**2).sum(axis=1))
            origin = np.zeros(x.shape[1])
            stored = StoredBlock(i, Block(x, weight), origin, float(w.sum()), sum_sq, 0, 0, 0)
            self.machines.append(machine.Machine(i, [stored]))
        found = [machine.describe(item, [seed]) for item in self.machines]
        self.data = summarise(found, FitConfig(seed=seed))

    def round(self, order: Order) -> aggregate.Exchange:
        """Run one round from one set of centers."""
        payload = machine_rounds.RoundOrder(
            self.data.frame,
            [order.centers],
            [order.local_steps],
            [order.settled],
            [order.enough],
        )
        merged = None
        for item in self.machines:
            found = machine_rounds.local_round(item, payload)
            merged = found if merged is None else aggregate.merge_rounds(merged, found)
        assert merged is not None
        return aggregate.exchange(merged[0], order.centers)

    def inertia(self, centers: np.ndarray) -> float:
        """Exact inertia of centers in the shared frame."""
        order = machine_rounds.CentersOrder(centers + self.data.frame.mean)
        return float(
            sum(machine_rounds.assign(item, order).inertia.sum() for item in self.machines)
        )

    def answer(self, questions: Sequence[Question]) -> list[Any]:
        """As ``SparkMachines.answer``."""
        answers = []
        for question in questions:
            job = question.job(self.data)
            # Merging in any order gives the same.
            found = [job.worker(item, job.order) for item in reversed(self.machines)]
            answers.append(job.finish(reduce(job.merge, found)))
        return answers


def run_lloyd(
    machines: InProcessMachines,
    centers: np.ndarray,
    *,
    local_steps: int,
    max_iter: int = 20,
    safeguard: bool = True,
) -> tuple[float, LloydRun]:
    """Run LocalKMeans from absolute centers; return the final inertia and the run."""
    run = LloydRun(
        centers - machines.data.frame.mean,
        local_steps=local_steps,
        max_iter=max_iter,
        tol=0.0,
        safeguard=safeguard,
        sum_sq=machines.data.sum_sq,
    )
    while True:
        while (order := run.next_order()) is not None:
            run.absorb(order, machines.round(order), _NO_TRAFFIC)
        inertia = machines.inertia(run.centers)
        if run.settle(inertia):
            return inertia, run
