"""Readers: formats, roles of columns, and NumPy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession

from jobs.columns import Table, assign_roles, fitted_columns
from jobs.inputs import find_source, format_of, read_table
from jobs.npz import read_arrays, rows_of
from jobs.options import FitOptions
from localkmeans_spark.errors import InvalidInputError

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = [("r1", 1, 0.5, 2.0, "a", 1.0), ("r2", 2, 1.5, 3.0, "b", 2.0)]
NAMES = ["key", "id", "age", "in.come", "kind", "w"]


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, NAMES)


def options(**values: Any) -> FitOptions:
    return FitOptions(**{"input": "x", "k": 2, "output": "o", **values})


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


def test_format_of_a_directory(tmp_path: Path) -> None:
    inner = tmp_path / "table" / "day=1"
    inner.mkdir(parents=True)
    (tmp_path / "table" / "_SUCCESS").touch()
    (inner / "part-0.json").touch()
    found = find_source("fit", options(input=str(tmp_path / "table")))
    assert found.format == "json"
    assert find_source("fit", options(input=str(tmp_path / "table" / "*"))).format == "json"


def test_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    for name, told in (
        ("missing.csv", "must be an existing file or directory"),
        ("empty", "must be a directory with data files"),
        ("notes.txt", "must be a file with one of the extensions"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            find_source("fit", options(input=str(tmp_path / name)))


def test_numeric_columns_are_the_default(people: DataFrame) -> None:
    table = assign_roles("fit", people, options(weight_col="w", label_col="kind"))
    assert table.feature_cols == ("age", "in.come")
    assert table.id_cols == ("key", "id", "kind")
    assert "features: age, in.come" in table.notes
    assert any("not numeric" in note and "key" in note for note in table.notes)


def test_id_columns_are_no_features(people: DataFrame) -> None:
    table = assign_roles("fit", people, options(id_cols=("age",)))
    assert table.feature_cols == ("in.come", "w")
    assert table.id_cols == ("age",)


def test_a_vector_or_array_column_named_features_wins(spark: SparkSession) -> None:
    vectors = spark.createDataFrame([(1, Vectors.dense(1.0), 2.0)], ["key", "features", "x"])
    arrays = spark.createDataFrame([(1, [1.0], 2.0)], ["key", "features", "x"])
    for frame in (vectors, arrays):
        table = assign_roles("fit", frame, options())
        assert (table.features_col, table.id_cols) == ("features", ("key", "x"))
    text = spark.createDataFrame([("t", 2.0)], ["features", "x"])
    assert assign_roles("fit", text, options()).feature_cols == ("x",)


@pytest.mark.parametrize("names", [["a", "b"], ["a", "label"]])
def test_without_ids_the_rows_identify_themselves(spark: SparkSession, names: list[str]) -> None:
    frame = spark.createDataFrame([(1.0, 2.0)], names)
    label = "label" if "label" in names else None
    table = assign_roles("fit", frame, options(label_col=label))
    assert table.id_cols == tuple(names)
    assert any("no id columns" in note for note in table.notes)


def test_the_outputs_own_columns_are_not_copied(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("r", 1.0, 0, 0.1)], ["key", "x", "prediction", "distance"])
    table = assign_roles("fit", frame, options(feature_cols=("x",)))
    assert table.id_cols == ("key",)
    with pytest.raises(InvalidInputError, match="--id-cols must be different"):
        assign_roles("fit", frame, options(feature_cols=("x",), id_cols=("prediction",)))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"feature_cols": ("age", "incom")}, "--feature-cols.*got 'incom'.*It has: key, id, age"),
        ({"features_col": "features"}, "--features-col.*It has: key"),
        ({"weight_col": "W"}, "--weight-col.*'W'. Did you mean 'w'"),
        ({"label_col": "label"}, "--label-col"),
        ({"id_cols": ("kye",)}, "--id-cols.*'kye'. Did you mean 'key'. It has: key, id, age"),
        ({"feature_cols": ("age", "w"), "weight_col": "w"}, "--weight-col must be no feature"),
    ],
)
def test_wrong_columns(people: DataFrame, values: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        assign_roles("fit", people, options(**values))


def test_no_numeric_column(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1)], ["name", "id"])
    with pytest.raises(InvalidInputError, match=r"numeric columns.*name \(string\)"):
        assign_roles("fit", frame, options())


@pytest.mark.parametrize(
    ("dtype", "scale", "element"),
    [
        ("u1", None, "float"),
        ("f2", None, "float"),
        ("f4", 0.25, "float"),
        ("i4", None, "double"),
        ("f8", None, "double"),
        ("?", None, "float"),
    ],
)
def test_npz_rows_in_order(
    spark: SparkSession, tmp_path: Path, dtype: str, scale: float | None, element: str
) -> None:
    x = np.random.default_rng(0).integers(0, 200, (50, 3)).astype(dtype)
    y = np.array([f"class {i % 3}" for i in range(50)])
    more = {} if scale is None else {"scale": np.float32(scale)}
    np.savez(tmp_path / "x.npz", X=x, y=y, other=np.ones(2), **more)
    asked = options(input=str(tmp_path / "x.npz"), partitions=7)
    table = read_table("fit", spark, find_source("fit", asked), asked)
    assert dict(table.frame.dtypes)["features"] == f"array<{element}>"
    assert (table.id_cols, table.label_col) == (("id", "label"), "label")
    parts = table.frame.rdd.glom().map(lambda rows: [tuple(row) for row in rows]).collect()
    assert len(parts) == 7
    rows = [row for part in parts for row in part]
    assert [row[0] for row in rows] == list(range(50))
    np.testing.assert_allclose([row[1] for row in rows], x * np.float64(scale or 1))
    assert [row[2] for row in rows] == list(y)


def test_npz_batches_are_small_and_exact() -> None:
    x = np.arange(600_000, dtype=np.float32).reshape(300, 2000)
    ids = pa.array(np.arange(299, -1, -1))
    batches = list(rows_of(ids, x, None, 0.5, np.float32))
    assert max(batch.nbytes for batch in batches) < 6 << 20 < sum(b.nbytes for b in batches) * 3
    assert [b.num_rows for b in list(rows_of(ids, x[:, :1], None, 1.0, np.float32))] == [300]
    values = np.concatenate([np.stack(batch.column(1).to_numpy(False)) for batch in batches])
    np.testing.assert_array_equal(values, x[::-1] * 0.5)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"Z": np.ones((2, 2))}, "one with an array X; got Z"),
        ({"X": np.ones(3)}, r"X must be of shape \(rows, columns\); got shape \(3,\)"),
        ({"X": np.ones((3, 0))}, "X must be of shape"),
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, r"y must be one label .* 3 rows; got shape"),
        ({"X": np.ones((3, 2)), "y": np.array([0.5, 1, 2])}, "whole numbers or text"),
        ({"X": np.array([["a", "b"]])}, "X must be real numbers"),
        ({"X": np.array([[1, None]], dtype=object)}, "arrays of numbers or text"),
        ({"X": np.ones((3, 2)), "scale": np.ones(2)}, "scale must be one finite number"),
    ],
)
def test_npz_that_cannot_be_used(tmp_path: Path, arrays: dict[str, Any], told: str) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    with pytest.raises(InvalidInputError, match=told):
        read_arrays("fit", str(path))


def test_npz_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK\x03\x04 not really a zip")
    with pytest.raises(InvalidInputError, match="arrays of numbers or text"):
        read_arrays("fit", str(path))
    path.unlink()
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InvalidInputError, match=r"an \.npz archive"):
        read_arrays("fit", str(path))
    np.savez(path, X=np.array([[1, None]], dtype=object))
    with pytest.raises(InvalidInputError, match="got Python objects") as caught:
        read_arrays("fit", str(path))
    assert "allow_pickle" not in str(caught.value)
    path.write_text("PK hello")
    with pytest.raises(InvalidInputError, match=r"an \.npz archive"):
        read_arrays("fit", str(path))


def test_text_formats(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,x,y\nr1,1,2.5\nr2,3,4.5\n")
    (tmp_path / "t.json").write_text('{"key":"r1","x":1,"y":2.5}\n{"key":"r2","x":3,"y":4.5}\n')
    (tmp_path / "t.libsvm").write_text("1 1:1 2:2.5\n0 1:3 2:4.5\n")
    for name in ("t.csv", "t.json", "t.libsvm"):
        asked = options(input=str(tmp_path / name))
        table = read_table("fit", spark, find_source("fit", asked), asked)
        rows = sorted(table.frame.collect(), key=str)
        if name == "t.libsvm":
            assert (table.features_col, table.id_cols) == ("features", ("label", "features"))
        else:
            assert (table.feature_cols, table.id_cols) == (("x", "y"), ("key",))
            found = [(row["key"], row["x"], row["y"]) for row in rows]
            assert found == [("r1", 1, 2.5), ("r2", 3, 4.5)]


def read(spark: SparkSession, path: Path, **values: Any) -> Table:
    asked = options(input=str(path), **values)
    return read_table("fit", spark, find_source("fit", asked), asked)


@pytest.mark.parametrize("name", ["Prediction", "DISTANCE"])
def test_the_outputs_own_columns_in_other_letters(spark: SparkSession, name: str) -> None:
    frame = spark.createDataFrame([("r", 1.0, "no")], ["key", "x", name])
    table = assign_roles("fit", frame, options())
    assert table.id_cols == ("key",)
    assert any(f"column {name} of the input is not copied" in note for note in table.notes)
    with pytest.raises(InvalidInputError, match=f"--id-cols must be different.*got '{name}'"):
        assign_roles("fit", frame, options(id_cols=(name,)))
    alone = spark.createDataFrame([(1.0, "no")], ["x", name])
    assert assign_roles("fit", alone, options()).id_cols == ("x",)


@pytest.mark.parametrize(
    ("name", "text", "values", "told"),
    [
        ("head.csv", "key,x,y\n", {}, "at least 1 row; got 0 rows of the columns key, x, y. Check"),
        ("head.csv", "x,y\n", {"feature_cols": ("x",)}, "got 0 rows of the columns x, y"),
        ("empty.csv", "", {"feature_cols": ("x",)}, "got 0 rows without a column. Check the file"),
        ("na.csv", "x,y\n1,2\nNA,3\n", {"feature_cols": ("y", "x")},
         "--feature-cols must be numeric; got x, in which .* is 'NA'.*--handle-invalid skip"),
        ("na.csv", "x,y\n1,2\n?,3\n", {"feature_cols": ("y",), "weight_col": "x"},
         "--weight-col must be numeric; got x, in which .* is '\\?'. Mend these values"),
        ("one.csv", "x,y\n1,2\n", {"features_col": "x"},
         r"--features-col must be a vector .*; got x \(int\). Name numeric columns"),
        ("array.json", '[\n{\n"x": 1},\n{"x": 2}\n]\n', {}, "be JSON lines: one object"),
        ("bad.json", '{"x": 1}\nnonsense\n', {}, "must be JSON lines: one object on every line"),
        ("text.libsvm", "0 1:2 2:x\n", {},
         r"--input \S+/text.libsvm must be lines .* got the line '0 1:2 2:x' in text.libsvm. Mend"),
        ("label.libsvm", "1 1:2\na 1:2\n", {}, "got the line 'a 1:2' in label.libsvm"),
        ("colon.libsvm", "0 1:2 3\n", {}, "got the line '0 1:2 3' in"),
        ("zero.libsvm", "0 1:2\n0 0:2 1:3\n", {}, "got the line '0 0:2 1:3' in"),
        ("order.libsvm", "# so\n\n0 3:1 2:4\n", {}, "got the line '0 3:1 2:4'"),
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
    asked = options(input=str(path))
    source = find_source("fit", asked)
    widths = []
    for wanted in (None, 5, 1):  # wider rows than the model's are left as they are, to be told
        row = read_table("fit", spark, source, asked, wanted).frame.first()
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
    with pytest.raises(InvalidInputError, match=r"Nothing matches: \[ \] .* are a pattern"):
        read(spark, tmp_path / f"nope[1].{form}")


def test_names_with_backticks(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,e`f,`w`\nr,1.5,2\n")
    table = read(spark, tmp_path / "t.csv", weight_col="`w`")
    assert (table.feature_cols, table.id_cols) == (("e`f",), ("key",))
    assert fitted_columns(table).collect() == [(1.5, 2)]


def test_settings_hold_no_words_behind_values() -> None:
    lines = (REPOSITORY / "conf" / "spark-defaults.conf").read_text().splitlines()
    settings = [line.lstrip("# ") for line in lines if line.lstrip("# ").startswith("spark.")]
    assert len(settings) >= 6
    assert [line for line in settings if len(line.split()) != 2] == []
