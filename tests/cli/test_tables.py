"""Formats, and which column is what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.cli.inputs import assign_roles, find_source, format_of, read_table
from localkmeans_spark.errors import InvalidInputError
from tests.cli.asked import asked, read

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = [("r1", 1, 0.5, 2.0, "a", 1.0), ("r2", 2, 1.5, 3.0, "b", 2.0)]
NAMES = ["key", "id", "age", "in.come", "kind", "w"]


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, NAMES)


@pytest.mark.parametrize(
    ("names", "form"),
    [
        (["a/b.parquet"], "parquet"),
        (["A.CSV"], "csv"),
        (["a.csv.gz"], "csv"),
        (["part-0.snappy.parquet"], "parquet"),
        (["x.jsonl"], "json"),
        (["x.svm"], "libsvm"),
        (["readme.txt", "x.npz"], "npz"),
        (["a.parquet.txt"], None),
        (["plain"], None),
        ([], None),
    ],
)
def test_format_by_name(names: list[str], form: str | None) -> None:
    assert format_of(names) == form


def test_names_that_spark_would_pass_over(tmp_path: Path) -> None:
    for name in ("_a.csv", "b:c.csv", "d/e/f.csv", "g/day=1/h.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    for name, told in (
        ("_a.csv", "begin with _ or"),
        ("b:c.csv", "a colon"),
        ("d", "which holds e"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            find_source("fit", asked(input=str(tmp_path / name)))
    find_source("fit", asked(input=str(tmp_path / "g")))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"input": "a.parquet", "sep": ";"}, "--sep must be left out with a parquet input; got ';"),
        ({"input": "a.json", "header": False}, "--header must be left out with a json input"),
        ({"input": "a.npz", "decimal": ","}, "--decimal must be left out with a npz input"),
        ({"input": "a.csv", "format": "libsvm", "null_value": "NA"}, "--null-value must be left"),
        ({"table": "db.t", "sep": ";"}, "--sep must be left out with --table; got ';'"),
        ({"table": "db.t", "format": "csv"}, "--format must be left out with --table; got 'csv'"),
    ],
)
def test_flags_that_the_input_would_not_heed(
    tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    if "input" in given:
        (tmp_path / given["input"]).touch()
        given = {**given, "input": str(tmp_path / given["input"])}
    with pytest.raises(InvalidInputError, match=told):
        find_source("fit", asked(**given))


def test_formats_that_only_spark_can_tell(spark: SparkSession, tmp_path: Path) -> None:
    inner = tmp_path / "table" / "day=1"
    inner.mkdir(parents=True)
    (tmp_path / "table" / "_SUCCESS").touch()
    (inner / "part-0.json").write_text('{"x": 1}\n')
    assert read(spark, tmp_path / "table").feature_cols == ("x", "day")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    for name in ("empty", "notes.txt"):
        with pytest.raises(InvalidInputError, match="must be a file with one of the extensions"):
            read(spark, tmp_path / name)
    with pytest.raises(InvalidInputError, match="must be an existing file or directory"):
        find_source("fit", asked(input=str(tmp_path / "missing.csv")))


def test_identifiers_are_told(spark: SparkSession, capsys: Any) -> None:
    frame = spark.createDataFrame([(1, 2, 3, 0.5)], ["customerId", "rooms", "zip", "paid"])
    told = "customerId, zip: an identifier is no feature; to leave it out, name"
    assign_roles("fit", frame, asked())
    assert f"fit: {told}" in capsys.readouterr().err


def test_numeric_columns_are_the_default(people: DataFrame, capsys: Any) -> None:
    table = assign_roles("fit", people, asked(weight_col="w", label_col="kind"))
    assert table.feature_cols == ("age", "in.come")
    assert table.id_cols == ("key", "id", "kind")
    said = capsys.readouterr().err
    assert "fit: features: age, in.come\n" in said
    assert re.search("not numeric.*key", said)


def test_id_columns_are_no_features(people: DataFrame) -> None:
    table = assign_roles("fit", people, asked(id_cols=("age",)))
    assert table.feature_cols == ("in.come", "w")
    assert table.id_cols == ("age",)


def test_a_vector_or_array_column_named_features_wins(spark: SparkSession) -> None:
    vectors = spark.createDataFrame([(1, Vectors.dense(1.0), 2.0)], ["key", "features", "x"])
    arrays = spark.createDataFrame([(1, [1.0], 2.0)], ["key", "features", "x"])
    for frame in (vectors, arrays):
        table = assign_roles("fit", frame, asked())
        assert (table.features_col, table.id_cols) == ("features", ("key", "x"))
    text = spark.createDataFrame([("t", 2.0)], ["features", "x"])
    assert assign_roles("fit", text, asked()).feature_cols == ("x",)


@pytest.mark.parametrize("names", [["a", "b"], ["a", "label"]])
def test_without_ids_the_rows_identify_themselves(
    spark: SparkSession, names: list[str], capsys: Any
) -> None:
    frame = spark.createDataFrame([(1.0, 2.0)], names)
    label = "label" if "label" in names else None
    table = assign_roles("fit", frame, asked(label_col=label))
    assert table.id_cols == tuple(names)
    assert "no id columns" in capsys.readouterr().err


def test_the_outputs_own_columns_are_not_copied(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("r", 1.0, 0, 0.1)], ["key", "x", "prediction", "distance"])
    table = assign_roles("fit", frame, asked(feature_cols=("x",)))
    assert table.id_cols == ("key",)
    table = assign_roles("fit", frame, asked(feature_cols=("x",), id_cols=("prediction", "key")))
    assert table.id_cols == ("key",)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"feature_cols": ("age", "incom")}, "--feature-cols.*got 'incom'.*It has: key, id, age"),
        ({"features_col": "features"}, "--features-col.*It has: key"),
        ({"weight_col": "W"}, "--weight-col.*'W'. It has: key"),
        ({"label_col": "label"}, "--label-col"),
        ({"id_cols": ("kye",)}, "--id-cols.*'kye'. It has: key, id, age"),
    ],
)
def test_wrong_columns(people: DataFrame, values: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        assign_roles("fit", people, asked(**values))


def test_no_numeric_column(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1)], ["name", "id"])
    with pytest.raises(InvalidInputError, match=r"numeric columns.*name \(string\)"):
        assign_roles("fit", frame, asked())


def test_text_formats(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,x,y\nr1,1,2.5\nr2,3,4.5\n")
    (tmp_path / "t.json").write_text('{"key":"r1","x":1,"y":2.5}\n{"key":"r2","x":3,"y":4.5}\n')
    (tmp_path / "t.libsvm").write_text("1 1:1 2:2.5\n0 1:3 2:4.5\n")
    for name in ("t.csv", "t.json", "t.libsvm"):
        table = read(spark, tmp_path / name)
        rows = sorted(table.frame.collect(), key=str)
        if name == "t.libsvm":
            assert (table.features_col, table.id_cols) == ("features", ("label", "features"))
        else:
            assert (table.feature_cols, table.id_cols) == (("x", "y"), ("key",))
            found = [(row["key"], row["x"], row["y"]) for row in rows]
            assert found == [("r1", 1, 2.5), ("r2", 3, 4.5)]


@pytest.mark.parametrize("name", ["Prediction", "DISTANCE"])
def test_the_outputs_own_columns_in_other_letters(
    spark: SparkSession, name: str, capsys: Any
) -> None:
    frame = spark.createDataFrame([("r", 1.0, "no")], ["key", "x", name])
    table = assign_roles("fit", frame, asked())
    assert table.id_cols == ("key",)
    assert f"column {name} of the input is not copied" in capsys.readouterr().err
    alone = spark.createDataFrame([(1.0, "no")], ["x", name])
    assert assign_roles("fit", alone, asked()).id_cols == ("x",)


@pytest.mark.parametrize(
    ("name", "text", "values", "told"),
    [
        ("head.csv", "key,x,y\n", {}, "at least 1 row; got 0 rows of the columns key,x,y. Check"),
        ("empty.csv", "", {}, r"empty.csv must be a table with at least 1 row; got an empty file"),
        ("blank.csv", "\n \n", {"feature_cols": ("x",), "header": False}, "got an empty file"),
        ("text.parquet", "x,y\n1,2\n3,4\n5,6\n", {}, "text.parquet must be readable as parquet"),
        ("short.parquet", "x\n", {}, "short.parquet must be readable as parquet; got "),
        ("p.csv", "PAR1\x15\x04\0", {}, "must be UTF-8 text; .* another --format"),
        ("p.json", "PAR1\x15\x04", {}, "must be JSON lines"),
        ("p.libsvm", "PAR1\x15\x04", {}, "p.libsvm must be readable as libsvm; got "),
        ("array.json", '[\n{\n"x": 1},\n{"x": 2}\n]\n', {}, "be JSON lines: one object"),
        ("bad.json", '{"x": 1}\nnonsense\n', {}, "must be JSON lines: one object on every line"),
        ("mixed.json", '{"x": 1, "y": 1}\n{"x": "NA", "y": 2}\n', {},
         "column 'x' must be numbers or empty in every row; got 'NA' in 1 row. Leave"),
        ("text.libsvm", "0 1:2 2:x\n", {}, 'as libsvm; got For input string: "x". Check the file'),
        ("colon.libsvm", "0 1:2 3\n", {}, "got Index 1 out of bounds"),
        ("order.libsvm", "# so\n\n0 3:1 2:4\n", {}, 'line="0 3:1 2:4". Check the file'),
    ],
)  # fmt: skip
def test_files_that_cannot_serve(
    spark: SparkSession, tmp_path: Path, name: str, text: str, values: dict[str, Any], told: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=told) as caught:
        read(spark, tmp_path / name, **values)
    assert "\n" not in str(caught.value)


def test_lines_that_are_no_json_are_skipped_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"x": 1}\nnonsense\n')
    assert read(spark, tmp_path / "t.json", handle_invalid="skip").feature_cols == ("x",)


def test_a_libsvm_file_may_leave_the_models_last_features_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t.libsvm"
    path.write_text("0 1:2\n1 2:9\n")
    options = asked(input=str(path))
    source = find_source("fit", options)
    widths = []
    for wanted in (None, 5, 1):  # wider rows than the model's are left as they are, to be told
        row = read_table("fit", spark, source, options, wanted).frame.first()
        widths.append(row["features"].size if row else 0)
    assert widths == [2, 5, 2]


@pytest.mark.parametrize("form", ["csv", "json", "libsvm"])
def test_a_path_may_hold_the_signs_of_patterns(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    text = {"csv": "x\n1\n", "json": '{"x": 1}\n', "libsvm": "0 1:1\n"}[form]
    for name in ("data[1]", "data1", "d{a,b}*", "da"):
        (tmp_path / f"{name}.{form}").write_text(text)
    for name, n_rows in (("data[1]", 1), ("d{a,b}*", 1), ("data*", 2), ("d{a,ata1}", 2)):
        assert read(spark, tmp_path / f"{name}.{form}").frame.count() == n_rows, name
    with pytest.raises(InvalidInputError, match=r"Check the path; \[ \] .* are a pattern"):
        read(spark, tmp_path / f"nope[1].{form}")


def test_names_with_backticks(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,e`f,`w`\nr,1.5,2\n")
    table = read(spark, tmp_path / "t.csv", weight_col="`w`")
    assert (table.feature_cols, table.id_cols) == (("e`f",), ("key",))
    assert table.fitted().collect() == [(1.5, 2)]


def test_settings_hold_no_words_behind_values() -> None:
    lines = (REPOSITORY / "conf" / "spark-defaults.conf").read_text().splitlines()
    settings = [line.lstrip("# ") for line in lines if line.lstrip("# ").startswith("spark.")]
    assert len(settings) >= 6
    assert [line for line in settings if len(line.split()) != 2] == []
