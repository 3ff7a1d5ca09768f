"""What a fit says when its rows have too few digits for what was found."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.fit.requests import Assignment
from localkmeans_spark.kernel.differences import sq_distances_between

# A fit warns when rounding of the rows is more than a tenth of their squared distances.
_LOST_SHARE, _COPIES = 10.0, 1e-3
# Or when sums and centers are so rough that they may cost this share of the inertia, or of the
# other share of what most rows are apart, squared.
_LOST_COST, _TINY = 1e-3, 1e-9
# Or when clusters of more than this share of the weight lie closer together than products tell;
# looked at up to so many clusters.
_ROUGH_SHARE, _MOST_CLUSTERS = 0.01, 3000


def rounding_warnings(
    data: DataSummary, config: FitConfig, centers: np.ndarray, assignment: Assignment
) -> list[str]:
    """Say in words where centers and cost are rough, and what helps.

    Parameters
    ----------
    data : DataSummary
    config : FitConfig
    centers : ndarray of shape (k, n_features), float64
        Absolute.
    assignment : Assignment
        Of all rows, by these centers.

    Returns
    -------
    list of str
    """
    if config.data.distance_measure == "cosine":  # rows of length 1
        return []
    far = list(_far_values(data, config, centers, assignment))
    # Far values are rough themselves, which is no news then.
    lost = [] if far else _lost_digits(data, config, centers, assignment)
    return [*far, *lost, *_mixed_up(data, config, centers, assignment)]


def _lost_digits(
    data: DataSummary, config: FitConfig, centers: np.ndarray, assignment: Assignment
) -> Iterator[str]:
    """Rows are kept with too few digits for the distances that were found."""
    weights, mean_sq = _by_cluster(assignment)
    heaviest = max(data.statistics, key=lambda item: item.sum_weights)
    # Rows are off by up to half of their last digit, which is a quarter of the resolution; a
    # twelfth of the square is the mean if all errors are alike likely. Clusters of values beyond
    # the usual are rougher, by their own size.
    eps = float(np.finfo(config.data.dtype).eps)
    size = np.maximum(data.resolution / 4.0, eps * np.abs(centers - heaviest.origin))
    lost = np.einsum("kd,kd->k", size, size) / 12.0
    # Far less than rounding: the rows of a cluster are copies of one.
    is_rough = (weights > 0) & (_COPIES * lost < mean_sq) & (mean_sq < _LOST_SHARE * lost)
    share = float(weights[is_rough].sum()) / data.sum_weights
    if share > _ROUGH_SHARE:
        of_rough = weights[is_rough] / weights[is_rough].sum()
        some = "" if share > 0.995 else f" in clusters with {share:.0%} of the weight"
        yield (
            f"{config.owner}: rows kept as {config.data.dtype} are off by about "
            f"{math.sqrt(of_rough @ lost[is_rough]):.2g}{some}, and their distances from the "
            f"centers are {math.sqrt(of_rough @ mean_sq[is_rough]):.2g} (root mean squares): "
            f"centers and cost are rough.{_fix(config)}"
        )


def _by_cluster(assignment: Assignment) -> tuple[np.ndarray, np.ndarray]:
    """Return each cluster's weight and mean squared distance (0 without rows)."""
    weights = assignment.weights.sum(axis=0)
    inertia = assignment.inertia.sum(axis=0)
    return weights, np.divide(inertia, weights, out=np.zeros_like(inertia), where=weights > 0)


def _far_values(
    data: DataSummary, config: FitConfig, centers: np.ndarray, assignment: Assignment
) -> Iterator[str]:
    """A few values are so far away that little else counts, or that sums lost the other rows."""
    weights, mean_sq = _by_cluster(assignment)
    used = weights > 0
    eps = float(np.finfo(np.float64).eps)
    # A sum is off by half a spacing of the last grid for each partition, a center by the
    # rounding of its way to the partitions and back.
    of_sums = 0.5 * len(data.statistics) * data.frame.sum_grids[-1] / weights[used, None]
    of_frames = eps * (np.abs(centers[used] - data.frame.mean) + np.abs(data.frame.mean))
    off = of_sums + of_frames
    sq_off = np.einsum("kd,kd->k", off, off)
    # Rows that are their own center lost nothing.
    off[mean_sq[used] < 1e-6 * sq_off] = 0.0
    lost = float(weights[used] @ np.einsum("kd,kd->k", off, off))
    inertia = float(weights @ mean_sq)
    least = max(inertia, data.sum_weights * _TINY * data.scale**2)
    is_lost = data.scale > 0.0 and lost > _LOST_COST * least
    if not (is_lost or data.frame.has_far_rows):
        return
    column = int(data.far.argmax())
    what = (
        "centers and cost lost digits beside them" if is_lost else "they take clusters of their own"
    )
    yield (
        f"{config.owner}: {_name(config, column)} has values up to {data.far[column]:.2g} from the "
        f"middle, and half of the rows lie within {data.scale:.2g} of it: {what}. Drop or clip "
        "such values."
    )


def _name(config: FitConfig, column: int) -> str:
    names = config.data.features_cols
    if names:
        return f"column '{names[column]}'"
    return f"column '{config.data.features_col}', feature {column} (counted from 0),"


def _mixed_up(
    data: DataSummary, config: FitConfig, centers: np.ndarray, assignment: Assignment
) -> Iterator[str]:
    """Centers are nearer to one another than the rounding of a row's product with them."""
    weights = assignment.weights.sum(axis=0)
    used = np.flatnonzero(weights > 0)
    if not 1 < len(used) <= _MOST_CLUSTERS or not assignment.inertia.any():
        return
    # Products are of rows about a partition's origin: most partitions have the heaviest one's.
    heaviest = max(data.statistics, key=lambda item: item.sum_weights)
    about = centers[used] - heaviest.origin
    sq_gaps = sq_distances_between(about, about)
    np.fill_diagonal(sq_gaps, np.inf)
    sq_norms = np.einsum("kd,kd->k", about, about)
    is_rough = sq_gaps.min(axis=1) < float(np.finfo(config.data.dtype).eps) * sq_norms
    share = float(weights[used][is_rough].sum()) / float(weights.sum())
    if share > _ROUGH_SHARE:
        gap = math.sqrt(float(np.median(sq_gaps.min(axis=1)[is_rough])))
        norm = math.sqrt(float(np.median(sq_norms[is_rough])))
        yield (
            f"{config.owner}: clusters with {share:.0%} of the weight lie {norm:.2g} from the "
            f"origin and {gap:.2g} apart, closer than products of {config.data.dtype} can tell: "
            f"centers and cost may be far from the best.{_fix(config)}"
        )


def _fix(config: FitConfig) -> str:
    return " Set dtype='float64'." if config.data.dtype == "float32" else ""
