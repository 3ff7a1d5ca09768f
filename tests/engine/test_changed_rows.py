"""Rows that are others when Spark reads them again end a fit in one error."""

import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyspark
import pytest
from pyspark.sql import functions as F

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.fit.driver import fit

ERROR = "the rows must be the same each time Spark reads them; got other rows in"


def ends_in_the_error(frame, **data):
    config = FitConfig(k=3, local_steps=2, max_iter=4, tol=0.0, data=DataConfig(**data))
    with pytest.raises(InvalidInputError, match=ERROR) as caught:
        fit(frame, config)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rows_of(number, change):
    """Rows of a partition; partition 3 is another one when it is changed."""
    x = np.random.default_rng(number).normal(size=(40, 3)).tolist()
    if number != 3:
        return x
    match change:
        case "a value":
            x[7][1] += 1.0
        case "order":
            x.reverse()
        case "a row more":
            x.append(x[0])
        case "no rows":
            return []
        case "nulls":
            x[5] = None
        case "width":
            return [[*row, 1.0] for row in x]
    return x


@pytest.mark.parametrize("change", ["a value", "order", "a row more", "no rows", "nulls", "width"])
def test_any_change_is_an_error(spark, lose_blocks, newly_cached, tmp_path, change):
    flag = tmp_path / "changed"

    def make(number, _):
        return [(row,) for row in rows_of(number, change if flag.exists() else None)]

    rows = spark.sparkContext.parallelize(range(8), 8).mapPartitionsWithIndex(make)
    frame = spark.createDataFrame(rows, "features array<double>")
    lose_blocks(then=flag.touch)
    text = ends_in_the_error(frame, handle_invalid="skip")
    # Of a job that failed, PySpark 3.5 may keep another partition's block cut off.
    assert re.search("in 1 partition of 8" if pyspark.__version__ >= "4" else "in [12] part", text)
    assert not newly_cached()


def test_a_partition_that_had_no_rows(spark, lose_blocks, tmp_path):
    flag = tmp_path / "changed"

    def make(number, _):
        return [(row,) for row in rows_of(number, None) if number != 3 or flag.exists()]

    rows = spark.sparkContext.parallelize(range(8), 8).mapPartitionsWithIndex(make)
    lose_blocks(then=flag.touch)
    ends_in_the_error(spark.createDataFrame(rows, "features array<double>"))


def test_a_function_that_draws(spark, lose_blocks):
    noise = F.udf(lambda value: value + random.random(), "double").asNondeterministic()
    frame = spark.range(400, numPartitions=8).select(noise(F.col("id") * 1.0).alias("a"))
    lose_blocks()
    text = ends_in_the_error(frame, features_cols=("a",))
    assert "write the rows to a table first, or call checkpoint()" in text


def test_a_file_that_is_rewritten(spark, lose_blocks, tmp_path):
    def write(seed):
        x = np.random.default_rng(seed).normal(size=(300, 2))
        pd.DataFrame(x, columns=["a", "b"]).to_parquet(tmp_path / "rows.parquet")

    write(0)
    frame = spark.read.parquet(str(Path(tmp_path, "rows.parquet")))
    lose_blocks(then=lambda: write(1))
    ends_in_the_error(frame, features_cols=("a", "b"))
