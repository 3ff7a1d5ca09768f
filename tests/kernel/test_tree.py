"""Many centers of few features: a k-d tree in the place of products."""

from __future__ import annotations

import numpy as np
import pytest

from localkmeans_spark.kernel import nearest
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.local_steps import local_phase
from localkmeans_spark.kernel.nearest import Scorer, tree_of


def without_tree(monkeypatch):
    monkeypatch.setattr(nearest, "tree_of", lambda _: None)


@pytest.mark.parametrize(("n_features", "k"), [(1, 500), (2, 1000), (6, 3000)])
def test_where_it_pays(n_features, k):
    assert tree_of(np.zeros((k, n_features))) is not None
    assert tree_of(np.zeros((k - 1, n_features))) is None
    assert tree_of(np.zeros((500 * 7, 7))) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_features", [1, 2, 3, 6])
@pytest.mark.parametrize("kind", ["plain", "ties", "far", "huge"])
def test_exact_labels_are_those_of_products(monkeypatch, kind, n_features, dtype):
    rng = np.random.default_rng(n_features)
    k = 500 * n_features
    if kind == "ties":  # many rows half-way between centers, and many equal centers
        x = rng.integers(-9, 10, (4000, n_features)).astype(dtype)
        centers = rng.integers(-9, 10, (k, n_features)).astype(float)
    else:
        x = rng.normal(size=(4000, n_features)).astype(dtype)
        centers = np.concatenate([x[:100], rng.normal(size=(k - 100, n_features))]).astype(float)
    if kind == "far":
        x[::50] += 1e6
    if kind == "huge":  # squares of differences overflow in float64
        largest = 1e160 if dtype == "float64" else 1e30
        x[0] = largest
    with np.errstate(over="ignore", invalid="ignore"):
        by_tree = exact_nearest(x, centers)
        without_tree(monkeypatch)
        by_products = exact_nearest(x, centers)
    np.testing.assert_array_equal(by_tree[0], by_products[0])
    np.testing.assert_array_equal(by_tree[1], by_products[1])


def test_rounds_take_a_nearest_center():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 2)).astype(np.float32)
    centers = rng.normal(size=(1000, 2))
    exact, sq_distances = exact_nearest(x, centers)
    labels, some = np.empty(5000, dtype=np.int32), np.empty(100, dtype=np.int32)
    Scorer(centers).nearest(x, labels)
    Scorer(centers).nearest(x, some, np.arange(0, 5000, 50))
    found = ((x.astype(float) - centers[labels]) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, sq_distances, rtol=1e-12)
    np.testing.assert_array_equal(some, labels[::50])
    assert (labels == exact).mean() > 0.999


def test_distances_that_overflow_give_a_cluster_that_there_is():
    x = np.full((3, 2), 1e160)
    labels = np.empty(3, dtype=np.int32)
    Scorer(np.random.default_rng(0).normal(size=(1000, 2))).nearest(x, labels)
    assert ((labels >= 0) & (labels < 1000)).all()


def test_local_steps_are_those_of_products(monkeypatch):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 2))
    blocks = [Block(x[:9000], None), Block(x[9000:], rng.uniform(0.5, 2.0, 11_000))]
    centers = x[rng.choice(len(x), 1200, replace=False)]
    by_tree = local_phase(blocks, centers, 4, 1e5)
    without_tree(monkeypatch)
    by_products = local_phase(blocks, centers, 4, 1e5)
    np.testing.assert_allclose(by_tree.weights, by_products.weights, rtol=1e-12)
    np.testing.assert_allclose(by_tree.sums, by_products.sums, atol=1e-8)
