"""Many trials, and many runs on each, side by side in the same Spark jobs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pyspark import RDD, SparkContext, StorageLevel

from localkmeans_spark.kernel.draws import weighted_indices
from localkmeans_spark.kernel.exact_sum import grid_for
from localkmeans_spark.paper import passes
from localkmeans_spark.paper.legs import Leg, LegOrder, merge_parts, walk
from localkmeans_spark.paper.mixture import Mixture, generator
from localkmeans_spark.paper.placed import (
    DatasetInfo,
    PlacedRows,
    describe,
    merge_infos,
    run_on,
)
from localkmeans_spark.paper.runs import Run, Trace, Walk


@dataclass(frozen=True)
class Trials:
    """Cached data sets on machines, and the jobs on them.

    Attributes
    ----------
    placed : RDD of PlacedRows
    infos : dict of int to DatasetInfo
    truth : dict of int to ndarray of shape (K, d)
        True centers, where there are any.
    """

    placed: RDD
    infos: dict[int, DatasetInfo]
    truth: dict[int, np.ndarray]

    def seed(
        self, states: Sequence[int], k: int, seed: int, *, candidates: int = 1, power: int = 2
    ) -> list[np.ndarray]:
        """Draw k initial centers for every state by Algorithm 2, one pass a center.

        Parameters
        ----------
        states : sequence of int
            Data set of each state; several states of a data set are independent draws.
        k : int
        seed : int
        candidates : int
            More than 1 is greedy: of so many draws the one with the smallest potential is taken
            (one pass more a center).
        power : int
            2 weighs by squared distance, as k-means++ does; 1 by plain distance.

        Returns
        -------
        list of ndarray of shape (k, d)
        """
        centers = [np.empty((0, self.infos[dataset].n_features)) for dataset in states]
        for number in range(k):
            wanted = _by_dataset(states, centers)
            order = passes.DrawOrder(wanted, candidates, power, seed, number)
            found = self._run(passes.draw, order, operator.add, f"center {number + 1}")
            options = _choose(found, len(states), candidates, seed, number)
            best = np.zeros(len(states), dtype=int)
            if candidates > 1:
                best = self._cheapest(states, centers, options)
            centers = [
                np.concatenate([known, rows[chosen][None, :]])
                for known, rows, chosen in zip(centers, options, best, strict=True)
            ]
        return centers

    def _cheapest(
        self, states: Sequence[int], centers: list[np.ndarray], options: list[np.ndarray]
    ) -> np.ndarray:
        wanted: dict[int, dict[Any, np.ndarray]] = {}
        for state, dataset in enumerate(states):
            for place, row in enumerate(options[state]):
                with_it = np.concatenate([centers[state], row[None, :]])
                wanted.setdefault(dataset, {})[state, place] = with_it
        found = self.objectives(wanted)
        table = np.full((len(states), max(len(rows) for rows in options)), np.inf)
        for (state, place), value in found.items():
            table[state, place] = value
        return table.argmin(axis=1)

    def objectives(self, wanted: dict[int, dict[Any, np.ndarray]]) -> dict[Any, float]:
        """Return the K-means objective of sets of centers given by data set, then by name."""
        order = passes.CostOrder(wanted)
        found = self._run(passes.costs, order, passes.merge_costs, "objectives")
        return {name: math.fsum(by_machine.values()) for name, by_machine in found.items()}

    def trace(self, runs: Sequence[Run], n_steps: int) -> list[Trace]:
        """Run Algorithm 1 for T steps from every run's centers; one job for each exchange.

        Parameters
        ----------
        runs : sequence of Run
        n_steps : int
            T.

        Returns
        -------
        list of Trace
        """
        walks = [Walk(run, self.infos[run.dataset], n_steps) for run in runs]
        grids = {
            dataset: float(grid_for(np.array(4.0 * info.n_rows * info.largest)))
            for dataset, info in self.infos.items()
        }
        number = 0
        while legs := {i: leg for i, one in enumerate(walks) if (leg := one.next_leg())}:
            number += 1
            wanted: dict[int, dict[int, Leg]] = {}
            for i, leg in legs.items():
                wanted.setdefault(runs[i].dataset, {})[i] = leg
            order = LegOrder(wanted, self.truth, grids)
            found = self._run(walk, order, merge_parts, f"leg {number} of {len(legs)} runs")
            for i in legs:
                walks[i].absorb(found[i])
        return [one.finish() for one in walks]

    def _run(self, worker: Callable, payload: Any, merge: Callable, description: str) -> Any:
        return _job(self.placed, worker, payload, merge, description)


def _job(rdd: RDD, worker: Callable, payload: Any, merge: Callable, description: str) -> Any:
    context = rdd.context
    context.setJobDescription(f"LocalKMeans experiment: {description}")
    broadcast = context.broadcast(payload)
    try:
        on_task = partial(run_on, worker=worker, payload=broadcast, merge=merge)
        add = partial(_merge_optional, merge=merge)
        return rdd.mapPartitions(on_task).treeAggregate(None, add, add)
    finally:
        broadcast.destroy()
        context.setJobDescription("")


def _merge_optional(left: Any, right: Any, merge: Callable) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return merge(left, right)


def _by_dataset(states: Sequence[int], centers: list[np.ndarray]) -> dict[int, dict]:
    wanted: dict[int, dict[int, np.ndarray]] = {}
    for state, dataset in enumerate(states):
        wanted.setdefault(dataset, {})[state] = centers[state]
    return wanted


def _choose(
    found: list[passes.Drawn], n_states: int, candidates: int, seed: int, number: int
) -> list[np.ndarray]:
    """Choose machines with probability E_i / sum E, and take the rows they drew."""
    by_state: list[list[passes.Drawn]] = [[] for _ in range(n_states)]
    for item in sorted(found, key=lambda item: item.machine):
        by_state[item.state].append(item)
    options = []
    for state, drawn in enumerate(by_state):
        rng = generator(seed, number, state)
        potentials = np.array([item.potential for item in drawn])
        if not potentials.any():
            raise ValueError(f"fewer distinct rows than centers: {number} found")
        picked = weighted_indices(potentials, candidates, rng)
        rows = [drawn[machine].rows[place] for place, machine in enumerate(picked)]
        options.append(np.array(rows))
    return options


@contextmanager
def mixture_trials(context: SparkContext, mixtures: Sequence[Mixture]) -> Iterator[Trials]:
    """Make the rows of many mixtures on the machines, cached for the block; a mixture a trial."""
    specs = [
        (dataset, machine)
        for dataset, mixture in enumerate(mixtures)
        for machine in range(mixture.n_machines)
    ]
    shared = context.broadcast(list(mixtures))
    placed = context.parallelize(specs, _n_tasks(context, len(specs))).map(
        partial(_make_rows, mixtures=shared)
    )
    truth = {dataset: mixture.centers for dataset, mixture in enumerate(mixtures)}
    with open_trials(placed, truth) as trials:
        yield trials
    shared.destroy()


def _make_rows(spec: tuple[int, int], mixtures: Any) -> PlacedRows:
    dataset, machine = spec
    return PlacedRows(dataset, machine, *mixtures.value[dataset].rows(machine))


@contextmanager
def array_trials(
    context: SparkContext, x: np.ndarray, labels: np.ndarray, machine_of_row: np.ndarray
) -> Iterator[Trials]:
    """Place the rows of one array on machines (data set 0), cached for the block.

    Parameters
    ----------
    x : ndarray of shape (n, d), float32 or float64
    labels : ndarray of shape (n,), int
    machine_of_row : ndarray of shape (n,), int
        Machine of every row.
    """
    m = int(machine_of_row.max()) + 1
    rows = [np.flatnonzero(machine_of_row == machine) for machine in range(m)]
    pieces = [
        PlacedRows(0, machine, np.ascontiguousarray(x[where]), labels[where].astype(np.int32))
        for machine, where in enumerate(rows)
    ]
    placed = context.parallelize(pieces, _n_tasks(context, m))
    with open_trials(placed, {}) as trials:
        yield trials


def _n_tasks(context: SparkContext, n_elements: int) -> int:
    return max(1, min(n_elements, 2 * context.defaultParallelism))


@contextmanager
def open_trials(placed: RDD, truth: dict[int, np.ndarray]) -> Iterator[Trials]:
    """Cache an RDD of machines for the block."""
    placed = placed.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        infos = _job(placed, describe, None, merge_infos, "making the rows")
        yield Trials(placed, infos, truth)
    finally:
        placed.unpersist()
