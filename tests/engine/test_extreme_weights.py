"""Weights of any size: only their ratios matter, and a light row counts beside a heavy one."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from sklearn.cluster import KMeans

from localkmeans_spark import LocalKMeans


def _frame(spark, x, weights, parts):
    rows = [(row.tolist(), float(weight)) for row, weight in zip(x, weights, strict=True)]
    return spark.createDataFrame(
        spark.sparkContext.parallelize(rows, parts), "features array<double>, w double"
    )


@pytest.mark.parametrize("weight", [1e9, 1e14, 1e20, 1e30])
def test_a_heavy_row_leaves_the_light_ones_their_centers(spark, weight):
    x = np.array([[100.0], [0.0], [1.0], [10.0], [11.0]])
    frame = _frame(spark, x, [weight, 1, 1, 1, 1], 1)
    kmeans = LocalKMeans(initialCenters=[[0.0], [10.0], [100.0]], weightCol="w", tol=0.0)
    model = kmeans.setDtype("float64").fit(frame)
    np.testing.assert_allclose(np.ravel(model.clusterCenters()), [0.5, 10.5, 100.0], rtol=1e-12)
    assert model.summary.trainingCost == pytest.approx(1.0)


def test_plain_lloyd_beside_a_heavy_row_is_scikit_learns(spark):
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(180, 3)) * 10.0, np.ones(180)
    weights[7] = 1e30
    theirs = KMeans(5, init=x[:5], n_init=1, tol=0, max_iter=50).fit(x, sample_weight=weights)
    ours = LocalKMeans(
        initialCenters=x[:5].tolist(), weightCol="w", tol=0.0, maxIter=50, localSteps=1,
        dtype="float64",
    ).fit(_frame(spark, x, weights, 3))  # fmt: skip
    np.testing.assert_allclose(ours.clusterCenters(), theirs.cluster_centers_, atol=1e-9)


@pytest.mark.parametrize("init_mode", ["k-means++", "k-means||"])
def test_all_weights_times_a_constant_give_the_same_cost(spark, init_mode):
    rng = np.random.default_rng(0)
    middles = [(7.0 * i, 7.0 * j) for i in range(3) for j in range(3)]
    x = np.concatenate([rng.normal(middle, 1.0, (20, 2)) for middle in middles])
    weights = rng.integers(1, 4, len(x))
    costs = []
    for factor in (1.0, 1e40, 1e-42, 1e240, 1e-240):
        kmeans = LocalKMeans(k=9, weightCol="w", seed=1, initMode=init_mode)
        model = kmeans.fit(_frame(spark, x, weights * factor, 2))
        costs.append(model.summary.trainingCost / factor)
    np.testing.assert_allclose(costs, costs[0], rtol=1e-9)


def test_a_cost_that_is_mostly_rounding_is_told(spark, caplog):
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1e8, 1e8], [1e8, 1e8 + 1]] * 3)
    frame = _frame(spark, x, np.ones(len(x)), 2)
    kmeans = LocalKMeans(initialCenters=[[0.0, 0.0], [1e8, 1e8]], tol=0.0)
    with caplog.at_level(logging.WARNING, logger="localkmeans_spark"):
        kmeans.copy({kmeans.dtype: "float64"}).fit(frame)
        assert not caplog.records
        kmeans.fit(frame)
    assert "Set dtype='float64'" in caplog.text


def test_weights_more_than_all_of_float64_apart(spark):
    x = np.random.default_rng(1).normal(size=(50, 3))
    model = LocalKMeans(k=3, seed=1, weightCol="w").fit(_frame(spark, x, [1e-310] + [1.0] * 49, 2))
    assert np.isfinite(model.summary.trainingCost)
