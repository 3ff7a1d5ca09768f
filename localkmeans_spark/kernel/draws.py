"""Random draws of rows on one partition, each from a generator made for that pass and partition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from localkmeans_spark.kernel import sparse
from localkmeans_spark.kernel.chunks import rows_per_sum, slices
from localkmeans_spark.kernel.differences import sq_distance_to
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.kernel.sparse_rows import SparseRows

# Keys of streams that the driver draws from; no partition has such a number.
MEASURE, HELD, SAMPLE, SEARCH, RESTARTS = (2**32 - place for place in (6, 4, 3, 2, 1))


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator for one place in a fit: ``key`` is (pass,) or (pass, partition).

    The same seed and key give the same draws, so retries and the order of tasks change nothing.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def weighted_indices(mass: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw indices with probability mass / sum(mass), with replacement.

    Rounding of the cumulative sum can neither run past the end nor pick an entry of mass 0.

    Parameters
    ----------
    mass : ndarray of shape (n,), float64, >= 0, not all 0
    size : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (size,), int64
    """
    positive = np.flatnonzero(mass)
    if not size:
        return positive[:0]
    cumulative = np.cumsum(mass[positive])
    drawn = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    return positive[np.minimum(drawn, len(positive) - 1)]


def _mass_of_rows(block: Block) -> np.ndarray:
    return np.ones(len(block.x)) if block.weight is None else block.weight


def draw_row(blocks: Sequence[Block], rng: np.random.Generator) -> np.ndarray:
    """Draw one of a partition's rows with probability proportional to its weight.

    Parameters
    ----------
    blocks : sequence of Block
        With at least one row.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_features,), float64
        In the partition's frame.
    """
    totals = np.array([_mass_of_rows(block).sum() for block in blocks])
    block = blocks[int(weighted_indices(totals, 1, rng)[0])]
    return block.x[int(weighted_indices(_mass_of_rows(block), 1, rng)[0])].astype(np.float64)


def draw_sample(
    blocks: Sequence[Block], size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows that stand for all of a partition's rows.

    Parameters
    ----------
    blocks : sequence of Block
        With at least one row.
    size : int
        Rows to draw by weight, with replacement. If there are no more, all are taken.
    rng : numpy.random.Generator

    Returns
    -------
    rows : ndarray of shape (n, n_features), float64
        In the partition's frame.
    weights : ndarray of shape (n,), float64
        How much of the partition's weight each one stands for; they add up to it.
    """
    mass = [_mass_of_rows(block) for block in blocks]
    if sum(map(len, mass)) <= size:
        rows = [np.asarray(block.x[:], dtype=np.float64) for block in blocks]
        return np.concatenate(rows), np.concatenate(mass)
    totals = np.array([item.sum() for item in mass])
    counts = rng.multinomial(size, totals / totals.sum())
    drawn = [
        block.x[weighted_indices(of_rows, count, rng)].astype(np.float64)
        for block, of_rows, count in zip(blocks, mass, counts, strict=True)
        if count
    ]
    return np.concatenate(drawn), np.full(size, totals.sum() / size)


def draw_rows_without_replacement(
    blocks: Sequence[Block], size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows one after the other, each proportional to weight among those left.

    Every row gets the key Exp(1) / weight; the ``size`` smallest keys are the draw (Efraimidis
    and Spirakis 2006), so draws of several partitions merge by keeping the smallest keys overall.

    Returns
    -------
    keys : ndarray of shape (<= size,), float64, ascending
    rows : ndarray of shape (<= size, n_features), float64
        In the partition's frame.
    """
    n_features = blocks[0].x.shape[1]
    keys, rows = np.empty(0), np.empty((0, n_features))
    for block in blocks:
        block_keys = rng.exponential(size=len(block.x)) / _mass_of_rows(block)
        keys, rows = smallest_keys(np.concatenate([keys, block_keys]), [rows, block.x], size)
    return keys, rows


def smallest_keys(
    keys: np.ndarray, row_arrays: Sequence[np.ndarray], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the rows of the ``size`` smallest keys, ascending.

    Parameters
    ----------
    keys : ndarray of shape (n,)
    row_arrays : sequence of ndarray
        Together n rows, in the order of the keys.
    size : int
    """
    order = np.argsort(keys, kind="stable")[:size]
    starts = np.cumsum([0] + [len(rows) for rows in row_arrays])
    kept = np.empty((len(order), row_arrays[0].shape[1]))
    for start, rows in zip(starts, row_arrays, strict=False):
        mine = (order >= start) & (order < start + len(rows))
        kept[mine] = rows[order[mine] - start]
    return keys[order], kept


@dataclass(frozen=True)
class Arrivals:
    """Arrivals of the rows' Poisson clocks on one or more partitions.

    Attributes
    ----------
    times : ndarray of shape (n,), float64
    rows : ndarray of shape (n, n_features), float64
    sq_distances : ndarray of shape (n,), float64
        Squared distance of each row to the nearest of the centers known to the partition.
    potential : float
        Sum of ``w * squared distance`` over all rows.
    until : float
        When the clocks were stopped: all arrivals up to this time are here.
    """

    times: np.ndarray
    rows: np.ndarray
    sq_distances: np.ndarray
    potential: float
    until: float = math.inf


def draw_arrivals(
    blocks: Sequence[Block],
    centers: np.ndarray,
    duration: float,
    rng: np.random.Generator,
    most: float = math.inf,
    off_by: np.ndarray | None = None,
) -> Arrivals:
    """Let every row arrive at the rate ``w * squared distance`` during ``duration``.

    The arrivals of all partitions, merged by time, are independent draws with probability
    ``E_ij / sum E``, the law of Algorithm 2; each partition simulates its own share alone.

    Parameters
    ----------
    blocks : sequence of Block
    centers : ndarray of shape (k, n_features), float64
        Centers known so far, in the partition's frame.
    duration : float
        Expected number of arrivals divided by the sum of all rates.
    rng : numpy.random.Generator
    most : float, optional
        Where more arrivals than this are to be expected, the clocks are stopped earlier: what
        arrived until then still has the law. For a duration made of too low a sum of rates.
    off_by : ndarray of shape (k,), float64, optional
        Squared distance below which a row is its center, which came here rounded.

    Returns
    -------
    Arrivals
        ``rows`` in the partition's frame.

    Notes
    -----
    One product with the centers and one pass of differences. Runs on: executor.
    """
    rows, distances = [], []
    durations = []
    potential = 0.0
    for block in blocks:
        sq_distances = sq_distances_to_nearest(block.x, centers, off_by)
        rates = sq_distances if block.weight is None else sq_distances * block.weight
        total = float(rates.sum())
        potential += total
        if duration * potential > most:
            duration = most / potential
        count = rng.poisson(duration * total)
        if count:
            chosen = weighted_indices(rates, count, rng)
            rows.append(block.x[chosen].astype(np.float64))
            distances.append(sq_distances[chosen])
            durations.append(np.full(count, duration))
    n_features = centers.shape[1]
    found = np.concatenate([np.empty((0, n_features)), *rows])
    times = rng.random(len(found)) * np.concatenate([np.empty(0), *durations])
    arrivals = Arrivals(times, found, np.concatenate([np.empty(0), *distances]), potential)
    return stopped(arrivals, duration)


def stopped(arrivals: Arrivals, until: float) -> Arrivals:
    """Leave out what arrived after the time ``until``."""
    if len(arrivals.times) and arrivals.times.max() > until:
        early = arrivals.times <= until
        arrivals = Arrivals(
            arrivals.times[early],
            arrivals.rows[early],
            arrivals.sq_distances[early],
            arrivals.potential,
        )
    return replace(arrivals, until=until)


def sq_distances_to_nearest(
    x: np.ndarray | SparseRows, centers: np.ndarray, off_by: np.ndarray | None = None
) -> np.ndarray:
    """Return each row's squared distance to its nearest center, shape (n,), float64.

    The nearest center is found by a product in x's dtype, the distance by float64 differences:
    0 for a row that equals its center (up to ``off_by``, if given), never negative.
    """
    if isinstance(x, SparseRows):
        labels = sparse.nearest(x, centers)
        result = sparse.sq_distance_to(x, centers, labels)
    else:
        labels = np.empty(len(x), dtype=np.int32)
        Scorer(centers).nearest(x, labels)
        result = np.empty(len(x))
        for rows in slices(len(x), rows_per_sum(x.shape[1], 1)):
            result[rows] = sq_distance_to(x[rows], centers, labels[rows])
    if off_by is not None:
        result[result <= off_by[labels]] = 0.0
    return result
