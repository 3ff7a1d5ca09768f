"""What does not fit into memory is refused with the numbers, before it is made."""

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import functions as F

from localkmeans_spark import LocalKMeans
from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.block_format import StoredBlock
from localkmeans_spark.data.limits import Description, FirstPassOrder, Room, describe_within, unpack
from localkmeans_spark.data.partition import Partition
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.fit.driver import fit
from localkmeans_spark.kernel.lloyd import Block

from .frames import frame_of


def sparse_rows(spark, width, n_partitions=2):
    rows = [(Vectors.sparse(width, [i, width - 1], [1.0, float(i)]),) for i in range(8)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, n_partitions), ["features"])


def test_fifty_million_columns_are_refused_and_the_session_lives(spark):
    rows = sparse_rows(spark, 50_000_000)
    with pytest.raises(InvalidInputError) as caught:
        LocalKMeans(k=150).fit(rows)
    message = str(caught.value)
    assert "for k=150 and 50,000,000 features, must be at most 134 MB" in message
    assert "got 60,000 MB. Raise spark.driver.maxResultSize above 480,000 MB, or take" in message
    assert spark.range(5).count() == 5


def test_all_sets_of_centers_count(spark):
    rows = sparse_rows(spark, 2**20)
    kmeans = LocalKMeans(k=10)
    for estimator, maps in ((LocalKMeans(k=10, nInit=40), [{}]),
                            (kmeans, [{kmeans.seed: seed} for seed in range(40)]),
                            (LocalKMeans(k=10, nInit=20), [{}, {LocalKMeans.k: 11}])):  # fmt: skip
        with pytest.raises(InvalidInputError, match=r"size of 40 sets of centers .*, 4\d0 centers"):
            list(estimator.fitMultiple(rows, maps))


@pytest.mark.parametrize(("k", "n_init"), [(10**12, 1), (10**7, 1000), (2**70, 1000)])
def test_centers_too_many_for_any_width_are_told_before_rows_are_read(spark, k, n_init):
    frame = frame_of(spark, [np.ones((4, 2))]).withColumn("features", F.raise_error(F.lit("read")))
    frame = frame.select(F.col("features").cast("array<double>"))
    told = rf"(for k={k} and 1 feature|1000 sets of centers .* of 1 feature), must be at most"
    with pytest.raises(InvalidInputError, match=told):
        fit(frame, FitConfig(k=k, n_init=n_init))


def test_room(spark):
    one = Room(spark, [10])
    assert one.max_features == one.for_centers // 80
    one.check_centers(one.max_features)
    with pytest.raises(InvalidInputError, match=r"^LocalKMeans: k \* features"):
        one.check_centers(one.max_features + 1)
    many = Room(spark, [10] * 100)
    assert many.max_features < one.max_features
    many.check_centers(many.max_features)
    with pytest.raises(InvalidInputError, match=r"100 sets of centers.*fit fewer of them"):
        many.check_centers(many.max_features + 1)


def test_many_partitions_of_wide_rows_fit_if_they_are_sparse(spark):
    # As whole arrays they would be 4 x 8 x 2**18 bytes each, 1,007 MB of 120 partitions.
    rows = sparse_rows(spark, 2**18, 120)
    found = fit(rows, FitConfig(k=2, seed=1, max_iter=1))
    assert found.record.n_features == 2**18


def test_answers_too_large_are_not_sent(spark):
    partition = machine_of(np.arange(12.0).reshape(3, 4))
    room = Room(spark, [2])
    (found,) = describe_within(partition, FirstPassOrder([1], 4, 10_000))
    assert found.statistics is not None
    assert unpack([found], room, FitConfig())[0].sums.tolist() == [12.0, 15.0, 18.0, 21.0]
    (small,) = describe_within(partition, FirstPassOrder([1], 4, 50))
    assert small == Description(True, 4, found.nbytes, None)
    with pytest.raises(InvalidInputError, match="what 2 partitions of rows of 4 features tell the"):
        unpack([found, small], room, FitConfig())
    (wide,) = describe_within(partition, FirstPassOrder([1], 3, 10_000))
    assert wide == Description(True, 4, 0, None)


def machine_of(x) -> Partition:
    block = StoredBlock(0, Block(x, None), np.zeros(x.shape[1]), len(x), 0.0)
    return Partition(0, [block])


def test_one_wide_row_among_others_is_told_as_such(spark):
    rows = [(Vectors.sparse(10, [1], [1.0]),), (Vectors.sparse(50_000_000, [1], [1.0]),)]
    data = spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), ["features"])
    with pytest.raises(InvalidInputError, match="got rows of 10 and of 50,000,000 features"):
        fit(data, FitConfig(k=150))
