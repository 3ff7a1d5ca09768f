"""CSV files. The layout is checked first, so that no row is lost and no column misread."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    IntegralType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid

_BAD_ROW = "localkmeans_bad_row"
_FIRST_LINES = 20
_LONGEST = 80
_SEPARATORS = (",", ";", "\t", "|")
# Cells that a number gives back: 007, 1.10 and 1E3 are not among them, nor 40 digits.
_SAME_AS_NUMBER = r"^(0|-?[1-9][0-9]{0,17}|-?(0|[1-9][0-9]{0,6})[.]([0-9]{0,7}[1-9]|0))$"
# Java reads 1D and 2F as numbers. No number begins with two digits of which the first is a 0.
_WITH_SUFFIX, _WITH_ZERO = r"[0-9.,][dDfF]\s*$", r"^\s*[+-]?0[0-9]"
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


def quoted(name: str) -> str:
    """Return a name as Spark reads it back unchanged, dots and backticks included."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """Return the column of exactly this name."""
    return F.col(quoted(name))


def read_csv(owner: str, spark: SparkSession, path: str, options: Any) -> DataFrame:
    """Return CSV files as a table with numbers where a column holds numbers.

    Raises
    ------
    InvalidInputError
        When the separator, the header or the decimal sign seem to be others than those assumed
        (the message names the flag), the files' headers differ, a row has more or fewer cells
        than there are names, or a few cells of a numeric column hold something else.
    """
    decimal, has_header = options.decimal or ".", options.header is not False
    sep = options.sep or ("\t" if ".tsv" in path.lower() else ";" if decimal == "," else ",")
    sep = "\t" if sep in ("\\t", "tab") else sep
    lines = spark.read.text(path).where("trim(value) <> ''")
    first = [row[0] for row in lines.head(_FIRST_LINES)]
    _check_first_lines(owner, first, sep, options)
    if len(first) <= has_header:
        fact = Fact(f"0 rows of the columns {first[0]}" if first else "an empty file")
        raise invalid(owner, f"--input {path}", "a table with at least 1 row", fact, "Check it.")
    # Quotes inside quotes are doubled, as RFC 4180 has it; Spark alone would take 20,480 columns.
    reader = spark.read.format("csv").options(
        header=has_header, sep=sep, escape='"', quote='"', maxColumns=1 << 20
    )
    if options.null_value:  # empty cells stay missing numbers
        reader = reader.option("nullValue", options.null_value)
    if has_header:
        _check_names(owner, first[0], sep, options)
    schema = _trimmed(reader.option("inferSchema", True).load(path).schema)
    if has_header and options.header is None and any(map(_NUMBER.fullmatch, schema.names)):
        raise invalid(
            owner, "the first line", "the columns' names",
            Fact(_short(", ".join(schema.names[:_FIRST_LINES]))),
            "Give --no-header if it is a row like the others, --header if these are the names.",
        )  # fmt: skip
    if decimal != ".":  # Spark knows numbers with a point only: all others are looked at below
        fractions = DoubleType | DecimalType
        schema = _as_text(schema, {x.name for x in schema if isinstance(x.dataType, fractions)})
    typed = {each.name: each.dataType for each in schema if isinstance(each.dataType, NumericType)}
    as_read = _as_text(schema, typed)
    marked = reader.schema(StructType([*as_read.fields, StructField(_BAD_ROW, StringType())]))
    frame = marked.option("columnNameOfCorruptRecord", _BAD_ROW).load(path)
    if has_header and len(frame.inputFiles()) > 1:
        _check_one_header(owner, lines, path)
    numbers, as_text = check_cells(owner, frame, options, decimal, _BAD_ROW, typed)
    schema = _as_text(schema, as_text)
    return reader.schema(schema).load(path).select(
        *(
            _number(name, decimal).alias(name) if name in numbers else column(name)
            for name in schema.names
        )
    )  # fmt: skip


def check_cells(
    owner: str,
    frame: DataFrame,
    options: Any,
    decimal: str = ".",
    bad_row: str | None = None,
    typed: Mapping[str, DataType] | None = None,
) -> tuple[set[str], set[str]]:
    """Look at the text columns that may be features or weight; return those that hold numbers.

    Also return which of the columns in ``typed``, whose cells Spark takes for numbers and which are
    text in ``frame``, are to stay text: features with cells such as 1D, or 007 if nobody named
    them; others, identifiers for example, with any cell that the number would not give back.

    Stops at rows that Spark could not split as the others and left in the column ``bad_row``, at
    numbers with another decimal sign or thousands separators, and at columns of numbers with a few
    other cells: at least half are numbers and the others are either all the same, as ``NA`` is, or
    less than a tenth. Any other column is text.
    """
    typed = typed or {}
    wanted = dict.fromkeys(_wanted(frame, options))
    text = [name for name in wanted if name != bad_row and name not in typed]
    asked = [
        F.count_if(_stays_text(name, kind, name in wanted, options)) for name, kind in typed.items()
    ]
    other_sign = "," if decimal == "." else "."
    for name in text:
        own, other = _number(name, decimal), _number(name, other_sign)
        strange = F.when(own.isNull(), column(name))
        thousands = rf"^\s*[+-]?[1-9]\d{{0,2}}([{other_sign}]\d{{3}})+([{decimal}]\d*)?\s*$"
        asked.append(F.struct(F.count(column(name)), F.count(own), F.min(strange), F.max(strange),
                              F.count(F.when(own.isNull(), other)),
                              F.count_if(strange.rlike(thousands))))  # fmt: skip
    if bad_row is not None:  # Spark counts a row's cells only where all columns are asked for
        every = F.max(F.hash(*map(column, frame.columns)))
        cells = F.concat_ws("", *(column(name) for name in _texts(frame) if name not in typed))
        odd = F.count_if(cells.contains("\ufffd"))
        asked.append(F.struct(F.count(bad_row), F.min(bad_row), odd, every))
    if not asked:
        return set(), set()
    numbers, found = set(), list(frame.agg(*asked).collect()[0])
    counts, found = found[: len(typed)], found[len(typed) :]
    as_text = {name for name, count in zip(typed, counts, strict=True) if count}
    n_bad, example, n_odd, _ = found.pop() if bad_row is not None else (0, "", 0, 0)
    if n_odd:
        raise _no_text(owner)
    if n_bad:
        raise invalid(
            owner, "--input", "a table with as many cells in every row",
            Fact(f"{count_of(n_bad, 'row')} of another number, for example {_short(example)}"),
            "Fix the file, or name its separator with --sep.",
        )  # fmt: skip
    flags = f"--decimal {other_sign}"
    if bad_row is not None and other_sign == "," and not options.sep:  # which ; is by default then
        flags += " --sep ,"
    for name, (n, n_own, least, largest, n_other, n_thousands) in zip(text, found, strict=True):
        n_strange, alike = n - n_own, least == largest
        if 0 < n_strange == n_thousands:
            raise invalid(
                owner, f"column {name!r}", "numbers without thousands separators", least,
                f"Take every {other_sign!r} out, or, if it is the decimal sign, give {flags}.",
            )  # fmt: skip
        if 0 < n_strange == n_other:
            raise invalid(
                owner, f"column {name!r}", f"numbers with the decimal sign {decimal!r}", least,
                f"Give {flags}.",
            )  # fmt: skip
        if n_strange and 2 * n_own >= n and (alike or 10 * n_strange < n):
            cell = _short(least)
            raise invalid(
                owner, f"column {name!r}", "numbers or empty in every row",
                Fact(f"{cell}{'' if alike else ' and the like'} in {count_of(n_strange, 'row')}"),
                f"Leave such cells empty or, in a CSV file, give --null-value {cell} "
                "(--handle-invalid skip then leaves the rows out), or name other columns with "
                "--feature-cols.",
            )  # fmt: skip
        if n_own == n > 0:
            numbers.add(name)
    return numbers, as_text


def _stays_text(name: str, kind: DataType, is_wanted: bool, options: Any) -> Column:
    """Say of each cell whether it keeps a column from being one of numbers."""
    cell = column(name)
    if not is_wanted:
        return ~cell.rlike(_SAME_AS_NUMBER)
    is_named = name in options.feature_cols or name == getattr(options, "weight_col", None)
    if isinstance(kind, IntegralType) and not is_named:
        return cell.rlike(_WITH_ZERO)
    return cell.rlike(_WITH_SUFFIX)


def _trimmed(schema: StructType) -> StructType:
    """Take blanks off the names, as in "id, age", where names stay different."""
    names = [name.strip() for name in schema.names]
    if len(set(names)) < len(names) or not all(names):
        return schema
    return StructType(
        [StructField(name, x.dataType) for name, x in zip(names, schema, strict=True)]
    )


def _as_text(schema: StructType, names: Collection[str]) -> StructType:
    return StructType([StructField(x.name, StringType()) if x.name in names else x for x in schema])


def _wanted(frame: DataFrame, options: Any) -> list[str]:
    """Return the text columns that are to be numbers, as far as the options tell."""
    text = _texts(frame)
    weight = getattr(options, "weight_col", None)
    if options.feature_cols or options.features_col:
        return [name for name in text if name in (*options.feature_cols, weight)]
    others = {getattr(options, "label_col", None), *options.id_cols}
    return [name for name in text if name not in others and name.lower() != "id"]


def _texts(frame: DataFrame) -> list[str]:
    return [each.name for each in frame.schema if isinstance(each.dataType, StringType)]


def _number(name: str, decimal: str) -> Column:
    text = quoted(name)
    if decimal == ",":
        text = f"CASE WHEN {text} NOT LIKE '%.%' THEN replace({text}, ',', '.') END"
    return F.when(~column(name).rlike(_WITH_SUFFIX), F.expr(f"try_cast({text} AS DOUBLE)"))


def _check_first_lines(owner: str, lines: list[str], sep: str, options: Any) -> None:
    if any("\0" in line or "\ufffd" in line for line in lines):
        raise _no_text(owner)
    for other in _SEPARATORS:
        if lines and other != sep and _seems_separated(lines, sep, other, options):
            shown, given = ("tab" if sign == "\t" else repr(sign) for sign in (other, sep))
            raise invalid(
                owner, f"the separator {given}", "the sign between the cells of every row",
                Fact(f"the line {_short(lines[0])}"),
                f"Give --sep {shown} if that stands between them"
                + ("." if options.sep else f", else --sep {given}."),
            )  # fmt: skip


def _check_names(owner: str, header: str, sep: str, options: Any) -> None:
    """Stop at a wanted column whose name is there twice: Spark would give both a number."""
    asked = (*options.feature_cols, *options.id_cols, options.features_col)
    asked += getattr(options, "weight_col", None), getattr(options, "label_col", None)
    names = Counter(name.strip().lower() for name in next(csv.reader([header], delimiter=sep), []))
    for name in asked:
        if name and names[name.lower()] > 1:
            raise invalid(
                owner, f"column {name!r}", "the name of one column of the input",
                Fact(f"{names[name.lower()]} of that name"), "Give each a name of its own.",
            )  # fmt: skip


def _no_text(owner: str) -> InvalidInputError:
    fact, fix = Fact("bytes that are not"), "Save it as UTF-8, or name another --format."
    return invalid(owner, "--input", "UTF-8 text", fact, fix)


def _seems_separated(lines: list[str], sep: str, other: str, options: Any) -> bool:
    """Say whether another sign splits all lines into equally many cells, and ``sep`` does worse."""
    own, others = ([_cells(line, sign) for line in lines] for sign in (sep, other))
    if len(others[0]) < 2 or len(set(map(len, others))) > 1:
        return False
    if options.sep is not None:  # somebody has looked: only a single column is doubtful
        return all(len(cells) == 1 for cells in own) and options.header is not False
    is_single = len(own[0]) == 1 or len(set(map(len, own))) > 1
    inside = [cell for cells in others for cell in cells if sep in cell]
    return is_single or all(map(_NUMBER.fullmatch, inside))


def _cells(line: str, sep: str) -> list[str]:
    return re.sub(r'"[^"]*"', "q", line).split(sep)


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
