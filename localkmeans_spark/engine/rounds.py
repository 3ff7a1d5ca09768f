"""The Spark jobs of a fit after its first: rounds, the last pass, and seeding passes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from localkmeans_spark.engine.aggregate import Exchange, exchange, merge_rounds
from localkmeans_spark.engine.blocks import Blocks
from localkmeans_spark.engine.loop import Order, Traffic
from localkmeans_spark.engine.machine_rounds import RoundOrder, local_round
from localkmeans_spark.engine.questions import (
    JOB_BYTES,
    Job,
    Question,
    answer_all,
    batches,
    merge_all,
)
from localkmeans_spark.engine.step_choice import RoundTimes


class SparkMachines:
    """What the driver can ask of all machines; as many questions in one Spark job as fit.

    Another engine (one without RDDs, say) offers the same methods.

    Parameters
    ----------
    blocks : Blocks
    """

    def __init__(self, blocks: Blocks) -> None:
        self.data = blocks.data
        self._blocks = blocks
        self._job_bytes = min(JOB_BYTES, blocks.max_job_bytes)
        status = blocks.tasks.context._jsc.sc().getExecutorMemoryStatus()
        # The driver is in the list too; in local mode it is the only one.
        self._n_executors = max(1, status.size() - 1)

    def round(self, orders: Sequence[Order], description: str) -> list[tuple[Exchange, Traffic]]:
        """Run one round for every set of centers.

        Returns
        -------
        list of (Exchange, Traffic)
            One for every order; each set's own bytes, and the seconds of the jobs they shared.
        """
        began = time.perf_counter()
        found: list[tuple[Exchange, Traffic]] = []
        for group in batches(orders, lambda order: order.centers.nbytes, self._job_bytes):
            found += self._one_round(group, description)
        seconds = time.perf_counter() - began
        steps = sum(traffic.times.first + traffic.times.later for _, traffic in found)
        outside = max(0.0, seconds - steps) / len(orders)
        return [
            (
                result,
                traffic._replace(seconds=seconds, times=traffic.times._replace(outside=outside)),
            )
            for result, traffic in found
        ]

    def _one_round(
        self, orders: Sequence[Order], description: str
    ) -> list[tuple[Exchange, Traffic]]:
        """Run a job of a round; its wall seconds are still to be filled in."""
        centers = [order.centers for order in orders]
        payload = RoundOrder(
            self.data.frame,
            centers,
            [order.local_steps for order in orders],
            [order.settled for order in orders],
            [order.enough for order in orders],
        )
        nbytes = sum(array.nbytes for array in centers) * len(self.data.frame.sum_grids)
        summaries, n_tasks = self._blocks.run(
            local_round, payload, merge_rounds, description, nbytes
        )
        # Tasks run side by side, the machines of a task one after the other.
        lanes = max(1, min(n_tasks, self._blocks.tasks.context.defaultParallelism))
        return [
            (
                exchange(s, c, self.data.frame.unit_about),
                Traffic(
                    bytes_down=c.nbytes * self._n_executors,
                    bytes_up=s.sums.nbytes * n_tasks + s.nbytes - s.sums.nbytes,
                    seconds=0.0,
                    times=RoundTimes(
                        first=float(s.first_seconds.sum()) / lanes,
                        later=float(s.later_seconds.sum()) / lanes,
                        steps=float(s.steps.mean()),
                    ),
                ),
            )
            for s, c in zip(summaries, centers, strict=True)
        ]

    def answer(self, questions: Sequence[Question]) -> list[Any]:
        """Answer questions of any kind, in their order, in shared passes."""
        answers: list[Any] = []
        jobs = [question.job(self.data) for question in questions]
        for group in batches(jobs, lambda job: job.nbytes, self._job_bytes):
            answers += self._one_job(group)
        return answers

    def _one_job(self, jobs: Sequence[Job]) -> list[Any]:
        merge = partial(merge_all, merges=[job.merge for job in jobs])
        description = jobs[0].description + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")
        found, _ = self._blocks.run(
            answer_all,
            [(job.worker, job.order) for job in jobs],
            merge,
            description,
            sum(job.nbytes for job in jobs),
        )
        return [job.finish(item) for job, item in zip(jobs, found, strict=True)]
