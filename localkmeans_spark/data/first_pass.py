"""What partitions tell the driver in the first pass: packed, and only where it fits there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.checks import several_widths
from localkmeans_spark.data.limits import Room
from localkmeans_spark.data.partition import Partition, describe
from localkmeans_spark.data.statistics import Statistics

_ARRAYS = ("sums", "largest", "origin", "middle", "usual")


class FirstPassOrder(NamedTuple):
    """What partitions are asked in the first pass.

    Attributes
    ----------
    seeds : sequence of int
        Each gets a random row.
    max_features : int
        Wider rows are refused: nothing of their width is made.
    max_bytes : int
        A partition sends nothing larger.
    """

    seeds: Sequence[int]
    max_features: int
    max_bytes: int


class Description(NamedTuple):
    """One partition's answer; no statistics when they would be too large.

    ``nbytes`` is their packed size, 0 when they were not made.
    """

    has_rows: bool
    n_features: int
    nbytes: int
    statistics: Statistics | None


@dataclass(frozen=True)
class _Packed:
    """The entries of an array of mostly zeros."""

    length: int
    places: np.ndarray
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.places.nbytes + self.values.nbytes

    def unpacked(self) -> np.ndarray:
        array = np.zeros(self.length, dtype=self.values.dtype)
        array[self.places] = self.values
        return array


def describe_within(partition: Partition, order: FirstPassOrder) -> list[Description]:
    """Summarise a partition if the driver has room for it. Runs on: executor."""
    n_features = partition.stored[-1].block.x.shape[1]
    if n_features > order.max_features:
        return [Description(bool(partition.blocks), n_features, 0, None)]
    found = describe(partition, order.seeds)
    rows = {seed: _pack(row) for seed, row in found.first_rows.items()}
    arrays = {name: _pack(getattr(found, name)) for name in _ARRAYS}
    nbytes = sum(item.nbytes for item in (*arrays.values(), *rows.values()))
    packed = replace(found, first_rows=rows, **arrays) if nbytes <= order.max_bytes else None
    return [Description(found.n_points > 0, n_features, nbytes, packed)]


def unpack(found: Sequence[Description], room: Room, config: FitConfig) -> list[Statistics]:
    """Return the statistics of all partitions.

    Raises
    ------
    InvalidInputError
        If the rows have several widths, or centers or statistics do not fit into memory.
    """
    widths = {item.n_features for item in found if item.has_rows}
    if len(widths) > 1:
        raise several_widths(widths, config)
    room.check_centers(max(widths, default=0))
    if any(item.statistics is None for item in found):
        nbytes = max(item.nbytes for item in found)
        raise room.too_many_partitions(len(found), max(widths), nbytes)
    return [_unpacked(item.statistics) for item in found if item.statistics is not None]


def _pack(array: np.ndarray) -> Any:
    places = np.flatnonzero(array).astype(np.int32)
    packed = _Packed(len(array), places, array[places])
    return packed if packed.nbytes < array.nbytes else array


def _unpacked(found: Statistics) -> Statistics:
    def of(item: Any) -> np.ndarray:
        return item.unpacked() if isinstance(item, _Packed) else item

    rows = {seed: of(row) for seed, row in found.first_rows.items()}
    arrays: dict[str, Any] = {name: of(getattr(found, name)) for name in _ARRAYS}
    return replace(found, first_rows=rows, **arrays)
