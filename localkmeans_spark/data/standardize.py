"""Features divided by their standard deviations, as known from the first pass.

The blocks stay as they were read. Every job scales them on the way to its worker, so neither the
source nor the cache is read once more than without; nothing is centered, which k-means does not
need (moving all rows moves all centers), so sparse rows stay sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.partition import Partition, Statistics, Worker
from localkmeans_spark.data.summary import DataSummary, is_rounding, mean_of, summarise
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.scale import factors_of, scaled_rows, sq_sum


def standard_deviations(found: Sequence[Statistics]) -> np.ndarray:
    """Return each feature's standard deviation (by weight); 1 for a feature that never varies.

    Parameters
    ----------
    found : sequence of Statistics
        With ``sq_sums``.

    Returns
    -------
    ndarray of shape (n_features,), float64
        As scikit-learn's ``StandardScaler`` has it: divided by the sum of weights, not less one.
    """
    total = sum(item.sum_weights for item in found)
    mean = mean_of(found)
    variance, largest = np.zeros_like(mean), np.zeros_like(mean)
    for item in found:
        shift = item.origin - mean
        variance += item.sq_sums + 2.0 * shift * item.sums + item.sum_weights * shift * shift
        largest = np.maximum(largest, np.abs(item.largest) + np.abs(shift))
    deviation = np.sqrt(np.maximum(variance, 0.0) / total)
    # What is left of a constant by rounding is no spread.
    is_constant = (deviation <= 1e-7 * largest) | is_rounding(deviation, mean)
    return np.where(is_constant, 1.0, deviation)


def standardised(data: DataSummary, found: Sequence[Statistics], config: FitConfig) -> DataSummary:
    """Return the summary of the rows divided by their standard deviations.

    Parameters
    ----------
    data : DataSummary
        Of the rows as they are.
    found : sequence of Statistics
        That it was made from.
    config : FitConfig
    """
    scales = standard_deviations([item for item in found if item.n_points])
    factors = factors_of(scales, data.dtype)
    scaled = summarise([_scaled_statistics(item, factors) for item in found], config)
    return replace(scaled, origin=data.origin, scales=scales)


def _scaled_statistics(item: Statistics, factors: np.ndarray) -> Statistics:
    if not item.n_points:
        return item
    usual = item.usual * factors
    sum_sq = float(item.sq_sums @ factors**2)
    # Half of the rows are about so far from the middle: exact only for equal spreads.
    scale = float(np.linalg.norm(usual)) or float(np.sqrt(sum_sq / item.sum_weights))
    return replace(
        item,
        sums=item.sums * factors,
        sum_sq=sum_sq,
        sq_sums=item.sq_sums * factors**2,
        largest=item.largest * factors,
        origin=item.origin * factors,
        middle=item.middle * factors,
        usual=usual,
        scale=scale if item.scale else 0.0,
        first_rows={seed: row * factors for seed, row in item.first_rows.items()},
    )


def on_scaled(partition: Partition, order: tuple[np.ndarray, Worker, Any]) -> Any:
    """Run a worker on a partition whose rows are scaled first. Runs on: executor."""
    factors, worker, own = order
    stored = partition.stored
    for place, item in enumerate(stored):  # one by one: the rows as read are let go
        x = scaled_rows(item.block.x, factors)
        stored[place] = item._replace(
            block=Block(x, item.block.weight),
            origin=item.origin * factors,
            sum_sq=sq_sum(x, item.block.weight),
        )
    return worker(partition, own)
