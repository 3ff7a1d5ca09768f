"""distanceMeasure="cosine": spherical k-means from fit to MLlib and back."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.clustering import KMeans, KMeansModel
from pyspark.ml.evaluation import ClusteringEvaluator
from pyspark.ml.linalg import Vectors
from scipy import sparse as sp

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel
from localkmeans_spark.accessors import fit_config


@pytest.fixture(scope="module")
def rays(spark):
    """Four rows on two rays, of very different lengths, by hand: (3, 4) and (0, -1) directions."""
    rows = [[3.0, 4.0], [300.0, 400.0], [0.0, -1.0], [0.0, -1e-3]]
    return spark.createDataFrame([(Vectors.dense(row),) for row in rows], ["features"])


@pytest.fixture(scope="module")
def with_zeros(spark):
    rows = [(0, [3.0, 4.0]), (1, [0.0, 0.0]), (2, [0.0, -1.0]), (3, None), (4, [0.0, 0.0])]
    return spark.createDataFrame(rows, "id int, features array<double>")


def cosine_cost(x, centers):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return float((1.0 - (x @ np.array(centers).T).max(axis=1)).sum())


def test_by_hand(rays):
    model = LocalKMeans(k=2, distanceMeasure="cosine", seed=1, canonicalOrder=True).fit(rays)
    found = sorted(center.tolist() for center in model.clusterCenters())
    np.testing.assert_allclose(found, [[0, -1], [0.6, 0.8]], atol=1e-7)
    assert model.summary.trainingCost == pytest.approx(0.0, abs=1e-12)
    assert model.summary.clusterSizes == [2, 2]
    # (1, 0) is at 1 - 0.6 from one center and at 1 from the other.
    centers = [[0.6, 0.8], [0.0, -2.0]]
    given = LocalKMeansModel(centers, distanceMeasure="cosine").setDistanceCol("d")
    row = given.transform(rays.limit(1).selectExpr("array(7.0, 0.0) AS features")).first()
    assert (row["prediction"], row["d"]) == (0, pytest.approx(0.4))
    assert given.evaluate(rays).inertia == pytest.approx(0.0, abs=1e-12)
    assert given.predict([0.0, -5.0]) == 1


def test_one_update_by_hand(spark):
    # (1, 0) and (0, 1), weights 3 and 4, in one cluster: direction (3, 4) / 5 = (0.6, 0.8);
    # cost 3 (1 - 0.6) + 4 (1 - 0.8) = 2.
    df = spark.createDataFrame([([9.0, 0.0], 3.0), ([0.0, 2.0], 4.0)], ["features", "w"])
    model = LocalKMeans(
        distanceMeasure="cosine", weightCol="w", initialCenters=[[5.0, 5.0]], maxIter=1
    ).fit(df)
    np.testing.assert_allclose(model.clusterCenters(), [[0.6, 0.8]], rtol=1e-7)
    assert model.summary.trainingCost == pytest.approx(2.0, rel=1e-7)
    # It began at (1, 1) / sqrt(2), and moved by 1 - 1.4 / sqrt(2).
    first = model.summary.history.iloc[0]
    assert first["inertia"] == pytest.approx(7.0 * (1.0 - 1 / np.sqrt(2)), rel=1e-7)
    assert first["center_shift"] == pytest.approx(1.0 - 1.4 / np.sqrt(2), rel=1e-6)


@pytest.mark.parametrize("local_steps", [1, 5])
@pytest.mark.parametrize("init_mode", ["k-means++", "local-k-means++", "k-means||", "random"])
def test_centers_have_length_one_and_the_cost_is_true(blobs, blob_rows, local_steps, init_mode):
    estimator = LocalKMeans(
        k=4, distanceMeasure="cosine", seed=3, localSteps=local_steps, initMode=init_mode
    )
    model = estimator.fit(blobs)
    np.testing.assert_allclose(np.linalg.norm(model.clusterCenters(), axis=1), 1.0, rtol=1e-12)
    expected = cosine_cost(blob_rows, model.clusterCenters())
    assert model.summary.trainingCost == pytest.approx(expected, rel=1e-6)
    assert model.evaluate(blobs).inertia == pytest.approx(model.summary.trainingCost, rel=1e-12)
    labels = [row["prediction"] for row in model.transform(blobs).select("prediction").collect()]
    assert np.bincount(labels, minlength=4).tolist() == model.summary.clusterSizes


def test_scaling_rows_changes_nothing(spark, blob_rows):
    scale = np.random.default_rng(0).integers(-2, 9, size=(600, 1))
    frames = [
        spark.createDataFrame([(row.tolist(),) for row in rows], ["features"]).coalesce(2)
        for rows in (blob_rows, blob_rows * 2.0**scale)
    ]
    fits = [LocalKMeans(k=3, distanceMeasure="cosine", seed=2).fit(frame) for frame in frames]
    assert np.array_equal(fits[0].clusterCenters(), fits[1].clusterCenters())


def test_sparse_rows_as_dense_ones(spark):
    rng = np.random.default_rng(5)
    x = rng.integers(1, 5, size=(200, 80)) * (rng.random((200, 80)) < 0.05)
    x[:, 0] = 1
    frames = [
        spark.createDataFrame([(vector(row),) for row in x.astype(float)], ["features"]).coalesce(2)
        for vector in (
            Vectors.dense,
            lambda row: Vectors.sparse(80, np.flatnonzero(row), row[np.flatnonzero(row)]),
        )
    ]
    estimator = LocalKMeans(
        distanceMeasure="cosine", initialCenters=x[:4], dtype="float64", localSteps=2
    )
    dense, sparse = (estimator.fit(frame) for frame in frames)
    np.testing.assert_allclose(dense.clusterCenters(), sparse.clusterCenters(), atol=1e-12)
    assert dense.summary.trainingCost == pytest.approx(sparse.summary.trainingCost, rel=1e-12)
    assert sparse.evaluate(frames[1]).inertia == pytest.approx(dense.summary.trainingCost)
    rows = sp.csr_array(x.astype(float))
    assert np.array_equal(sparse.predict(rows), sparse.predict(x))


def test_zero_rows_are_counted_and_refused_at_fit(with_zeros):
    good = with_zeros.where("id <> 3")
    with pytest.raises(InvalidInputError, match=r"distanceMeasure='cosine'.*2 of 4 rows of zeros"):
        LocalKMeans(distanceMeasure="cosine").fit(good)
    with pytest.raises(InvalidInputError, match=r"1 of 5 rows with null"):
        LocalKMeans(distanceMeasure="cosine").fit(with_zeros)
    with pytest.raises(InvalidInputError, match=r"0 rows \(2 of zeros left out\)"):
        LocalKMeans(distanceMeasure="cosine", handleInvalid="skip").fit(good.where("id % 3 = 1"))


def test_zero_rows_skipped_or_kept(with_zeros):
    estimator = LocalKMeans(k=2, distanceMeasure="cosine", handleInvalid="skip", seed=1)
    model = estimator.fit(with_zeros)
    assert model.summary.record.n_skipped == 3
    assert {row["id"] for row in model.transform(with_zeros).collect()} == {0, 2}
    assert model.evaluate(with_zeros).numSkipped == 3
    kept = model.setHandleInvalid("keep").transform(with_zeros)
    assert {row["id"] for row in kept.where("prediction = 2").collect()} == {1, 3, 4}


def test_zero_rows_refused_at_transform(with_zeros):
    model = LocalKMeansModel([[1.0, 0.0]], distanceMeasure="cosine")
    with pytest.raises(PySparkException, match="rows of zeros, which have no direction"):
        model.transform(with_zeros.where("id <> 3")).collect()
    with pytest.raises(InvalidInputError, match="2 of 4 rows"):
        model.evaluate(with_zeros.where("id <> 3"))
    with pytest.raises(InvalidInputError, match=r"1 row of zeros"):
        model.predict([0.0, 0.0])


def test_centers_of_zeros_are_refused():
    with pytest.raises(InvalidInputError, match="1 of 2 rows of zeros"):
        fit_config(LocalKMeans(distanceMeasure="cosine", initialCenters=[[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(InvalidInputError, match="got 1 of 1"):
        LocalKMeansModel([[0.0]], distanceMeasure="cosine")


def test_the_measure_of_a_model_cannot_be_changed(rays):
    model = LocalKMeansModel([[1.0, 0.0]])
    with pytest.raises(InvalidInputError, match="the one the model was made with"):
        model.transform(rays, {model.distanceMeasure: "cosine"})


def test_save_and_load(rays, tmp_path):
    model = LocalKMeans(k=2, distanceMeasure="cosine", seed=1).fit(rays)
    model.save(str(tmp_path / "m"))
    again = LocalKMeansModel.load(str(tmp_path / "m"))
    assert again.getDistanceMeasure() == "cosine"
    assert again.predict([30.0, 40.0]) == model.predict([3.0, 4.0])
    assert again.frame.is_cosine
    assert again.summary.record.distance_measure == "cosine"


def test_to_mllib_and_back(blobs, blob_rows, tmp_path):
    model = LocalKMeans(k=3, distanceMeasure="cosine", seed=1, predictionCol="ours").fit(blobs)
    mllib = model.toMLlib()
    assert mllib.getDistanceMeasure() == "cosine"
    mllib.save(str(tmp_path / "mllib"))
    for theirs in (mllib, KMeansModel.load(str(tmp_path / "mllib"))):
        both = theirs.setPredictionCol("theirs").transform(model.transform(blobs))
        assert both.where("ours <> theirs").count() == 0
    back = LocalKMeansModel.fromMLlib(mllib)
    assert back.getDistanceMeasure() == "cosine"
    assert np.array_equal(back.predict(blob_rows), model.predict(blob_rows))
    sklearn = model.toSklearn()
    assert np.array_equal(sklearn.predict(blob_rows), model.predict(blob_rows))


def test_from_mllib_labels_as_mllib_does(blobs):
    mllib = KMeans(k=4, seed=2, maxIter=3, distanceMeasure="cosine", predictionCol="theirs").fit(
        blobs
    )
    ours = LocalKMeansModel.fromMLlib(mllib).setPredictionCol("ours")
    both = ours.transform(mllib.transform(blobs))
    assert both.where("ours <> theirs").count() == 0
    # MLlib's cost is that of the centers one iteration earlier, so ours is lower.
    assert 0 < ours.evaluate(blobs).inertia <= mllib.summary.trainingCost


def test_clustering_evaluator_takes_the_output(rays):
    model = LocalKMeans(k=2, distanceMeasure="cosine", seed=1).fit(rays)
    evaluator = ClusteringEvaluator(distanceMeasure="cosine")
    assert evaluator.evaluate(model.transform(rays)) == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-99, 1e-12, 1e99])
def test_of_initial_centers_the_direction_alone_counts(rays, size, dtype):
    start = np.array([[1.0, 0.1], [0.1, -1.0]])
    kmeans = LocalKMeans(k=2, distanceMeasure="cosine", dtype=dtype, maxIter=2)
    usual = kmeans.copy().setInitialCenters(start).fit(rays)
    other = kmeans.copy().setInitialCenters(size * start).fit(rays)
    np.testing.assert_allclose(other.clusterCenters(), usual.clusterCenters(), rtol=1e-12)
    assert other.summary.trainingCost == pytest.approx(usual.summary.trainingCost, rel=1e-9)
