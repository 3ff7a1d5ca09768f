"""Sparse columns on Spark: CSR blocks, the same results as dense columns, bounded memory."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.ml.linalg import Vectors

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.data.arrow_rows import binary_views
from localkmeans_spark.data.block_format import LeftOut, StoredBlock, decode, encode
from localkmeans_spark.data.ingest import IngestPlan, encode_partition
from localkmeans_spark.data.limits import Room
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.fit.driver import fit
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.sparse_rows import SparseRows, from_dense


def thin(n, d, seed, clusters=3):
    """Rows of whole numbers with 4 entries, in the columns of their cluster mostly."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, d))
    for i, row in enumerate(x):
        first = (i % clusters) * (d // clusters)
        row[first + rng.choice(d // clusters, 3, replace=False)] = rng.integers(1, 6, 3)
        row[rng.integers(d)] = 1
    return x


def vector(row, sparse=True):
    if not sparse:
        return Vectors.dense(row)
    return Vectors.sparse(len(row), [(int(j), float(row[j])) for j in np.flatnonzero(row)])


def frame(spark, x, sparse_rows, weights=None):
    rows = [
        (vector(row, sparse_rows[i]), float(1 if weights is None else weights[i]))
        for i, row in enumerate(x)
    ]
    halves = spark.sparkContext.parallelize([rows[::2], rows[1::2]], 2).flatMap(lambda part: part)
    return spark.createDataFrame(halves, ["features", "w"])


def arrow_column(vectors):
    kind = pa.struct(
        [("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())),
         ("values", pa.list_(pa.float64()))]
    )  # fmt: skip
    return pa.array(vectors, type=kind)


def blocks_of(vectors, dtype="float64"):
    columns = [arrow_column(vectors), pa.array([5] * len(vectors))]
    batch = pa.RecordBatch.from_arrays(columns, names=["features", "partition"])
    plan = IngestPlan("vector", None, False, dtype)
    found = encode_partition(iter([batch]), plan)
    return [decode(row) for piece in found for row in piece.column(0).to_pylist()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 3.0])])
def test_a_sparse_block_survives_the_trip(dtype, weight):
    x = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3]], dtype=dtype)
    rows = from_dense(x)
    stored = decode(
        encode(
            StoredBlock(4, Block(rows, weight), np.zeros(3), 6.0, 9.0, LeftOut(1, 2, 3, 4, 5, 6))
        )
    )
    assert isinstance(stored.block.x, SparseRows)
    assert stored.block.x.dtype == dtype
    np.testing.assert_array_equal(stored.block.x.toarray(), x)
    np.testing.assert_array_equal(stored.origin, np.zeros(3))
    assert (stored.partition, stored.sum_weights, stored.sum_sq) == (4, 6.0, 9.0)
    assert stored.left_out == (1, 2, 3, 4, 5, 6)
    assert weight is None or (stored.block.weight == weight).all()


@pytest.mark.parametrize("binary", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_behind_one_another_begin_where_numbers_may(dtype, binary):
    """A session of Spark Connect hands blocks on as views of one buffer."""
    x, weight = np.arange(15, dtype=dtype).reshape(5, 3), np.arange(1.0, 6.0)
    block = encode(StoredBlock(0, Block(x, weight), np.zeros(3), 15.0, 1.0))
    column = pa.array([bytes(64), block, block], binary)[1:]
    views = list(binary_views(column))
    assert len(views) == 2
    for view in views:
        found = decode(view).block
        assert found.x.flags.aligned and found.weight.flags.aligned
        np.testing.assert_array_equal(found.x, x)
        np.testing.assert_array_equal(found.weight, weight)


def test_rows_are_kept_sparse_only_if_sparse_enough():
    wide = {"type": 0, "size": 100, "indices": [3], "values": [2.0]}
    full = {"type": 1, "size": None, "indices": None, "values": [1.0] * 100}
    first = blocks_of([wide] * 20 + [full])[0].block
    then = blocks_of([full, wide])[0].block
    assert isinstance(first.x, SparseRows)
    assert not isinstance(then.x, SparseRows)
    np.testing.assert_array_equal(first.x.toarray()[[20, 0]], then.x)


def test_bad_sparse_rows_are_counted():
    good = {"type": 0, "size": 100, "indices": [3], "values": [2.0]}
    nan = {"type": 0, "size": 100, "indices": [3], "values": [float("nan")]}
    outside = {"type": 0, "size": 100, "indices": [100], "values": [1.0]}
    short = {"type": 0, "size": 99, "indices": [3], "values": [1.0]}
    (stored,) = blocks_of([good, None, nan, outside, short, good])
    left_out = stored.left_out
    assert (left_out.invalid_features, left_out.wrong_length, len(stored.block.x)) == (2, 2, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_dense_and_mixed_columns_give_the_same_fit(spark, dtype):
    x = thin(240, 120, seed=1)
    weights = np.arange(240) % 4
    layouts = [np.ones(240, bool), np.zeros(240, bool), np.arange(240) % 3 > 0]
    layouts.append(~layouts[2])
    results = [
        fit(
            frame(spark, x, layout, weights),
            FitConfig(k=3, seed=3, initial_centers=x[1:4], init_mode="given",
                      data=DataConfig(weight_col="w", dtype=dtype)),
        )
        for layout in layouts
    ]  # fmt: skip
    for other in results[1:]:
        np.testing.assert_allclose(results[0].centers, other.centers, atol=1e-12)
        assert results[0].record.cluster_sizes == other.record.cluster_sizes
        assert results[0].record.inertia == pytest.approx(other.record.inertia, rel=1e-12)


@pytest.mark.parametrize("init_mode", ["k-means++", "local-k-means++", "k-means||", "random"])
def test_seeding_of_sparse_rows(spark, init_mode):
    x = thin(150, 90, seed=2)
    result = fit(frame(spark, x, np.ones(150, bool)), FitConfig(k=3, seed=1, init_mode=init_mode))
    assert result.record.k == 3
    assert sum(result.record.cluster_sizes) == 150
    again = fit(frame(spark, x, np.ones(150, bool)), FitConfig(k=3, seed=1, init_mode=init_mode))
    np.testing.assert_array_equal(result.centers, again.centers)


def test_few_distinct_sparse_rows(spark):
    x = thin(2, 80, seed=3)[[0, 1, 0, 1]]
    result = fit(frame(spark, x, np.ones(4, bool)), FitConfig(k=5, seed=1))
    assert (result.record.k, result.record.cluster_sizes) == (2, [2, 2])
    assert result.record.inertia < 1e-12


def test_wide_rows_are_never_made_dense(spark):
    # 3,000 rows of 100,000 features would be 2.4 GB dense; the blocks hold 4 entries a row.
    rng = np.random.default_rng(4)
    rows = [
        (Vectors.sparse(100_000, sorted(rng.choice(1000, 4, replace=False) + 90_000 * (i % 2)),
                        [1.0] * 4),)
        for i in range(3000)
    ]  # fmt: skip
    data = spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), ["features"])
    start = np.zeros((2, 100_000))
    start[0, :1000], start[1, 90_000:91_000] = 0.01, 0.01
    result = fit(data, FitConfig(k=2, seed=5, initial_centers=start, init_mode="given"))
    assert result.record.n_features == 100_000
    assert result.record.cluster_sizes == [1500, 1500]


def test_centers_too_large_are_refused_with_the_number(spark):
    with pytest.raises(InvalidInputError) as failure:
        Room(spark, [5000]).check_centers(100_000)
    message = str(failure.value)
    assert "got 4,000 MB" in message
    assert "an eighth of spark.driver.maxResultSize" in message
    Room(spark, [50]).check_centers(100_000)


def test_they_are_refused_before_any_round(spark):
    data = spark.createDataFrame([(Vectors.sparse(2**22, [1], [1.0]),)] * 3, ["features"])
    with pytest.raises(InvalidInputError, match="for k=200 and 4,194,304 features"):
        fit(data, FitConfig(k=200, seed=1))
