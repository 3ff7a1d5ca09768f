"""Algorithms 1 and 2 on cached rows, many runs in the same Spark jobs, measured at every step.

A machine (the paper's word for a partition) sends counts, sums and distances of centers, never rows
or labels. What machines find is a nested dict: by run, then by name, then by machine where each has
its own; arrays under the same key are sums and are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from pyspark import RDD, Broadcast, SparkContext, StorageLevel
from threadpoolctl import threadpool_limits

from jobs.paper.mixture import Mixture, generator
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.kernel.draws import sq_distances_to_nearest, weighted_indices
from localkmeans_spark.kernel.exact_sum import grid_for, to_grid
from localkmeans_spark.kernel.lloyd import (
    Block,
    add_cluster_sums,
    inertia_from_sums,
    means_or_kept,
)
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.metrics import sq_distances_between


class Rows(NamedTuple):
    """The rows of one machine in one data set; trials with data of their own are several."""

    dataset: int
    machine: int
    x: np.ndarray  # (n, d), float32 or float64
    labels: np.ndarray  # (n,), int32: true clusters, 0..K-1; only for counting


class Run(NamedTuple):
    """One run of Algorithm 1 from the same centers (K, d) on every machine."""

    dataset: int
    centers: np.ndarray
    local_steps: int | None  # L; None for Lloyd's without aggregation
    by_size: bool = True  # False exchanges the plain mean over machines


class Trace(NamedTuple):
    """One run at every step t = 1, ..., T (first axis; t as in Algorithm 1).

    Entry 0 of ``counts`` and ``inertia`` is of z^(1), the assignment by the initial centers.
    """

    counts: np.ndarray  # (T, m, K, K), int32: true cluster by label z^(t)
    centers: np.ndarray  # (T, K, d): virtual iterate, what an exchange at t would give
    plain_means: np.ndarray  # (T, K, d): plain mean over machines of their centers
    inertia: np.ndarray  # (T, m): of a machine's rows around its centers that labelled them
    deviation: np.ndarray  # (T,): Delta, mean squared distance of machines to the virtual iterate
    sq_to_truth: np.ndarray  # (T, m, K, K): local to true centers; (T, m, 0, 0) without those
    exchanges: list[int]  # the t at which machines exchanged centers, 0 included


def walk(rows: Rows, order: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Do every leg of this machine's data set: local steps from common centers (Machine(i))."""
    truth, grid = order["truth"].get(rows.dataset), order["grids"][rows.dataset]
    sum_sq = float(np.einsum("nd,nd->", rows.x, rows.x, dtype=np.float64))
    return {
        run: walk_leg(rows, began, n_steps, truth, grid, sum_sq)
        for run, (began, n_steps) in order["legs"].get(rows.dataset, {}).items()
    }


def walk_leg(
    rows: Rows, began: np.ndarray, n_steps: int, truth: np.ndarray | None,
    grid: float, sum_sq: float,
) -> dict[str, Any]:  # fmt: skip
    """Do the local steps of one leg on one machine and note what the paper measures.

    A cluster without rows here keeps its local center.

    Parameters
    ----------
    began, truth : ndarray of shape (K, d)
        The common centers; the true ones, or None.
    grid : float
        Sums are rounded to its multiples, so that adding them in any order gives the same bits.
    sum_sq : float
        Sum of the rows' squared norms.

    Returns
    -------
    dict
        First axis: the steps. Added over machines: ``sums`` (K, d) and ``sizes`` (K,) of the
        clusters, ``moved`` (K, d), the local centers' way from the common ones. By machine:
        ``counts`` (K, K), ``inertia``, ``sq_moved`` and ``sq_to_truth`` (K, K).
    """
    k, d = began.shape
    if rows.labels.max(initial=0) >= k:
        raise ValueError(f"true clusters must be below k = {k}; got {rows.labels.max()}")
    block, labels = Block(rows.x, None), np.empty(len(rows.x), dtype=np.int32)
    added: dict[str, Any] = {"sums": np.zeros((n_steps, k, d)), "moved": np.zeros((n_steps, k, d)),
                             "sizes": np.zeros((n_steps, k))}  # fmt: skip
    n_true = 0 if truth is None else k
    own: dict[str, Any] = {"counts": np.zeros((n_steps, k, k), dtype=np.int32),
                           "sq_to_truth": np.zeros((n_steps, n_true, n_true)),
                           "inertia": np.zeros(n_steps), "sq_moved": np.zeros(n_steps)}  # fmt: skip
    centers, done = began, 0
    while done < n_steps:
        sums, moved = added["sums"][done], added["moved"][done]
        Scorer(centers).nearest(rows.x, labels)
        add_cluster_sums(block, labels, sums)
        added["sizes"][done] = sizes = np.bincount(labels, minlength=k)
        pairs = np.bincount(rows.labels.astype(np.int64) * k + labels, minlength=k * k)
        own["counts"][done] = pairs.reshape(k, k)
        own["inertia"][done] = inertia_from_sums(sums, sizes, centers, sum_sq)
        new = means_or_kept(sums, sizes, centers)
        moved[:] = new - began
        own["sq_moved"][done] = np.einsum("kd,kd->", moved, moved)
        if truth is not None:
            own["sq_to_truth"][done] = sq_distances_between(new, truth)
        done += 1
        if np.array_equal(new, centers):
            break  # a local fixed point: every further step repeats this one
        centers = new
    for array in (*added.values(), *own.values()):
        array[done:] = array[done - 1]
    for name in ("sums", "moved"):
        added[name] = to_grid(added[name], grid)
    return {**added, **{name: {rows.machine: array} for name, array in own.items()}}


def draw(rows: Rows, order: dict[str, Any]) -> dict[int, dict[int, tuple[float, np.ndarray]]]:
    """Return E_i and rows drawn with probability E_ij / E_i, by state and machine (Algorithm 2)."""
    drawn = {}
    for state, centers in order["centers"].get(rows.dataset, {}).items():
        rng = generator(*order["key"], state, rows.machine)
        mass = np.ones(len(rows.x))
        if len(centers):
            mass = sq_distances_to_nearest(rows.x, centers) ** (order["power"] / 2)
        potential = float(mass.sum())
        chosen = np.empty(0, dtype=np.int64)
        if potential > 0:
            chosen = weighted_indices(mass, order["candidates"], rng)
        drawn[state] = {rows.machine: (potential, rows.x[chosen].astype(np.float64))}
    return drawn


def cost(rows: Rows, order: dict[int, dict[int, np.ndarray]]) -> dict[int, dict[int, float]]:
    """Return the objective on this machine of every set of centers, by place and machine."""
    return {
        place: {rows.machine: float(sq_distances_to_nearest(rows.x, centers).sum())}
        for place, centers in order.get(rows.dataset, {}).items()
    }


def merged(left: Any, right: Any) -> Any:
    """Merge what two groups of machines found: keys are united, arrays of the same key added."""
    if not isinstance(left, dict):
        return left + right
    both = {key: merged(left[key], right[key]) for key in left.keys() & right.keys()}
    return {**left, **right, **both}


def _on_task(rows: Iterable[Rows], worker: Callable, order: Broadcast) -> Iterator[dict]:
    found: dict = {}
    with threadpool_limits(limits=1, user_api="blas"):
        for each in rows:
            found = merged(found, worker(each, order.value))
    yield found


@dataclass(frozen=True)
class Machines:
    """Cached data sets on machines, and the jobs on them."""

    rows: RDD  # of Rows
    truth: dict[int, np.ndarray]  # true centers (K, d) by data set, where there are any
    n_features: int
    grids: dict[int, float]  # by data set; see walk_leg

    def ask(self, worker: Callable, order: Any, description: str) -> dict:
        """Run a worker on every machine and merge what they find."""
        context = self.rows.context
        context.setJobDescription(f"LocalKMeans experiment: {description}")
        shared = context.broadcast(order)
        try:
            found = self.rows.mapPartitions(partial(_on_task, worker=worker, order=shared))
            return found.treeReduce(merged)
        finally:
            shared.destroy()
            context.setJobDescription("")

    def seed(
        self, states: Sequence[int], k: int, seed: int, candidates: int = 1, power: int = 2
    ) -> list[np.ndarray]:
        """Draw k initial centers for every state by Algorithm 2, one pass a center.

        Parameters
        ----------
        states : sequence of int
            Data set of each state; several states of a data set are independent draws.
        k, seed : int
        candidates : int
            More than 1 is greedy: of so many draws the one with the smallest objective is taken.
        power : int
            2 weighs by squared distance, as k-means++ does; 1 by plain distance.
        """
        centers = [np.empty((0, self.n_features)) for _ in states]
        for number in range(k):
            order = {"centers": _by_dataset(states, centers), "candidates": candidates,
                     "power": power, "key": (seed, number)}  # fmt: skip
            drawn = self.ask(draw, order, f"center {number + 1}")
            options = [
                np.concatenate([known, row[None]])
                for state, known in enumerate(centers)
                for row in _choose(drawn[state], candidates, generator(seed, number, state))
            ]
            best = np.zeros(len(states), dtype=int)
            if candidates > 1:
                costs = self.costs(np.repeat(states, candidates).tolist(), options)
                best = costs.reshape(-1, candidates).argmin(axis=1)
            centers = [options[i * candidates + place] for i, place in enumerate(best)]
        return centers

    def costs(self, datasets: Sequence[int], centers: Sequence[np.ndarray]) -> np.ndarray:
        """Return the K-means objective of each set of centers on its data set."""
        found = self.ask(cost, _by_dataset(datasets, centers), "objectives")
        return np.array([math.fsum(found[i].values()) for i in range(len(centers))])

    def trace(self, runs: Sequence[Run], n_steps: int) -> list[Trace]:
        """Run Algorithm 1 for T = n_steps from every run's centers; one job for each exchange."""
        centers = [run.centers for run in runs]
        exchanges: list[list[int]] = [[] for _ in runs]
        noted: list[list[dict[str, np.ndarray]]] = [[] for _ in runs]
        steps_done = [0] * len(runs)
        while going := [i for i, t in enumerate(steps_done) if t < n_steps]:
            legs: dict[int, dict[int, tuple[np.ndarray, int]]] = {}
            for i in going:
                steps = min(runs[i].local_steps or n_steps, n_steps - steps_done[i])
                legs.setdefault(runs[i].dataset, {})[i] = centers[i], steps
            order = {"legs": legs, "truth": self.truth, "grids": self.grids}
            found = self.ask(walk, order, f"local steps of {len(going)} runs")
            for i in going:
                measured = _measure(found[i], centers[i], runs[i].by_size)
                began, centers[i] = centers[i], measured["centers"][-1]
                settled = np.array_equal(centers[i], began)
                while steps_done[i] < n_steps:
                    part = min(len(measured["centers"]), n_steps - steps_done[i])
                    exchanges[i].append(steps_done[i])
                    noted[i].append({name: value[:part] for name, value in measured.items()})
                    steps_done[i] += part
                    if not settled:
                        break  # otherwise every further leg repeats this one
        return [
            Trace(exchanges=at, **{name: np.concatenate([part[name] for part in parts])
                                   for name in parts[0]})
            for at, parts in zip(exchanges, noted, strict=True)
        ]  # fmt: skip


def _measure(part: dict[str, Any], began: np.ndarray, by_size: bool) -> dict[str, np.ndarray]:
    """Turn a leg's sums into virtual iterates and the machines' deviation from them (Server)."""
    own = {
        name: np.stack([value[machine] for machine in sorted(value)], axis=1)
        for name, value in part.items()
        if isinstance(value, dict)
    }
    mean_moved = part["moved"] / own["inertia"].shape[1]
    plain = virtual = began + mean_moved
    if by_size:
        # A cluster that is empty everywhere keeps the center of the last exchange.
        steps = zip(part["sums"], part["sizes"], strict=True)
        virtual = np.stack([means_or_kept(*step, began) for step in steps])
    shift = virtual - began
    # With v virtual and c the leg's start, mean_i |theta_i - v|^2 =
    # mean_i |theta_i - c|^2 - 2 (v - c).mean_i(theta_i - c) + |v - c|^2
    cross = np.einsum("tkd,tkd->t", shift, mean_moved)
    far = np.einsum("tkd,tkd->t", shift, shift)
    deviation = np.maximum(own.pop("sq_moved").mean(axis=1) - 2.0 * cross + far, 0.0)
    return {**own, "centers": virtual, "plain_means": plain, "deviation": deviation}


def _by_dataset(datasets: Sequence[int], values: Sequence[Any]) -> dict[int, dict[int, Any]]:
    wanted: dict[int, dict[int, Any]] = {}
    for place, (dataset, value) in enumerate(zip(datasets, values, strict=True)):
        wanted.setdefault(dataset, {})[place] = value
    return wanted


def _choose(
    drawn: dict[int, tuple[float, np.ndarray]], size: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Choose machines with probability E_i / sum E, and take the rows they drew."""
    potentials, rows = zip(*(drawn[machine] for machine in sorted(drawn)), strict=True)
    if not any(potentials):
        fact = Fact("fewer than k")
        raise invalid("LocalKMeans++", "the distinct rows", "k at least", fact, "Lower k.")
    picked = weighted_indices(np.array(potentials), size, rng)
    return [rows[machine][place] for place, machine in enumerate(picked)]


@contextmanager
def mixture_machines(context: SparkContext, mixtures: Sequence[Mixture]) -> Iterator[Machines]:
    """Make the rows of many mixtures on the machines, cached for the block; a mixture a trial."""
    specs = [(i, machine) for i, mixture in enumerate(mixtures)
             for machine in range(len(mixture.counts))]  # fmt: skip
    shared = context.broadcast(list(mixtures))
    rows = context.parallelize(specs, _n_tasks(context, len(specs))).map(
        lambda spec: Rows(*spec, *shared.value[spec[0]].rows(spec[1]))
    )
    truth = {i: mixture.centers for i, mixture in enumerate(mixtures)}
    try:
        with _cached(rows, truth, mixtures[0].centers.shape[1]) as machines:
            yield machines
    finally:
        shared.destroy()


@contextmanager
def array_machines(
    context: SparkContext, x: np.ndarray, labels: np.ndarray, machine_of_row: np.ndarray
) -> Iterator[Machines]:
    """Place the rows of one array on machines (data set 0), cached for the block."""
    m = int(machine_of_row.max()) + 1
    where = [np.flatnonzero(machine_of_row == machine) for machine in range(m)]
    rows = [Rows(0, i, x[mine], labels[mine].astype(np.int32)) for i, mine in enumerate(where)]
    with _cached(context.parallelize(rows, _n_tasks(context, m)), {}, x.shape[1]) as machines:
        yield machines


def _n_tasks(context: SparkContext, n_elements: int) -> int:
    return max(1, min(n_elements, 2 * context.defaultParallelism))


@contextmanager
def _cached(rows: RDD, truth: dict[int, np.ndarray], n_features: int) -> Iterator[Machines]:
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        bounds = rows.map(_bound).treeReduce(merged)
        grids = {i: float(grid_for(np.array(4.0 * bound))) for i, bound in bounds.items()}
        yield Machines(rows, truth, n_features, grids)
    finally:
        rows.unpersist()


def _bound(rows: Rows) -> dict[int, int]:
    """Return a whole number that no sum of the machine's rows exceeds."""
    return {rows.dataset: math.ceil(len(rows.x) * float(np.abs(rows.x).max(initial=0.0)))}
