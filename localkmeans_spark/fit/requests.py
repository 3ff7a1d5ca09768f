"""What a run asks of every partition, as plain data; requests of many runs share one job."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from localkmeans_spark.data.partition import Frame, Merge, Partition, Worker
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.fit import exchange
from localkmeans_spark.fit.exchange import RoundSummary, assign_blocks, summarise_phase
from localkmeans_spark.fit.lloyd_run import Order
from localkmeans_spark.kernel import draws
from localkmeans_spark.kernel.draws import Arrivals
from localkmeans_spark.kernel.exact_sum import on_grids
from localkmeans_spark.kernel.lloyd import lloyd_step, means_or_kept
from localkmeans_spark.kernel.local_steps import local_phase
from localkmeans_spark.kernel.spherical import COSINE_OF_SQ, directions_or_kept, unit_centers

Result = TypeVar("Result")

# A partition stops its clocks after so many times the arrivals wanted of all of them.
_MOST_ARRIVALS = 16


class Request(NamedTuple):
    """What is to be done on every partition, and what becomes of the findings.

    Attributes
    ----------
    phase : str
        ``"seed"``, ``"iterate"``, ``"final"`` or ``"measure"``.
    description : str
        Shown in the Spark UI.
    worker : callable (partition, order) -> summary
        A module-level function; runs on executors.
    order : object
        Sent to every partition.
    merge : callable (summary, summary) -> summary
        Associative and commutative.
    finish : callable (summary of all partitions) -> answer
        Runs on the driver.
    nbytes : int
        About how large a summary is.
    """

    phase: str
    description: str
    worker: Worker
    order: Any
    merge: Merge
    finish: Callable[[Any], Any]
    nbytes: int


# A function that yields requests, is sent their answers, and returns a result.
Asking = Generator[Request, Any, Result]


def together(requests: Sequence[Request]) -> Request:
    """Make one request of several; its answer is the list of theirs."""
    first = requests[0]
    more = f" and {len(requests) - 1} more" if len(requests) > 1 else ""
    return Request(
        first.phase,
        first.description + more,
        answer_all,
        [(request.worker, request.order) for request in requests],
        partial(_merge_all, merges=[request.merge for request in requests]),
        lambda found: [request.finish(item) for request, item in zip(requests, found, strict=True)],
        sum(request.nbytes for request in requests),
    )


def answer_all(partition: Partition, requests: Sequence[tuple[Worker, Any]]) -> list[Any]:
    """Do several requests on one partition, in their order. Runs on: executor."""
    return [worker(partition, order) for worker, order in requests]


def _merge_all(left: list[Any], right: list[Any], merges: Sequence[Merge]) -> list[Any]:
    return [merge(a, b) for merge, a, b in zip(merges, left, right, strict=True)]


class DrawOrder(NamedTuple):
    """What the draws of a seeding pass need; each kind of draw uses some of it."""

    frame: Frame
    seed: int
    number: int
    centers: np.ndarray
    duration: float = 0.0
    size: int = 0
    sizes: dict[int, int] = {}

    def generator(self, partition: Partition) -> np.random.Generator:
        """Return the partition's own generator for this pass."""
        return draws.generator(self.seed, self.number, partition.number)


def arrivals(
    data: DataSummary, centers: np.ndarray, duration: float, seed: int, number: int, wanted: int
) -> Request:
    """Let the rows' Poisson clocks run in pass ``number``; about ``wanted`` arrive in all.

    The answer is :class:`Arrivals` in the order of time, rows in the shared frame.
    """
    return Request(
        "seed",
        f"seeding pass {number} ({len(centers)} centers so far)",
        _draw_arrivals,
        DrawOrder(
            data.frame, seed, number, centers, duration=duration, size=_MOST_ARRIVALS * wanted
        ),
        add,
        _in_time_order,
        8 * wanted * data.n_features // max(1, len(data.statistics)),
    )


def _draw_arrivals(partition: Partition, order: DrawOrder) -> list[Arrivals]:
    frame = order.frame
    centers = frame.to_partition(order.centers, partition)
    off_by = frame.sq_rounding(order.centers, partition)
    rng = order.generator(partition)
    found = draws.draw_arrivals(partition.blocks, centers, order.duration, rng, order.size, off_by)
    return [replace(found, rows=frame.from_partition(found.rows, partition))]


def _in_time_order(found: list[Arrivals]) -> Arrivals:
    times = np.concatenate([item.times for item in found])
    order = np.argsort(times, kind="stable")
    arrivals = Arrivals(
        times[order],
        np.concatenate([item.rows for item in found])[order],
        np.concatenate([item.sq_distances for item in found])[order],
        math.fsum(item.potential for item in found),
    )
    # Where a partition stopped its clocks early, those of all count until then.
    return draws.stopped(arrivals, min(item.until for item in found))


def random_rows(data: DataSummary, size: int, seed: int, number: int) -> Request:
    """Draw ``size`` rows without replacement; fewer if there are fewer.

    The answer is an array of rows in the shared frame, in the order drawn.
    """
    return Request(
        "seed",
        "drawing random rows",
        _draw_rows,
        DrawOrder(data.frame, seed, number, np.empty((0, 0)), size=size),
        partial(_smallest_keys, size=size),
        lambda found: found[1],
        8 * size * data.n_features,
    )


def _draw_rows(partition: Partition, order: DrawOrder) -> tuple[np.ndarray, np.ndarray]:
    keys, rows = draws.draw_rows_without_replacement(
        partition.blocks, order.size, order.generator(partition)
    )
    return keys, order.frame.from_partition(rows, partition)


def _smallest_keys(left: Any, right: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    keys = np.concatenate([left[0], right[0]])
    return draws.smallest_keys(keys, [left[1], right[1]], size)


def sample(data: DataSummary, size: int | None = None, seed: int = 0, number: int = 0) -> Request:
    """Draw about ``size`` rows, from each partition by its weight, that stand for all rows.

    All rows come, as they are, without a size. The answer is two arrays: rows in the shared frame,
    and how much weight of all rows each one stands for.
    """
    sizes = {item.partition: item.n_points for item in data.statistics}
    if size is not None:
        share = size / data.sum_weights
        sizes = {
            part.partition: max(1, round(share * part.sum_weights)) for part in data.statistics
        }
    n_rows = data.n_points if size is None else size
    return Request(
        "seed",
        "all rows to the driver" if size is None else "drawing a sample",
        _draw_sample,
        DrawOrder(data.frame, seed, number, np.empty((0, 0)), sizes=sizes),
        add,
        _rows_and_weights,
        8 * n_rows * (data.n_features + 1) // max(1, len(data.statistics)),
    )


def _draw_sample(
    partition: Partition, order: DrawOrder
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    size = order.sizes[partition.number]
    rows, weights = draws.draw_sample(partition.blocks, size, order.generator(partition))
    return [(partition.number, order.frame.from_partition(rows, partition), weights)]


def _rows_and_weights(
    found: list[tuple[int, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    _, rows, weights = zip(*sorted(found, key=lambda item: item[0]), strict=True)
    return np.concatenate(rows), np.concatenate(weights)


def weights_of(data: DataSummary, candidates: np.ndarray) -> Request:
    """Weigh the rows nearest each candidate; the answer is an array of weights."""
    return Request(
        "seed",
        "weighing candidates",
        _weigh,
        (data.frame, candidates),
        add,
        lambda found: found.sum(axis=0),
        8 * len(candidates),
    )


def _weigh(partition: Partition, frame_and_candidates: tuple[Frame, np.ndarray]) -> np.ndarray:
    frame, candidates = frame_and_candidates
    _, weights = lloyd_step(partition.blocks, frame.to_partition(candidates, partition))
    return on_grids(weights, frame.weight_grids)


def local_round(data: DataSummary, number: int, order: Order) -> Request:
    """Do local Lloyd steps on every partition (Algorithm 1); the answer is an ``Exchange``."""
    steps = "1 local step" if order.local_steps == 1 else f"{order.local_steps} local steps"
    return Request(
        "iterate",
        f"round {number}, {steps}",
        _local_round,
        (data.frame, order),
        exchange.merge,
        partial(exchange.finish, centers=order.centers, frame=data.frame),
        order.centers.nbytes * len(data.frame.sum_grids),
    )


def _local_round(partition: Partition, frame_and_order: tuple[Frame, Order]) -> RoundSummary:
    frame, order = frame_and_order
    began, update = frame.to_partition(order.centers, partition), means_or_kept
    if frame.is_cosine:
        began, update = unit_centers(began), directions_or_kept
    phase = local_phase(
        partition.blocks, began, order.local_steps, partition.sum_sq, order.enough, update
    )
    return summarise_phase(phase, began, partition, frame)


class Assignment(NamedTuple):
    """What exact labels give: sizes (k,); weights and inertia (n_partitions, k), each sorted."""

    sizes: np.ndarray
    weights: np.ndarray
    inertia: np.ndarray


def assignment(data: DataSummary, centers: np.ndarray) -> Request:
    """Label every row exactly with the nearest of absolute centers, the last pass of a run.

    The answer is an :class:`Assignment`.
    """
    name = "final cost and sizes"
    nbytes = 24 * len(centers)
    order = data.frame, centers
    return Request("final", name, _assign, order, merge_by_partition, in_order, nbytes)


def _assign(partition: Partition, frame_and_centers: tuple[Frame, np.ndarray]) -> Assignment:
    frame, centers = frame_and_centers
    own = frame.absolute(centers) - partition.origin
    sizes, weights, inertia = assign_blocks(partition.blocks, own)
    if frame.is_cosine:
        inertia *= COSINE_OF_SQ
    return Assignment(sizes, weights[None], inertia[None])


def merge_by_partition(left: Any, right: Any) -> Any:
    """Merge tuples of which the first array is a sum, the others have a row a partition."""
    first, *others = zip(left, right, strict=True)
    return type(left)(add(*first), *map(np.concatenate, others))


def in_order(found: Any) -> Any:
    """Sort such rows column by column, so that sums of them know no order of merging."""
    first, *others = found
    return type(found)(first, *(np.sort(each, axis=0) for each in others))
