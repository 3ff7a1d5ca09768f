"""Columns by name: dots, backticks, case, nesting, and no word of Spark's when one is missing."""

import pytest
from pyspark.sql import functions as F

from localkmeans_spark.data.column_names import ColumnNames
from localkmeans_spark.errors import InvalidInputError


@pytest.fixture(scope="module")
def frame(spark):
    return spark.sql(
        "SELECT 1 AS `a.b`, named_struct('b', 2, 'C', named_struct('x.y', 3)) AS a, 4 AS `q``t`, "
        "5 AS Plain, array(named_struct('v', 6)) AS list, map('key', 7) AS dict"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a.b", 1), ("A.B", 1), ("`a`.`b`", 2), ("a.c.`x.y`", 3), ("q`t", 4), ("`q``t`", 4),
        ("Plain", 5), ("PLAIN", 5), ("`plain`", 5), ("list.v", [6]), ("dict.key", 7),
        ("t.plain", 5),
    ],
)  # fmt: skip
def test_found_as_spark_would(frame, name, value):
    frame = frame.alias("t")
    found = ColumnNames(frame, "Owner").resolve(name, "featuresCol")
    assert frame.select(found.column).first()[0] == value
    assert frame.select(found.column).schema[0].dataType == found.field.dataType


@pytest.mark.parametrize(
    "name",
    ["nope", "a.nope", "a.c.nope", "nope.b", "a..b", "a.", "`a", "Plain.x", "*", "", " Plain"],
)
def test_missing_is_told_without_a_word_of_sparks(frame, name, capfd):
    with pytest.raises(InvalidInputError) as caught:
        ColumnNames(frame, "Owner").resolve(name, "featuresCol")
    start = f"Owner: parameter 'featuresCol' must be the name of a column; got {name!r}. "
    assert str(caught.value) == f"{start}The columns are: a.b, a, q`t, Plain, list, dict."
    assert capfd.readouterr().err == ""


def test_several_columns_of_one_name(spark):
    frame = spark.range(1).select(F.col("id"), F.col("id").alias("ID"), F.lit(1).alias("x"))
    with pytest.raises(InvalidInputError, match="one column; got 'Id', which 2 columns have"):
        ColumnNames(frame, "Owner").resolve("Id", "weightCol")


def test_case_counts_where_spark_says_so(spark):
    frame = spark.range(1).select(F.col("id"), F.lit(5).alias("Id"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        names = ColumnNames(frame, "Owner")
        assert frame.select(names.resolve("Id", "weightCol").column).first()[0] == 5
        with pytest.raises(InvalidInputError, match="got 'ID'"):
            names.resolve("ID", "weightCol")
        names.check_new({"predictionCol": "ID", "distanceCol": "iD"})
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    with pytest.raises(InvalidInputError, match="does not have yet; got 'ID'"):
        ColumnNames(frame, "Owner").check_new({"predictionCol": "ID"})
    with pytest.raises(InvalidInputError, match="another name than predictionCol; got 'X'"):
        ColumnNames(frame, "Owner").check_new({"predictionCol": "x", "distanceCol": "X"})
