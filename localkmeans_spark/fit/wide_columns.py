"""What a fit says when a few columns, much wider than the others, alone decide the clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.summary import DataSummary

# Columns this many times wider than all others, in which this share of what separates the centers
# lies, decide alone. In ten public tables only one has such columns (bytes sent and received in
# the KDD Cup 1999 table, beside rates from 0 to 1).
_WIDER, _SHARE = 10.0, 0.99
_NAMED = 3


def wide_column_warnings(
    data: DataSummary, config: FitConfig, centers: np.ndarray, weights: np.ndarray
) -> Iterator[str]:
    """Say which columns decide alone, if there are such.

    Parameters
    ----------
    data : DataSummary
    config : FitConfig
    centers : ndarray of shape (k, n_features), float64
        Absolute.
    weights : ndarray of shape (k,), float64
        Weight of every cluster.
    """
    if config.data.distance_measure == "cosine" or len(centers) < 2:
        return
    if data.frame.has_far_rows:  # a few values make a column that wide; another warning says so
        return
    mean = data.frame.mean
    widths = np.zeros(data.n_features)
    for item in data.statistics:  # half the range of every column, or a little more
        np.maximum(widths, item.largest + np.abs(item.origin - mean), out=widths)
    # Of widths up to 1e140 the squares would be too large.
    between = weights @ ((centers - mean) / (widths.max() or 1.0)) ** 2
    wide, times = widest(widths)
    share = between[wide].sum() / between.sum() if between.any() else 0.0
    if len(wide) and share > _SHARE:
        names = [_name(config, i) for i in wide[:_NAMED]]
        more = f" and {len(wide) - _NAMED} more" if len(wide) > _NAMED else ""
        one = len(wide) == 1
        yield (
            f"{config.owner}: {', '.join(names)}{more} {'decides' if one else 'decide'} the "
            f"clusters alone, with a range {times:,.0f} times as wide as any other column's. If "
            "the others are to count, scale the columns first (pyspark.ml.feature.StandardScaler)."
        )


def widest(widths: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the columns much wider than all others, and how many times wider they are.

    At most half of the columns that vary at all can be much wider than the others; none, an empty
    array, when no such gap is there.
    """
    order = np.argsort(-widths, kind="stable")
    order = order[widths[order] > 0]
    ratios = widths[order[:-1]] / widths[order[1:]]
    gaps = np.flatnonzero(ratios[: len(order) // 2] >= _WIDER)
    if not len(gaps):
        return order[:0], 1.0
    return order[: gaps[0] + 1], float(ratios[gaps[0]])


def _name(config: FitConfig, place: int) -> str:
    names = config.data.features_cols
    return f"column '{names[place]}'" if names else f"feature {place} (counted from 0)"
