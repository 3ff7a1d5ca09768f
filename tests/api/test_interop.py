"""Models go to MLlib and scikit-learn and come back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from chispa import assert_df_equality
from pyspark.ml.clustering import KMeans, KMeansModel
from pyspark.ml.linalg import Vectors
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.cluster import MiniBatchKMeans

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel

# MLlib's column of labels says that no label is null, which a function in Python cannot.
SAME_BUT_NULLS = {"ignore_nullable": True, "ignore_metadata": True}


@pytest.fixture(scope="module")
def model(blobs) -> LocalKMeansModel:
    return LocalKMeans(k=5, seed=4, predictionCol="ours").fit(blobs)


def test_to_mllib_predicts_the_same(model, blobs, blob_rows):
    mllib = model.toMLlib()
    assert isinstance(mllib, KMeansModel)
    assert np.array_equal(mllib.clusterCenters(), model.clusterCenters())
    assert (mllib.getPredictionCol(), mllib.getK(), mllib.hasSummary) == ("ours", 5, False)
    assert_df_equality(mllib.transform(blobs), model.transform(blobs), **SAME_BUT_NULLS)
    assert mllib.predict(Vectors.dense(blob_rows[0])) == model.predict(blob_rows[0])


def test_to_mllib_saves_in_mllibs_own_format(model, tmp_path):
    path = str(tmp_path / "mllib")
    model.toMLlib().write().save(path)
    again = KMeansModel.load(path)
    assert np.array_equal(again.clusterCenters(), model.clusterCenters())
    assert again.getPredictionCol() == "ours"
    metadata = "".join(p.read_text() for p in (tmp_path / "mllib" / "metadata").glob("part-*"))
    assert "org.apache.spark.ml.clustering.KMeansModel" in metadata


def test_from_mllib(blobs):
    mllib = KMeans(k=4, seed=1, maxIter=3, predictionCol="theirs").fit(blobs)
    ours = LocalKMeansModel.fromMLlib(mllib)
    assert ours.getPredictionCol() == "theirs"
    assert ours.getK() == 4
    assert_df_equality(ours.transform(blobs), mllib.transform(blobs), **SAME_BUT_NULLS)


def test_to_sklearn(model, blob_rows):
    sklearn = model.toSklearn()
    assert isinstance(sklearn, SklearnKMeans)
    assert np.array_equal(sklearn.cluster_centers_, model.clusterCenters())
    assert sklearn.inertia_ == model.summary.trainingCost
    assert sklearn.n_iter_ == model.summary.numIter
    assert sklearn.n_features_in_ == 5
    assert np.array_equal(sklearn.predict(blob_rows), model.predict(blob_rows))
    assert sklearn.transform(blob_rows).shape == (600, 5)


def test_to_sklearn_warns_of_centers_that_its_products_mix_up():
    centers = np.array([[0.0, 0.0], [3.0, 1.0], [6.0, 0.0]])
    with pytest.warns(UserWarning, match="up to 1.4e\\+08 from 0 and 3.2 apart: scikit-learn's"):
        LocalKMeansModel(centers + 1e8).toSklearn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LocalKMeansModel(centers + 1e4).toSklearn()


def test_to_sklearn_with_equal_centers_and_without_a_summary():
    sklearn = LocalKMeansModel([[0.0], [0.0], [1.0]]).toSklearn()
    assert sklearn.predict([[0.9], [0.1]]).tolist() == [2, 0]
    assert np.isnan(sklearn.inertia_)


@pytest.mark.parametrize("kind", [SklearnKMeans, MiniBatchKMeans])
def test_from_sklearn(blob_rows, kind):
    sklearn = kind(4, random_state=1, n_init=1).fit(blob_rows)
    ours = LocalKMeansModel.fromSklearn(sklearn)
    assert np.array_equal(ours.predict(blob_rows), sklearn.predict(blob_rows))
    with pytest.raises(InvalidInputError, match="Call its fit first"):
        LocalKMeansModel.fromSklearn(kind(4))
