"""The Spark jobs of a fit after its first: rounds, the last pass, and seeding passes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from localkmeans_spark.engine import machine
from localkmeans_spark.engine.aggregate import (
    Assignment,
    Exchange,
    concatenate,
    exchange,
    in_time_order,
    merge_arrivals,
    merge_assignments,
    merge_candidates,
    merge_rounds,
)
from localkmeans_spark.engine.blocks import Blocks
from localkmeans_spark.engine.loop import Order, Traffic
from localkmeans_spark.kernel.draws import Arrivals


class SparkMachines:
    """What the driver can ask of all machines. One Spark job a call.

    Another engine (one without RDDs, say) offers the same methods.

    Parameters
    ----------
    blocks : Blocks
    """

    def __init__(self, blocks: Blocks) -> None:
        self.data = blocks.data
        self._blocks = blocks
        status = blocks.tasks.context._jsc.sc().getExecutorMemoryStatus()
        # The driver is in the list too; in local mode it is the only one.
        self._n_executors = max(1, status.size() - 1)

    def round(self, orders: Sequence[Order], description: str) -> tuple[list[Exchange], Traffic]:
        """Run one round for every set of centers.

        Returns
        -------
        list of Exchange
            One for every order.
        Traffic
        """
        began = time.perf_counter()
        centers = [order.centers for order in orders]
        payload = machine.RoundOrder(
            self.data.frame,
            centers,
            [order.local_steps for order in orders],
            [order.settled for order in orders],
        )
        nbytes = sum(array.nbytes for array in centers)
        summaries, n_tasks = self._blocks.run(
            machine.local_round, payload, merge_rounds, description, nbytes
        )
        found = [
            exchange(s, c, self.data.frame.unit_about)
            for s, c in zip(summaries, centers, strict=True)
        ]
        traffic = Traffic(
            bytes_down=nbytes * self._n_executors,
            bytes_up=nbytes * n_tasks + sum(s.nbytes - s.sums.nbytes for s in summaries),
            seconds=time.perf_counter() - began,
        )
        return found, traffic

    def assign(self, centers: np.ndarray) -> Assignment:
        """Label every row exactly with the nearest of the absolute ``centers``."""
        found, _ = self._blocks.run(
            machine.assign,
            machine.CentersOrder(centers),
            merge_assignments,
            "final cost and sizes",
            24 * len(centers),
        )
        order = np.argsort(found.machines)
        return Assignment(
            found.machines[order], found.sizes, found.weights[order], found.inertia[order]
        )

    def arrivals(
        self, centers: np.ndarray, duration: float, seed: int, number: int, wanted: int
    ) -> Arrivals:
        """Let the rows' Poisson clocks run (seeding pass ``number``); about ``wanted`` arrive."""
        frame = self.data.frame
        order = machine.ArrivalsOrder(frame, centers, duration, seed, number)
        found, _ = self._blocks.run(
            machine.arrivals,
            order,
            merge_arrivals,
            f"seeding pass {number} ({len(centers)} centers so far)",
            8 * wanted * centers.shape[1] // max(1, len(self.data.statistics)),
        )
        return in_time_order(found)

    def one_row_each(self, centers: np.ndarray, seed: int, number: int) -> list[machine.OneRow]:
        """Let every machine draw one row by distance; in the order of the machines."""
        order = machine.ArrivalsOrder(self.data.frame, centers, 0.0, seed, number)
        found, _ = self._blocks.run(
            machine.one_row, order, concatenate, f"drawing center {len(centers) + 1}", 0
        )
        return sorted(found, key=lambda item: item.machine)

    def random_rows(self, size: int, seed: int, number: int) -> np.ndarray:
        """Draw ``size`` rows without replacement, in the order drawn; fewer if there are fewer."""
        order = machine.RowsOrder(self.data.frame, size, seed, number)
        found, _ = self._blocks.run(
            machine.random_rows,
            order,
            merge_candidates,
            "drawing random rows",
            8 * size * self.data.n_features,
        )
        return found.rows

    def weigh(self, candidates: np.ndarray) -> np.ndarray:
        """Return the weight of the rows nearest each candidate."""
        order = machine.WeighOrder(self.data.frame, candidates)
        found, _ = self._blocks.run(
            machine.weigh, order, np.add, "weighing candidates", 8 * len(candidates)
        )
        return found
