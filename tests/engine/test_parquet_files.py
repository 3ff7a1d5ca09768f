"""Rows that workers read from Parquet files: the same blocks as Spark would send, or left to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

from localkmeans_spark import InvalidInputError, LocalKMeans
from localkmeans_spark.engine import block_rdd
from localkmeans_spark.engine.config import DataConfig, FitConfig
from localkmeans_spark.engine.limits import Room
from localkmeans_spark.engine.parquet_plan import parquet_partitions

Reads = Callable[[DataFrame, DataConfig], bool]


def blocks_of(df: DataFrame, data: DataConfig) -> list[bytes]:
    """The encoded blocks, in the order of the partitions."""
    config = FitConfig(k=2, data=data)
    rdd = block_rdd.block_rdd(df, config, Room(df.sparkSession, (2,), "LocalKMeans"))
    return rdd.mapPartitions(lambda blocks: [bytes(block) for block in blocks]).collect()


@pytest.fixture
def reads_files(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Whether workers read the files; if they do, their blocks must be those of Spark's rows."""

    def same(df: DataFrame, data: DataConfig) -> bool:
        asked = []

        def remember(*arguments: object) -> object:
            asked.append(parquet_partitions(*arguments))  # type: ignore[arg-type]
            return asked[-1]

        monkeypatch.setattr(block_rdd, "parquet_partitions", remember)
        found = blocks_of(df, data)
        monkeypatch.setattr(block_rdd, "parquet_partitions", lambda *_: None)
        assert found == blocks_of(df, data)
        assert found
        return asked != [None]

    return same


def write_lists(path: Path, n: int = 3000, *, files: int = 3, dtype: str = "float32") -> Path:
    """Arrays with a null row, a null entry and a short row in every file; small row groups."""
    path.mkdir()
    rng = np.random.default_rng(0)
    for i in range(files):
        rows = [list(row) for row in (100 * rng.normal(size=(n, 4))).astype(dtype)]
        rows[1], rows[2][0], rows[3] = None, None, rows[3][:2]
        table = pa.table(
            {
                "id": pa.array(range(n)),
                "features": pa.array(rows, pa.list_(pa.from_numpy_dtype(np.dtype(dtype)))),
                "w": pa.array([None, 0.0, *rng.uniform(0.5, 2.0, n - 2)]),
            }
        )
        pq.write_table(table, path / f"part-{i}.parquet", row_group_size=700)
    return path


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("weight", [None, "w", "id"])
def test_arrays(
    spark: SparkSession, tmp_path: Path, reads_files: Reads, dtype: str, weight: str | None
) -> None:
    df = spark.read.parquet(str(write_lists(tmp_path / "rows", dtype=dtype)))
    assert reads_files(df, DataConfig(weight_col=weight))


def test_files_that_spark_cuts_and_packs(
    spark: SparkSession, tmp_path: Path, reads_files: Reads
) -> None:
    path = write_lists(tmp_path / "rows", 20_000)
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "150000")
    try:
        df = spark.read.parquet(str(path))
        assert df.rdd.getNumPartitions() > 6
        assert reads_files(df, DataConfig())
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def test_integers_of_more_than_53_bits(
    spark: SparkSession, tmp_path: Path, reads_files: Reads
) -> None:
    rows = [[2**53 + 1 + i, i] for i in range(5)]
    spark.createDataFrame([(row,) for row in rows], "features array<bigint>").coalesce(
        1
    ).write.parquet(str(tmp_path / "rows"))
    df = spark.read.parquet(str(tmp_path / "rows"))
    assert reads_files(df, DataConfig(dtype="float64"))


def test_vectors(spark: SparkSession, tmp_path: Path, reads_files: Reads) -> None:
    rows = [
        (Vectors.dense([1.0, 2.0, 3.0]),),
        (Vectors.sparse(3, [1], [5.0]),),
        (None,),
        (Vectors.dense([0.0, 0.0]),),
    ]
    df = spark.createDataFrame(rows * 50, _vectors())
    df.repartition(2).write.parquet(str(tmp_path / "rows"))
    stored = spark.read.parquet(str(tmp_path / "rows"))
    assert reads_files(stored, DataConfig())
    dense = spark.createDataFrame(rows[:1] * 50, _vectors())
    dense.write.parquet(str(tmp_path / "dense"))
    assert reads_files(spark.read.parquet(str(tmp_path / "dense")), DataConfig())


def _vectors() -> StructType:
    from pyspark.ml.linalg import VectorUDT

    return StructType([StructField("features", VectorUDT())])


def test_columns_of_all_types(spark: SparkSession, tmp_path: Path, reads_files: Reads) -> None:
    df = spark.range(2000).select(
        F.col("id").alias("a.b"),
        (F.col("id") % 7).cast("tinyint").alias("c`d"),
        F.rand(1).cast("float").alias("e f"),
        F.when(F.col("id") % 100 != 0, F.rand(2)).alias("ä"),
        F.col("id").cast("smallint").alias("g"),
        F.col("id").cast("int").alias("h"),
    )
    df.write.parquet(str(tmp_path / "a %20 ü"))
    names = ("a.b", "c`d", "e f", "ä", "g", "h", "h")
    found = spark.read.parquet(str(tmp_path / "a %20 ü"))
    assert reads_files(found, DataConfig(features_cols=names, weight_col="e f"))
    assert reads_files(found, DataConfig(features_cols=("H", "G")))


def test_names_of_directories(spark: SparkSession, tmp_path: Path, reads_files: Reads) -> None:
    path = str(tmp_path / "rows")
    spark.range(400).select(
        "id", (F.col("id") % 3).alias("p"), F.rand(1).alias("x")
    ).write.partitionBy("p").parquet(path)
    df = spark.read.parquet(path)
    assert reads_files(df, DataConfig(features_cols=("x", "id")))
    assert reads_files(df.where("p = 1"), DataConfig(features_cols=("x", "id")))
    assert not reads_files(df, DataConfig(features_cols=("x", "p")))


@pytest.mark.parametrize(
    "change",
    [
        lambda df: df.where("id > 5"),
        lambda df: df.limit(100),
        lambda df: df.sample(0.5, seed=1),
        lambda df: df.union(df),
        lambda df: df.distinct().coalesce(1).sort("id"),
        lambda df: df.withColumn("features", F.transform("features", lambda x: x + 1)),
        lambda df: df.withColumn("features", F.col("features").cast("array<double>")),
        lambda df: df.select(F.array("w", "w").alias("features"), "id"),
    ],
)
def test_what_is_more_than_files_is_left_to_spark(
    spark: SparkSession,
    tmp_path: Path,
    reads_files: Reads,
    change: Callable[[DataFrame], DataFrame],
) -> None:
    df = spark.read.parquet(str(write_lists(tmp_path / "rows")))
    assert not reads_files(change(df), DataConfig())


def test_columns_chosen_or_dropped_are_still_files(
    spark: SparkSession, tmp_path: Path, reads_files: Reads
) -> None:
    df = spark.read.parquet(str(write_lists(tmp_path / "rows")))
    assert reads_files(df.select("w", "features"), DataConfig(weight_col="w"))
    assert reads_files(df.drop("id").alias("t"), DataConfig())
    assert reads_files(df.withColumn("other", F.rand()), DataConfig())


def test_what_is_cached_comes_from_the_cache(
    spark: SparkSession, tmp_path: Path, reads_files: Reads
) -> None:
    df = spark.read.parquet(str(write_lists(tmp_path / "rows"))).cache()
    df.count()
    try:
        assert not reads_files(df, DataConfig())
    finally:
        df.unpersist(blocking=True)


def test_other_types_than_the_schema_says(
    spark: SparkSession, tmp_path: Path, reads_files: Reads
) -> None:
    """Columns that some files lack, and lists as other libraries write them."""
    path = write_lists(tmp_path / "rows", 100, files=1)
    pq.write_table(pa.table({"id": pa.array([1])}), path / "part-9.parquet")
    schema = StructType([StructField("features", ArrayType(FloatType()))])
    assert not reads_files(spark.read.schema(schema).parquet(str(path)), DataConfig())
    large = tmp_path / "large"
    large.mkdir()
    rows = pa.array([[1.0, 2.0]] * 10, pa.large_list(pa.float64()))
    pq.write_table(pa.table({"features": rows}), large / "part.parquet")
    assert not reads_files(spark.read.parquet(str(large)), DataConfig())
    twice = tmp_path / "twice"
    twice.mkdir()
    columns = {name: pa.array([[1.0], [2.0]]) for name in ("features", "FEATURES")}
    pq.write_table(pa.table(columns), twice / "part.parquet")
    one = StructType([StructField("features", ArrayType(DoubleType()))])
    assert parquet_partitions(spark.read.schema(one).parquet(str(twice)), one.fields) is None
    wider = StructType([StructField("x", DoubleType())])
    numbers = tmp_path / "numbers"
    numbers.mkdir()
    pq.write_table(pa.table({"x": pa.array([1.0], pa.float32())}), numbers / "part.parquet")
    df = spark.read.schema(wider).parquet(str(numbers))
    assert parquet_partitions(df, df.schema.fields) is None


def test_settings_that_change_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(str(write_lists(tmp_path / "rows")))
    fields = [df.schema["features"]]
    assert parquet_partitions(df, fields)
    forgiving = spark.read.option("ignoreCorruptFiles", "true").parquet(str(tmp_path / "rows"))
    assert parquet_partitions(forgiving, fields) is None
    for name, value in (
        ("spark.sql.files.ignoreMissingFiles", "TRUE"),
        ("spark.sql.parquet.fieldId.read.enabled", "true"),
        ("spark.sql.execution.arrow.maxBytesPerBatch", "1000"),
    ):
        spark.conf.set(name, value)
        try:
            assert parquet_partitions(df, fields) is None
        finally:
            spark.conf.unset(name)


def test_other_formats(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).selectExpr("array(1.0D * id) as features").write.orc(str(tmp_path / "rows"))
    df = spark.read.orc(str(tmp_path / "rows"))
    assert parquet_partitions(df, df.schema.fields) is None
    assert parquet_partitions(df, None) is None


@pytest.mark.parametrize(("limit", "value"), [("_MOST_FILES", 2), ("_MOST_COLUMNS", 8)])
def test_many_files_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    df = spark.read.parquet(str(write_lists(tmp_path / "rows", 10)))
    monkeypatch.setattr(f"localkmeans_spark.engine.parquet_plan.{limit}", value)
    assert parquet_partitions(df, [df.schema["features"]]) is None


def test_fit_of_files(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows"
    df = spark.range(4000).select(F.array([F.rand(i) for i in range(3)]).alias("features"))
    df.repartition(4).write.parquet(str(path))
    df = spark.read.parquet(str(path))
    estimator = LocalKMeans(k=5, seed=1)
    model = estimator.fit(df)
    monkeypatch.setattr(block_rdd, "parquet_partitions", lambda *_: None)
    other = estimator.fit(df)
    np.testing.assert_array_equal(model.clusterCenters(), other.clusterCenters())
    assert model.summary.trainingCost == other.summary.trainingCost
    assert model.summary.record.n_partitions == other.summary.record.n_partitions


def test_a_damaged_page_is_told_with_its_file(
    spark: SparkSession, tmp_path: Path, newly_cached: Callable[[], set[int]]
) -> None:
    file = tmp_path / "rows" / "part-0.parquet"
    file.parent.mkdir()
    rows = pa.array([[float(i), 1.0] for i in range(3000)])
    pq.write_table(pa.table({"features": rows}), file, use_dictionary=False, compression="none")
    damaged = bytearray(file.read_bytes())
    damaged[10:300] = bytes(range(255, 205, -1)) * 5 + bytes(40)
    file.write_bytes(damaged)
    df = spark.read.parquet(str(file.parent))
    with pytest.raises(InvalidInputError, match=r"part-0\.parquet' must be a whole Parquet file"):
        LocalKMeans(k=2).fit(df)
    assert not newly_cached()


def test_a_file_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(str(write_lists(tmp_path / "rows")))
    (tmp_path / "rows" / "part-1.parquet").unlink()
    with pytest.raises(Exception, match=r"part-1\.parquet"):
        LocalKMeans(k=2).fit(df)


@pytest.mark.parametrize("setting", ["maxRecordsPerBatch", "maxBytesPerBatch"])
def test_blocks_do_not_depend_on_the_batches_of_dense_rows(
    spark: SparkSession, setting: str, tmp_path: Path
) -> None:
    """The origin, for one, is placed by the machine's first rows, however they are sent."""
    drift = F.array(F.col("id") / 1000 + 1e6, F.col("id") * -1.0 + 1e9)
    df = spark.range(5000, numPartitions=1).select(drift.alias("features"))
    expected = blocks_of(df, DataConfig())
    name = f"spark.sql.execution.arrow.{setting}"
    before = spark.conf.get(name, None)
    spark.conf.set(name, "700")
    try:
        assert blocks_of(df, DataConfig()) == expected
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)
