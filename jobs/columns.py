"""Which column of a table is what: features, weight, label, ids."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import NumericType

from jobs.column_kinds import can_hold_features, check_kinds, column, no_rows
from jobs.options import InputOptions
from localkmeans_spark.errors import Fact, invalid

ADDED = ("prediction", "distance")
"""Columns that the jobs add to the id columns."""


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


def fitted_columns(table: Table) -> DataFrame:
    """Return the columns that a fit reads.

    The others are left out, because a fit refuses a table with columns named like those that the
    model adds.
    """
    features = table.feature_cols or (table.features_col,)
    used = dict.fromkeys(name for name in (*features, table.weight_col) if name is not None)
    return table.frame.select(*map(column, used))


def assign_roles(
    owner: str, frame: DataFrame, options: InputOptions, label_default: str | None = None
) -> Table:
    """Decide which column is what.

    Features are what the options name; else the column ``features`` if it can hold them; else
    all numeric columns but the label, the weight, the id columns and one called ``id``.

    Id columns are what the options name, else all that are neither features nor weight. When that
    leaves none, or only a label, every input column is kept: a row's own values are then the only
    thing that identifies it. (A row number would not: Spark promises no order of rows, so a number
    made up here could not be matched with the input again.)
    """
    label = options.label_col or label_default
    weight = options.weight_col
    if not frame.columns:
        fact = Fact("0 rows without a column")
        raise invalid(owner, "the input", "a table with at least 1 row", fact, "Check the file.")
    _check_names(owner, frame, options)
    check_kinds(owner, frame, options)
    notes: list[str] = []
    features_col, feature_cols = options.features_col, options.feature_cols
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
            rule = f"different from the columns the job adds ({' and '.join(ADDED)})"
            raise invalid(owner, "--id-cols", rule, name, "Leave it out.")
        notes.append(f"column {name} of the input is not copied: the output has its own")
    ids = tuple(name for name in ids if not _is_added(name))
    return Table(frame, features_col, feature_cols, weight, label, ids, tuple(notes))


def _is_added(name: str) -> bool:
    """Say whether the output has its own column of this name; Spark takes no heed of case."""
    return name.lower() in ADDED


def _check_names(owner: str, frame: DataFrame, options: InputOptions) -> None:
    """Refuse names that are not columns, and columns asked to be two things at once."""
    features = {options.features_col, *options.feature_cols}
    for flag, names in (
        ("--features-col", [options.features_col]),
        ("--feature-cols", options.feature_cols),
        ("--weight-col", [options.weight_col]),
        ("--label-col", [options.label_col]),
        ("--id-cols", options.id_cols),
    ):
        for name in filter(None, names):
            _check_present(owner, flag, name, frame.columns)
            if name in features and flag in ("--weight-col", "--label-col"):
                raise invalid(owner, flag, "no feature", name, "Leave it out of the features.")


def _check_present(owner: str, flag: str, name: str, present: list[str]) -> None:
    if name not in present:
        by_lower = {each.lower(): each for each in present}
        close = difflib.get_close_matches(name.lower(), by_lower, n=1)
        hint = f"Did you mean {by_lower[close[0]]!r}? " if close else ""
        listed = ", ".join(present)
        raise invalid(owner, flag, "a column of the input", name, f"{hint}It has: {listed}.")


def _features_column(frame: DataFrame) -> str | None:
    for field in frame.schema:
        if field.name == "features" and can_hold_features(field.dataType):
            return field.name
    return None


def _numeric_columns(
    owner: str, frame: DataFrame, taken: set[str | None], notes: list[str]
) -> tuple[str, ...]:
    chosen: list[str] = []
    left: list[str] = []
    for field in frame.schema:
        if field.name in taken or field.name.lower() == "id":
            continue
        numeric = isinstance(field.dataType, NumericType)
        (chosen if numeric else left).append(field.name)
    if not chosen:
        if frame.isEmpty():
            raise no_rows(owner, frame)
        listed = ", ".join(
            f"{field.name} ({field.dataType.simpleString()})" for field in frame.schema
        )
        raise invalid(
            owner, "the input", "a table with numeric columns or a column features (vector, array)",
            Fact(listed or "no columns"), "Name them with --feature-cols or --features-col.",
        )  # fmt: skip
    notes.append(f"features: {', '.join(chosen)}")
    if left:
        notes.append(f"not numeric, so not features: {', '.join(left)}")
    return tuple(chosen)
