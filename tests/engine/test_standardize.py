"""standardize=True: scikit-learn's StandardScaler and KMeans, without a further pass."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel

UNITS = np.array([1.0, 1000.0, 0.01, 1.0])


@pytest.fixture(scope="module")
def rows():
    """Three clusters in the first feature; the second, in large units, would hide them."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 4))
    x[:, 0] += np.repeat([0.0, 9.0, 18.0], 100)
    x = (x * UNITS + [0.0, 5e4, 7.0, 0.0]).astype(np.float32).astype(float)
    x[:, 3] = 2.5  # a constant
    return rng.permutation(x)


@pytest.fixture(scope="module")
def frame(spark, rows):
    data = [(Vectors.dense(row), float(1 + i % 3)) for i, row in enumerate(rows)]
    return spark.createDataFrame(data, ["features", "weight"]).repartition(3).cache()


@pytest.mark.parametrize("weightCol", [None, "weight"])
def test_it_is_scikit_learns_scaler_and_kmeans(frame, weightCol, tmp_path):
    found = frame.collect()
    x = np.array([row["features"].toArray() for row in found])
    weight = np.array([row["weight"] for row in found]) if weightCol else None
    start = x[[0, 50, 170]]
    kmeans = LocalKMeans(
        standardize=True, initialCenters=start, maxIter=50, localSteps=1, tol=0.0,
        weightCol=weightCol, dtype="float64",
    )  # fmt: skip
    model = kmeans.fit(frame)
    scaler = StandardScaler().fit(x, sample_weight=weight)
    z = scaler.transform(x)
    other = KMeans(3, init=scaler.transform(start), n_init=1, max_iter=50, tol=0.0)
    other.fit(z, sample_weight=weight)
    np.testing.assert_allclose(model.scales, scaler.scale_, rtol=1e-9)
    expected = scaler.inverse_transform(other.cluster_centers_)
    np.testing.assert_allclose(model.centers, expected, rtol=1e-9, atol=1e-9)
    assert model.summary.trainingCost == pytest.approx(other.inertia_, rel=1e-9)
    labels = [row["prediction"] for row in model.transform(frame).collect()]
    assert labels == other.labels_.tolist()
    assert model.evaluate(frame).inertia == pytest.approx(other.inertia_, rel=1e-9)

    model.write().save(str(tmp_path / "model"))
    loaded = LocalKMeansModel.load(str(tmp_path / "model"))
    assert loaded.centers.tobytes() == model.centers.tobytes() and loaded.getStandardize()
    assert loaded.scales.tobytes() == model.scales.tobytes()
    assert loaded.predict(x).tolist() == labels
    with pytest.raises(InvalidInputError, match="without standardize"):
        loaded.toSklearn()


def test_the_hidden_clusters_come_out(frame, rows, caplog):
    kmeans = LocalKMeans(k=3, seed=1, nInit=5)  # one start in three ends in a local optimum
    with caplog.at_level(logging.WARNING, "localkmeans_spark"):
        plain = kmeans.fit(frame)
    (told,) = [text for text in caplog.messages if "standardize=True" in text]
    assert "feature 1 (counted from 0)" in told
    scaled = kmeans.copy({kmeans.standardize: True}).fit(frame)
    assert not scaled.summary.record.warnings
    best = KMeans(3, n_init=10, random_state=0).fit(StandardScaler().fit_transform(rows))
    assert scaled.summary.trainingCost <= 1.01 * best.inertia_
    assert np.ptp(scaled.centers[:, 0]) > 9.0 > np.ptp(plain.centers[:, 0])
    again = kmeans.copy({kmeans.standardize: True}).fit(frame)
    assert again.centers.tobytes() == scaled.centers.tobytes()


def test_spreads_far_apart_are_told_though_they_do_not_decide_alone(spark, caplog):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) * [1.0, 8.0, 200.0]
    x[0] = 200.0  # so that ranges are alike
    df = spark.createDataFrame([(row.tolist(),) for row in x], "features array<double>")
    with caplog.at_level(logging.WARNING, "localkmeans_spark"):
        LocalKMeans(k=2, seed=1, maxIter=2).fit(df)
    (told,) = [text for text in caplog.messages if "standardize=True" in text]
    assert "has a spread" in told and "times that of feature 0" in told


def test_sparse_rows_stay_sparse(spark):
    rng = np.random.default_rng(3)
    x = np.where(rng.random((80, 100)) < 0.06, rng.normal(size=(80, 100)), 0.0)
    x = (x * np.geomspace(1, 1e4, 100)).astype(np.float32).astype(float)
    data = [(Vectors.sparse(100, np.flatnonzero(row), row[row != 0]),) for row in x]
    sparse = spark.createDataFrame(data, ["features"]).coalesce(1)
    kmeans = LocalKMeans(k=3, standardize=True, initialCenters=x[:3], dtype="float64")
    model = kmeans.fit(sparse)
    scaler = StandardScaler(with_mean=False).fit(x)
    other = KMeans(3, init=x[:3] / scaler.scale_, n_init=1, max_iter=20, tol=0)
    other.fit(x / scaler.scale_)
    assert model.summary.trainingCost == pytest.approx(other.inertia_, rel=1e-6)
    labels = [row["prediction"] for row in model.transform(sparse).collect()]
    assert labels == other.labels_.tolist()


def test_cosine_is_refused(frame):
    with pytest.raises(InvalidInputError, match="False with distanceMeasure='cosine'"):
        LocalKMeans(standardize=True, distanceMeasure="cosine").fit(frame)


@pytest.mark.parametrize(("value", "n_partitions"), [(1.0, 6), (0.1, 6), (1e9 + 0.1, 12)])
def test_a_constant_stays_one(spark, value, n_partitions):
    """Sums of a constant round; that is no spread to divide by, nor one to warn of."""
    frame = spark.range(3000, numPartitions=n_partitions).select(
        (F.randn(seed=0) + F.col("id") % 3 * 10).alias("x"), F.lit(value).alias("z")
    )
    kmeans = LocalKMeans(k=3, seed=1, featuresCols=["x", "z"])
    model = kmeans.copy({kmeans.standardize: True}).fit(frame)
    assert model.scales[1] == 1.0
    assert model.summary.record.warnings == []
    assert kmeans.fit(frame).summary.record.warnings == []


def test_a_constant_that_was_worked_out_is_one(spark):
    frame = spark.range(300).selectExpr("double(id % 7) x", "if(id % 2 = 0, 0.1D + 0.2D, 0.3D) z")
    model = LocalKMeans(k=3, seed=1, featuresCols=["x", "z"], standardize=True).fit(frame)
    assert model.scales[1] == 1.0
    assert (
        LocalKMeans(k=3, seed=1, featuresCols=["x", "z"]).fit(frame).summary.record.warnings == []
    )
