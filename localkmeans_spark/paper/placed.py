"""The rows of one machine of an experiment as cached, and running a worker on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pyspark import Broadcast
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class PlacedRows:
    """The rows of one machine in one data set, as cached.

    Attributes
    ----------
    dataset : int
        Trials with data of their own are data sets of their own.
    machine : int
    x : ndarray of shape (n, d), float32 or float64
    labels : ndarray of shape (n,), int32
        True clusters, 0..K-1; only for counting.
    """

    dataset: int
    machine: int
    x: np.ndarray
    labels: np.ndarray

    @property
    def sum_sq(self) -> float:
        """Sum of squared norms."""
        wide = self.x.astype(np.float64, copy=False)
        return float(np.einsum("nd,nd->", wide, wide))


class DatasetInfo(NamedTuple):
    """Rows, columns, largest absolute value and machines of a data set."""

    n_rows: int
    n_features: int
    largest: float
    machines: tuple[int, ...]


def describe(rows: PlacedRows, _: None) -> dict[int, DatasetInfo]:
    """Return what the driver must know of a data set."""
    n_rows, n_features = rows.x.shape
    largest = float(np.abs(rows.x).max(initial=0.0))
    return {rows.dataset: DatasetInfo(n_rows, n_features, largest, (rows.machine,))}


def merge_infos(
    left: dict[int, DatasetInfo], right: dict[int, DatasetInfo]
) -> dict[int, DatasetInfo]:
    """Merge the descriptions of two groups of machines."""
    merged = {**left, **right}
    for dataset in left.keys() & right.keys():
        a, b = left[dataset], right[dataset]
        merged[dataset] = DatasetInfo(
            a.n_rows + b.n_rows,
            a.n_features,
            max(a.largest, b.largest),
            a.machines + b.machines,
        )
    return merged


def run_on(
    placed: Iterable[PlacedRows],
    worker: Callable[[PlacedRows, Any], Any],
    payload: Broadcast,
    merge: Callable[[Any, Any], Any],
) -> Iterator[Any]:
    """Run a worker on every machine of a task and merge what they return."""
    merged = None
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in placed:
            found = worker(rows, payload.value)
            merged = found if merged is None else merge(merged, found)
    if merged is not None:
        yield merged
