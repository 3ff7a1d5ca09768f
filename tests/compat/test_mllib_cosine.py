"""Cosine distance from the same initial centers: MLlib, spherical k-means in NumPy, and ours."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.mllib.clustering import KMeans as RddKMeans
from pyspark.mllib.clustering import KMeansModel as RddKMeansModel

from localkmeans_spark import LocalKMeans


def by_numpy(x, start, max_iter):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    centers = start / np.linalg.norm(start, axis=1, keepdims=True)
    for _ in range(max_iter):
        labels = (x @ centers.T).argmax(axis=1)
        sums = np.array([x[labels == k].sum(axis=0) for k in range(len(centers))])
        centers = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return centers


def by_mllib(spark, x, start, max_iter):
    """MLlib's RDD interface: the one that takes initial centers."""
    model = RddKMeans.train(
        spark.sparkContext.parallelize(list(x), 3),
        len(start),
        max_iter,
        initialModel=RddKMeansModel(list(start)),
        epsilon=0.0,
        distanceMeasure="cosine",
    )
    return np.array(model.clusterCenters)


def cosine_cost(x, centers):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return float((1.0 - (x @ centers.T).max(axis=1)).sum())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("max_iter", [1, 5])
def test_same_centers_and_cost(spark, sparse, max_iter):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(300, 70)) * (rng.random((300, 70)) < 0.08) * rng.uniform(0.1, 9, (300, 1))
    x[:, 3] += 0.1
    start = x[:5]
    expected = by_numpy(x, start, max_iter)
    theirs = by_mllib(spark, x, start, max_iter)
    rows = [
        (Vectors.sparse(70, np.flatnonzero(row), row[row != 0]) if sparse else Vectors.dense(row),)
        for row in x
    ]
    df = spark.createDataFrame(rows, ["features"]).repartition(3)
    model = LocalKMeans(
        distanceMeasure="cosine", initialCenters=start, maxIter=max_iter, tol=0.0, localSteps=1
    ).fit(df)
    ours = np.array(model.clusterCenters())
    for found in (theirs, ours):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        assert cosine_cost(x, found) == pytest.approx(cosine_cost(x, expected), rel=1e-6)
    assert model.summary.trainingCost == pytest.approx(cosine_cost(x, expected), rel=1e-6)
