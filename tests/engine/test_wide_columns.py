"""Columns much wider than the others decide alone, and a fit says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from localkmeans_spark import LocalKMeans
from localkmeans_spark.fit.warnings import widest


@pytest.mark.parametrize(
    ("widths", "wide", "times"),
    [
        ([1.0, 2.0, 3.0], [], 1.0),
        ([1.0, 1e4, 2.0], [1], 5e3),
        ([1.0, 1e4, 3e4, 2.0], [2, 1], 5e3),
        ([1e4, 1e4, 1e4, 1.0], [], 1.0),  # rather one too narrow
        ([1e4, 1.0], [0], 1e4),
        ([1e4, 0.0], [], 1.0),  # a column of one value could not decide anything
        ([1e4], [], 1.0),
        ([0.0, 0.0], [], 1.0),
    ],
)
def test_widest(widths: list[float], wide: list[int], times: float) -> None:
    found, ratio = widest(np.array(widths))
    assert (found.tolist(), ratio) == (wide, times)


def warnings_of(
    spark: SparkSession, scales: list[float], names: list[str] | None, **values: Any
) -> list[str]:
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(4, len(scales))) * 5
    rows = (middles[rng.integers(4, size=400)] + rng.normal(size=(400, len(scales)))) * scales
    if names:
        frame = spark.createDataFrame(rows.tolist(), names).repartition(2)
        estimator = LocalKMeans(k=4, featuresCols=names, seed=1, **values)
    else:
        frame = spark.createDataFrame([(row,) for row in rows.tolist()], ["features"])
        estimator = LocalKMeans(k=4, seed=1, **values)
    warnings = estimator.fit(frame).summary.record.warnings
    return [text for text in warnings if "alone" in text]


def test_a_fit_names_the_columns_that_decide(spark: SparkSession) -> None:
    (told,) = warnings_of(spark, [1, 1e4, 2], ["age", "income", "visits"])
    assert told.startswith("LocalKMeans: column 'income' decides the clusters alone, with a range")
    assert "standardize=True" in told
    (told,) = warnings_of(spark, [1e5, 1, 1e5, 2], None)
    assert "feature 0 (counted from 0)" in told
    assert "feature 2 (counted from 0) decide the clusters" in told
    assert warnings_of(spark, [1, 3, 2], ["a", "b", "c"]) == []
    assert warnings_of(spark, [1, 1e4, 2], None, distanceMeasure="cosine", tol=0.0) == []


def test_what_standardize_did_is_not_advised(spark: SparkSession) -> None:
    rows = np.random.default_rng(0).uniform(size=(400, 3)) * [0.01, 1, 1]
    rows[0, 0] = 50.0  # 20 standard deviations away: a cluster of its own
    frame = spark.createDataFrame(rows.tolist(), ["a", "b", "c"])
    values = {"featuresCols": ["a", "b", "c"], "initialCenters": [[50, 0.5, 0.5], [0, 0.5, 0.5]]}
    for is_on, n_told in ((False, 1), (True, 0)):
        estimator = LocalKMeans(k=2, standardize=is_on, **values)
        record = estimator.fit(frame).summary.record
        assert min(record.cluster_sizes) == 1
        assert sum("standardize" in text for text in record.warnings) == n_told
