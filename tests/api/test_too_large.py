"""Rows whose numbers the model's dtype cannot work with are unusable, as null rows are."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.linalg import Vectors

from localkmeans_spark import InvalidInputError, LocalKMeansModel

TOLD_64 = (
    r"free of null, NaN and infinite values, and of numbers beyond 1e\+140 \(dtype='float64'\)"
)


@pytest.fixture
def model() -> LocalKMeansModel:
    return LocalKMeansModel([[0.0, 0.0], [9.0, 8.0]]).setDistanceCol("d")


def narrow(center: float = 0.0) -> LocalKMeansModel:
    """Return a model that keeps its rows in float32, relative to a center far away."""
    centers = np.array([[0.0, 0.0], [9.0, 8.0]]) + center
    return LocalKMeansModel(centers, np.full(2, center), "float32").setDistanceCol("d")


@pytest.fixture
def rows(spark):
    values = [[8.0, 9.0], [1e300, 9.0], [1e141, 0.0], [-1e200, 1e200], [1.0, 0.0]]
    return spark.createDataFrame(list(enumerate(values)), "id int, features array<double>")


def found_in(df) -> dict[int, tuple[int, float | None]]:
    return {row["id"]: (row["prediction"], row["d"]) for row in df.collect()}


@pytest.mark.parametrize("column", ["prediction", "d"])
def test_they_stop_transform(model, rows, column):
    with pytest.raises(PySparkException, match=rf"{TOLD_64}; got [123] such row"):
        model.transform(rows).select(column).collect()


def test_they_are_skipped_or_kept(model, rows):
    usable = {0: (1, np.sqrt(2.0)), 4: (0, 1.0)}
    assert found_in(model.setHandleInvalid("skip").transform(rows)) == usable
    kept = found_in(model.setHandleInvalid("keep").transform(rows))
    assert {i: kept[i] for i in (0, 4)} == usable
    assert [kept[i][0] for i in (1, 2, 3)] == [2, 2, 2]
    assert np.isnan([kept[i][1] for i in (1, 2, 3)]).all()


def test_evaluate_tells_or_counts_them(model, rows):
    with pytest.raises(InvalidInputError, match=f"{TOLD_64}; got 3 of 5 rows that are not"):
        model.evaluate(rows)
    found = model.setHandleInvalid("skip").evaluate(rows)
    assert (found.numSkipped, found.clusterSizes, found.inertia) == (3, [1, 1], 3.0)


def test_float32_has_its_own_range(spark):
    values = [[1e17, 0.0], [1e39, 0.0], [9e15, 0.0]]
    rows = spark.createDataFrame(list(enumerate(values)), "id int, features array<double>")
    assert found_in(narrow().setHandleInvalid("skip").transform(rows)).keys() == {2}
    told = r"beyond 1e\+16 \(dtype='float32'\)"
    with pytest.raises(PySparkException, match=told):
        narrow().transform(rows).collect()


def test_the_distance_from_the_middle_counts(spark):
    far = narrow(1e20)
    values = [[1e20, 1e20], [1e20 + 1e16, 1e20], [1e20, 0.0], [1e20, 1.2e20]]
    rows = spark.createDataFrame(list(enumerate(values)), "id int, features array<double>")
    assert found_in(far.setHandleInvalid("skip").transform(rows)).keys() == {0, 1}
    with pytest.raises(InvalidInputError, match=r"beyond 1e\+16 from the middle of their column"):
        far.setHandleInvalid("error").evaluate(rows)


ROWS = [
    [1e300, 0.0],
    [[1.0, 2.0], [0.0, -1e141]],
    Vectors.dense(1e300, 0.0),
    Vectors.sparse(2, {1: 1e200}),
]


@pytest.mark.parametrize("value", ROWS)
def test_predict_refuses_them(model, value):
    told = r"^LocalKMeansModel: value must be free of numbers beyond 1e\+140 .*got 1 row with such"
    with pytest.raises(InvalidInputError, match=told):
        model.predict(value)
    assert model.predict([1e139, 0.0]) == 1


def test_directions_have_no_range():
    model = LocalKMeansModel([[1.0, 0.0], [0.0, 1.0]], distanceMeasure="cosine")
    assert model.predict([[1e300, 1.0], [1.0, 1e300]]).tolist() == [0, 1]
