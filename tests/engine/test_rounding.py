"""Clusters closer together than products of the dtype can tell."""

from dataclasses import replace

import numpy as np
import pytest

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit.driver import fit
from tests.engine.frames import frame_of, split


@pytest.fixture(scope="module")
def far_groups():
    """Two groups of ten tight clusters, 1e5 apart, and what their own means cost."""
    rng = np.random.default_rng(0)
    middles = 10.0 * rng.normal(size=(20, 2))
    middles[10:] += 1e5
    labels = rng.integers(20, size=5000)
    x = middles[labels] + 0.1 * rng.normal(size=(5000, 2))
    means = np.array([x[labels == c].mean(axis=0) for c in range(20)])
    return x, float(((x - means[labels]) ** 2).sum())


@pytest.mark.parametrize("seed", range(3))
def test_float64_finds_the_clusters(spark, far_groups, seed):
    x, expected = far_groups
    config = FitConfig(k=20, seed=seed, data=DataConfig(dtype="float64"))
    record = fit(frame_of(spark, split(x, 3)), config).record
    assert record.inertia == pytest.approx(expected, rel=1e-9)
    assert record.warnings == []


@pytest.mark.parametrize("seed", range(3))
def test_float32_finds_them_with_products_of_float64(spark, far_groups, seed):
    x, expected = far_groups
    record = fit(frame_of(spark, split(x, 3)), FitConfig(k=20, seed=seed)).record
    assert record.inertia == pytest.approx(expected, rel=0.02)  # rows are off by 0.004 of 0.1
    assert record.warnings == []


@pytest.mark.parametrize("distance", [1e4, 4e4])
@pytest.mark.parametrize("local_steps", [1, 5])
def test_float32_goes_where_float64_goes(spark, distance, local_steps):
    """Clusters of spread 1 around two places; from the same initial centers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3)) + 3.0 * rng.integers(4, size=(3000, 1))
    x[:1500] += distance
    x[750:1500] *= -1
    start = x[[0, 1, 750, 751, -2, -1]]
    config = FitConfig(
        k=6, seed=0, max_iter=30, tol=0.0, local_steps=local_steps, initial_centers=start
    )
    frame = frame_of(spark, split(x, 2))
    record = fit(frame, config).record
    exact = fit(frame, replace(config, data=DataConfig(dtype="float64"))).record
    assert record.inertia == pytest.approx(exact.inertia, rel=2e-3)
    assert record.warnings == exact.warnings == []


def test_very_many_clusters_too_close_for_products_are_told(spark):
    x = np.arange(600.0)[:, None] * [1.0, 0.0]
    x = np.concatenate([x - 1e5, x + 1e5])
    start = x[::2]
    config = FitConfig(k=len(start), seed=0, initial_centers=start)
    (text, *_) = fit(frame_of(spark, split(x, 2)), config).record.warnings
    assert "too close for products of float32" in text and text.endswith("Set dtype='float64'.")


def test_whole_numbers_that_float64_makes_equal(spark):
    frame = spark.range(400).selectExpr("array(1152921504606846976 + id % 4 * 100, id) features")
    (text, *_) = fit(frame, FitConfig(k=4, seed=0)).record.warnings
    assert "feature 0 (counted from 0), has values about 1.2e+18, which float64 keeps as" in text
    assert "multiples of 256: smaller differences are lost" in text


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_ordinary_rows_are_not_warned_of(spark, offset):
    rng = np.random.default_rng(1)
    x = offset + rng.normal(size=(900, 4)) + 5.0 * rng.integers(4, size=(900, 1))
    record = fit(frame_of(spark, split(x, 3)), FitConfig(k=30, seed=0)).record
    assert record.warnings == []
