"""Silhouettes by squared Euclidean distance in closed form: no pair of rows is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.chunks import rows_per_chunk, slices
from localkmeans_spark.kernel.distances import all_sq_distances
from localkmeans_spark.kernel.lloyd import Block


class Moments(NamedTuple):
    """Means, weights and scatter of clusters.

    Attributes
    ----------
    means : ndarray of shape (k, n_features), float64
        Of the rows nearest each center; any place for a cluster without rows.
    weights : ndarray of shape (k,), float64
    scatter : ndarray of shape (k,), float64
        Mean squared distance of the cluster's rows from its mean.
    """

    means: np.ndarray
    weights: np.ndarray
    scatter: np.ndarray


def silhouette_sums(
    blocks: Sequence[Block], centers: np.ndarray, moments: Moments
) -> tuple[np.ndarray, np.ndarray]:
    """Add up silhouettes, and distances from the means, by cluster.

    The mean squared distance of a row from the rows of a cluster is ``||x - mean||**2 +
    scatter``; in the row's own cluster the row itself does not count. A row alone in its cluster
    has silhouette 0.

    Parameters
    ----------
    blocks : sequence of Block
    centers : ndarray of shape (k, n_features), float64
        By which rows are labelled.
    moments : Moments
        Of all rows by these labels; at least two clusters have rows.

    Returns
    -------
    silhouettes : ndarray of shape (k,), float64
        Sum of weight times silhouette.
    distances : ndarray of shape (k,), float64
        Sum of weight times distance from the cluster's mean.
    """
    k = len(centers)
    means, weights, scatter = moments
    extra = np.where(weights > 0, scatter, np.inf)
    silhouettes, distances = np.zeros(k), np.zeros(k)
    for x, weight in blocks:
        labels, _ = exact_nearest(x, centers)
        for rows in slices(len(x), rows_per_chunk(x.shape[1], k, 8)):
            own = labels[rows]
            w = np.ones(len(own)) if weight is None else weight[rows]
            sq = all_sq_distances(x[rows], means)
            at = np.arange(len(own)), own
            distances += np.bincount(own, w * np.sqrt(sq[at]), k)
            sq += extra
            total = weights[own]
            is_alone = total <= w
            within = sq[at] * total / np.where(is_alone, 1.0, total - w)
            sq[at] = np.inf
            nearest = sq.min(axis=1)
            larger = np.maximum(within, nearest)
            apart = np.divide(nearest - within, larger, out=np.zeros(len(own)), where=larger > 0)
            silhouettes += np.bincount(own, np.where(is_alone, 0.0, w * apart), k)
    return silhouettes, distances
