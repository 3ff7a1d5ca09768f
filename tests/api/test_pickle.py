"""Models travel: pickled, copied, inside a Python function of Spark, to another process."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chispa import assert_df_equality
from pyspark import cloudpickle
from pyspark.ml import PipelineModel
from pyspark.sql import functions as F

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel

ROWS = [[0.0, 0.0], [9.0, 9.0]]


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def cloudpickled(value: Any) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(value))


TRAVELS: list[Callable[[Any], Any]] = [pickled, cloudpickled, copy.deepcopy]


@pytest.fixture(scope="module")
def fitted(pairs) -> LocalKMeansModel:
    return LocalKMeans(k=2, seed=1, distanceCol="distance").fit(pairs)


@pytest.fixture(scope="module")
def wide(spark) -> LocalKMeansModel:
    """A model after a transform that sent its centers, 1.6 MB, by a broadcast."""
    model = LocalKMeansModel(np.random.default_rng(1).normal(size=(2, 100_000)))
    row = spark.createDataFrame([(model.centers[1].tolist(),)], ["features"])
    assert model.transform(row).first().prediction == 1
    return model


@pytest.mark.parametrize("travel", TRAVELS)
def test_a_model_fresh_from_fit(fitted, pairs, travel):
    found = travel(fitted)
    assert (found.uid, found.getDistanceCol()) == (fitted.uid, "distance")
    np.testing.assert_array_equal(found.centers, fitted.centers)
    assert_df_equality(found.transform(pairs), fitted.transform(pairs))
    assert found.summary.record == fitted.summary.record
    with pytest.raises(InvalidInputError, match="loaded or pickled model"):
        _ = found.summary.predictions
    assert fitted.summary.predictions.count() == 4, "the original keeps its training rows"
    assert fitted.copy().summary.predictions.count() == 4


@pytest.mark.parametrize("travel", TRAVELS)
def test_a_model_that_has_sent_its_centers(wide, spark, travel):
    found = travel(wide)
    row = spark.createDataFrame([(wide.centers[1].tolist(),)], ["features"])
    assert found.transform(row).first().prediction == 1
    assert wide.transform(row).first().prediction == 1


@pytest.mark.parametrize("travel", TRAVELS)
def test_what_holds_a_model(fitted, pairs, travel):
    assert travel(fitted.summary).record == fitted.summary.record
    assert_df_equality(travel(PipelineModel([fitted])).transform(pairs), fitted.transform(pairs))
    assert travel(fitted.evaluate(pairs)) == fitted.evaluate(pairs)
    again = travel(LocalKMeans(k=2, seed=1, initialCenters=ROWS)).fit(pairs)
    assert again.centers.tolist() == [[0.5, 0.5], [8.5, 8.5]]


def test_inside_a_pandas_udf(fitted, wide, spark):
    @F.pandas_udf("int")
    def label(x: pd.Series, y: pd.Series) -> pd.Series:
        return pd.Series(fitted.predict(np.stack([x, y], axis=1)))

    rows = spark.createDataFrame(ROWS, ["x", "y"])
    found = [row.label for row in rows.select(label("x", "y").alias("label")).collect()]
    assert found == fitted.predict(np.array(ROWS)).tolist()

    @F.pandas_udf("int")
    def label_of(which: pd.Series) -> pd.Series:
        return pd.Series(wide.predict(wide.centers[which]))

    assert spark.range(2).select(label_of("id").alias("label")).collect() == [(0,), (1,)]


def test_in_other_processes(fitted):
    joblib = pytest.importorskip("joblib")  # comes with scikit-learn
    given = [np.array([row]) for row in ROWS]
    expected = [fitted.predict(rows).tolist() for rows in given]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted.predict)(rows) for rows in given)
    assert [labels.tolist() for labels in found] == expected
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert [labels.tolist() for labels in pool.map(fitted.predict, given)] == expected


def test_where_no_session_is(fitted, tmp_path):
    (tmp_path / "model").write_bytes(pickle.dumps(fitted))
    code = (
        "import pickle, sys; model = pickle.load(open(sys.argv[1], 'rb'));"
        "print(model.predict([9.0, 9.0]), model.summary.k)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert found == [str(fitted.predict([9.0, 9.0])), "2"]
