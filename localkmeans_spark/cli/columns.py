"""Which column of a table is what: features, weight, label, ids."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, IntegralType, NumericType

from localkmeans_spark.cli.flags import join_names
from localkmeans_spark.errors import Fact, InvalidInputError, invalid

ADDED = ("prediction", "distance")
"""Columns that the commands add to the id columns."""

# Rows by which a column is judged; with fewer than the first, whole numbers often all differ.
_FEW, _MANY, _LOOKED_AT = 20, 1_000, 10_000
_YEARS = (1800, 2100)
_ID_NAME = re.compile(r"(^|[\W_])([iI][dD]|uuid|zip|postcode)$|[a-z]I[dD]$")


@dataclass(frozen=True)
class Table:
    """A DataFrame and the parts its columns play.

    Attributes
    ----------
    frame : DataFrame
    features_col : str or None
        The vector or array column, or None with ``feature_cols``.
    feature_cols : tuple of str
    weight_col, label_col : str or None
    id_cols : tuple of str
        What tells rows apart in the output.
    notes : tuple of str
        Choices made for the user, to be said aloud.
    """

    frame: DataFrame
    features_col: str | None
    feature_cols: tuple[str, ...]
    weight_col: str | None
    label_col: str | None
    id_cols: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def fitted(self) -> DataFrame:
        """Return the columns that a fit reads.

        The others are left out, because a fit refuses a table with columns named like those that
        the model adds.
        """
        features = self.feature_cols or (self.features_col,)
        used = dict.fromkeys(name for name in (*features, self.weight_col) if name is not None)
        return self.frame.select(*map(column, used))


def quoted(name: str) -> str:
    """Return a name as Spark reads it back unchanged, dots and backticks included."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """Return the column of exactly this name."""
    return F.col(quoted(name))


def assign_roles(
    owner: str, frame: DataFrame, options: Any, label_default: str | None = None
) -> Table:
    """Decide which column is what.

    Features are what the options name; else the column ``features`` if it can hold them; else
    all numeric columns but the label, the weight, the id columns and one called ``id``.

    Id columns are what the options name, else all that are neither features nor weight. When that
    leaves none, or only a label, every input column is kept: a row's own values are then the only
    thing that identifies it. (A row number would not: Spark promises no order of rows, so a number
    made up here could not be matched with the input again.)
    """
    label = getattr(options, "label_col", None) or label_default
    weight = getattr(options, "weight_col", None)
    if not frame.columns:
        fact = Fact("0 rows without a column")
        raise invalid(owner, "the input", "a table with at least 1 row", fact, "Check the file.")
    _check_named(owner, frame, options)
    notes: list[str] = []
    features_col, feature_cols = options.features_col, tuple(options.feature_cols)
    if features_col is None and not feature_cols:
        features_col = _features_column(frame)
        if features_col is None:
            taken = {label, weight, *options.id_cols}
            feature_cols = _numeric_columns(owner, frame, taken, notes)
    features = set(feature_cols) | {features_col}
    ids = options.id_cols or tuple(
        name for name in frame.columns if name not in features and name != weight
    )
    if not options.id_cols and all(_is_added(name) or name in (label, "label") for name in ids):
        ids = tuple(frame.columns)
        notes.append("no id columns: all columns of the input are copied to the output")
    for name in filter(_is_added, ids):
        if name in options.id_cols:
            rule = f"different from the columns that are added ({' and '.join(ADDED)})"
            raise invalid(owner, "--id-cols", rule, name, "Leave it out.")
        notes.append(f"column {name} of the input is not copied: the output has its own")
    ids = tuple(name for name in ids if not _is_added(name))
    return Table(frame, features_col, feature_cols, weight, label, ids, tuple(notes))


def _is_added(name: str) -> bool:
    """Say whether the output has its own column of this name; Spark ignores case."""
    return name.lower() in ADDED


def _check_named(owner: str, frame: DataFrame, options: Any) -> None:
    """Refuse names that are not columns, columns of no use, and those asked to be two things."""
    features = {options.features_col, *options.feature_cols}
    for flag in ("features_col", "feature_cols", "weight_col", "label_col", "id_cols"):
        given = getattr(options, flag, None) or ()
        shown = f"--{flag.replace('_', '-')}"
        for name in (given,) if isinstance(given, str) else given:
            if name not in frame.columns:
                raise _not_present(owner, shown, name, frame.columns)
            if name in features and flag in ("weight_col", "label_col"):
                raise invalid(owner, shown, "no feature", name, "Leave it out of the features.")
            data_type = frame.schema[name].dataType
            found = Fact(f"{name} ({data_type.simpleString()})")
            if flag == "features_col" and not _can_hold_features(data_type):
                fix = "Name numeric columns with --feature-cols instead."
                raise invalid(owner, shown, "a vector or an array of numbers", found, fix)
            numeric = isinstance(data_type, NumericType | BooleanType)
            if flag in ("feature_cols", "weight_col") and not numeric:
                if frame.isEmpty():
                    raise _no_rows(owner, frame)
                raise invalid(owner, shown, "numeric", found, "Name other columns.")


def _not_present(owner: str, flag: str, name: str, present: list[str]) -> InvalidInputError:
    by_lower = {each.lower(): each for each in present}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    hint = f"Did you mean {by_lower[close[0]]!r}? " if close else ""
    listed = ", ".join(present)
    return invalid(owner, flag, "a column of the input", name, f"{hint}It has: {listed}.")


def _no_rows(owner: str, frame: DataFrame) -> InvalidInputError:
    return invalid(
        owner, "the input", "a table with at least 1 row",
        Fact(f"0 rows of the columns {', '.join(frame.columns)}"), "Check the file.",
    )  # fmt: skip


def _can_hold_features(data_type: DataType) -> bool:
    if isinstance(data_type, ArrayType):
        return isinstance(data_type.elementType, NumericType | BooleanType)
    return isinstance(data_type, VectorUDT)


def _features_column(frame: DataFrame) -> str | None:
    fields = (field for field in frame.schema if field.name == "features")
    return next((field.name for field in fields if _can_hold_features(field.dataType)), None)


def _numeric_columns(
    owner: str, frame: DataFrame, taken: set[str | None], notes: list[str]
) -> tuple[str, ...]:
    free = [f for f in frame.schema if f.name not in taken and f.name.lower() != "id"]
    chosen = [field.name for field in free if isinstance(field.dataType, NumericType)]
    left = [field.name for field in free if field.name not in chosen]
    if not chosen:
        if frame.isEmpty():
            raise _no_rows(owner, frame)
        types = [f"{field.name} ({field.dataType.simpleString()})" for field in frame.schema]
        raise invalid(
            owner, "the input", "a table with numeric columns or a column features (vector, array)",
            Fact(", ".join(types)), "Name them with --feature-cols or --features-col.",
        )  # fmt: skip
    notes.append(f"features: {', '.join(chosen)}")
    doubtful = _doubtful(frame, chosen)
    if doubtful:
        told = ", ".join(f"{name} ({kind})" for name, kind in doubtful.items())
        others = join_names(name for name in chosen if name not in doubtful)
        flag = f"--feature-cols {others}" if 0 < len(others) < 200 else "--feature-cols"
        notes.append(f"taken for features as well: {told}; to leave them out, give {flag}")
    if left:
        notes.append(f"not numeric, so not features: {', '.join(left)}")
    return tuple(chosen)


def _doubtful(frame: DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Return columns that look like identifiers or years, by the first rows, and why."""
    whole = [name for name in names if isinstance(frame.schema[name].dataType, IntegralType)]
    if not whole:
        return {}
    n_rows = min(_LOOKED_AT, max(_MANY, 10 * _LOOKED_AT // len(whole)))
    rows: Any = frame.select(*map(column, whole)).limit(n_rows).toPandas()
    values = (rows.iloc[:, i].dropna().to_numpy(dtype=float) for i in range(len(whole)))
    kinds = {name: _kind(name, each) for name, each in zip(whole, values, strict=True)}
    return {name: kind for name, kind in kinds.items() if kind}


def _kind(name: str, values: np.ndarray) -> str:
    """Return what a column of whole numbers looks like; empty for a feature like others."""
    if _ID_NAME.search(name):
        return "named like an identifier"
    n = len(values)
    if n < _FEW:
        return ""
    low, high, n_distinct = values.min(), values.max(), len(np.unique(values))
    in_order = bool((values[1:] >= values[:-1]).all() or (values[1:] <= values[:-1]).all())
    if n_distinct == n and (in_order or high - low < 10 * n or n >= _MANY):
        return "all values differ, like an identifier's"
    if _YEARS[0] <= low < high <= _YEARS[1]:
        return "like years"
    if in_order and 2 * n_distinct >= n:
        return "rises or falls from row to row, like a number of the row or a time"
    return ""
