"""How good clusterings are: two passes for all sets of centers together, and a sample of rows.

Silhouette, Calinski-Harabasz and Davies-Bouldin follow from the clusters' weights, means and
scatter (first pass) and sums of the rows' silhouettes and distances (second pass).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localkmeans_spark.data.partition import Frame, Partition
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.fit.exchange import assign_blocks
from localkmeans_spark.fit.one_thread import one_blas_thread
from localkmeans_spark.fit.requests import Request, in_order, merge_by_partition, sample
from localkmeans_spark.kernel.agreement import adjusted_rand, contingency
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.draws import MEASURE, generator
from localkmeans_spark.kernel.exact_sum import on_grids
from localkmeans_spark.kernel.lloyd import means_or_kept
from localkmeans_spark.kernel.sample import (
    Sample,
    improve_on_sample,
    rows_in_sample,
    settle_on_sample,
)
from localkmeans_spark.kernel.seeding import reduce_candidates
from localkmeans_spark.kernel.silhouette import Moments, silhouette_sums
from localkmeans_spark.records import Measures

if TYPE_CHECKING:  # workers import this file, and would import all that opens DataFrames
    from localkmeans_spark.fit.partitions import Partitions

# Rows on which two fits are compared; fewer if they are wide.
_SAMPLE_ROWS = 10_000


def measure(partitions: Partitions, found: Sequence[np.ndarray], seed: int) -> list[Measures]:
    """Measure several sets of centers on the same rows.

    Parameters
    ----------
    partitions : Partitions
    found : sequence of ndarray of shape (k, n_features), float64
        Absolute centers.
    seed : int
        Of the sample, and of the other fits that these are compared with.
    """
    data = partitions.data
    moments = [item for item, _ in partitions.run([_moments_of(data, each) for each in found])]
    told = [place for place, each in enumerate(moments) if (each.weights > 0).sum() > 1]
    asked = [_silhouettes_of(data, found[place], moments[place]) for place in told]
    sums = {place: item[0] for place, item in zip(told, partitions.run(asked), strict=True)}
    agreements = _agreements(partitions, found, seed)
    return [
        _measures(data, moments[place], sums.get(place), agreement)
        for place, agreement in enumerate(agreements)
    ]


def _measures(data: DataSummary, moments: Moments, sums: Any, agreement: float) -> Measures:
    """Put the sums into the formulas; NaN where there is one cluster only."""
    from scipy.spatial.distance import cdist  # slow to import

    nothing = float("nan")
    if sums is None:
        return Measures(nothing, nothing, nothing, agreement)
    silhouettes, distances = sums
    filled = moments.weights > 0
    means, weights = moments.means[filled], moments.weights[filled]
    k, total = len(means), float(weights.sum())
    middle = weights @ means / total
    between = float(weights @ ((means - middle) ** 2).sum(axis=1))
    within = float(weights @ moments.scatter[filled])
    inside = distances[filled] / weights
    apart = cdist(means, means)
    np.fill_diagonal(apart, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(apart > 0, (inside[:, None] + inside) / apart, 0.0)
    rest = within * (k - 1.0)
    n_free = total - k  # a weight counts as so many rows
    return Measures(
        silhouette=float(silhouettes.sum()) / total,
        calinski_harabasz=nothing if n_free <= 0 else between * n_free / rest if rest else 1.0,
        davies_bouldin=float(ratios.max(axis=1).mean()),
        agreement=agreement,
    )


class _Sums(NamedTuple):
    sums: np.ndarray
    weights: np.ndarray
    inertia: np.ndarray


def _moments_of(data: DataSummary, centers: np.ndarray) -> Request:
    """Ask for means, weights and scatter by the exact labels of absolute centers."""

    def finish(found: _Sums) -> Moments:
        found = in_order(found)
        weights = found.weights.sum(axis=0)
        kept = data.frame.absolute(centers) - data.frame.mean
        means = means_or_kept(found.sums.sum(axis=0), weights, kept)
        # About the center, which is near: no digits are lost to far means.
        inertia = found.inertia.sum(axis=0) - weights * ((means - kept) ** 2).sum(axis=1)
        scatter = np.maximum(inertia, 0.0) / np.where(weights > 0, weights, 1.0)
        return Moments(means, weights, scatter)

    return Request(
        "measure", "means of clusters", _add_up, (data.frame, centers), merge_by_partition, finish,
        centers.nbytes * len(data.frame.sum_grids),
    )  # fmt: skip


def _add_up(partition: Partition, order: tuple[Frame, np.ndarray]) -> _Sums:
    frame, centers = order
    own = frame.absolute(centers) - partition.origin
    sums = np.zeros(own.shape)
    _, weights, inertia = assign_blocks(partition.blocks, own, sums)
    sums += weights[:, None] * (partition.origin - frame.mean)
    grids = frame.sum_grids[:, None]
    return _Sums(on_grids(sums, grids), weights[None], inertia[None])


def _silhouettes_of(data: DataSummary, centers: np.ndarray, moments: Moments) -> Request:
    """Ask for sums of silhouettes and of distances from the means, two arrays of shape (k,)."""
    order = data.frame, centers, moments
    return Request(
        "measure", "silhouettes", _add_silhouettes, order, _joined, _sum, 16 * len(centers)
    )


def _add_silhouettes(partition: Partition, order: tuple[Frame, np.ndarray, Moments]) -> np.ndarray:
    frame, centers, moments = order
    own = frame.absolute(centers) - partition.origin
    moments = moments._replace(means=frame.to_partition(moments.means, partition))
    return np.stack(silhouette_sums(partition.blocks, own, moments))[None]


def _joined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.concatenate([left, right])


def _sum(found: np.ndarray) -> np.ndarray:
    return np.sort(found, axis=0).sum(axis=0)


def _agreements(partitions: Partitions, found: Sequence[np.ndarray], seed: int) -> list[float]:
    """Say how much other fits, of a sample of the rows and from other seeds, agree with these."""
    data = partitions.data
    wanted = min(_SAMPLE_ROWS, rows_in_sample(data.n_features))
    few = data.n_points <= wanted
    asked = sample(data) if few else sample(data, wanted, seed, MEASURE)
    answer = partitions.run([asked])[0][0]
    drawn = Sample(answer[0], answer[1], data.dtype)
    rows = drawn.x.astype(np.float64)
    middle = data.frame.mean
    with one_blas_thread:
        distinct = np.unique(rows, axis=0)
        return [
            _agreement(drawn, rows, distinct, data.frame.absolute(each) - middle,
                       generator(seed, MEASURE, len(each)), few)
            for each in found
        ]  # fmt: skip


def _agreement(
    drawn: Sample,
    rows: np.ndarray,
    distinct: np.ndarray,
    centers: np.ndarray,
    rng: np.random.Generator,
    is_all: bool,
) -> float:
    k = len(centers)
    if len(distinct) <= k:
        return 1.0 if is_all else float("nan")
    other = reduce_candidates(distinct, np.ones(len(distinct)), k, rng)
    other = settle_on_sample(improve_on_sample(other, drawn, rng), drawn)
    labels = [exact_nearest(rows, each, with_distances=False)[0] for each in (centers, other)]
    weight = drawn.weight * (len(rows) / drawn.weight.sum())
    return adjusted_rand(contingency(labels[0], labels[1], weight))
