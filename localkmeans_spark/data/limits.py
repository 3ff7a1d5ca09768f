"""What must fit into memory, checked before long work, and the first pass, which sends no more."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession

from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.checks import several_widths
from localkmeans_spark.data.partition import Partition, Statistics, describe
from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid
from localkmeans_spark.spark_private import CONNECT_MESSAGES, DRIVER_MEMORY, memory_limits

# A task holds the broadcast centers and some seven arrays as large (its own frame, moved centers,
# sums, what it sends); the driver's JVM holds several tasks' sums at once.
_SHARE = 8
# What all partitions send in the first pass is in the driver's JVM up to twice, and beside it room
# is needed to work.
_FIRST_PASS_SHARE = 4
# Answers of a job that an executor, or the driver at once, is to hold: of more requests there will
# be more jobs, and of more tasks they are merged by tasks first.
SUMMARY_BYTES = 256 << 20


class Room:
    """The memory that a session's settings leave to a fit.

    One set of centers takes ``k * n_features * 8`` bytes. It may take an eighth of the smallest
    of: the driver's Java heap (``spark.driver.memory``), ``spark.driver.maxResultSize``, and
    ``spark.executor.pyspark.memory`` where set. All sets that are fitted side by side together,
    which the driver's Python process holds twice or three times, may take as much as the heap.

    Parameters
    ----------
    session : SparkSession
    ks : sequence of int
        Clusters of each set of centers: one set a restart of each parameter map.
    """

    def __init__(self, session: SparkSession, ks: Sequence[int]) -> None:
        limits = memory_limits(session)
        self._setting = min(limits, key=lambda name: limits[name])
        self._limit = limits[self._setting]
        self._heap_setting = DRIVER_MEMORY if DRIVER_MEMORY in limits else self._setting
        self._heap = limits[self._heap_setting]
        self._ks = ks

    @property
    def for_centers(self) -> int:
        """Bytes that one job may give to centers."""
        return self._limit // _SHARE

    @property
    def for_first_pass(self) -> int:
        """Bytes that all partitions together may send in the first pass."""
        return self._limit // _FIRST_PASS_SHARE

    @property
    def max_features(self) -> int:
        """Most features that :meth:`check_centers` lets pass."""
        return min(self.for_centers // (8 * max(self._ks)), self._heap // (8 * sum(self._ks)))

    def check_centers(self, n_features: int) -> None:
        """Raise if the centers would be too large."""
        k, total = max(self._ks), sum(self._ks)
        if 8 * k * n_features > self.for_centers:
            raise self._too_large(
                f"k * features * 8 bytes, the size of the centers for k={k} and "
                f"{count_of(n_features, 'feature')},",
                8 * k * n_features, _SHARE, self._setting, self._limit,
                "take fewer features (hash them into fewer columns, say) or fewer clusters",
            )  # fmt: skip
        if 8 * total * n_features > self._heap:
            raise self._too_large(
                f"the size of {len(self._ks)} sets of centers (nInit times parameter maps), "
                f"{total:,} centers of {count_of(n_features, 'feature')},",
                8 * total * n_features, 1, self._heap_setting, self._heap,
                "fit fewer of them at a time",
            )  # fmt: skip

    def too_many_partitions(
        self, n_partitions: int, n_features: int, nbytes: int
    ) -> InvalidInputError:
        """Build the error for a first pass that would bring too much to the driver."""
        return self._too_large(
            f"what {count_of(n_partitions, 'partition')} of rows of {n_features:,} features tell "
            f"the driver, up to {_megabytes(nbytes)} each,",
            n_partitions * nbytes, _FIRST_PASS_SHARE, self._setting, self._limit,
            "use fewer partitions (numPartitions)",
        )  # fmt: skip

    def _too_large(
        self, subject: str, needed: int, share: int, setting: str, limit: int, fix: str
    ) -> InvalidInputError:
        part = {8: "an eighth of ", 4: "a quarter of ", 1: ""}[share]
        first = f"Raise {setting} above {_megabytes(needed * share)},"
        if self._setting == CONNECT_MESSAGES:
            first = "Fit in a classic session (not Spark Connect),"
        return invalid(
            OWNER,
            subject,
            f"at most {_megabytes(limit // share)}, {part}{setting}",
            Fact(_megabytes(needed)),
            f"{first} or {fix}.",
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


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
    with_squares : bool
        Whether sums of squares of every feature are wanted.
    """

    seeds: Sequence[int]
    max_features: int
    max_bytes: int
    with_squares: bool = False


class Description(NamedTuple):
    """One partition's answer; no statistics when they would be too large.

    ``statistics`` are pickled and compressed: those of hashed text are zeros mostly, and at 2**18
    features 85 partitions would send more than 1 GB of them. ``nbytes`` is their size then, 0 when
    they were not made.
    """

    has_rows: bool
    n_features: int
    nbytes: int
    statistics: bytes | None


def describe_within(partition: Partition, order: FirstPassOrder) -> list[Description]:
    """Summarise a partition if the driver has room for it. Runs on: executor."""
    n_features = partition.stored[-1].block.x.shape[1]
    if n_features > order.max_features:
        return [Description(bool(partition.blocks), n_features, 0, None)]
    found = describe(partition, order.seeds, order.with_squares)
    packed = zlib.compress(pickle.dumps(found, pickle.HIGHEST_PROTOCOL), 1)
    fits = len(packed) <= order.max_bytes
    return [Description(found.n_points > 0, n_features, len(packed), packed if fits else None)]


def unpack(found: Sequence[Description], room: Room, config: FitConfig) -> list[Statistics]:
    """Return the statistics of all partitions, in their order.

    Raises
    ------
    InvalidInputError
        If the rows have several widths, or centers or statistics do not fit into memory.
    """
    widths = {item.n_features for item in found if item.has_rows}
    if len(widths) > 1:
        raise several_widths(widths, config)
    room.check_centers(max(widths, default=0))
    packed = [item.statistics for item in found if item.statistics is not None]
    if len(packed) < len(found):
        nbytes = max(item.nbytes for item in found)
        raise room.too_many_partitions(len(found), max(widths), nbytes)
    # Made by this fit's own workers.
    statistics = [pickle.loads(zlib.decompress(item)) for item in packed]  # noqa: S301
    return sorted(statistics, key=lambda item: item.partition)
