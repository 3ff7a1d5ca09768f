"""A sweep over k: its numbers against scikit-learn and Spark, its choice, its picture."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from pyspark.ml.evaluation import ClusteringEvaluator
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F
from sklearn import metrics as sk

from localkmeans_spark import InvalidInputError, LocalKMeans
from localkmeans_spark.kernel.agreement import adjusted_rand, normalized_mutual_info
from localkmeans_spark.sweep import _best

KS = [1, 2, 3, 5]


def labels_of(model, frame):
    return np.array([row["prediction"] for row in model.transform(frame).collect()])


def rows_of(frame):
    return np.array([row["features"].toArray() for row in frame.collect()])


@pytest.mark.parametrize("measure", ["euclidean", "cosine"])
def test_numbers_are_those_of_spark_and_scikit_learn(blobs, measure):
    kmeans = LocalKMeans(seed=1, distanceMeasure=measure)
    sweep = kmeans.sweep(blobs, KS)
    assert list(sweep.table["k"]) == KS == list(sweep.models)
    spark_measure = {"euclidean": "squaredEuclidean"}.get(measure, measure)
    x = rows_of(blobs)
    if measure == "cosine":
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    for row in sweep.table.itertuples():
        model = sweep.models[row.k]
        alone = kmeans.copy({kmeans.k: row.k}).fit(blobs)
        assert model.centers.tobytes() == alone.centers.tobytes()
        assert row.cost == model.summary.trainingCost == alone.summary.trainingCost
        if row.k == 1:
            assert np.isnan([row.silhouette, row.calinski_harabasz, row.davies_bouldin]).all()
            continue
        evaluator = ClusteringEvaluator(distanceMeasure=spark_measure)
        labels = labels_of(model, blobs)
        assert row.silhouette == pytest.approx(evaluator.evaluate(model.transform(blobs)), abs=1e-6)
        expected = sk.silhouette_score(x, labels, metric="sqeuclidean")
        assert row.silhouette == pytest.approx(expected, abs=1e-6)
        expected = sk.calinski_harabasz_score(x, labels)
        assert row.calinski_harabasz == pytest.approx(expected, rel=1e-6)
        assert row.davies_bouldin == pytest.approx(sk.davies_bouldin_score(x, labels), abs=1e-6)


def test_weights_count_as_repeated_rows(spark, blobs):
    table = LocalKMeans(seed=1, weightCol="weight").sweep(blobs, [3, 4])
    evaluator = ClusteringEvaluator(weightCol="weight")
    for k, model in table.models.items():
        row = table.table.set_index("k").loc[k]
        expected = evaluator.evaluate(model.transform(blobs))
        assert row["silhouette"] == pytest.approx(expected, abs=1e-6)
        found = blobs.select("weight").toPandas()["weight"].to_numpy(int)
        x, labels = np.repeat(rows_of(blobs), found, 0), np.repeat(labels_of(model, blobs), found)
        expected = sk.calinski_harabasz_score(x, labels)
        assert row["calinski_harabasz"] == pytest.approx(expected, rel=1e-6)
        expected = sk.davies_bouldin_score(x, labels)
        assert row["davies_bouldin"] == pytest.approx(expected, abs=1e-6)
    light = blobs.withColumn("weight", F.col("weight") / 1e6)  # less than a row, all together
    found = LocalKMeans(seed=1, weightCol="weight").sweep(light, [3]).table
    assert found["calinski_harabasz"].isna().all() and found["silhouette"].notna().all()


def test_sparse_rows_and_single_rows(spark):
    rng = np.random.default_rng(3)
    x = np.where(rng.random((60, 100)) < 0.05, rng.normal(size=(60, 100)), 0.0)
    x[:, 0] += np.repeat([0.0, 20.0, 400.0], [30, 29, 1])
    x = x.astype(np.float32).astype(float)
    rows = [(Vectors.sparse(100, np.flatnonzero(row), row[row != 0]),) for row in x]
    frame = spark.createDataFrame(rows, ["features"]).repartition(3)
    sweep = LocalKMeans(seed=2).sweep(frame, [3])
    labels = labels_of(sweep.models[3], frame)
    assert 1 in np.bincount(labels)
    expected = ClusteringEvaluator().evaluate(sweep.models[3].transform(frame))
    assert sweep.table["silhouette"][0] == pytest.approx(expected, abs=1e-6)
    expected = sk.davies_bouldin_score(rows_of(frame), labels)
    assert sweep.table["davies_bouldin"][0] == pytest.approx(expected, abs=1e-6)


def test_the_true_k_is_found_and_said(spark):
    rng = np.random.default_rng(0)
    middles = 20.0 * np.array([[i % 2, i // 2 % 2, i // 4] for i in range(6)])
    x = middles[rng.integers(6, size=900)] + rng.normal(size=(900, 3))
    frame = spark.createDataFrame([(row.tolist(),) for row in x], "features array<double>")
    sweep = LocalKMeans(seed=1).sweep(frame, range(2, 11))
    assert sweep.best_k == 6 and sweep.reason.startswith("k = 6: silhouette 0.")
    assert sweep.table.set_index("k").loc[6, "agreement"] > 0.99
    assert sweep.elbow in range(3, 8)
    picture = io.BytesIO()
    sweep.plot().savefig(picture, format="png")
    assert picture.getvalue()[:4] == b"\x89PNG"
    assert "<svg" in sweep._repr_html_() and "<script" not in sweep._repr_html_()
    again = LocalKMeans(seed=1).sweep(frame, range(2, 11))
    sweep.toPandas()["k"] = 0  # of a copy
    pd.testing.assert_frame_equal(sweep.table, again.toPandas(), check_exact=True)


def test_a_large_k_and_few_rows(spark):
    frame = spark.createDataFrame([([float(i % 4)],) for i in range(12)], "features array<double>")
    table = LocalKMeans(seed=1).sweep(frame, [4, 9]).table
    assert list(table["clusters"]) == [4, 4]
    assert list(table["silhouette"]) == [1.0, 1.0]


def test_what_cannot_be_swept_is_refused(pairs):
    with pytest.raises(InvalidInputError, match=r"parameter 'k'.*got 0"):
        LocalKMeans().sweep(pairs, [0, 2])
    with pytest.raises(InvalidInputError, match="'ks' must be at least one number"):
        LocalKMeans().sweep(pairs, [])
    with pytest.raises(InvalidInputError, match="unset for a sweep"):
        LocalKMeans(initialCenters=[[0.0, 0.0]]).sweep(pairs, [2])


def test_unstable_k_is_passed_over():
    table = pd.DataFrame(
        {"k": [2, 3, 4], "silhouette": [0.5, 0.6, 0.4], "agreement": [0.9, 0.3, 1.0]}
    )
    assert _best(table)[0] == 2 and "k = 3 has 0.600" in _best(table)[1]
    table["agreement"] = 0.2
    assert _best(table)[0] == 3 and "no clusters" in _best(table)[1]


def test_agreement_is_scikit_learns():
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = rng.integers(4, size=50), rng.integers(3, size=50)
        counts = np.zeros((4, 3))
        np.add.at(counts, (a, b), 1)
        assert adjusted_rand(counts) == pytest.approx(sk.adjusted_rand_score(a, b), abs=1e-12)
        expected = sk.normalized_mutual_info_score(a, b)
        assert normalized_mutual_info(counts) == pytest.approx(expected, abs=1e-12)
