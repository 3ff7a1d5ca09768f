"""What is not what was asked for ends in one clear line, before work where that can be known."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal
from fractions import Fraction
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.clustering import BisectingKMeans, GaussianMixture, KMeans
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import Vectors
from pyspark.mllib.linalg import Vectors as OldVectors
from pyspark.mllib.util import MLUtils
from pyspark.sql import functions as F
from scipy.sparse import csr_array
from sklearn.cluster import KMeans as SklearnKMeans

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel

REPOSITORY = Path(__file__).resolve().parents[2]
ODD = [None, 3, "text", [[1.0]], np.zeros((2, 2)), SklearnKMeans, KMeans]
NOT_NUMBERS = [
    ["1", "2"], [b"1", b"2"], [1j, 2.0], [np.datetime64("2026-01-01"), np.datetime64("2026-01-02")],
    [np.timedelta64(1, "s"), np.timedelta64(2, "s")], [1.0, "2"], [1.0, None],
    [date(2026, 1, 1)] * 2,
]  # fmt: skip
WIDTH = "2 numbers wide, as the model's centers are"


@pytest.fixture
def model() -> LocalKMeansModel:
    return LocalKMeansModel([[0.0, 0.0], [9.0, 8.0]])


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("method", ["transform", "evaluate", "fromMLlib", "fromSklearn"])
def test_wrong_objects(model, method, value):
    with pytest.raises(
        InvalidInputError, match=rf"LocalKMeansModel: .*got a value of type {type(value).__name__}"
    ):
        getattr(model, method)(value)


def test_frames_of_other_libraries(model, spark):
    frame = pd.DataFrame({"features": [[1.0, 2.0], [8.0, 9.0]], "n": [1, 2]})
    given = [
        ("a pandas DataFrame", frame, "spark.createDataFrame(data)"),
        ("a pandas Series", frame["features"], "spark.createDataFrame(data.to_frame())"),
        ("a pyarrow Table", pa.table(frame), "spark.createDataFrame(data.to_pandas())"),
    ]
    # PySpark has no pandas of its own with pandas 3, nor 3.5 with NumPy 2.
    with contextlib.suppress(ImportError, AttributeError):
        import pyspark.pandas

        with contextlib.suppress(AttributeError):  # only PySpark 4.0 has it, and needs it
            pyspark.pandas.set_option("compute.fail_on_ansi_mode", False)
        on_spark = spark.createDataFrame(frame).pandas_api()
        given += [
            ("a pandas-on-Spark DataFrame", on_spark, "data.to_spark()"),
            ("a pandas-on-Spark Series", on_spark["features"], "data.to_frame().to_spark()"),
        ]
    with contextlib.suppress(ImportError):
        import polars

        of_polars = polars.from_pandas(frame)
        lazy = "spark.createDataFrame(data.collect().to_pandas())"
        given += [
            ("a polars DataFrame", of_polars, "spark.createDataFrame(data.to_pandas())"),
            ("a polars LazyFrame", of_polars.lazy(), lazy),
        ]
    for what, data, fix in given:
        told = rf"must be a Spark DataFrame; got {what}\. Give {re.escape(fix)}\.$"
        for act in (LocalKMeans().fit, model.transform, model.evaluate):
            with pytest.raises(InvalidInputError, match=told):
                act(data)
        made = eval(fix, {"spark": spark, "data": data})  # noqa: S307
        assert LocalKMeans(k=2, seed=1).fit(made).evaluate(made).inertia == 0.0, what
        assert [row.prediction for row in model.transform(made).collect()] == [0, 1], what


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame({"a": [1, pd.NA], "b": [1, 2]}),
        pd.DataFrame({"a": [1, pd.NA], "b": [1, 2]}, dtype="Int64"),
        pd.DataFrame({"a": [np.inf, None, 1.0], "b": [None, 1.0, 1.0]}),
        [1.0, None],
        [[1.0, None], [None, None], [1.0, float("nan")]],
        np.full((2000, 2), np.nan),
        csr_array(np.array([[0.0, np.inf], [0.0, 1.0]])),
        Vectors.dense([1.0, np.nan]),
        Vectors.sparse(2, [1], [np.nan]),
    ],
)
def test_missing_numbers_are_refused(model, value):
    told = r"^LocalKMeansModel: value must be a row .* without null, NaN or infinity\."
    with pytest.raises(InvalidInputError, match=told) as caught:
        model.predict(value)
    assert "\n" not in str(caught.value)


def test_missing_numbers_are_counted(model):
    with pytest.raises(InvalidInputError, match=r"; got 2 NaN or infinite numbers\."):
        model.predict([[np.nan, 1.0], [0.0, np.inf]])


def test_values_are_told_in_one_line(model):
    for value in (np.array([["a", "b"]] * 40), pd.DataFrame({"a": ["x"] * 40})):
        with pytest.raises(InvalidInputError, match=r"got a value of type .* and shape") as caught:
            model.predict(value)
        assert "\n" not in str(caught.value)


def test_models_of_other_kinds(model, pairs):
    tree = BisectingKMeans(k=2).fit(pairs)
    with pytest.raises(InvalidInputError, match="goes down a tree of centers"):
        LocalKMeansModel.fromMLlib(tree)
    assert LocalKMeansModel(tree.clusterCenters()).numFeatures == 2
    for other in (KMeans(), GaussianMixture(k=2).fit(pairs), 5, tree, model):
        with pytest.raises(InvalidInputError, match=r"must be a pyspark\.ml\.clustering\.KMeansM"):
            LocalKMeansModel.fromMLlib(other)
    with pytest.raises(InvalidInputError, match="without cluster_centers_"):
        LocalKMeansModel.fromSklearn(SklearnKMeans(2))


@pytest.mark.parametrize(
    "centers",
    [None, "text", "ab", [[1.0], [1.0, 2.0]], [["a"]], [], [[np.nan]], [[10**400]], KMeans,
     *([row] for row in NOT_NUMBERS), *(np.array([row]) for row in NOT_NUMBERS[:5]),
     np.ma.array([[1.0, 2.0]], mask=[[True, False]])],
)  # fmt: skip
def test_centers_that_are_none(centers):
    with pytest.raises(InvalidInputError, match=r"^LocalKMeansModel: centers must be a \(k, n"):
        LocalKMeansModel(centers)
    if centers is not None:  # which leaves the parameter unset
        with pytest.raises(InvalidInputError, match=r"^LocalKMeans: parameter 'initialCenters' m"):
            LocalKMeans().setInitialCenters(centers)


def test_odd_numbers_are_told():
    with pytest.raises(InvalidInputError, match="with NaN or infinite numbers"):
        LocalKMeansModel([[np.nan]])
    for origin in ([1.0, 2.0, 3.0], *NOT_NUMBERS):
        with pytest.raises(InvalidInputError, match="origin must be an array of 2 finite numbers"):
            LocalKMeansModel([[1.0, 2.0]], origin)


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_rows_of_other_things(model, value):
    for given in (value, np.array(value), [value], np.array([value])):
        with pytest.raises(InvalidInputError, match="must be a row or a matrix of finite numbers"):
            model.predict(given)


def test_masked_and_complex_rows(model):
    masked = np.ma.array([[9.0, 9.0]], mask=[[False, True]])
    for given in (masked, list(masked), csr_array(np.array([[1j, 2.0]]))):
        with pytest.raises(InvalidInputError, match="must be a row or a matrix of finite numbers"):
            model.predict(given)
    assert model.predict(np.ma.array([[9.0, 9.0]])).tolist() == [1]


@pytest.mark.parametrize(
    "row", [[9, 9.0], [Decimal("9.5"), 9], [True, False], [Fraction(19, 2), np.float32(8)]]
)
def test_rows_of_every_kind_of_number(model, row):
    label = int(row[0] > 5)
    assert model.predict(row) == label
    assert model.predict([row, row]).tolist() == [label, label]
    assert LocalKMeansModel([row]).clusterCenters()[0].tolist() == [float(x) for x in row]


def test_vectors_of_the_old_library(spark, model):
    df = spark.createDataFrame([(OldVectors.dense([1.0, 2.0]),)], ["features"])
    told = r"got a vector of the old pyspark\.mllib\.linalg\. Convert it .*ToML\(df, 'features'\)"
    for act in (LocalKMeans().fit, model.transform, model.evaluate):
        with pytest.raises(InvalidInputError, match=told):
            act(df)
    assert model.evaluate(MLUtils.convertVectorColumnsToML(df, "features")).clusterSizes == [1, 0]


def test_other_words_of_the_constructor():
    for words in ({"origin": [1.0, 2.0]}, {"origin": ["a"]}, {"origin": [1.0], "dtype": "int8"},
                  {"dtype": "int8"}, {"distanceMeasure": "manhattan"}):  # fmt: skip
        with pytest.raises(InvalidInputError, match=r"^LocalKMeansModel: "):
            LocalKMeansModel([[1.0]], **words)


@pytest.mark.parametrize("path", [None, "", 3])
def test_paths(model, path):
    for act in (model.save, model.write().overwrite().save, LocalKMeans().save,
                LocalKMeansModel.load, LocalKMeans.load):  # fmt: skip
        with pytest.raises(InvalidInputError, match="the path must be text or a path"):
            act(path)


def test_a_pathlib_path_serves(model, tmp_path):
    model.save(Path(tmp_path / "model"))
    assert LocalKMeansModel.load(tmp_path / "model").numFeatures == 2


@pytest.mark.parametrize("maps", [None, {}, 3])
def test_parameter_maps(pairs, maps):
    with pytest.raises(InvalidInputError, match="paramMaps must be a list of parameter maps"):
        LocalKMeans().fitMultiple(pairs, maps)


@pytest.mark.parametrize(
    ("parameter", "name"), [("predictionCol", "c"), ("distanceCol", "c"), ("distanceCol", "C")]
)
def test_a_column_that_is_there_stops_fit_and_transform(pairs, parameter, name):
    df = pairs.withColumn("c", F.lit(0))
    estimator = LocalKMeans(seed=1, **{parameter: name})
    told = rf"parameter '{parameter}' must be a column that the DataFrame does not have yet"
    with pytest.raises(InvalidInputError, match=f"^LocalKMeans: {told}"):
        estimator.fit(df)
    with pytest.raises(InvalidInputError, match=f"^LocalKMeans: {told}"):
        estimator.fitMultiple(df, [{}])
    with pytest.raises(InvalidInputError, match=f"^LocalKMeansModel: {told}"):
        estimator.fit(pairs).transform(df)
    with pytest.raises(InvalidInputError, match="another name than predictionCol"):
        LocalKMeans(distanceCol="Prediction").fit(pairs)
    model = LocalKMeansModel([[0.0, 0.0]]).setPredictionCol("Features")
    for method in (LocalKMeans(predictionCol="Features").fit, model.transform):
        with pytest.raises(InvalidInputError, match="does not have yet; got 'Features'"):
            method(pairs)


def test_a_stream_is_refused_where_rows_are_counted(spark, model):
    stream = spark.readStream.format("rate").load().select(F.array("value").alias("features"))
    for act in (LocalKMeans().fit, model.evaluate, model.describe, lambda df: model.nearest(df, 1)):
        with pytest.raises(InvalidInputError, match="a batch DataFrame; got a streaming"):
            act(stream)


@pytest.mark.parametrize("handling", ["error", "skip", "keep"])
@pytest.mark.parametrize("distance", [None, "d"])
@pytest.mark.parametrize("kind", ["vector", "array"])
def test_rows_of_another_width(spark, model, handling, distance, kind):
    # Rows of the JVM: PySpark 3.5 may give the job after a failed one a worker of Python rows that
    # it has closed, which fails with "Socket is closed".
    features = F.array(*map(F.lit, (1.0, 2.0, 3.0)))
    features = array_to_vector(features) if kind == "vector" else features
    df = spark.range(1).select(features.alias("features"))
    model.setHandleInvalid(handling).setDistanceCol(distance)
    told = f"LocalKMeansModel: column 'features' must be {WIDTH}; got 3."
    with pytest.raises(InvalidInputError, match=told):
        model.evaluate(df)
    for column in model.transform(df).columns[1:]:
        with pytest.raises(PySparkException) as caught:
            model.transform(df).select(column).collect()
        assert told in str(caught.value)
        if pyspark.__version__ >= "4":
            assert told in str(caught.value).splitlines()[0]
            assert "Traceback" not in str(caught.value)


def test_another_width_that_metadata_tells_is_told_at_once(spark, model):
    df = spark.createDataFrame([(1.0, 2.0, 3.0)], ["a", "b", "c"])
    df = VectorAssembler(inputCols=["a", "b", "c"], outputCol="features").transform(df)
    with pytest.raises(InvalidInputError, match=f"{WIDTH}; got 3"):
        model.transform(df)
    with pytest.raises(InvalidInputError, match=f"{WIDTH}; got 1"):
        model.setFeaturesCols(["a"]).transform(df)


def test_unusable_rows_stop_whoever_asks_for_the_distance_alone(spark, model):
    df = spark.createDataFrame([([0.0, float("nan")],)], ["features"])
    with pytest.raises(PySparkException, match="free of null, NaN and infinite"):
        model.setDistanceCol("d").transform(df).select("d").collect()


def test_workers_without_the_library_are_told_so(tmp_path):
    # A session of its own, whose workers find nothing beside the driver's script.
    script = tmp_path / "driver.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "from pyspark.sql import SparkSession\n"
        "from localkmeans_spark import LocalKMeans\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".getOrCreate()\n"
        "df = spark.createDataFrame([([1.0],), ([2.0],)], ['features'])\n"
        "try:\n    LocalKMeans().fit(df)\nexcept ValueError as error:\n    print(error)\n"
    )
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with contextlib.suppress(metadata.PackageNotFoundError):
        metadata.distribution("localkmeans_spark")
        pytest.skip("the library is installed, so that every worker finds it")
    found = subprocess.run(
        [sys.executable, script], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "LocalKMeans: the module localkmeans_spark must be installed where" in found.stdout
