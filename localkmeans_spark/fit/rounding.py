"""What a fit says when its rows have too few digits for what was found."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.fit.requests import Assignment
from localkmeans_spark.kernel.differences import sq_distances_between

# A fit warns when rounding of the rows is more than a tenth of their squared distances.
_LOST_SHARE = 10.0
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
    return [*_lost_digits(data, config, assignment), *_mixed_up(data, config, centers, assignment)]


def _lost_digits(data: DataSummary, config: FitConfig, assignment: Assignment) -> Iterator[str]:
    """Rows are kept with too few digits for the distances that were found."""
    # Rows are off by up to half of their last digit, which is a quarter of the resolution; a
    # twelfth of the square is the mean if all errors are alike likely.
    lost = float(((data.resolution / 4.0) ** 2).sum()) / 12.0
    mean_sq = float(assignment.inertia.sum()) / data.sum_weights
    # Far less than rounding: every row is its own center.
    if 1e-6 * lost < mean_sq < _LOST_SHARE * lost:
        yield (
            f"{config.owner}: rows kept as {config.data.dtype} are off by about "
            f"{math.sqrt(lost):.2g}, and their distances from the centers are "
            f"{math.sqrt(mean_sq):.2g} (root mean squares): centers and cost are rough."
            f"{_fix(config)}"
        )


def _mixed_up(
    data: DataSummary, config: FitConfig, centers: np.ndarray, assignment: Assignment
) -> Iterator[str]:
    """Centers are nearer to one another than the rounding of a row's product with them."""
    weights = assignment.weights.sum(axis=0)
    used = np.flatnonzero(weights > 0)
    if not 1 < len(used) <= _MOST_CLUSTERS or not assignment.inertia.any():
        return
    # Products are of rows about a machine's origin: most machines have the heaviest one's.
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
