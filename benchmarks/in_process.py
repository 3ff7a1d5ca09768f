"""The door to the partitions in one process: the same requests and runs, without Spark.

For simulations and for tests that need thousands of fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.data.block_format import StoredBlock
from localkmeans_spark.data.partition import Partition, describe
from localkmeans_spark.data.summary import summarise
from localkmeans_spark.fit.driver import run_to_the_end
from localkmeans_spark.fit.partitions import Partitions
from localkmeans_spark.fit.requests import Asking, Request
from localkmeans_spark.fit.run import Fit, JobCost, Run, restart_seeds
from localkmeans_spark.kernel.assign import to_frame
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.typical import origin_of, rows_looked_at

Result = TypeVar("Result")


class InProcessPartitions:
    """What ``fit.partitions.BlockPartitions`` offers, for rows in memory.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_i, n_features), float64
        The rows of each partition.
    weights : sequence of ndarray of shape (n_i,), or None
    seeds : sequence of int
        Of the runs to come.
    dtype : str, optional
        Keep the rows as a fit with this dtype keeps them; as they are when missing.
    """

    def __init__(
        self,
        parts: Sequence[np.ndarray],
        weights: Sequence[np.ndarray] | None = None,
        seeds: Sequence[int] = (0,),
        dtype: str | None = None,
    ) -> None:
        self.partitions = []
        for i, part in enumerate(parts):
            x = np.ascontiguousarray(part, dtype=np.float64)
            origin = np.zeros(x.shape[1])
            if dtype is not None:
                origin = origin_of(x[: rows_looked_at(x.shape[1])])
                x = to_frame(x, origin, dtype)
            weight = None if weights is None else np.asarray(weights[i], dtype=np.float64)
            w = np.ones(len(x)) if weight is None else weight
            sum_sq = float(w @ (x.astype(np.float64) ** 2).sum(axis=1))
            stored = StoredBlock(i, Block(x, weight), origin, float(w.sum()), sum_sq)
            self.partitions.append(Partition(i, [stored]))
        found = [describe(item, seeds) for item in self.partitions]
        self.data = summarise(found, FitConfig(data=DataConfig(dtype=dtype or "float32")))

    def run(self, requests: Sequence[Request]) -> list[tuple[Any, JobCost]]:
        """Do requests on every partition; merging in any order gives the same."""
        return [
            (
                request.finish(
                    reduce(
                        request.merge,
                        [request.worker(item, request.order) for item in self.partitions[::-1]],
                    )
                ),
                JobCost(),
            )
            for request in requests
        ]


def result_of(asking: Asking[Result], partitions: Partitions) -> Result:
    """Let a function that asks for requests go on to its end."""
    answer = None
    while True:
        try:
            request = asking.send(answer)
        except StopIteration as end:
            return end.value
        ((answer, _),) = partitions.run([request])


def fit_in_process(parts: Sequence[np.ndarray], config: FitConfig) -> tuple[float, Run]:
    """Run a fit, restarts and all, on rows in memory; return its inertia and its best run."""
    partitions = InProcessPartitions(parts, seeds=restart_seeds(config.seed, config.n_init))
    fit = Fit(config, partitions.data)
    run_to_the_end([fit], partitions)
    best, _, assignment = fit.winner()
    return float(assignment.inertia.sum()), best
