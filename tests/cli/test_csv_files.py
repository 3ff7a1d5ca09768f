"""CSV files as people have them: read whole, or one line that names the flag."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from localkmeans_spark.errors import InvalidInputError
from tests.cli.asked import read


@pytest.mark.parametrize(
    ("text", "flags", "told"),
    [
        ("1,2\n3,4\n", {}, "first line must be the columns' names; got '1, 2'. Give --no-header"),
        ("5.1,3.5,setosa\n4.9,3,virginica\n", {}, "Give --no-header if it is a row"),
        ("anna,-1e3\nbert,2\n", {}, "Give --no-header"),
        ("1,5;2,5\n1,6;2,7\n", {}, "got the line '1,5;2,5'. Give --sep ';'"),
        ("1,5;2,5\n1,6;2,7\n", {"sep": ";"}, "Give --no-header"),
        ("1,5;2,5\n1,6;2,7\n", {"sep": ";", "header": False}, "'_c0' .* Give --decimal ,"),
        ("a;b\n1,5;2,5\n", {}, "separator ',' must be .*; got the line 'a;b'. Give --sep ';' if"),
        ("a;b\n1;2\n", {}, "Give --sep ';'"),
        ("a\tb\n1\t2\n", {}, "Give --sep tab if"),
        ("a|b|c\n1|2|3\n", {}, "Give --sep '|'".replace("|", r"\|")),
        ("a b\n1 2\n", {}, r"numeric columns .*; got a b \(string\)"),
        ("a,b\n1,2\n", {"sep": ";"}, "Give --sep ',' if that stands between them[.]$"),
        ("a,b\n1,2\n", {"sep": ";", "decimal": ","}, "Give --sep ','"),
        ("a,b\n1,2\n", {"decimal": ","}, "Give --sep ','"),
        ("a;b\n1,5;2\n3;4\n", {"sep": ";"}, "decimal sign '.'; got '1,5'. Give --decimal ,"),
        ("a;b\n1.5;2\n3;4\n", {"decimal": ","}, "decimal sign ','; got '1.5'. Give --decimal ."),
        ('a,b\n"1,5","2"\n"2,5","3"\n', {}, "Give --decimal ,"),
        ('a,b\n"1,5",2\n', {}, "Give --decimal , --sep ,[.]$"),
        ('a,b\n"1,000","2"\n"2,000","3"\n999,4\n', {}, "without thousands .*; got '1,000'. Take"),
        ('a,b\n"1,234,567.5","2"\n', {}, "without thousands separators; got '1,234,567.5'"),
        ("a;b\n1.000,5;2\n", {"decimal": ","}, "Take every '.' out, or, .* give --decimal [.][.]"),
        ("a,A,c\n1,2,3\n", {"feature_cols": ("a",)}, "column 'a' must be .*; got 2 of that name"),
        ("a,b\n1,2\n3\n", {}, "with as many cells in every row; got 1 row of another"),
        ("a,b\n1,2\n3,4,5\n6,7,8\n", {}, "got 2 rows of another number, for example '3,4,5'"),
        ('k,a,b\n"x\ny",1,2\n', {}, "1 row of another number"),
        ("a,b\n1,2\nNA,3\n4,5\n", {}, "got 'NA' in 1 row. Leave .* give --null-value 'NA'"),
        ("a,b\n" + "1,2\n" * 30 + "1o,3\n2_,4\n", {}, "got '1o' and the like in 2 rows. Leave"),
        ("a,b\n1,2\n?,3\n4,5\n", {"weight_col": "a"}, "column 'a' must be numbers"),
        ("a,b\n1,2\n?,3\n4,5\n", {"feature_cols": ("a",)}, "column 'a' must be numbers"),
        ("a,b\nx\0,2\n", {}, "must be UTF-8 text"),
        ("a\x1b[2J,b\n1,2\n3\n", {}, "as many cells in every row"),
        ("a,b\n" + "1,x\n" * 30 + "2,M\xfc\n", {}, "must be UTF-8 text"),
    ],
)  # fmt: skip
def test_what_stops(
    spark: SparkSession, tmp_path: Path, text: str, flags: dict[str, Any], told: str
) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInputError, match=told) as caught:
        read(spark, tmp_path / "t.csv", **flags)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "flags", "rows"),
    [
        ("a,b\n1,2\n3,4\n", {}, [(1, 2), (3, 4)]),
        ("\ufeffa,b\r\n1,2\r\n\r\n  \r\n3,4", {}, [(1, 2), (3, 4)]),
        ("1,2\n3,4\n", {"header": False}, [(1, 2), (3, 4)]),
        ("1990,1991\n3,4\n", {"header": True}, [(3, 4)]),
        ('"a ""x"", y",b\n"1", 2.5\n', {}, [(1, 2.5)]),
        (",b\n0,1\n1,2\n", {}, [(0, 1), (1, 2)]),  # as pandas writes its index
        ("a;b\n1,5;2\n-3;4e1\n;,5\n", {"decimal": ","}, [(1.5, 2), (-3, 40), (None, 0.5)]),
        ("a,b\n1,5\n2,5\n", {"sep": ","}, [(1, 5), (2, 5)]),
        ("a\tb\n1,5\t2\n", {"sep": "tab", "decimal": ","}, [(1.5, 2)]),
        ("a,b\n1,inf\n2,NaN\n3,5\n", {}, [(1, math.inf), (2, math.nan), (3, 5)]),
        ("a,b\n1,NA\n,5\nNA,6\n", {"null_value": "NA"}, [(1, None), (None, 5), (None, 6)]),
        ("a;b\n-;5,5\n2,5;-\n", {"decimal": ",", "null_value": "-"}, [(None, 5.5), (2.5, None)]),
        ("x,kinds\n1,a|b\n2,c|d\n", {}, [(1, "a|b"), (2, "c|d")]),
        ("x,ticket\n1,A/5 21171\n2,113803\n3,PC 17599\n4,3\n5,9\n", {"id_cols": ("ticket",)},
         [(1, "A/5 21171"), (2, "113803"), (3, "PC 17599"), (4, "3"), (5, "9")]),
        ("x,id\n1,007\n2,7\n", {}, [(1, "007"), (2, "7")]),
        ("x,id\n1,-7\n2,123456789012345678\n", {}, [(1, -7), (2, 123456789012345678)]),
        ("x,id\n1,1.1\n2,1.10\n", {}, [(1, "1.1"), (2, "1.10")]),
        (f"x,id\n1,{'1' * 39}2\n2,1E3\n", {}, [(1, "1" * 39 + "2"), (2, "1E3")]),
        ("x,unit\n1,1D\n2,2F\n", {}, [(1, "1D"), (2, "2F")]),
        ("x;unit\n1;1D\n2;2F\n", {"decimal": ","}, [(1, "1D"), (2, "2F")]),
        ("x;unit\n1;1,D\n2;2,F\n", {"decimal": ","}, [(1, "1,D"), (2, "2,F")]),
        ("x,zip\n1,01234\n2,99999\n", {}, [(1, "01234"), (2, "99999")]),
        ("x,zip\n1,01234\n2,99999\n", {"feature_cols": ("x", "zip")}, [(1, 1234), (2, 99999)]),
        ("x, y\n1, 2\n", {"feature_cols": ("x", "y")}, [(1, 2)]),
        ("x,code\n1,01\n2,NA\n3,02\n", {"label_col": "code"}, [(1, "01"), (2, "NA"), (3, "02")]),
    ],
)  # fmt: skip
def test_what_is_read(
    spark: SparkSession, tmp_path: Path, text: str, flags: dict[str, Any], rows: list[Any]
) -> None:
    (tmp_path / "t.csv").write_text(text, newline="")
    found = [tuple(row) for row in read(spark, tmp_path / "t.csv", **flags).frame.collect()]
    assert len(found) == len(rows)
    for row, right in zip(found, rows, strict=True):
        assert row == right or (row[0] == right[0] and math.isnan(row[1]) and math.isnan(right[1]))


def test_files_of_one_table_begin_alike(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text('"a","b"\n3,4\n')
    assert read(spark, tmp_path).frame.count() == 2
    (tmp_path / "3.csv").write_text("b,a\n5,6\n")
    with pytest.raises(InvalidInputError, match=r"begin with the same names; got .*b,a"):
        read(spark, tmp_path)
    assert read(spark, tmp_path / "[12].csv").frame.count() == 2


def test_partition_folders_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "x.csv").write_text("a,b\n1,2\n")
    frame = read(spark, tmp_path).frame
    assert sorted(map(tuple, frame.collect())) == [(1, 2, 1), (1, 2, 2)]
    (tmp_path / "day=1" / "x.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(InvalidInputError, match="cells in every row; got 1 row"):
        read(spark, tmp_path)


NUMBERS = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6),
    sep=st.sampled_from([",", ";", "\t", "|"]),
    decimal=st.sampled_from([".", ","]),
    header=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
    flags=st.fixed_dictionaries(
        {
            "sep": st.sampled_from([None, ",", ";", "tab", "|"]),
            "decimal": st.sampled_from([None, ".", ","]),
            "header": st.sampled_from([None, True, False]),
        }
    ),
)
def test_whole_and_right_or_refused(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[Any], sep: str,
    decimal: str, header: bool, newline: str, flags: dict[str, Any],
) -> None:  # fmt: skip
    """Whatever the file and the flags: the numbers that were written, or one line."""
    if sep == decimal:
        sep = ";"

    def cell(value: float) -> str:
        return format(value, "f" if isinstance(value, float) else "d").replace(".", decimal)

    lines = [sep.join(("a", "b"))] if header else []
    lines += [sep.join(map(cell, row)) for row in rows]
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text(newline.join(lines), newline="")
    wrong_sep = flags["sep"] not in (None, {"\t": "tab"}.get(sep, sep))
    # Somebody says that numbers are names, or which sign stands between them: so be it.
    assume(not (flags["header"] is True and not header))
    assume(not (flags["header"] is False and wrong_sep))
    refused, found = "", []
    try:
        found = [tuple(map(float, row)) for row in read(spark, path, **flags).frame.collect()]
    except InvalidInputError as error:
        refused = str(error)
    if refused:
        assert "\n" not in refused
        right = (flags["sep"] or ",") == {"\t": "tab"}.get(sep, sep)
        right &= (flags["decimal"] or ".") == decimal
        assert not (right and header and flags["header"] is not False), refused
    else:
        assert found == [tuple(map(float, row)) for row in rows]
