"""Several parameter maps over one cached copy of the rows, alone and inside pyspark.ml.tuning."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pyspark.ml import Pipeline
from pyspark.ml.evaluation import ClusteringEvaluator
from pyspark.ml.tuning import (
    CrossValidator,
    CrossValidatorModel,
    ParamGridBuilder,
    TrainValidationSplit,
)

from localkmeans_spark import InvalidInputError, LocalKMeans
from localkmeans_spark.fit_multiple import shared_fits


def reads_of(spark, rows):
    """A DataFrame that counts how often each of its rows is read."""
    count = spark.sparkContext.accumulator(0)

    def read(row):
        count.add(1)
        return (row,)

    rdd = spark.sparkContext.parallelize(rows.tolist(), 3).map(read)
    return spark.createDataFrame(rdd, "features array<double>"), count


def same_model(a, b):
    return a.centers.tobytes() == b.centers.tobytes() and (
        a.summary.trainingCost == b.summary.trainingCost
    )


def test_one_read_for_maps_that_share_blocks(spark, blob_rows, newly_cached):
    frame, count = reads_of(spark, blob_rows)
    kmeans = LocalKMeans(seed=1)
    maps = [
        {kmeans.k: 2},
        {kmeans.k: 4, kmeans.localSteps: 1, kmeans.tol: 0.0},
        {kmeans.k: 3, kmeans.seed: 9, kmeans.nInit: 3, kmeans.maxIter: 6},
        {kmeans.k: 3, kmeans.initMode: "random", kmeans.predictionCol: "p"},
    ]
    models = kmeans.fit(frame, maps)
    assert count.value == len(blob_rows)
    assert not newly_cached()
    assert [model.getK() for model in models] == [2, 4, 3, 3]
    assert models[3].getPredictionCol() == "p" and models[2].getSeed() == 9
    for model, paramMap in zip(models, maps, strict=True):
        assert same_model(model, kmeans.fit(frame, paramMap))


def test_maps_that_need_other_rows_have_their_own(spark, blob_rows):
    frame, count = reads_of(spark, blob_rows)
    kmeans = LocalKMeans(k=3, seed=1)
    maps = [{}, {kmeans.dtype: "float64"}, {kmeans.k: 2}, {kmeans.numPartitions: 2}]
    models = kmeans.fit(frame, maps)
    assert count.value == 3 * len(blob_rows)
    assert [model.summary.record.dtype for model in models] == ["float32", "float64"] + 2 * [
        "float32"
    ]
    assert [model.summary.record.n_partitions for model in models] == [3, 3, 3, 2]
    assert same_model(models[1], kmeans.fit(frame, maps[1]))


def test_an_abandoned_or_failed_iterator_leaves_nothing_cached(blobs, newly_cached):
    blobs.count()  # fills the caller's own cache
    callers = newly_cached()
    kmeans = LocalKMeans(seed=1)
    models = kmeans.fitMultiple(blobs, [{kmeans.k: 2}, {kmeans.k: 3}])
    assert newly_cached() == callers
    next(models)
    del models
    assert newly_cached() == callers
    failing = kmeans.fitMultiple(blobs, [{kmeans.k: 2}, {kmeans.initialCenters: [[1.0], [2.0]]}])
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="initialCenters"):
            next(failing)
    with pytest.raises(StopIteration):
        next(failing)
    assert newly_cached() == callers


def test_a_contradiction_is_found_before_any_fit(blobs):
    kmeans = LocalKMeans(initialCenters=[[0.0] * 5, [1.0] * 5])
    with pytest.raises(InvalidInputError, match="k=5"):
        kmeans.fitMultiple(blobs, [{}, {kmeans.k: 5}])
    with pytest.raises(InvalidInputError, match="'nInit' must be 1 with 'initialCenters'"):
        LocalKMeans(initialCenters=[[0.0], [1.0]], nInit=2).fit(blobs)


def test_threads_fit_each_group_once():
    calls = []
    together = threading.Barrier(2, timeout=30)

    def fit_group(members):
        calls.append(members)
        together.wait()  # both groups are being fitted at the same time
        return [f"model {index}" for index in members]

    models = shared_fits(["a", "a", "b", "a", "b"], fit_group)
    with ThreadPoolExecutor(5) as pool:
        found = dict(pool.map(lambda _: next(models), range(5)))
    assert found == {index: f"model {index}" for index in range(5)}
    assert sorted(calls) == [[0, 1, 3], [2, 4]]


@pytest.mark.parametrize("kind", [CrossValidator, TrainValidationSplit])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_inside_tuning(blobs, newly_cached, kind, parallelism):
    blobs.count()  # fills the caller's own cache
    callers = newly_cached()
    kmeans = LocalKMeans(seed=1, maxIter=5)
    grid = ParamGridBuilder().addGrid(kmeans.k, [2, 6]).addGrid(kmeans.nInit, [1, 2]).build()
    options = {"numFolds": 2} if kind is CrossValidator else {}
    tuning = kind(
        estimator=kmeans,
        estimatorParamMaps=grid,
        evaluator=ClusteringEvaluator(),
        parallelism=parallelism,
        seed=1,
        **options,
    )
    assert tuning.fit(blobs).bestModel.getK() == 2
    assert newly_cached() == callers


def test_inside_a_pipeline_inside_tuning(blobs):
    kmeans = LocalKMeans(seed=1, maxIter=5)
    tuning = TrainValidationSplit(
        estimator=Pipeline(stages=[kmeans]),
        estimatorParamMaps=ParamGridBuilder().addGrid(kmeans.k, [2, 6]).build(),
        evaluator=ClusteringEvaluator(),
    )
    assert tuning.fit(blobs).bestModel.stages[0].getK() == 2


def test_given_centers_in_a_grid_are_saved(blobs, blob_rows, tmp_path):
    kmeans = LocalKMeans(maxIter=2)
    starts = [blob_rows[:3], blob_rows[3:5]]
    grid = [{kmeans.initialCenters: kmeans.initialCenters.typeConverter(x)} for x in starts]
    built = ParamGridBuilder().addGrid(kmeans.initialCenters, starts).build()
    assert built == grid
    tuning = CrossValidator(
        estimator=kmeans, estimatorParamMaps=built, evaluator=ClusteringEvaluator(), numFolds=2
    )
    tuning.save(str(tmp_path / "before"))
    loaded = CrossValidator.load(str(tmp_path / "before"))
    for found, start in zip(loaded.getEstimatorParamMaps(), starts, strict=True):
        np.testing.assert_array_equal(next(iter(found.values())), start)
    model = loaded.fit(blobs)
    model.save(str(tmp_path / "after"))
    again = CrossValidatorModel.load(str(tmp_path / "after"))
    assert np.array_equal(again.bestModel.centers, model.bestModel.centers)
