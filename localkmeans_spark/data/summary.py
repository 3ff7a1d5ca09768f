"""What the first pass over the data says of all partitions together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.checks import check_statistics
from localkmeans_spark.data.partition import Frame, Statistics
from localkmeans_spark.kernel.chunks import slices
from localkmeans_spark.kernel.exact_sum import grids_for
from localkmeans_spark.kernel.scale import factors_of

# Up to here one grid keeps a cluster of the lightest row alone to a millionth of what most rows are
# apart (1e-6 * 2**52): all rows may weigh so many times that row, or values be so much larger.
_ONE_GRID = 4e9
# Bits that a further grid adds, a few less than it has, for the sum over partitions; and most
# grids: enough for values up to the largest that are allowed.
_BITS_A_PART, _MOST_PARTS = 43, 11
# Sums of squares keep nothing of most rows where they are so many times larger than theirs.
_FAR_SQ = 1e9
# So many times as far from the middle as most rows is far: such a mean is no frame, such values do
# not say how rough the others are.
FAR = 1e3

# A column of numbers that were worked out (0.1 + 0.2 and 0.3) may differ by a few last digits, and
# what is known of its range is some times as wide.
_ROUNDING = 64.0


@dataclass(frozen=True)
class DataSummary:
    """The data of one fit in numbers.

    Attributes
    ----------
    statistics : list of Statistics
        Of every partition with rows, in the order of the partitions.
    n_points, n_features, n_skipped : int
    sum_weights : float
    frame : Frame
        Centers travel relative to its mean: a place near the middle of the rows.
    origin : ndarray of shape (n_features,), float64, or None
        Frame of all partitions; None when they have several.
    sum_sq : float
        Sum of ``w * ||x - mean||**2``.
    sums : ndarray of shape (n_features,), float64
        Sum of ``w * (x - mean)``; 0 where the mean is the rows' own.
    scale : float
        Half of the rows lie about so near to the middle; 0 if unknown.
    far : ndarray of shape (n_features,), float64
        How far from the mean the values of a column reach, at most.
    resolution : ndarray of shape (n_features,), float64
        Distance below which two values of a column may differ by rounding alone.
    dtype : str
        What the partitions keep their rows in.
    scales : ndarray of shape (n_features,), float64, or None
        Standard deviations that features are divided by: all of the above is of the divided rows,
        but for ``origin``.
    """

    statistics: list[Statistics]
    n_points: int
    n_features: int
    n_skipped: int
    sum_weights: float
    frame: Frame
    origin: np.ndarray | None
    sum_sq: float
    sums: np.ndarray
    scale: float
    far: np.ndarray
    resolution: np.ndarray
    dtype: str
    scales: np.ndarray | None = None

    @property
    def factors(self) -> np.ndarray | None:
        """What rows are multiplied by before they are compared; None for nothing."""
        return None if self.scales is None else factors_of(self.scales, self.dtype)

    def inertia_of(self, center: np.ndarray) -> float:
        """Return the inertia of one center, given relative to the mean, in closed form."""
        return (
            self.sum_sq - 2.0 * float(center @ self.sums)
            + self.sum_weights * float(center @ center)
        )  # fmt: skip


def summarise(found: list[Statistics], config: FitConfig) -> DataSummary:
    """Check the partitions' statistics and put them together, in the order of the partitions.

    Raises
    ------
    InvalidInputError
        See :func:`check_statistics`.
    """
    found = sorted(found, key=lambda item: item.partition)
    left_out = check_statistics(found, config)
    found = [item for item in found if item.n_points]
    sum_weights = float(sum(item.sum_weights for item in found))
    n_features = found[0].n_features
    # Only a frame: it needs to be near the middle and the same every time, not exact.
    mean, sums = mean_of(found), np.zeros(n_features)
    middle = _middle(found)
    scale = _scale(found, middle)
    is_off = np.abs(mean - middle) > FAR * scale
    if scale and is_off.any():
        mean[is_off] = middle[is_off]
        for item in found:
            sums += item.sums + item.sum_weights * (item.origin - mean)
    bound, rough, sum_sq = np.zeros(n_features), np.zeros(n_features), 0.0
    for item in found:
        shift = item.origin - mean
        size = np.minimum(item.largest, np.abs(item.middle) + FAR * item.usual)
        np.maximum(bound, item.largest + np.abs(shift), out=bound)
        np.maximum(rough, size + np.abs(shift), out=rough)
        sum_sq += item.sum_sq + 2.0 * shift @ item.sums + item.sum_weights * shift @ shift
    least_weight = min(item.least_weight for item in found)
    n_parts = _parts_of_sums(sum_weights, least_weight, float(bound.max(initial=0.0)), scale)
    frame = Frame(
        mean=mean,
        sum_grids=grids_for(bound * sum_weights, len(found), n_parts),
        weight_grids=grids_for(np.array(sum_weights), len(found), n_parts),
        is_cosine=config.data.distance_measure == "cosine",
        has_far_rows=0.0 < _FAR_SQ * scale * scale * sum_weights < sum_sq,
    )
    shared = all(np.array_equal(item.origin, found[0].origin) for item in found)
    return DataSummary(
        statistics=found,
        n_points=sum(item.n_points for item in found),
        n_features=n_features,
        n_skipped=left_out.invalid_features + left_out.zero_rows,
        sum_weights=sum_weights,
        frame=frame,
        origin=found[0].origin.copy() if shared else None,
        sum_sq=max(0.0, float(sum_sq)),
        sums=sums,
        scale=scale,
        far=bound,
        resolution=4.0 * float(np.finfo(config.data.dtype).eps) * rough,
        dtype=config.data.dtype,
    )


def mean_of(found: Sequence[Statistics]) -> np.ndarray:
    """Return the mean of all rows, shape (n_features,).

    Sums start at the first partition's origin: a column that never varies has its own value for a
    mean, to the last digit.
    """
    total, start = float(sum(item.sum_weights for item in found)), found[0].origin
    from_start = np.zeros_like(start)
    for item in found:
        from_start += (item.sums + item.sum_weights * (item.origin - start)) / total
    return start + from_start


def is_rounding(spread: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Whether values spread about the mean no farther than rounding spreads a constant."""
    return spread <= _ROUNDING * float(np.finfo(np.float64).eps) * np.abs(mean)


def _parts_of_sums(sum_weights: float, least_weight: float, largest: float, scale: float) -> int:
    """Return on how many grids to keep sums: light clusters last beside heavy and far ones."""
    beyond = math.log2(sum_weights) - math.log2(least_weight) - math.log2(_ONE_GRID)
    if 0.0 < scale < largest:
        beyond += math.log2(largest) - math.log2(scale)
    return min(_MOST_PARTS, 1 + max(0, math.ceil(beyond / _BITS_A_PART)))


def _middle(found: list[Statistics]) -> np.ndarray:
    """Return the median of the partitions' middles, column by column."""
    middle = np.empty(found[0].n_features)
    for columns in slices(len(middle), max(1, (1 << 20) // len(found))):
        of_partitions = [item.origin[columns] + item.middle[columns] for item in found]
        middle[columns] = np.median(of_partitions, axis=0)
    return middle


def _scale(found: list[Statistics], middle: np.ndarray) -> float:
    """Return how far half of the rows lie from the middle, about; 0 if they are all alike."""
    known = []
    for item in found:
        apart = item.origin + item.middle - middle
        known.append((math.sqrt(item.scale**2 + float(apart @ apart)), item.n_points))
    known = sorted(pair for pair in known if pair[0] > 0.0)
    if not known:
        return 0.0
    rows = np.cumsum([n_points for _, n_points in known])
    return known[int(np.searchsorted(rows, rows[-1] / 2.0))][0]
