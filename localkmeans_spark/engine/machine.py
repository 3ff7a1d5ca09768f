"""What one partition, the paper's machine, does in a job. All functions run on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from pyspark import TaskContext
from threadpoolctl import ThreadpoolController

from localkmeans_spark.engine.aggregate import (
    Assignment,
    CandidateRows,
    RoundSummary,
    Statistics,
    TimedRows,
)
from localkmeans_spark.engine.block_format import StoredBlock, decode
from localkmeans_spark.engine.worker_process import prepare_worker
from localkmeans_spark.kernel import draws, sparse
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.exact_sum import to_grid
from localkmeans_spark.kernel.lloyd import Block, lloyd_step, means_or_kept
from localkmeans_spark.kernel.local_steps import local_phase
from localkmeans_spark.kernel.sparse_rows import SparseRows
from localkmeans_spark.kernel.spherical import COSINE_OF_SQ, directions_or_kept, unit_centers


@dataclass(frozen=True)
class Machine:
    """All rows of one partition.

    Attributes
    ----------
    number : int
        Partition number.
    stored : list of StoredBlock
        With rows or without; at least one.
    """

    number: int
    stored: list[StoredBlock]

    @property
    def blocks(self) -> list[Block]:
        """The blocks that have rows."""
        return [item.block for item in self.stored if len(item.block.x)]

    @property
    def origin(self) -> np.ndarray:
        """Frame of the rows, shape (n_features,)."""
        return self.stored[-1].origin

    @property
    def is_unit(self) -> bool:
        """Whether the rows have length 1, for cosine distance."""
        return self.stored[-1].is_unit

    @property
    def sum_sq(self) -> float:
        """Sum of ``w * ||x||**2`` in that frame."""
        return float(sum(item.sum_sq for item in self.stored))


Worker = Callable[[Machine, Any], Any]
Merge = Callable[[Any, Any], Any]


def run_machines(
    data: Iterable[bytes], worker: Worker, payload: Any, merge: Merge, empty_too: bool = False
) -> Iterator[Any]:
    """Run a worker on every machine of a task and merge what they return.

    A task may hold several machines, one after the other; only one machine's blocks are in
    memory at a time. The input is always drained: a task that leaves some of it unread costs
    about a second, because Spark then throws the worker process away.

    Parameters
    ----------
    data : iterable of bytes
        Encoded blocks, those of one machine together.
    worker : callable (machine, payload.value) -> summary
    payload : Broadcast, or another object with the payload as ``value``
    merge : callable (summary, summary) -> summary
    empty_too : bool
        Also run it on machines all of whose rows were left out.

    Yields
    ------
    One merged summary, or nothing when the task has no machine.
    """
    prepare_worker()
    merged, order = None, payload.value
    with _blas().limit(limits=blas_threads(), user_api="blas"):
        for number, stored in groupby(map(decode, data), key=lambda item: item.machine):
            machine = Machine(number, list(stored))
            if machine.blocks or empty_too:
                found = worker(machine, order)
                merged = found if merged is None else merge(merged, found)
            del machine  # before the next one's blocks are read
    if merged is not None:
        yield merged


@cache
def _blas() -> ThreadpoolController:
    """The process's BLAS libraries, looked up once: finding them takes some milliseconds."""
    return ThreadpoolController()


def blas_threads() -> int:
    """One BLAS thread a task, unless spark.task.cpus gives it more."""
    context = TaskContext.get()
    return context.cpus() if context is not None and hasattr(context, "cpus") else 1


def describe(machine: Machine, seeds: Sequence[int]) -> Statistics:
    """Summarise a machine's rows, and draw one of them for every seed (the first pass)."""
    blocks = machine.blocks
    n_features = machine.stored[-1].block.x.shape[1]
    sums, largest = np.zeros(n_features), np.zeros(n_features)
    for x, weight in blocks:
        if isinstance(x, SparseRows):
            of_block = sparse.column_summary(x, weight)
            sums += of_block[0]
            np.maximum(largest, of_block[1], out=largest)
            continue
        wide = x.astype(np.float64, copy=False)
        sums += wide.sum(axis=0) if weight is None else weight @ wide
        np.maximum(largest, np.maximum(wide.max(axis=0), -wide.min(axis=0)), out=largest)
    first_rows = {}
    if blocks:
        for seed in seeds:
            first_rows[seed] = draws.draw_row(blocks, draws.generator(seed, 0, machine.number))
    return Statistics(
        machine=machine.number,
        n_points=sum(len(block.x) for block in blocks),
        n_features=n_features,
        sum_weights=float(sum(item.sum_weights for item in machine.stored)),
        sums=sums,
        sum_sq=machine.sum_sq,
        largest=largest,
        origin=machine.origin,
        invalid_features=sum(item.invalid_features for item in machine.stored),
        invalid_weights=sum(item.invalid_weights for item in machine.stored),
        wrong_length=sum(item.wrong_length for item in machine.stored),
        first_rows=first_rows,
        zero_rows=sum(item.zero_rows for item in machine.stored),
        vanished_rows=sum(item.vanished_rows for item in machine.stored),
    )


class Frame(NamedTuple):
    """Frame shared by the driver and all machines.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), float64
        Centers travel relative to it.
    sum_grid : ndarray of shape (n_features,), float64
    weight_grid : float
        Spacings to which sums and weights are rounded so that they add exactly.
    is_spherical : bool
        Whether rows and centers have length 1 (cosine distance).
    """

    mean: np.ndarray
    sum_grid: np.ndarray
    weight_grid: float
    is_spherical: bool = False

    @property
    def unit_about(self) -> np.ndarray | None:
        """The mean if centers are to be scaled to length 1, else None (``exchange``)."""
        return self.mean if self.is_spherical else None

    def to_machine(self, centers: np.ndarray, machine: Machine) -> np.ndarray:
        """Move centers from the shared frame into a machine's."""
        return centers + (self.mean - machine.origin)

    def from_machine(self, rows: np.ndarray, machine: Machine) -> np.ndarray:
        """Move rows from a machine's frame into the shared one."""
        return rows + (machine.origin - self.mean)


class RoundOrder(NamedTuple):
    """What machines are asked to do in a round: one entry per set of centers."""

    frame: Frame
    centers: list[np.ndarray]
    local_steps: list[int]
    settled: list[bool]


def local_round(machine: Machine, order: RoundOrder) -> list[RoundSummary]:
    """Do the local steps of a round for every set of centers (Algorithm 1, Machine(i))."""
    return [
        _one_local_round(machine, order.frame, *one)
        for one in zip(order.centers, order.local_steps, order.settled, strict=True)
    ]


def _one_local_round(
    machine: Machine, frame: Frame, centers: np.ndarray, local_steps: int, settled: bool
) -> RoundSummary:
    began = frame.to_machine(centers, machine)
    update = means_or_kept
    if machine.is_unit:
        began, update = unit_centers(began), directions_or_kept
    phase = local_phase(machine.blocks, began, local_steps, machine.sum_sq, settled, update)
    filled = phase.weights > 0
    explained = np.einsum("kd,kd->k", phase.sums, phase.sums)[filled] / phase.weights[filled]
    moved = means_or_kept(phase.sums, phase.weights, began) - began
    sq_moved = sq_drift = np.einsum("kd,kd->k", moved, moved)
    if machine.is_unit:
        # The scatter is about the means, as ever; centers drift as directions.
        moved = directions_or_kept(phase.sums, phase.weights, began) - began
        sq_drift = np.einsum("kd,kd->k", moved, moved)
    shift = machine.origin - frame.mean
    return RoundSummary(
        sums=to_grid(phase.sums + phase.weights[:, None] * shift, frame.sum_grid),
        weights=to_grid(phase.weights, frame.weight_grid),
        machines=np.array([machine.number]),
        inertia=np.array([phase.inertia]),
        sq_drift=np.array([sq_drift.max()]),
        sq_moved=np.array([phase.weights @ sq_moved]),
        within=np.array([machine.sum_sq - explained.sum()]),
        filled=np.array([filled.sum()]),
        n_points=np.array([sum(len(block.x) for block in machine.blocks)]),
        first_seconds=np.array([phase.first_seconds]),
        later_seconds=np.array([phase.later_seconds]),
    )


class CentersOrder(NamedTuple):
    """Absolute centers, for the last pass with them."""

    centers: np.ndarray


def assign(machine: Machine, order: CentersOrder) -> Assignment:
    """Label every row exactly; return sizes, weights and inertia per cluster."""
    centers = order.centers - machine.origin
    if machine.is_unit:
        centers = unit_centers(centers)
    k = len(centers)
    sizes = np.zeros(k, dtype=np.int64)
    weights, inertia = np.zeros(k), np.zeros(k)
    for x, weight in machine.blocks:
        find = sparse.exact_nearest if isinstance(x, SparseRows) else exact_nearest
        labels, sq_distances = find(x, centers)
        sizes += np.bincount(labels, minlength=k)
        weights += np.bincount(labels, weights=weight, minlength=k)
        weighted = sq_distances if weight is None else sq_distances * weight
        inertia += np.bincount(labels, weights=weighted, minlength=k)
    if machine.is_unit:
        inertia *= COSINE_OF_SQ
    return Assignment(np.array([machine.number]), sizes, weights[None], inertia[None])


class ArrivalsOrder(NamedTuple):
    """One seeding pass: let Poisson clocks run for ``duration`` given the known centers."""

    frame: Frame
    centers: np.ndarray
    duration: float
    seed: int
    number: int


def arrivals(machine: Machine, order: ArrivalsOrder) -> TimedRows:
    """Draw a machine's share of a seeding pass (kernel.draws.draw_arrivals)."""
    rng = draws.generator(order.seed, order.number, machine.number)
    centers = order.frame.to_machine(order.centers, machine)
    found = draws.draw_arrivals(machine.blocks, centers, order.duration, rng)
    return TimedRows(
        machines=np.array([machine.number]),
        potential=np.array([found.potential]),
        times=found.times,
        rows=order.frame.from_machine(found.rows, machine),
        sq_distances=found.sq_distances,
    )


class OneRow(NamedTuple):
    """A machine's E_i and the row it drew, in the shared frame."""

    machine: int
    potential: float
    row: np.ndarray


def one_row(machine: Machine, order: ArrivalsOrder) -> list[OneRow]:
    """Draw one row by distance (the literal Algorithm 2; ``duration`` is not used)."""
    rng = draws.generator(order.seed, order.number, machine.number)
    centers = order.frame.to_machine(order.centers, machine)
    row, potential = draws.draw_row_by_distance(machine.blocks, centers, rng)
    return [OneRow(machine.number, potential, order.frame.from_machine(row, machine))]


class RowsOrder(NamedTuple):
    """Draw ``size`` rows without replacement."""

    frame: Frame
    size: int
    seed: int
    number: int


def random_rows(machine: Machine, order: RowsOrder) -> CandidateRows:
    """Draw a machine's candidates for a draw without replacement."""
    rng = draws.generator(order.seed, order.number, machine.number)
    keys, rows = draws.draw_rows_without_replacement(machine.blocks, order.size, rng)
    return CandidateRows(keys, order.frame.from_machine(rows, machine), order.size)


class SampleOrder(NamedTuple):
    """Draw ``sizes[machine]`` rows that stand for all of a machine's rows."""

    frame: Frame
    sizes: dict[int, int]
    seed: int
    number: int


class SampledRows(NamedTuple):
    """A machine's sample, in the shared frame, and the weight each row stands for."""

    machine: int
    rows: np.ndarray
    weights: np.ndarray


def sample(machine: Machine, order: SampleOrder) -> list[SampledRows]:
    """Draw a machine's share of a sample."""
    rng = draws.generator(order.seed, order.number, machine.number)
    rows, weights = draws.draw_sample(machine.blocks, order.sizes[machine.number], rng)
    return [SampledRows(machine.number, order.frame.from_machine(rows, machine), weights)]


class WeighOrder(NamedTuple):
    """Weigh candidates by the rows nearest to them."""

    frame: Frame
    candidates: np.ndarray


def weigh(machine: Machine, order: WeighOrder) -> np.ndarray:
    """Return the weight of the rows nearest each candidate, on the shared grid."""
    centers = order.frame.to_machine(order.candidates, machine)
    _, weights = lloyd_step(machine.blocks, centers)
    return to_grid(weights, order.frame.weight_grid)
