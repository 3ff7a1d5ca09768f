"""What the first pass over the data says of all machines together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from localkmeans_spark.engine.aggregate import Statistics
from localkmeans_spark.engine.checks import check_statistics
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.machine import Frame
from localkmeans_spark.kernel.exact_sum import grids_for

# All rows may weigh this much more than the lightest one before a cluster of that row alone would
# lose digits that matter beside the others (1e7 / 2**52 of the largest value).
_ONE_GRID = 1e7
# Bits that a further part adds, a few less than it has, for the sum over machines; and most parts:
# enough for weights that differ by 1e33.
_BITS_A_PART, _MOST_PARTS = 43, 3


@dataclass(frozen=True)
class DataSummary:
    """The data of one fit in numbers.

    Attributes
    ----------
    statistics : list of Statistics
        Of every machine with rows, in the order of the partitions.
    n_points, n_features, n_skipped : int
    sum_weights : float
    frame : Frame
        Centers travel relative to its mean.
    origin : ndarray of shape (n_features,), float64, or None
        Frame of all machines; None when they have several.
    sum_sq : float
        Sum of ``w * ||x - mean||**2``.
    resolution : ndarray of shape (n_features,), float64
        Distance below which two values of a column may differ by rounding alone.
    dtype : str
        What the machines keep their rows in.
    """

    statistics: list[Statistics]
    n_points: int
    n_features: int
    n_skipped: int
    sum_weights: float
    frame: Frame
    origin: np.ndarray | None
    sum_sq: float
    resolution: np.ndarray
    dtype: str


def summarise(found: list[Statistics], config: FitConfig) -> DataSummary:
    """Check the machines' statistics and put them together, in the order of the machines.

    Raises
    ------
    InvalidInputError
        See :func:`check_statistics`.
    """
    found = sorted(found, key=lambda item: item.machine)
    check_statistics(found, config)
    n_skipped = sum(item.invalid_features + item.zero_rows for item in found)
    found = [item for item in found if item.n_points]
    sum_weights = float(sum(item.sum_weights for item in found))
    n_features = found[0].n_features
    # Only a frame: it needs to be near the middle and the same every time, not exact.
    mean = np.zeros(n_features)
    for item in found:
        mean += (item.sums + item.sum_weights * item.origin) / sum_weights
    bound, sum_sq = np.zeros(n_features), 0.0
    for item in found:
        shift = item.origin - mean
        np.maximum(bound, item.largest + np.abs(shift), out=bound)
        sum_sq += item.sum_sq + 2.0 * shift @ item.sums + item.sum_weights * shift @ shift
    n_parts = _parts_of_sums(sum_weights, min(item.least_weight for item in found))
    frame = Frame(
        mean=mean,
        sum_grids=grids_for(bound * sum_weights, len(found), n_parts),
        weight_grids=grids_for(np.array(sum_weights), len(found), n_parts),
        is_spherical=config.data.distance_measure == "cosine",
    )
    shared = all(np.array_equal(item.origin, found[0].origin) for item in found)
    return DataSummary(
        statistics=found,
        n_points=sum(item.n_points for item in found),
        n_features=n_features,
        n_skipped=n_skipped,
        sum_weights=sum_weights,
        frame=frame,
        origin=found[0].origin.copy() if shared else None,
        sum_sq=max(0.0, float(sum_sq)),
        resolution=4.0 * float(np.finfo(config.data.dtype).eps) * bound,
        dtype=config.data.dtype,
    )


def _parts_of_sums(sum_weights: float, least_weight: float) -> int:
    """Return in how many parts to keep sums, so that light clusters last beside heavy ones."""
    beyond = math.log2(sum_weights) - math.log2(least_weight) - math.log2(_ONE_GRID)
    return min(_MOST_PARTS, 1 + max(0, math.ceil(beyond / _BITS_A_PART)))
