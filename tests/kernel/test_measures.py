"""Silhouettes in closed form, agreement of clusterings, and rows that are scaled, without Spark."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import metrics

from localkmeans_spark.kernel.agreement import adjusted_rand, contingency, normalized_mutual_info
from localkmeans_spark.kernel.assign import assign_rows
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.scale import column_sq_sums, factors_of, scaled_rows, sq_sum
from localkmeans_spark.kernel.silhouette import Moments, silhouette_sums
from tests.kernel.test_sparse import from_dense

CENTERS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [500.0, 500.0]])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(4)
    x = CENTERS[rng.integers(0, 3, 90)] + rng.normal(size=(90, 2))
    x[rng.random(x.shape) < 0.3] = 0.0
    return np.concatenate([x, [[60.0, 60.0]]])  # alone in the second cluster's far side


def moments_of(x: np.ndarray, weight: np.ndarray) -> Moments:
    labels = cdist(x, CENTERS).argmin(axis=1)
    weights = np.bincount(labels, weight, 4)
    means = np.stack([np.bincount(labels, weight * column, 4) for column in x.T], axis=1)
    means /= np.where(weights > 0, weights, 1.0)[:, None]
    sq = ((x - means[labels]) ** 2).sum(axis=1)
    return Moments(means, weights, np.bincount(labels, weight * sq, 4) / np.maximum(weights, 1.0))


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_silhouettes_are_scikit_learns_by_squared_distance(rows: np.ndarray, kind: str) -> None:
    x = rows.astype(np.float32).astype(np.float64)
    labels = cdist(x, CENTERS).argmin(axis=1)
    each = metrics.silhouette_samples(cdist(x, x, "sqeuclidean"), labels, metric="precomputed")
    form = from_dense(x) if kind == "sparse" else x.astype(kind)
    blocks = [Block(form[:50], None), Block(form[50:], None)]
    moments = moments_of(x, np.ones(len(x)))
    silhouettes, distances = silhouette_sums(blocks, CENTERS, moments)
    np.testing.assert_allclose(silhouettes, np.bincount(labels, each, 4), rtol=1e-9)
    own = np.sqrt(((x - moments.means[labels]) ** 2).sum(axis=1))
    np.testing.assert_allclose(distances, np.bincount(labels, own, 4), rtol=1e-9)
    assert silhouettes[3] == distances[3] == 0.0  # no row is nearest to it


def test_weights_count_as_in_mllib_and_a_row_alone_as_nothing() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0], [5.0, 0.0], [0.0, 4.0]])
    weight, labels = np.array([2.0, 1.0, 1.0, 3.0, 1.0]), np.array([0, 0, 1, 1, 2])
    expected = np.zeros(4)
    for i in range(4):
        sq = ((x - x[i]) ** 2).sum(axis=1) * weight
        away = [sq[labels == c].sum() / weight[labels == c].sum() for c in {0, 1, 2} - {labels[i]}]
        own = (labels == labels[i]) & (np.arange(5) != i)  # the row itself left out, all its weight
        within = sq[own].sum() / weight[own].sum()
        expected[labels[i]] += weight[i] * (min(away) - within) / max(min(away), within)
    found, distances = silhouette_sums([Block(x, weight)], CENTERS, moments_of(x, weight))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(distances, [4 / 3, 1.5, 0.0, 0.0], rtol=1e-12)


def test_agreement_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    second[:120] = first[:120] % 3
    counts = contingency(first, second, None)
    np.testing.assert_array_equal(counts, metrics.cluster.contingency_matrix(first, second))
    assert adjusted_rand(counts) == pytest.approx(metrics.adjusted_rand_score(first, second))
    theirs = metrics.normalized_mutual_info_score(first, second)
    assert normalized_mutual_info(counts) == pytest.approx(theirs)
    weight = rng.integers(1, 4, 200).astype(float)
    again = np.repeat(np.arange(200), weight.astype(int))
    by_weight = contingency(first, second, weight)
    np.testing.assert_array_equal(by_weight, contingency(first[again], second[again], None))


@pytest.mark.parametrize("counts", [[[7.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0]]])
def test_clusterings_that_are_the_same_agree_to_one(counts: list[list[float]]) -> None:
    assert adjusted_rand(np.array(counts)) == normalized_mutual_info(np.array(counts)) == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("origin", [[0.0, 0.0, 0.0], [100.0, 0.0, -50.0]])
def test_rows_are_scaled_before_they_are_labelled(dtype: str, origin: list[float]) -> None:
    rng = np.random.default_rng(1)
    scales = np.array([0.01, 1.0, 300.0])
    x = np.round(rng.normal(size=(200, 3)) * 8) / 8 * scales + origin
    x[rng.random(x.shape) < 0.5] = 0.0
    factors = factors_of(scales, dtype)
    centers = x[:5] * factors
    expected = cdist(x * factors, centers, "sqeuclidean")
    for form in (x, from_dense(x)):
        labels, sq = assign_rows(form, centers, np.array(origin), dtype, factors=factors)
        loose = 1e-9 if dtype == "float64" else 2e-2
        np.testing.assert_allclose(sq, expected.min(axis=1), rtol=1e-3, atol=loose)
        np.testing.assert_allclose(
            expected[np.arange(200), labels], expected.min(axis=1), rtol=1e-3, atol=loose
        )
        assert labels.dtype == np.int32


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 0.5])])
def test_sums_of_squares(weight: np.ndarray | None) -> None:
    x = np.array([[1.0, 0.0], [0.0, -2.0], [3.0, 4.0]])
    w = np.ones(3) if weight is None else weight
    for form in (x, from_dense(x)):
        np.testing.assert_allclose(column_sq_sums(form, weight), w @ x**2)
        assert sq_sum(form, weight) == pytest.approx((w @ x**2).sum())
        tripled = scaled_rows(form, np.array([3.0, 0.5]))
        dense = tripled if form is x else tripled.toarray()
        np.testing.assert_array_equal(dense, x * [3.0, 0.5])
