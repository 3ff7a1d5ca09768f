"""transform, predict and evaluate."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.ml.evaluation import ClusteringEvaluator
from pyspark.ml.feature import OneHotEncoder, VectorAssembler
from pyspark.ml.linalg import SparseVector, Vectors
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel
from localkmeans_spark.predict import from_pandas
from localkmeans_spark.scoring import ModelFrame, RowRule, score_column

ODD = [[0.0, 0.0], [np.nan, 1.0], [9.0, 9.0], [np.inf, 1.0], None, [None, 1.0]]


@pytest.fixture
def model() -> LocalKMeansModel:
    return LocalKMeansModel([[0.0, 0.0], [9.0, 8.0]])


@pytest.fixture(scope="module")
def odd(spark):
    rows = [
        (i, row and [None if v is None else float(v) for v in row]) for i, row in enumerate(ODD)
    ]
    return spark.createDataFrame(rows, "id int, features array<double>")


def labels_of(df, column: str = "prediction") -> dict[int, int]:
    return {row["id"]: row[column] for row in df.collect()}


def test_labels_are_those_the_cost_was_computed_from(blobs):
    model = LocalKMeans(k=8, seed=2, weightCol="weight", maxIter=3).fit(blobs)
    result = model.setDistanceCol("distance").transform(blobs)
    sizes = dict(result.groupBy("prediction").count().collect())
    assert [sizes[i] for i in range(8)] == model.summary.clusterSizes
    cost = result.select(F.sum(F.col("weight") * F.col("distance") ** 2)).first()[0]
    assert cost == pytest.approx(model.summary.trainingCost, rel=1e-12)


def test_labels_and_distances_match_numpy(blobs, blob_rows):
    centers = blob_rows[:7]
    model = LocalKMeansModel(centers).setDistanceCol("d")
    found = model.transform(blobs).orderBy("id").toPandas()
    distances = np.linalg.norm(blob_rows[:, None] - centers, axis=2)
    assert np.array_equal(found["prediction"], distances.argmin(axis=1))
    assert np.allclose(found["d"], distances.min(axis=1), rtol=1e-12, atol=0)
    assert found["d"][:7].eq(0).all()


def test_columns_types_and_metadata(model, pairs):
    result = model.transform(pairs)
    assert result.columns == ["features", "prediction"]
    assert result.schema["prediction"].dataType == IntegerType()
    assert result.schema["prediction"].metadata["ml_attr"]["num_vals"] == 2
    with_distance = model.setDistanceCol("distance").transform(pairs)
    assert with_distance.columns == ["features", "prediction", "distance"]
    assert with_distance.schema["distance"].dataType == DoubleType()
    kept = model.setHandleInvalid("keep").transform(pairs)
    assert kept.schema["prediction"].metadata["ml_attr"]["num_vals"] == 3


def test_a_later_stage_knows_the_number_of_clusters(model, pairs):
    one_row = model.transform(pairs.limit(1))
    encoder = OneHotEncoder(inputCol="prediction", outputCol="hot", dropLast=False)
    assert encoder.fit(one_row).transform(one_row).first()["hot"].size == 2


def test_dense_sparse_array_and_column_rows_get_the_same_labels(model, spark):
    rows = [(0, 0.0, 1.0), (1, 9.0, 0.0), (2, 9.0, 9.0)]
    df = spark.createDataFrame(rows, "id int, a double, b double")
    expected = {0: 0, 1: 1, 2: 1}
    dense = VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(df)
    assert labels_of(model.transform(dense)) == expected
    sparse = spark.createDataFrame(
        [(0, SparseVector(2, {1: 1.0})), (1, SparseVector(2, {0: 9.0})), (2, Vectors.dense(9, 9))],
        ["id", "features"],
    )
    assert labels_of(model.transform(sparse)) == expected
    for kind in ("array<float>", "array<double>", "array<int>", "array<bigint>"):
        arrays = df.select("id", F.array("a", "b").cast(kind).alias("features"))
        assert labels_of(model.transform(arrays)) == expected
    assert labels_of(model.setFeaturesCols(["a", "b"]).transform(df)) == expected


def test_fit_on_float64_predict_on_float32(spark, blobs):
    doubles = blobs.select("id", F.col("features").alias("v")).select(
        "id", F.udf(lambda v: v.toArray().tolist(), "array<double>")("v").alias("features")
    )
    floats = doubles.select("id", F.col("features").cast("array<float>"))
    model = LocalKMeans(k=6, dtype="float64", seed=1).fit(doubles)
    found = [model.transform(rows).select("id", "prediction") for rows in (floats, doubles)]
    assert_df_equality(*found)


def test_invalid_rows_fail_with_the_fix(model, odd):
    with pytest.raises(PySparkException) as caught:
        model.transform(odd).collect()
    message = str(caught.value)
    if pyspark.__version__ >= "4":
        assert "Traceback" not in message
        assert message.count("\n") == 0
    assert "LocalKMeansModel: column 'features' must be free of null, NaN and infinite" in message
    assert re.search(r"got [1-4] such row\(s\) in one batch", message)
    assert "set handleInvalid to 'skip' (drop them) or 'keep'" in message


def test_invalid_rows_skipped(model, odd):
    result = model.setHandleInvalid("skip").setDistanceCol("d").transform(odd)
    assert labels_of(result) == {0: 0, 2: 1}
    assert labels_of(result, "d") == {0: 0.0, 2: 1.0}


def test_invalid_rows_kept_in_an_extra_cluster(model, odd):
    result = model.setHandleInvalid("keep").setDistanceCol("d").transform(odd)
    assert labels_of(result) == {0: 0, 1: 2, 2: 1, 3: 2, 4: 2, 5: 2}
    distances = labels_of(result, "d")
    assert [i for i, d in distances.items() if np.isnan(d)] == [1, 3, 4, 5]


def test_null_vectors_and_null_columns(model, spark):
    vectors = spark.createDataFrame([(0, Vectors.dense(0, 0)), (1, None)], ["id", "features"])
    model.setHandleInvalid("keep")
    assert labels_of(model.transform(vectors)) == {0: 0, 1: 2}
    columns = spark.createDataFrame([(0, 9.0, 9.0), (1, None, 1.0)], "id int, a double, b double")
    assert labels_of(model.setFeaturesCols(["a", "b"]).transform(columns)) == {0: 1, 1: 2}


def test_skipping_scores_each_row_once(model, odd, spark):
    plan = model.setHandleInvalid("skip").transform(odd)._jdf.queryExecution().toString()
    assert plan.split("== Physical Plan ==")[1].count("ArrowEvalPython") == 1


def test_both_new_columns_come_from_one_scoring(model, pairs):
    plan = model.setDistanceCol("d").transform(pairs)._jdf.queryExecution().toString()
    assert plan.split("== Physical Plan ==")[1].count("ArrowEvalPython") == 1


def test_an_existing_column_is_named_with_its_parameter(model, pairs):
    labelled = model.transform(pairs)
    with pytest.raises(InvalidInputError, match=r"'predictionCol'.*'prediction'.*setPredictionCol"):
        model.transform(labelled)
    with pytest.raises(InvalidInputError, match=r"'distanceCol'.*setDistanceCol"):
        model.setPredictionCol("c").setDistanceCol("prediction").transform(labelled)
    with pytest.raises(InvalidInputError, match="another name than predictionCol"):
        model.setDistanceCol("c").transform(pairs)


def test_the_wrong_number_of_features(model, spark):
    with_metadata = VectorAssembler(inputCols=["a"], outputCol="features").transform(
        spark.createDataFrame([(1.0,)], ["a"])
    )
    with pytest.raises(InvalidInputError, match=r"must be 2 numbers wide.*got 1"):
        model.transform(with_metadata)
    with pytest.raises(InvalidInputError, match="columns a must be 2 numbers wide"):
        LocalKMeansModel([[0.0, 0.0]]).setFeaturesCols(["a"]).transform(with_metadata)
    arrays = spark.createDataFrame([([1.0, 2.0, 3.0],)], ["features"])
    with pytest.raises(PySparkException, match=r"must be 2 numbers wide.*got 3"):
        model.transform(arrays).collect()


def test_other_columns_and_odd_names_survive(model, spark):
    df = spark.createDataFrame([(1, [9.0, 9.0], "x")], ["a.b", "my features", "select"])
    result = model.setFeaturesCol("my features").setPredictionCol("the.label").transform(df)
    assert tuple(result.first()) == (1, [9.0, 9.0], "x", 1)


def test_an_empty_frame(model, spark):
    df = spark.createDataFrame([], "features array<double>")
    assert model.transform(df).collect() == []
    assert model.evaluate(df).clusterSizes == [0, 0]


def test_param_map(model, pairs):
    result = model.transform(pairs, {model.predictionCol: "c"})
    assert result.columns == ["features", "c"]
    assert model.getPredictionCol() == "prediction"


def test_large_centers_travel_by_broadcast(spark, pairs):
    model = LocalKMeansModel(np.arange(2 * 70_000, dtype=float).reshape(70_000, 2))
    assert model.transform(pairs).first()["prediction"] == 0
    sent = model._sender._broadcast
    assert sent is not None
    model.copy().transform(pairs).collect()
    assert model._sender._broadcast is sent


def test_streaming(spark, model, tmp_path):
    source, target = str(tmp_path / "in"), str(tmp_path / "out")
    rows = [(i, [float(i), float(i)]) for i in range(10)]
    spark.createDataFrame(rows, "id int, features array<double>").write.parquet(source)
    stream = spark.readStream.schema("id int, features array<double>").parquet(source)
    query = (
        model.setDistanceCol("d")
        .transform(stream)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(target, format="parquet")
    )
    assert query.awaitTermination(60)
    assert labels_of(spark.read.parquet(target)) == {i: int(i > 4) for i in range(10)}


def test_predict_one_row_of_any_kind(model):
    for row in (
        Vectors.dense([9.0, 9.0]),
        Vectors.sparse(2, {0: 9.0}),
        [9, 9],
        (9.0, 9.0),
        np.array([9, 9], dtype=np.float32),
    ):
        label = model.predict(row)
        assert label == 1
        assert isinstance(label, int)
    assert model.predict(np.array([[0.0, 1.0], [9.0, 9.0]])).tolist() == [0, 1]


@pytest.mark.parametrize("value", [[1.0], [1.0, np.nan], [[[1.0, 2.0]]], "row", 3.0, [None, 1.0]])
def test_predict_refuses_what_is_not_a_row(model, value):
    with pytest.raises(InvalidInputError, match=r"^LocalKMeansModel: value must be"):
        model.predict(value)


def test_evaluate(model, spark):
    rows = [([0.0, 1.0], 1.0), ([9.0, 8.0], 5.0), ([9.0, 6.0], 2.0), ([50.0, 50.0], 0.0)]
    df = spark.createDataFrame(rows, ["features", "w"])
    plain = model.evaluate(df)
    assert plain.clusterSizes == [1, 3]
    assert plain.inertia == 1 + 4 + 41**2 + 42**2
    weighted = model.setWeightCol("w").evaluate(df)
    assert weighted.clusterSizes == [1, 2]
    assert weighted.clusterWeights == [1.0, 7.0]
    assert weighted.clusterInertia == [1.0, 8.0]
    assert weighted.inertia == 9.0


def test_evaluate_counts_what_it_leaves_out(model, odd):
    with pytest.raises(InvalidInputError, match=r"got 4 of 6 rows that are not.*handleInvalid"):
        model.evaluate(odd)
    found = model.setHandleInvalid("skip").evaluate(odd)
    assert (found.numSkipped, found.clusterSizes, found.inertia) == (4, [1, 1], 1.0)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), None])
def test_evaluate_refuses_bad_weights(model, spark, weight):
    df = spark.createDataFrame(
        [([0.0, 0.0], weight), ([1.0, 1.0], 1.0)], "features array<double>, w double"
    )
    with pytest.raises(InvalidInputError, match=r"'w'.*1 row with a negative, NaN"):
        model.setWeightCol("w").evaluate(df)


def test_evaluate_agrees_with_the_summary(blobs):
    model = LocalKMeans(k=4, weightCol="weight", seed=5).fit(blobs)
    found = model.evaluate(blobs)
    assert found.inertia == pytest.approx(model.summary.trainingCost, rel=1e-12)
    assert found.clusterSizes == model.summary.clusterSizes
    assert np.allclose(found.clusterInertia, model.summary.record.cluster_inertia, rtol=1e-12)


def test_clustering_evaluator_takes_the_output(model, pairs):
    assert ClusteringEvaluator().evaluate(model.transform(pairs)) > 0.9


@pytest.mark.parametrize("kind", ["array", "vector", "columns"])
def test_rows_through_pandas_are_those_through_arrow(kind, blob_rows):
    # PySpark before 4.1 hands over pandas objects.
    frame = ModelFrame(blob_rows[:5], np.zeros(5), "float32")
    rule = RowRule("rows", "null")
    rows = [None, *blob_rows.tolist(), [float("nan")] * 5]
    if kind == "array":
        arrow = pa.array(rows, type=pa.list_(pa.float64()))
    elif kind == "columns":
        arrow = pa.StructArray.from_arrays(
            [pa.array([None if row is None else row[i] for row in rows]) for i in range(5)],
            names=[f"f{i}" for i in range(5)],
        )
    else:
        fields = [("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())),
                  ("values", pa.list_(pa.float64()))]  # fmt: skip
        places = list(range(5))
        structs = [
            row if row is None
            else {"type": 0, "size": 5, "indices": places, "values": row} if i % 2
            else {"type": 1, "size": None, "indices": None, "values": row}
            for i, row in enumerate(rows)
        ]  # fmt: skip
        arrow = pa.array(structs, type=pa.struct(fields))
    pandas = arrow.to_pandas()
    if kind != "array":
        pandas = pd.DataFrame({f.name: arrow.field(f.name).to_pandas() for f in arrow.type})
        if kind == "vector":
            pandas.loc[0] = None
    expected = score_column(arrow, kind, frame, rule, with_costs=True)
    found = score_column(from_pandas(pandas, kind), kind, frame, rule, with_costs=True)
    assert expected.is_null.sum() == 2
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_wide_sparse_vectors_stay_sparse(spark):
    # Dense, one batch would be 3,000 x 200,000 x 8 bytes = 4.8 GB.
    rows = spark.sparkContext.parallelize(
        [(i, SparseVector(200_000, {i: 1.0, 100_000 + i % 2: 5.0})) for i in range(3000)], 1
    )
    centers = np.zeros((2, 200_000))
    centers[0, 100_000], centers[1, 100_001] = 5.0, 5.0
    found = LocalKMeansModel(centers).setDistanceCol("d").transform(rows.toDF(["id", "features"]))
    assert found.groupBy("prediction").count().orderBy("prediction").collect() == [
        (0, 1500),
        (1, 1500),
    ]
    assert {round(row["d"], 12) for row in found.select("d").collect()} == {1.0}


def test_partitions_far_from_each_other_keep_their_labels(spark):
    pairs = [[0.0, 0.02] * 30, [1e6, 1e6 + 0.02] * 25]
    rows = spark.sparkContext.parallelize(pairs, 2).flatMap(lambda part: [([v],) for v in part])
    df = spark.createDataFrame(rows, "features array<double>")
    start = [[0.0], [0.02], [1e6], [1e6 + 0.02]]
    model = LocalKMeans(initialCenters=start).fit(df)
    assert model.summary.clusterSizes == [30, 30, 25, 25]
    assert model.evaluate(df).clusterSizes == [30, 30, 25, 25]


def test_vector_columns_read_from_parquet(spark, tmp_path):
    rows = [(i, Vectors.dense([float(i % 7), float(i % 3)])) for i in range(50)]
    path = str(tmp_path / "vectors")
    df = spark.createDataFrame(rows, ["id", "features"])
    df.select("*", F.struct("features").alias("s"), F.array("features")).write.parquet(path)
    df = spark.read.parquet(path)
    nested = LocalKMeans(k=3, seed=1, featuresCol="s.features").fit(df.drop("features"))
    assert nested.transform(df.drop("features")).count() == 50
    nested.transform(df.drop("features")).collect()
    cost = nested.evaluate(df.select("s")).inertia
    assert cost == pytest.approx(nested.summary.trainingCost)
    model = LocalKMeans(k=3, seed=1).fit(df)
    counts = [row["count"] for row in model.transform(df).groupBy("prediction").count().collect()]
    assert sorted(counts) == sorted(model.summary.clusterSizes)
