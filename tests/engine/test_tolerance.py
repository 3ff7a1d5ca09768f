"""A tolerance that is large for the rows is told; scaled rows and tolerance give the same fit."""

import numpy as np
import pytest

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit.driver import fit

from .frames import frame_of, split


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    middles = 2.0 * rng.normal(size=(10, 8))
    return middles[rng.integers(10, size=5000)] + rng.normal(size=(5000, 8))


def run(spark, x, **options):
    options = {"k": 10, "local_steps": 1, "max_iter": 100, "seed": 0, **options}
    return fit(frame_of(spark, split(x, 3)), FitConfig(**options))


def test_tiny_rows_are_told(spark, rows):
    start = rows[:10]
    usual = run(spark, rows, initial_centers=start).record
    tiny = run(spark, rows * 1e-6, initial_centers=start * 1e-6).record
    assert usual.converged and usual.warnings == []
    assert tiny.converged and tiny.n_iter < usual.n_iter
    (told,) = tiny.warnings
    assert "because tol=0.0001 allows it" in told and "or scale the features" in told
    proposed = float(told.split("set tol=")[1].split()[0])
    again = run(spark, rows * 1e-6, initial_centers=start * 1e-6, tol=proposed).record
    assert again.warnings == []
    assert again.inertia * 1e12 == pytest.approx(usual.inertia, rel=1e-3)


def test_a_large_tolerance_is_told(spark, rows):
    (told,) = run(spark, rows, initial_centers=rows[:10], tol=2.0).record.warnings
    assert "tol=2 allows it" in told
    # Cosine distances are halves of squares.
    options = {"data": DataConfig(distance_measure="cosine"), "initial_centers": rows[:10]}
    (told,) = run(spark, rows, tol=0.5, **options).record.warnings
    assert "mean cosine distance" in told
    assert run(spark, rows, tol=1e-6, **options).record.warnings == []


@pytest.mark.parametrize("exponent", [-40, -20, 30])
def test_scaled_rows_and_tolerance(spark, rows, exponent):
    # A power of two changes no digit.
    scale = 2.0**exponent
    usual = run(spark, rows, local_steps=5, tol=0.01)
    scaled = run(spark, rows * scale, local_steps=5, tol=0.01 * scale)
    np.testing.assert_array_equal(scaled.centers, usual.centers * scale)
    assert scaled.record.cluster_sizes == usual.record.cluster_sizes
    assert scaled.record.n_iter == usual.record.n_iter


@pytest.mark.parametrize("k", [1, 3, 40])
def test_ordinary_rows_are_not_warned_of(spark, rows, k):
    for x in (rows, rows / np.abs(rows).max(), 1e4 * rows):
        assert run(spark, x, k=k, local_steps=5).record.warnings == []
    copies = np.repeat(rows[:5], 100, axis=0)
    assert run(spark, copies, k=5).record.warnings == []
