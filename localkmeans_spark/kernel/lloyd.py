"""A Lloyd step on one partition's blocks, and what is made of its sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from localkmeans_spark.kernel import sparse
from localkmeans_spark.kernel.chunks import rows_per_sum, slices
from localkmeans_spark.kernel.nearest import Scorer
from localkmeans_spark.kernel.sparse_rows import SparseRows


class Block(NamedTuple):
    """Some of a partition's rows.

    Attributes
    ----------
    x : ndarray of shape (n, n_features), float32 or float64, C-contiguous, read-only
        Rows relative to the partition's origin; or SparseRows, whose origin is 0.
    weight : ndarray of shape (n,), float64, or None
        Sample weights, all > 0; None when every row weighs 1.
    """

    x: Any
    weight: np.ndarray | None


@dataclass(frozen=True)
class LocalPhase:
    """What one partition found in one round.

    Attributes
    ----------
    sums : ndarray of shape (k, n_features), float64
        Weighted sum of the rows of each cluster in the last step; a row of zeros where the
        cluster is empty here.
    weights : ndarray of shape (k,), float64
        Weight of each cluster in the last step.
    inertia : float
        Sum of ``w * ||x - c||**2`` over this partition's rows, c being the nearest of the centers
        the round began with.
    steps : int
        Steps done; fewer than asked for where a further one would have changed nothing, or too
        little.
    """

    sums: np.ndarray
    weights: np.ndarray
    inertia: float
    steps: int = 1


def add_cluster_sums(block: Block, labels: np.ndarray, sums: np.ndarray) -> None:
    """Add a block's weighted rows to the sums of their clusters, in float64.

    Parameters
    ----------
    block : Block
    labels : ndarray of shape (n,), int32
        Cluster of each row, in [0, k).
    sums : ndarray of shape (k, n_features), float64
        Increased in place.

    Notes
    -----
    The product of a sparse one-hot matrix with the rows adds them up at memory speed; float32
    rows are widened first, a few MB at a time, so that no float32 sum loses digits.
    Runs on: executor.
    """
    x, sample_weight = block
    if isinstance(x, SparseRows):
        sparse.add_cluster_sums(x, sample_weight, labels, sums)
        return
    k, n_features = sums.shape
    step = rows_per_sum(n_features, k)
    ones = np.ones(min(step, len(x))) if sample_weight is None else None
    indptr = np.arange(min(step, len(x)) + 1, dtype=np.int32)
    for rows in slices(len(x), step):
        n = rows.stop - rows.start
        w = ones[:n] if ones is not None else sample_weight[rows]  # type: ignore[index]
        one_hot = csr_array((w, labels[rows], indptr[: n + 1]), shape=(n, k))
        sums += one_hot.T @ x[rows].astype(np.float64, copy=False)


def lloyd_step(blocks: Sequence[Block], centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Assign every row to its nearest center and add up the clusters.

    Parameters
    ----------
    blocks : sequence of Block
    centers : ndarray of shape (k, n_features), float64
        In the frame of the blocks.

    Returns
    -------
    sums : ndarray of shape (k, n_features), float64
    weights : ndarray of shape (k,), float64
    """
    sums = np.zeros(centers.shape)
    weights = np.zeros(len(centers))
    scorer = Scorer(centers)
    for block in blocks:
        if isinstance(block.x, SparseRows):
            labels = sparse.nearest(block.x, centers)
        else:
            labels = np.empty(len(block.x), dtype=np.int32)
            scorer.nearest(block.x, labels)
        add_cluster_sums(block, labels, sums)
        weights += np.bincount(labels, weights=block.weight, minlength=len(centers))
    return sums, weights


def lloyd_steps(blocks: Sequence[Block], centers: np.ndarray, most: int) -> np.ndarray:
    """Return the centers after ``most`` Lloyd steps, or fewer where nothing moves any more."""
    for _ in range(most):
        moved = means_or_kept(*lloyd_step(blocks, centers), centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def means_or_kept(sums: np.ndarray, weights: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return sums / weights, and the old center where a cluster is empty.

    Parameters
    ----------
    sums : ndarray of shape (k, n_features), float64
    weights : ndarray of shape (k,), float64
    centers : ndarray of shape (k, n_features), float64
        Centers to keep for clusters of weight 0.

    Returns
    -------
    ndarray of shape (k, n_features), float64
    """
    filled = weights > 0
    means = centers.copy()
    means[filled] = sums[filled] / weights[filled, None]
    return means


def inertia_from_sums(
    sums: np.ndarray, weights: np.ndarray, centers: np.ndarray, sum_sq: float
) -> float:
    """Return the inertia of an assignment without looking at the rows again.

    ``sum w ||x - c||^2 = sum w ||x||^2 - 2 sum_k c_k . S_k + sum_k W_k ||c_k||^2``, where S_k and
    W_k are the cluster sums and weights. Exact up to float64 rounding of ``sum_sq``; never
    negative.

    Parameters
    ----------
    sums, weights : ndarray
        Of the assignment to ``centers``.
    centers : ndarray of shape (k, n_features), float64
    sum_sq : float
        Sum of ``w * ||x||**2`` over the rows, in the same frame.
    """
    cross = np.einsum("kd,kd->", centers, sums)
    own = np.einsum("k,kd,kd->", weights, centers, centers)
    return max(0.0, float(sum_sq - 2.0 * cross + own))
