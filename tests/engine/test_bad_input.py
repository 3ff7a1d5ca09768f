"""Bad rows, bad weights, odd columns: clear errors with counts, or the documented rule."""

import errno
import os
import signal

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from localkmeans_spark import LocalKMeansModel
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.errors import InvalidInputError, count_of
from localkmeans_spark.fit.driver import fit

from .frames import frame_of, split


def fails(frame, *words, **data):
    with pytest.raises(InvalidInputError) as caught:
        fit(frame, FitConfig(k=2, data=DataConfig(**data)))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", ["first", "last", "only"])
def test_one_bad_cell(spark, bad, place):
    x = np.arange(3000.0).reshape(1000, 3) if place != "only" else np.zeros((1, 3))
    x[0 if place != "last" else -1, 1] = bad
    words = ("column 'features'", f"1 of {count_of(len(x), 'row')} with", "handleInvalid='skip'")
    fails(frame_of(spark, split(x, min(4, len(x)))), *words)


def test_skip_leaves_bad_rows_out(spark):
    x = np.random.default_rng(0).normal(size=(100, 3))
    bad = x.copy()
    bad[[0, 50, 99], [0, 1, 2]] = [np.nan, np.inf, -np.inf]
    config = FitConfig(k=2, data=DataConfig(handle_invalid="skip"))
    result = fit(frame_of(spark, split(bad, 4)), config)
    assert (result.record.n_points, result.record.n_skipped) == (97, 3)
    # A partition that holds bad rows only is no partition.
    parts = [x[:50], np.full((5, 3), np.nan), x[50:]]
    result = fit(frame_of(spark, parts), config)
    assert (result.record.n_partitions, result.record.n_skipped) == (2, 5)


def test_nulls_of_every_kind(spark):
    vectors = spark.createDataFrame([(Vectors.dense([1.0, 2.0]),), (None,)], ["features"])
    fails(vectors, "1 of 2 rows")
    arrays = spark.createDataFrame(
        [([1.0, 2.0],), (None,), ([None, 1.0],)], "features array<double>"
    )
    fails(arrays, "2 of 3 rows")
    integers = spark.createDataFrame([([1, 2],), ([None, 1],)], "features array<bigint>")
    fails(integers, "1 of 2 rows")
    columns = spark.createDataFrame([(1.0, 2), (None, 1)], "a double, b int")
    fails(columns, "columns a, b", "1 of 2 rows", features_cols=("a", "b"))
    nothing = spark.createDataFrame([(None,), (None,)], "features array<double>")
    fails(nothing, "2 of 2 rows")
    fails(nothing, "at least 1 row", "0 rows", "2 with null", handle_invalid="skip")


def test_no_rows(spark):
    empty = spark.createDataFrame([], "features array<double>")
    fails(empty, "at least 1 row", "0 rows")
    filtered = spark.range(100, numPartitions=5).select(F.array(F.col("id")).alias("features"))
    fails(filtered.filter("id < 0"), "at least 1 row", "0 rows")


def test_empty_partitions_count_for_nothing(spark):
    x = [[0.0], [1.0], [10.0], [11.0], [12.0]]
    frame = spark.createDataFrame([(row,) for row in x], "features array<double>").repartition(8)
    result = fit(frame, FitConfig(k=2))
    assert result.record.n_partitions <= 5
    np.testing.assert_allclose(np.sort(result.centers[:, 0]), [0.5, 11.0])


@pytest.mark.parametrize(
    ("weights", "count"),
    [([1.0, -1.0, 2.0], 1), ([float("nan"), 1.0, 1.0], 1), ([float("inf"), None, 1.0], 2)],
)
def test_bad_weights(spark, weights, count):
    frame = spark.createDataFrame(
        [([float(i)], w) for i, w in enumerate(weights)], "features array<double>, w double"
    )
    fails(frame, "column 'w' (weightCol)", f"{count} row", weight_col="w")


@pytest.mark.parametrize("weight", [1e-320, 1e-260, 1e260, 1e308])
def test_weights_whose_sum_cannot_be_kept(spark, weight):
    rows = [([0.0], weight), ([1.0], weight), ([5.0], weight)]
    frame = spark.createDataFrame(rows, "features array<double>, w double")
    fails(frame, "column 'w' (weightCol)", "from 1e-250 to 1e+250", "by a constant", weight_col="w")


@pytest.mark.parametrize(("weight", "value"), [(1e200, 1e100), (1e-200, 1e-100)])
def test_weights_whose_sum_of_squares_cannot_be_kept(spark, weight, value):
    frame = spark.createDataFrame(
        [([0.0], weight), ([value], weight)], "features array<double>, w double"
    )
    config = {"weight_col": "w", "dtype": "float64"}
    fails(frame, "column 'w', weightCol", "weight times square", "by", **config)


def test_all_weights_zero(spark):
    frame = spark.createDataFrame([([1.0], 0.0), ([2.0], 0.0)], "features array<double>, w double")
    fails(frame, "at least 1 row of weight > 0", weight_col="w")


@pytest.mark.parametrize("kind", ["arrays", "vectors", "cosine"])
def test_rows_of_weight_0_are_as_if_absent_whatever_is_in_them(spark, kind):
    nan = float("nan")
    bad = [([1.0], 0.0), ([1.0, nan], 0.0), ([0.0, 0.0], -0.0), (None, 0.0)]
    good = [([0.0, 1.0], 1.0), ([8.0, 9.0], 2.0), ([9.0, 8.0], 1.0)]
    schema = "features array<double>, w double"
    data = DataConfig(weight_col="w")
    if kind == "vectors":  # sparse ones among them
        sparse = Vectors.sparse(2, [1], [nan])
        bad = [(None if x is None else Vectors.dense(x), w) for x, w in bad] + [(sparse, 0.0)]
        good = [(Vectors.dense(x), w) for x, w in good]
        schema = spark.createDataFrame(good, ["features", "w"]).schema
    if kind == "cosine":
        data = DataConfig(weight_col="w", distance_measure="cosine")
    config = FitConfig(k=2, data=data)
    frames = [spark.createDataFrame(rows, schema).coalesce(1) for rows in (bad + good, good)]
    found, alone = (fit(frame, config) for frame in frames)
    np.testing.assert_array_equal(found.centers, alone.centers)
    assert (found.record.n_points, found.record.n_skipped) == (3, 0)
    nothing = spark.createDataFrame(bad, schema)
    fails(nothing, "at least 1 row of weight > 0; got 0 rows.", weight_col="w")
    if kind != "cosine":
        model = LocalKMeansModel(found.centers).setWeightCol("w")
        evaluated = model.evaluate(frames[0])
        assert (sum(evaluated.clusterSizes), evaluated.numSkipped) == (3, 0)


@pytest.mark.parametrize(
    "element", ["float", "double", "int", "bigint", "smallint", "tinyint", "boolean",
                "decimal(9,2)"],
)  # fmt: skip
def test_arrays_of_any_number(spark, element):
    x = [[0, 1], [0, 0], [1, 1], [1, 0]]
    frame = frame_of(spark, split(x, 2)).select(F.col("features").cast(f"array<{element}>"))
    result = fit(frame, FitConfig(k=4))
    np.testing.assert_array_equal(np.unique(result.centers, axis=0), np.unique(x, axis=0))


def test_arrays_from_parquet(spark, tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 3))
    frame_of(spark, split(x, 2), element="float").write.parquet(str(tmp_path / "p"))
    result = fit(spark.read.parquet(str(tmp_path / "p")), FitConfig(k=2))
    assert (result.record.n_points, result.record.n_features) == (200, 3)


def test_dense_and_sparse_vectors_mixed(spark):
    x = np.random.default_rng(0).integers(0, 2, size=(60, 5)).astype(float)
    mixed = [
        (Vectors.dense(row) if i % 3 else
         Vectors.sparse(5, [(int(j), float(row[j])) for j in np.flatnonzero(row)]),)
        for i, row in enumerate(x)
    ]  # fmt: skip
    dense = [(Vectors.dense(row),) for row in x]
    results = [
        fit(spark.createDataFrame(rows, ["features"]).coalesce(1), FitConfig(k=3, seed=5))
        for rows in (mixed, dense)
    ]
    np.testing.assert_array_equal(results[0].centers, results[1].centers)


def test_sparse_vectors_with_64_bit_sizes_of_indices(spark):
    rows = [(Vectors.sparse(7, np.array([2, 5], dtype=np.int64), [1.0, float(i)]),)
            for i in range(4)]  # fmt: skip
    result = fit(spark.createDataFrame(rows, ["features"]), FitConfig(k=4))
    assert sorted(result.centers[:, 5]) == [0.0, 1.0, 2.0, 3.0]


def test_numeric_columns_of_all_types(spark):
    frame = spark.sql(
        "SELECT CAST(id AS INT) a, id b, CAST(id AS FLOAT) c, CAST(id AS DECIMAL(9,2)) d, "
        "id % 2 = 0 e, CAST(id AS DOUBLE) `f.g` FROM range(0, 40)"
    )
    names = ("a", "b", "c", "d", "e", "f.g")
    result = fit(frame, FitConfig(k=1, data=DataConfig(features_cols=names)))
    np.testing.assert_allclose(result.centers, [[19.5, 19.5, 19.5, 19.5, 0.5, 19.5]])


def test_rows_of_several_lengths(spark):
    inside = spark.createDataFrame(
        [([1.0, 2.0],), ([1.0],), ([3.0, 4.0],)], "features array<double>"
    )
    told = "1 row of another length (1 where others have 2 features)"
    fails(inside.coalesce(1), "of one length", told, handle_invalid="skip")
    across = frame_of(spark, [[[1.0, 2.0]], [[1.0, 2.0, 3.0]]])
    fails(across, "of one length", "rows of 2 and of 3 features")
    # Of each partition the first width is known: no word on those between.
    several = frame_of(spark, [[[1.0, 2.0], [1.0]], [[], [1.0, 2.0, 3.0]]])
    fails(several, "of one length", "rows of 0 and of 2 features")
    vectors = spark.createDataFrame(
        [(Vectors.dense([1.0]),), (Vectors.sparse(4, [1], [1.0]),)], ["features"]
    )
    fails(vectors.coalesce(1), "of one length", "(4 where others have 1 features)")
    fails(spark.createDataFrame([([],)], "features array<double>"), "0 features")


def test_columns_that_cannot_serve(spark):
    frame = spark.createDataFrame(
        [("x", [1.0], 2.0)], "name string, features array<double>, w double"
    )
    fails(frame, "parameter 'featuresCol'", "'nope'", "name, features, w", features_col="nope")
    fails(frame, "column 'name'", "string", features_col="name")
    fails(frame, "column 'name'", "numeric", features_cols=("w", "name"))
    fails(frame, "parameter 'weightCol'", "'v'", weight_col="v")
    fails(frame, "column 'name' (weightCol)", weight_col="name")


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_numbers_outside_the_range_of_float32(spark, scale):
    x = scale * np.random.default_rng(0).normal(size=(40, 2))
    fails(frame_of(spark, split(x, 2)), "dtype='float32'", "dtype='float64'")
    result = fit(frame_of(spark, split(x, 2)), FitConfig(k=2, data=DataConfig(dtype="float64")))
    assert 0 < result.record.inertia < np.inf


def test_given_centers_of_the_wrong_shape(spark):
    frame = frame_of(spark, split(np.zeros((4, 3)), 2))
    for centers in (np.zeros((2, 4)), np.full((2, 3), np.nan), np.zeros((3, 3))):
        with pytest.raises(InvalidInputError, match="initialCenters"):
            fit(frame, FitConfig(k=2, initial_centers=centers))


@pytest.mark.parametrize("data", [None, [[1.0, 2.0]], np.zeros((3, 2)), DataFrame])
def test_what_is_not_a_dataframe_is_told(data):
    kind = type(data).__name__
    with pytest.raises(InvalidInputError, match=f"a Spark DataFrame; got a value of type {kind}"):
        fit(data, FitConfig())


@pytest.mark.parametrize("form", ["arrays", "vectors", "sparse", "columns"])
@pytest.mark.parametrize("scale", [1e-200, 1e-47])
def test_numbers_that_float32_makes_zero_are_no_single_cluster(spark, form, scale):
    x = scale * np.array([[1.0, 2.0], [8.0, 9.0], [1.1, 2.1], [8.1, 9.1]])
    data = {}
    if form == "arrays":
        frame = frame_of(spark, split(x, 2))
    elif form == "columns":
        frame = spark.createDataFrame(x.tolist(), "a double, b double")
        data = {"features_cols": ("a", "b")}
    elif form == "vectors":
        frame = spark.createDataFrame([(Vectors.dense(row),) for row in x], ["features"])
    else:
        rows = [(Vectors.sparse(100, [3, 7], row),) for row in x]
        frame = spark.createDataFrame(rows, ["features"])
    words = ("so small that float32 makes them 0 in", "rows", "Set dtype='float64'")
    fails(frame, *words, **data)
    if scale < 1e-140:
        fails(frame, "between 1e-140 and 1e+140", dtype="float64", **data)
        return
    result = fit(frame, FitConfig(k=2, data=DataConfig(dtype="float64", **data)))
    assert result.record.cluster_sizes == [2, 2]
    assert result.record.inertia == pytest.approx(scale**2 * 4 * 0.05**2 * 2, rel=1e-6)


def test_zeros_and_numbers_too_small_beside_large_ones_are_fine(spark):
    result = fit(frame_of(spark, [np.zeros((5, 3))]), FitConfig(k=2))
    assert result.record.inertia == 0
    x = [[1e-200, 1.0], [1e-200, 2.0], [0.0, 8.0], [0.0, 9.0]]
    result = fit(frame_of(spark, split(x, 2)), FitConfig(k=2, seed=1))
    assert sorted(result.centers[:, 1]) == [1.5, 8.5]


def test_a_size_about_an_origin_is_told_as_such(spark):
    x = [[1e218], [1.001e218], [3e217]]
    fails(frame_of(spark, [x]), "in size for dtype='float64'; got values up to", dtype="float64")
    far = [[1e218], [1.001e218], [1.002e218]]
    words = ("distances from the middle of a column up to", "Rescale")
    fails(frame_of(spark, [far]), *words, dtype="float64")


@pytest.mark.parametrize("num_partitions", [None, 3])
def test_a_full_disk_is_one_line(spark, num_partitions):
    def on_a_full_disk(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    rows = spark.sparkContext.parallelize(range(4), 2).map(on_a_full_disk)
    frame = spark.createDataFrame(rows, "features array<double>")
    with pytest.raises(InvalidInputError) as caught:
        fit(frame, FitConfig(k=2, data=DataConfig(num_partitions=num_partitions)))
    assert "got No space left on device. Free space there" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_worker_that_is_killed_is_one_line(spark):
    """A local master tries no task again."""

    def killed(_):
        os.kill(os.getpid(), signal.SIGKILL)

    rows = spark.sparkContext.parallelize(range(4), 2).map(killed)
    fails(
        spark.createDataFrame(rows, "features array<double>"), "one that was killed", "local[N, 4]"
    )


def test_a_file_that_is_gone_is_one_line(spark, tmp_path):
    spark.range(5).selectExpr("array(double(id)) features").write.parquet(str(tmp_path / "x"))
    frame = spark.read.parquet(str(tmp_path / "x"))
    for file in (tmp_path / "x").glob("*.parquet"):
        file.unlink()
    fails(frame, "the rows' files must be there until the fit ends", ".parquet, which is gone")
