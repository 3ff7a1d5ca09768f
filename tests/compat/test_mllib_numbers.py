"""One test body for scikit-learn, MLlib and ours, from the same initial centers.

MLlib takes initial centers only in its RDD interface, which has no weights from Python: there a
row of weight w is given w times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.mllib.clustering import KMeans as RddKMeans
from pyspark.mllib.clustering import KMeansModel as RddKMeansModel
from sklearn.cluster import KMeans as SklearnKMeans

from localkmeans_spark import LocalKMeans


class Problem(NamedTuple):
    rows: np.ndarray
    weights: np.ndarray
    start: np.ndarray
    max_iter: int


class Answer(NamedTuple):
    centers: np.ndarray
    cost: float


def by_sklearn(spark, problem: Problem) -> Answer:
    estimator = SklearnKMeans(
        len(problem.start), init=problem.start, n_init=1, max_iter=problem.max_iter, tol=0
    )
    estimator.fit(problem.rows, sample_weight=problem.weights)
    return Answer(estimator.cluster_centers_, estimator.inertia_)


def by_mllib(spark, problem: Problem) -> Answer:
    repeated = np.repeat(problem.rows, problem.weights.astype(int), axis=0)
    data = spark.sparkContext.parallelize(list(repeated), 3).cache()
    start = RddKMeansModel([list(center) for center in problem.start])
    model = RddKMeans.train(
        data, len(problem.start), problem.max_iter, initialModel=start, epsilon=0.0
    )
    return Answer(np.array(model.clusterCenters), model.computeCost(data))


def by_ours(spark, problem: Problem) -> Answer:
    data = [
        (Vectors.dense(row), float(weight))
        for row, weight in zip(problem.rows, problem.weights, strict=True)
    ]
    df = spark.createDataFrame(data, ["features", "w"]).repartition(3)
    estimator = LocalKMeans(
        weightCol="w", initialCenters=problem.start, maxIter=problem.max_iter, tol=0.0, localSteps=1
    )
    model = estimator.fit(df)
    return Answer(np.array(model.clusterCenters()), model.summary.trainingCost)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(11)
    return rng.normal(size=(400, 6)) + 3.0 * rng.integers(3, size=(400, 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_iter", [1, 3, 100])
def test_same_centers_and_cost(spark, rows, weighted, max_iter):
    rng = np.random.default_rng(5)
    weights = rng.integers(1, 4, size=len(rows)) if weighted else np.ones(len(rows))
    problem = Problem(rows, weights.astype(float), rows[:5], max_iter)
    expected = by_sklearn(spark, problem)
    for solve in (by_mllib, by_ours):
        found = solve(spark, problem)
        assert np.allclose(found.centers, expected.centers, rtol=1e-6, atol=1e-6)
        assert found.cost == pytest.approx(expected.cost, rel=1e-6)
