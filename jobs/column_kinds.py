"""Columns named on the command line that cannot serve, and which of their values are to blame."""

from __future__ import annotations

from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, NumericType, StringType

from jobs.options import InputOptions
from localkmeans_spark.errors import Fact, InvalidInputError, invalid


def quoted(name: str) -> str:
    """Return a name as Spark reads it back unchanged, dots and backticks included."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """Return the column of exactly this name."""
    return F.col(quoted(name))


def can_hold_features(data_type: DataType) -> bool:
    """Say whether a column of this type is a vector or an array of numbers."""
    if isinstance(data_type, ArrayType):
        return isinstance(data_type.elementType, NumericType | BooleanType)
    return isinstance(data_type, VectorUDT)


def check_kinds(owner: str, frame: DataFrame, options: InputOptions) -> None:
    """Refuse columns that cannot be what the options say they are.

    Raises
    ------
    InvalidInputError
        In words of flags, before a fit that would say the same in words of the library.
    """
    name = options.features_col
    if name and not can_hold_features(frame.schema[name].dataType):
        raise invalid(
            owner, "--features-col", "a vector or an array of numbers",
            Fact(f"{name} ({frame.schema[name].dataType.simpleString()})"),
            "Name numeric columns with --feature-cols instead.",
        )  # fmt: skip
    without = "or name other columns"
    skip = "Leave such fields empty (--handle-invalid skip then leaves the rows out)"
    for name in options.feature_cols:
        _check_number(owner, frame, "--feature-cols", name, f"{skip}, {without}.")
    if options.weight_col:
        fix = "Mend these values, or name another column."
        _check_number(owner, frame, "--weight-col", options.weight_col, fix)


def no_rows(owner: str, frame: DataFrame) -> InvalidInputError:
    """Build the error for a table of nothing but a header."""
    return invalid(
        owner, "the input", "a table with at least 1 row",
        Fact(f"0 rows of the columns {', '.join(frame.columns)}"), "Check the file.",
    )  # fmt: skip


def _check_number(owner: str, frame: DataFrame, flag: str, name: str, fix: str) -> None:
    data_type = frame.schema[name].dataType
    if isinstance(data_type, NumericType | BooleanType):
        return
    found = f"{name} ({data_type.simpleString()})"
    if isinstance(data_type, StringType):
        if frame.isEmpty():
            raise no_rows(owner, frame)
        number = F.expr(f"try_cast({quoted(name)} AS DOUBLE)")
        text = frame.where(column(name).isNotNull() & number.isNull()).select(column(name)).first()
        if text is not None:
            found = f"{name}, in which the first value that is no number is {text[0]!r}"
        else:
            found, fix = f"{name} (string)", "Store the column as numbers."
    else:
        fix = "Name other columns."
    raise invalid(owner, flag, "numeric", Fact(found), fix)
