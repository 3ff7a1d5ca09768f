"""What a machine does for seeding: draw rows, weigh candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localkmeans_spark.engine.aggregate import CandidateRows, TimedRows
from localkmeans_spark.engine.machine import Frame, Machine
from localkmeans_spark.kernel import draws
from localkmeans_spark.kernel.exact_sum import on_grids
from localkmeans_spark.kernel.lloyd import lloyd_step


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
    """Return the weight of the rows nearest each candidate, on the shared grids (n_parts, c)."""
    centers = order.frame.to_machine(order.candidates, machine)
    _, weights = lloyd_step(machine.blocks, centers)
    return on_grids(weights, order.frame.weight_grids)
