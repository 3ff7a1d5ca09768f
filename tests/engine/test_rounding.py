"""Clusters closer together than products of the dtype can tell."""

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


def test_float32_says_that_it_cannot(spark, far_groups):
    x, expected = far_groups
    record = fit(frame_of(spark, split(x, 3)), FitConfig(k=20, seed=0)).record
    assert record.inertia > 2 * expected
    (text,) = record.warnings
    assert "closer than products of float32 can tell" in text
    assert text.endswith("Set dtype='float64'.")


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_ordinary_rows_are_not_warned_of(spark, offset):
    rng = np.random.default_rng(1)
    x = offset + rng.normal(size=(900, 4)) + 5.0 * rng.integers(4, size=(900, 1))
    record = fit(frame_of(spark, split(x, 3)), FitConfig(k=30, seed=0)).record
    assert record.warnings == []
