"""CSV files. The layout is checked first, so that no row is lost and no column misread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, StringType, StructField, StructType

from localkmeans_spark.cli.columns import column, quoted
from localkmeans_spark.errors import Fact, count_of, invalid

_BAD_ROW = "localkmeans_bad_row"
_FIRST_LINES = 20
_LONGEST = 80
_SEPARATORS = (",", ";", "\t", "|", " ")
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


def read_csv(owner: str, spark: SparkSession, path: str, options: Any) -> DataFrame:
    """Return CSV files as a table with numbers where a column holds numbers.

    Raises
    ------
    InvalidInputError
        When the separator, the header or the decimal sign seem to be others than those assumed
        (the message names the flag), the files' headers differ, a row has more or fewer cells
        than there are names, or a few cells of a numeric column hold something else.
    """
    decimal = options.decimal or "."
    sep = _separator(path, options)
    lines = spark.read.text(path).where("trim(value) <> ''")
    first = [row[0] for row in lines.head(_FIRST_LINES)]
    if not first:
        rule, fact = "a table with at least 1 row", Fact("an empty file")
        raise invalid(owner, f"--input {path}", rule, fact, "Check the file.")
    check_no_parquet(owner, path, "csv", first)
    _check_first_lines(owner, first, sep, options)
    has_header = options.header is not False
    # Quotes inside quotes are doubled, as RFC 4180 has it.
    reader = spark.read.format("csv").options(header=has_header, sep=sep, escape='"', quote='"')
    if options.null_value:  # empty cells stay missing numbers
        reader = reader.option("nullValue", options.null_value)
    schema = reader.option("inferSchema", True).load(path).schema
    if has_header:
        _check_header(owner, schema.names, options)
    if decimal != ".":  # Spark knows numbers with a point only: all others are looked at below
        fields = [
            StructField(each.name, StringType())
            if isinstance(each.dataType, DoubleType | DecimalType)
            else each
            for each in schema
        ]
        schema = StructType(fields)
    marked = reader.schema(StructType([*schema.fields, StructField(_BAD_ROW, StringType())]))
    frame = marked.option("columnNameOfCorruptRecord", _BAD_ROW).load(path)
    if has_header and len(frame.inputFiles()) > 1:
        _check_one_header(owner, lines, path)
    found = look_at_text(frame, options, decimal, _BAD_ROW)
    if found.n_bad_rows:
        raise invalid(
            owner, f"--input {path}", "a table with as many cells in every row",
            Fact(f"{count_of(found.n_bad_rows, 'row')} of another number, for example "
                 f"{_short(found.bad_row)}"),
            "Fix the file, or name its separator with --sep.",
        )  # fmt: skip
    check_text(owner, found, decimal, is_csv=True)
    numbers = {name for name, seen in found.columns.items() if seen.n_own == seen.n > 0}
    return reader.schema(schema).load(path).select(
        *(
            _number(name, decimal).alias(name) if name in numbers else column(name)
            for name in schema.names
        )
    )  # fmt: skip


def check_no_parquet(owner: str, path: str, form: str, lines: Sequence[str]) -> None:
    """Stop if the first of a file's lines shows that it is no text but Parquet."""
    if lines and lines[0].startswith("PAR1"):
        fix = "Give --format parquet."
        raise invalid(owner, f"--input {path}", f"a {form} file", Fact("a Parquet file"), fix)


@dataclass(frozen=True)
class _Seen:
    """Cells of a text column: how many there are, are numbers, and what the others hold."""

    n: int
    n_own: int
    n_other: int
    least: str | None
    largest: str | None


@dataclass(frozen=True)
class TextFound:
    """What the text columns of a table hold."""

    columns: dict[str, _Seen]
    n_bad_rows: int = 0
    bad_row: str = ""


def look_at_text(
    frame: DataFrame, options: Any, decimal: str, bad_row: str | None = None
) -> TextFound:
    """Count numbers in the text columns that may be features or weight, in one job.

    Parameters
    ----------
    frame : DataFrame
    options : Options
    decimal : {".", ","}
    bad_row : str or None
        Column in which Spark left the rows that it could not split as the others.
    """
    text = [name for name in _wanted(frame, options) if name != bad_row]
    asked: list[Column] = []
    for name in text:
        own, other = _number(name, decimal), _number(name, "," if decimal == "." else ".")
        strange = F.when(own.isNull(), column(name))
        asked += [F.count(column(name)), F.count(own), F.count(F.when(own.isNull(), other)),
                  F.min(strange), F.max(strange)]  # fmt: skip
    n_bad, example = 0, ""
    if bad_row is not None:
        asked += [F.count(column(bad_row)), F.min(column(bad_row))]
        # Spark counts a row's cells only where all columns are asked for.
        asked.append(F.max(F.hash(*(column(name) for name in frame.columns))))
    if not asked:
        return TextFound({})
    values = list(frame.agg(*(each.alias(f"v{i}") for i, each in enumerate(asked))).head() or ())
    seen = {name: _Seen(*values[5 * i : 5 * i + 5]) for i, name in enumerate(text)}
    if bad_row is not None:
        n_bad, example = values[5 * len(text) : 5 * len(text) + 2]
    return TextFound(seen, n_bad, example or "")


def check_text(owner: str, found: TextFound, decimal: str, is_csv: bool = False) -> None:
    """Stop at columns of numbers with another decimal sign, or with a few other cells.

    A column is numeric but for some cells when at least half of them are numbers and the others
    are either all the same, as ``NA`` is, or less than a tenth. Any other column is text.
    """
    for name, seen in found.columns.items():
        if seen.n_other and seen.n_own + seen.n_other == seen.n:
            other = "," if decimal == "." else "."
            raise invalid(
                owner, f"column {name!r}", f"numbers with the decimal sign {decimal!r}",
                seen.least, f"Give --decimal {other} (and take thousands separators out).",
            )  # fmt: skip
        n_strange = seen.n - seen.n_own
        alike = seen.least == seen.largest
        if n_strange and 2 * seen.n_own >= seen.n and (alike or 10 * n_strange < seen.n):
            cell = _short(seen.least or "")
            empty = f"Give --null-value {cell}" if alike and is_csv else "Leave such cells empty"
            raise invalid(
                owner, f"column {name!r}", "numbers or empty in every row",
                Fact(f"{cell}{'' if alike else ' and the like'} in {count_of(n_strange, 'row')}"),
                f"{empty} (--handle-invalid skip then leaves the rows out), or name other columns "
                "with --feature-cols.",
            )  # fmt: skip


def _wanted(frame: DataFrame, options: Any) -> list[str]:
    """Return the text columns that are to be numbers, as far as the options tell."""
    text = [each.name for each in frame.schema if isinstance(each.dataType, StringType)]
    weight = getattr(options, "weight_col", None)
    if options.feature_cols or options.features_col:
        return [name for name in text if name in (*options.feature_cols, weight)]
    others = {getattr(options, "label_col", None), *options.id_cols}
    return [name for name in text if name not in others and name.lower() != "id"]


def _number(name: str, decimal: str) -> Column:
    cell = quoted(name)
    if decimal == ".":
        return F.expr(f"try_cast({cell} AS DOUBLE)")
    return F.expr(f"CASE WHEN {cell} NOT LIKE '%.%' THEN "
                  f"try_cast(replace({cell}, ',', '.') AS DOUBLE) END")  # fmt: skip


def _separator(path: str, options: Any) -> str:
    if options.sep is None:
        return "\t" if ".tsv" in path.lower() else ";" if options.decimal == "," else ","
    return "\t" if options.sep in ("\\t", "tab") else options.sep


def _check_first_lines(owner: str, lines: list[str], sep: str, options: Any) -> None:
    if any("\0" in line or "\ufffd" in line for line in lines):
        fact = Fact("bytes that are not")
        raise invalid(owner, "--input", "UTF-8 text", fact, "Save the file as UTF-8.")
    for other in _SEPARATORS:
        if other != sep and lines and _seems_separated(lines, sep, other, options):
            shown = "tab" if other == "\t" else repr(other)
            given = "tab" if sep == "\t" else repr(sep)
            raise invalid(
                owner, f"the separator {given}", "the sign between the cells of every row",
                Fact(f"the line {_short(lines[0])}"),
                f"Give --sep {shown} if that stands between them"
                + ("." if options.sep else f", else --sep {given}."),
            )  # fmt: skip


def _seems_separated(lines: list[str], sep: str, other: str, options: Any) -> bool:
    """Say whether another sign splits all lines into equally many cells, and ``sep`` does worse."""
    width, other_width = _width(lines, sep), _width(lines, other)
    if other_width < 2:
        return False
    if options.sep is not None:  # somebody has looked: only a single column is doubtful
        return width == 1 and options.header is not False
    cells = [cell for line in lines for cell in _cells(line, other)]
    if other == " ":
        return width == 1 and all(_NUMBER.fullmatch(cell) for cell in _cells(lines[-1], " "))
    return width < 2 or not any(sep in cell and not _NUMBER.fullmatch(cell) for cell in cells)


def _width(lines: list[str], sep: str) -> int:
    """Return the number of cells of every line; 0 when it differs."""
    widths = {len(_cells(line, sep)) for line in lines}
    return widths.pop() if len(widths) == 1 else 0


def _cells(line: str, sep: str) -> list[str]:
    return re.sub(r'"[^"]*"', "q", line).split(sep)


def _check_header(owner: str, names: Sequence[str], options: Any) -> None:
    if options.header is None and any(_NUMBER.fullmatch(name) for name in names):
        raise invalid(
            owner, "the first line", "the columns' names",
            Fact(_short(", ".join(names[:_FIRST_LINES]))),
            "Give --no-header if it is a row like the others, --header if these are the names.",
        )  # fmt: skip


def _check_one_header(owner: str, lines: DataFrame, path: str) -> None:
    """Make sure that all files begin with the same names: Spark reads them by place."""
    begun = lines.where(F.input_file_block_start() == 0)
    first = begun.groupBy(F.input_file_name().alias("file")).agg(F.first("value").alias("line"))
    apart = [row[0] for row in first.select(F.trim("line")).distinct().limit(2).collect()]
    if len({re.sub(r'[\s"]', "", line) for line in apart}) > 1:
        raise invalid(
            owner, f"--input {path}", "files that all begin with the same names",
            Fact(f"{_short(apart[0])} and {_short(apart[1])}"),
            "Read the files one by one, or give --no-header if they have no names.",
        )  # fmt: skip


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + " …")
