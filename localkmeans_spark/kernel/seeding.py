"""The driver's share of seeding: choosing among candidates that the partitions sent."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.differences import sq_distances_between
from localkmeans_spark.kernel.draws import Arrivals, sq_distances_to_nearest, weighted_indices
from localkmeans_spark.kernel.lloyd import Block, lloyd_step, means_or_kept

_BATCH = 256
# Pairs of close rows that are listed at once.
_MANY_PAIRS = 1 << 22


def accept_in_time_order(
    arrivals: Arrivals,
    centers: np.ndarray,
    k: int,
    resolution: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """Turn arrivals into exact k-means++ draws by rejection.

    A candidate arrived in proportion to its squared distance to the centers known when the pass
    began. Accepting it with probability (distance to the centers known now) / (distance then)
    makes every accepted one an exact draw given the centers so far. Candidates are taken by time
    until k centers are found or the arrivals run out; what is left of the clock does not matter,
    because a Poisson process has no memory.

    Parameters
    ----------
    arrivals : Arrivals
        Of all partitions, sorted by time.
    centers : ndarray of shape (c, n_features), float64, c < k
        Centers the partitions knew.
    k : int
    resolution : ndarray of shape (n_features,), float64
        Two rows closer than this in every column count as the same.
    rng : numpy.random.Generator

    Returns
    -------
    centers : ndarray of shape (<= k, n_features), float64
        The given centers, then the accepted ones.
    remaining : float
        Estimate of (potential now) / (potential when the pass began): the mean acceptance
        probability over all arrivals, at least one part in their number.
    """
    start = centers.shape[0]
    found = np.empty((k, centers.shape[1]))
    found[:start] = centers
    count = start
    chances = rng.random(len(arrivals.times))
    ratios = np.empty(len(arrivals.times))
    for begin in range(0, len(ratios), _BATCH):
        batch = slice(begin, min(begin + _BATCH, len(ratios)))
        rows, before = arrivals.rows[batch], arrivals.sq_distances[batch]
        now = before.copy()
        if count > start:
            np.minimum(now, sq_distances_between(rows, found[start:count]).min(axis=1), out=now)
        for j in range(len(rows)):
            if count == k:
                break
            if chances[begin + j] * before[j] >= now[j]:
                continue
            if (np.abs(found[:count] - rows[j]) <= resolution).all(axis=1).any():
                continue
            found[count] = rows[j]
            count += 1
            difference = rows[j:] - rows[j]
            np.minimum(now[j:], np.einsum("nd,nd->n", difference, difference), out=now[j:])
        ratios[batch] = now / before
    floor = 1.0 / (len(ratios) + 1.0)
    remaining = max(floor, float(ratios.mean())) if len(ratios) else 1.0
    return found[:count], remaining


def reduce_candidates(
    candidates: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator, steps: int = 30
) -> np.ndarray:
    """Cluster weighted candidates on the driver into k centers (the last step of k-means||).

    Weighted k-means++, then Lloyd steps until nothing moves or ``steps`` are done.

    Parameters
    ----------
    candidates : ndarray of shape (n, n_features), float64, distinct rows, n >= k
    weights : ndarray of shape (n,), float64
        Weight of the rows nearest each candidate.
    k : int
    rng : numpy.random.Generator
    steps : int, default 30

    Returns
    -------
    ndarray of shape (k, n_features), float64
    """
    # A candidate that no row is nearest to may still be needed to reach k.
    mass = np.maximum(weights, 1e-12 * max(float(weights.max()), 1e-300))
    centers = candidates[weighted_indices(mass, 1, rng)]
    while len(centers) < k:
        potential = mass * sq_distances_to_nearest(candidates, centers)
        centers = np.concatenate([centers, candidates[weighted_indices(potential, 1, rng)]])
    blocks = [Block(np.ascontiguousarray(candidates), mass)]
    for _ in range(steps):
        moved = means_or_kept(*lloyd_step(blocks, centers), centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def distinct_rows(rows: np.ndarray, resolution: np.ndarray) -> np.ndarray:
    """Drop rows that repeat an earlier one up to rounding; keeps the order.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features), float64
    resolution : ndarray of shape (n_features,), float64
        Two rows closer than this in every column count as the same.
    """
    scaled = rows / np.where(resolution > 0, resolution, 1.0)
    for column in np.flatnonzero(resolution <= 0):  # numbers that differ are never close there
        scaled[:, column] = 2.0 * np.unique(rows[:, column], return_inverse=True)[1]
    # Of the rows in a cell the first alone is looked at: many copies would make too many pairs.
    _, first = np.unique(np.floor(scaled), axis=0, return_index=True)
    first.sort()
    rows, scaled = rows[first], scaled[first]
    from scipy.spatial import cKDTree  # 0.15 s to import, on the driver alone

    tree = cKDTree(scaled)
    kept = np.ones(len(rows), dtype=bool)
    if tree.count_neighbors(tree, 1.0, p=np.inf) - len(rows) <= _MANY_PAIRS:
        kept[tree.query_pairs(r=1.0, p=np.inf, output_type="ndarray").max(axis=1)] = False
        return rows[kept]
    for place in range(len(rows)):
        if kept[place]:
            later = np.flatnonzero(kept[place + 1 :]) + place + 1
            kept[later[(np.abs(scaled[later] - scaled[place]) <= 1.0).all(axis=1)]] = False
    return rows[kept]
