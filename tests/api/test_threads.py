"""Fits in threads of one session give what they give one after the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from pyspark.ml.evaluation import ClusteringEvaluator
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from threadpoolctl import threadpool_info

from localkmeans_spark import LocalKMeans
from localkmeans_spark.fit.one_thread import one_blas_thread
from localkmeans_spark.spark_private import workers_of_sql


@pytest.fixture
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    numbers = [F.sin(F.col("id") * (j + 1)) + F.col("id") % 3 for j in range(3)]
    df = spark.range(300, numPartitions=2).select(F.array(*numbers).alias("features")).cache()
    df.count()
    yield df
    df.unpersist(blocking=True)


def _fit(rows: DataFrame, seed: int) -> tuple[bytes, float, list[int]]:
    model = LocalKMeans(k=2 + seed % 3, seed=seed, maxIter=4, localSteps=2).fit(rows)
    labels = model.transform(rows).groupBy("prediction").count().sort("prediction").collect()
    centers = np.array(model.clusterCenters()).tobytes()
    return centers, model.summary.trainingCost, [row["count"] for row in labels]


def test_fits_in_threads(spark: SparkSession, rows: DataFrame) -> None:
    """Threads change places often, so that what they share would be found changed."""
    expected = [_fit(rows, seed) for seed in range(6)]
    settings = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    environment = dict(spark.sparkContext.environment)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda number: _fit(rows, number % 6), range(24)))
    finally:
        sys.setswitchinterval(before)
    assert found == 4 * expected
    assert {row["key"]: row["value"] for row in spark.sql("SET").collect()} == settings
    assert dict(spark.sparkContext.environment) == environment


def test_the_environment_of_workers_is_not_changed_in_place(spark: SparkSession) -> None:
    """Another thread may be walking through it."""
    context = spark.sparkContext
    kept, before = context.environment, dict(context.environment)
    with workers_of_sql(context):
        assert len(context.environment) == len(before) + 1
        assert kept == before
    assert context.environment == before


def test_the_last_fit_lifts_the_limit_on_threads() -> None:
    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before = threads()
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(one_blas_thread)
        second.enter_context(one_blas_thread)
        first.close()
        assert set(threads()) == {1}
    assert threads() == before


def test_descriptions_of_jobs_are_left_as_they_were(spark: SparkSession, rows: DataFrame) -> None:
    context = spark.sparkContext
    context.setJobDescription("mine")
    try:
        LocalKMeans(k=2, seed=1).fit(rows)
        assert context.getLocalProperty("spark.job.description") == "mine"
    finally:
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def test_cross_validation_in_threads(rows: DataFrame) -> None:
    from pyspark.ml.functions import array_to_vector

    vectors = rows.select(array_to_vector("features").alias("features"))
    estimator = LocalKMeans(seed=1, maxIter=4)
    grid = ParamGridBuilder().addGrid(estimator.k, [2, 3, 4, 5]).build()

    def metrics(parallelism: int) -> list[float]:
        validator = CrossValidator(
            estimator=estimator,
            estimatorParamMaps=grid,
            evaluator=ClusteringEvaluator(),
            numFolds=2,
            seed=1,
            parallelism=parallelism,
        )
        return list(validator.fit(vectors).avgMetrics)

    assert metrics(4) == metrics(1)
