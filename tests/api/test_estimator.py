"""fit: parameters reach the engine, and what comes back is right."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from pyspark.ml.clustering import KMeans
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F
from sklearn.cluster import KMeans as SklearnKMeans

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel


def centers_of(model: LocalKMeansModel) -> list[tuple[float, ...]]:
    return sorted(tuple(center) for center in model.clusterCenters())


def test_two_pairs(pairs):
    model = LocalKMeans(k=2, seed=1).fit(pairs)
    assert centers_of(model) == [(0.5, 0.5), (8.5, 8.5)]
    assert model.summary.trainingCost == 2.0
    assert model.numFeatures == 2
    assert model.getK() == 2


def test_one_cluster_is_the_weighted_mean(spark):
    rows = [([0.0, 3.0], 1.0), ([4.0, 0.0], 3.0), ([100.0, 100.0], 0.0)]
    df = spark.createDataFrame(rows, ["features", "w"])
    model = LocalKMeans(k=1, weightCol="w", seed=1).fit(df)
    assert centers_of(model) == [(3.0, 0.75)]
    # 1 * (9 + 5.0625) + 3 * (1 + 0.5625)
    assert model.summary.trainingCost == pytest.approx(18.75, abs=1e-12)


def test_the_model_carries_uid_and_params(pairs):
    kmeans = LocalKMeans(k=2, seed=1, maxIter=7, tol=0.5, predictionCol="c")
    model = kmeans.fit(pairs)
    assert model.uid == kmeans.uid
    assert (model.getMaxIter(), model.getTol(), model.getPredictionCol()) == (7, 0.5, "c")
    for name in ("k=2", "numFeatures=2", "distanceMeasure=euclidean", kmeans.uid):
        assert name in repr(model)


def test_a_drawn_seed_is_recorded_and_repeats_the_run(blobs):
    kmeans = LocalKMeans(k=5, initMode="random", maxIter=2)
    first, second = kmeans.fit(blobs), kmeans.fit(blobs)
    assert kmeans.getSeed() is None
    assert first.getSeed() == first.summary.seed != second.getSeed()
    again = kmeans.copy({kmeans.seed: first.getSeed()}).fit(blobs)
    assert np.array_equal(again.clusterCenters(), first.clusterCenters())


def test_negative_seeds_work_as_in_mllib(pairs):
    model = LocalKMeans(seed=-1).fit(pairs)
    again = LocalKMeans(seed=model.summary.seed).fit(pairs)
    assert np.array_equal(model.clusterCenters(), again.clusterCenters())


@pytest.mark.parametrize("mode", ["k-means++", "local-k-means++", "k-means||", "random"])
def test_every_init_mode(blobs, mode):
    model = LocalKMeans(k=3, initMode=mode, seed=3).fit(blobs)
    assert len(model.clusterCenters()) == 3
    assert model.summary.record.init_mode == mode


def test_no_iterations_returns_the_initial_centers(pairs):
    model = LocalKMeans(maxIter=0, initialCenters=[[0.0, 0.0], [9.0, 8.0]]).fit(pairs)
    assert centers_of(model) == [(0.0, 0.0), (9.0, 8.0)]
    assert model.summary.trainingCost == 4.0
    assert model.summary.numIter == 0


def test_initial_centers_from_every_kind_of_model(pairs, spark):
    start = [[0.0, 0.0], [9.0, 8.0]]
    ours = LocalKMeansModel(start)
    kinds = [start, np.array(start, dtype=np.float32), ours, ours.toMLlib(), ours.toSklearn()]
    for kind in kinds:
        kmeans = LocalKMeans(initialCenters=kind, maxIter=0)
        assert np.array_equal(kmeans.getInitialCenters(), start)
        assert np.array_equal(kmeans.fit(pairs).clusterCenters(), start)


def test_k_follows_from_the_initial_centers(pairs):
    model = LocalKMeans(initialCenters=[[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]]).fit(pairs)
    assert len(model.clusterCenters()) == 3
    with pytest.raises(InvalidInputError, match="an array of k=5 rows; got an array of shape"):
        LocalKMeans(k=5, initialCenters=[[0.0, 0.0], [1.0, 1.0]]).fit(pairs)
    with pytest.raises(InvalidInputError, match="initialCenters"):
        LocalKMeans(initialCenters=[[0.0], [1.0]]).fit(pairs)


@pytest.mark.parametrize(
    "kind", ["array<float>", "array<double>", "array<int>", "array<bigint>", "sparse", "columns"]
)
def test_every_kind_of_features_gives_the_same_model(spark, kind):
    rows = [(i % 5, (3 * i) % 7) for i in range(40)]
    df = spark.createDataFrame(rows, "a int, b int").repartition(2)
    # localSteps=1: the answer must not depend on which rows share a partition.
    start = [[0.0, 0.0], [2.0, 5.0], [4.0, 2.0]]
    kmeans = LocalKMeans(initialCenters=start, localSteps=1, maxIter=3)
    expected = kmeans.fit(df.select(F.array("a", "b").cast("array<double>").alias("features")))
    if kind == "columns":
        kmeans.setFeaturesCols(["a", "b"])
    elif kind == "sparse":
        mixed = [
            (Vectors.sparse(2, [j for j in (0, 1) if row[j]], [float(v) for v in row if v]),)
            if i % 2
            else (Vectors.dense(row),)
            for i, row in enumerate(rows)
        ]
        df = spark.createDataFrame(mixed, ["features"]).repartition(2)
    else:
        df = df.select(F.array("a", "b").cast(kind).alias("features"))
    model = kmeans.fit(df)
    assert np.allclose(model.clusterCenters(), expected.clusterCenters(), rtol=0, atol=1e-12)
    assert model.transform(df).groupBy("prediction").count().count() == 3


def test_column_errors_name_the_columns_present(pairs, spark):
    with pytest.raises(InvalidInputError, match=r"'featuresCol'.*'f'.*features"):
        LocalKMeans(featuresCol="f").fit(pairs)
    with pytest.raises(InvalidInputError, match=r"'weightCol'.*'w'"):
        LocalKMeans(weightCol="w").fit(pairs)
    strings = spark.createDataFrame([("a",)], ["features"])
    with pytest.raises(InvalidInputError, match=r"column 'features'.*string"):
        LocalKMeans().fit(strings)
    both = LocalKMeans(featuresCol="features", featuresCols=["a"])
    with pytest.raises(InvalidInputError, match="Set featuresCol or featuresCols, not both"):
        both.fit(pairs)


def test_an_empty_weight_col_means_none_as_in_mllib(pairs):
    assert LocalKMeans(weightCol="", seed=1).fit(pairs).summary.trainingCost == 2.0


def test_rows_that_cannot_take_part(spark):
    rows = [([0.0],), ([float("nan")],), (None,), ([1.0],), ([float("inf")],), ([None],)]
    df = spark.createDataFrame(rows, "features array<double>")
    with pytest.raises(InvalidInputError, match=r"4 of 6 rows.*handleInvalid"):
        LocalKMeans(k=1).fit(df)
    for handling in ("skip", "keep"):
        model = LocalKMeans(k=1, handleInvalid=handling).fit(df)
        assert centers_of(model) == [(0.5,)]
        assert model.summary.record.n_skipped == 4


def test_too_few_distinct_rows(spark):
    df = spark.createDataFrame([([1.0],), ([1.0],), ([2.0],), ([2.0],)], ["features"])
    model = LocalKMeans(k=5, seed=1).fit(df)
    assert centers_of(model) == [(1.0,), (2.0,)]
    assert model.summary.k == 2
    assert model.summary.clusterSizes == [2, 2]
    assert model.summary.record.k_requested == 5


def test_canonical_order_is_by_size_then_coordinates(spark):
    values = [5.0, 5.0, 0.0, 9.0, 9.0, 9.0, 20.0, 20.0]
    df = spark.createDataFrame([([v, -v],) for v in values], ["features"])
    for seed in range(3):
        model = LocalKMeans(k=4, seed=seed, canonicalOrder=True).fit(df)
        assert [center[0] for center in model.clusterCenters()] == [9.0, 5.0, 20.0, 0.0]
        assert model.summary.clusterSizes == [3, 2, 2, 1]
        assert model.evaluate(df).clusterSizes == [3, 2, 2, 1]


def test_fit_with_param_maps(pairs):
    kmeans = LocalKMeans(seed=1)
    models = kmeans.fit(pairs, [{kmeans.k: 1}, {kmeans.k: 2}, {kmeans.k: 4}])
    assert [model.summary.k for model in models] == [1, 2, 4]
    assert [model.summary.trainingCost for model in models] == [130.0, 2.0, 0.0]
    assert kmeans.fit(pairs, {kmeans.predictionCol: "c"}).getPredictionCol() == "c"
    assert kmeans.getPredictionCol() == "prediction"


def test_local_steps_reach_the_same_cost_as_plain_lloyd(blobs, blob_rows):
    start = blob_rows[:3]
    plain = SklearnKMeans(3, init=start, n_init=1, max_iter=300, tol=0).fit(blob_rows)
    for steps in (1, 2, 5):
        kmeans = LocalKMeans(k=3, initialCenters=start, localSteps=steps, maxIter=300, tol=0.0)
        assert kmeans.fit(blobs).summary.trainingCost == pytest.approx(plain.inertia_, rel=1e-3)


def test_verbose_logs_the_rounds(pairs, caplog, capsys):
    with caplog.at_level(logging.WARNING):
        LocalKMeans(seed=1).fit(pairs)
    assert "round 1" not in caplog.text
    LocalKMeans(seed=1, verbose=True).fit(pairs)
    assert "round 1" in caplog.text
    assert capsys.readouterr().out == ""


def test_verbose_reaches_stderr_without_logging_set_up(pairs, capsys, monkeypatch):
    logger = logging.getLogger("localkmeans_spark")
    monkeypatch.setattr(logger, "propagate", False)
    LocalKMeans(seed=1, verbose=True).fit(pairs)
    assert "round 1" in capsys.readouterr().err
    assert logger.handlers == []
    assert logger.level == logging.NOTSET


def test_mllib_code_runs_with_the_import_changed(pairs):
    for estimator in (KMeans, LocalKMeans):
        kmeans = estimator(k=2, maxIter=10, initMode="k-means||", initSteps=3, seed=7).setTol(0.0)
        model = kmeans.fit(pairs)
        assert centers_of(model) == [(0.5, 0.5), (8.5, 8.5)]
        assert model.summary.trainingCost == 2.0
