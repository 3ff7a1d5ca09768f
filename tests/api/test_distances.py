"""Columns of distances to all centers, of the second nearest cluster, and drift."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from sklearn.cluster import KMeans

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel
from localkmeans_spark.kernel.distances import all_sq_distances, second_nearest
from localkmeans_spark.kernel.sparse_rows import from_dense

CENTERS = [[0.0, 0.0], [9.0, 8.0], [0.0, 10.0]]


def test_distances_are_scikit_learns_transform(pairs):
    model = LocalKMeansModel(CENTERS)
    model.setDistancesCol("all").setSecondCol("second").setMarginCol("margin").setDistanceCol("d")
    rows = model.transform(pairs).collect()
    x = np.array([row["features"].toArray() for row in rows])
    sk = KMeans(3, init=np.array(CENTERS), n_init=1, max_iter=1).fit(CENTERS)
    expected = sk.transform(x)
    np.testing.assert_allclose([row["all"] for row in rows], expected, rtol=1e-12, atol=1e-12)
    order = np.argsort(expected, axis=1)
    assert [row["prediction"] for row in rows] == order[:, 0].tolist()
    assert [row["second"] for row in rows] == order[:, 1].tolist()
    ordered = np.sort(expected, axis=1)
    margins = 1.0 - ordered[:, 0] / ordered[:, 1]
    np.testing.assert_allclose([row["margin"] for row in rows], margins, atol=1e-12)
    np.testing.assert_allclose([row["d"] for row in rows], ordered[:, 0], atol=1e-12)
    assert model.copy().setSecondCol(None).setMarginCol(None).transform(pairs).columns == [
        "features", "prediction", "d", "all",
    ]  # fmt: skip


def test_rows_that_cannot_be_labelled_have_none(spark):
    frame = spark.createDataFrame([([0.0, 1.0],), ([float("nan"), 1.0],)], "features array<double>")
    model = LocalKMeansModel(CENTERS).setHandleInvalid("keep").setDistancesCol("all")
    model.setSecondCol("second").setMarginCol("margin")
    good, bad = model.transform(frame).collect()
    assert (good["prediction"], good["second"]) == (0, 2)
    assert (bad["prediction"], bad["all"], bad["second"]) == (3, None, None)
    assert np.isnan(bad["margin"])


def test_cosine_and_names(spark):
    frame = spark.createDataFrame([(Vectors.dense([2.0, 0.0]),)], ["features"])
    model = LocalKMeansModel([[1.0, 0.0], [0.0, 1.0]], distanceMeasure="cosine")
    row = model.setDistancesCol("all").transform(frame).head()
    np.testing.assert_allclose(row["all"], [0.0, 1.0], atol=1e-15)
    with pytest.raises(InvalidInputError, match="'secondCol'"):
        model.setSecondCol("all").transform(frame)


def test_kernel_dense_and_sparse_agree():
    rng = np.random.default_rng(0)
    x, centers = rng.normal(size=(20, 5)), rng.normal(size=(3, 5))
    dense = all_sq_distances(x, centers)
    np.testing.assert_allclose(all_sq_distances(from_dense(x), centers), dense, rtol=1e-10)
    second, margin = second_nearest(np.array([[1.0, 2.0, 4.0], [3.0, 3.0, 0.0]]), np.array([0, 2]))
    assert second.tolist() == [1, 0] and margin.tolist() == [0.5, 1.0]


def test_drift_against_the_fit(spark, blobs, blob_rows, monkeypatch):
    model = LocalKMeans(k=3, seed=1).fit(blobs)
    same = model.drift(blobs)
    assert same.psi == pytest.approx(0.0, abs=1e-12) and "little has changed" in same.reason
    np.testing.assert_allclose(same.table["distance"], same.table["distance_before"], rtol=1e-6)
    labels = model.predict(blob_rows)
    some = blob_rows[labels != 0]
    frame = spark.createDataFrame([(Vectors.dense(row),) for row in some], ["features"])
    found = model.drift(frame)
    assert found.table["share"].iloc[0] == 0.0 and "much has changed" in found.reason
    before = np.bincount(labels, minlength=3) / len(labels)
    now = np.maximum(np.bincount(labels[labels != 0], minlength=3) / len(some), 1e-4)
    assert found.psi == pytest.approx(((now - before) * np.log(now / before)).sum())
    assert found.picture()[:4] == b"\x89PNG" and "<svg" in found._repr_html_()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib.figure", None)  # no matplotlib: the table alone
        assert "<svg" not in found._repr_html_() and "<table" in found._repr_html_()
    with pytest.raises(InvalidInputError, match="to have a summary"):
        LocalKMeansModel(CENTERS).drift(frame)
    # The same numbers for clusters that go on from a model.
    later = LocalKMeans(initialCenters=model, maxIter=3).fit(frame)
    assert (later.predict(model.centers) == np.arange(3)).all()
