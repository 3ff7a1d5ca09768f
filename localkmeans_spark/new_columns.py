"""The columns that ``transform`` adds: cluster, distances, second nearest cluster, margin."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def with_new_columns(
    dataset: DataFrame,
    scored: tuple[str, Column],
    names: Mapping[str, str | None],
    handling: str,
    k: int,
    is_cosine: bool,
    or_raise: Callable[[Column, Column], Column],
) -> DataFrame:
    """Add the columns that have a name.

    Parameters
    ----------
    dataset : DataFrame
    scored : (str, Column)
        A free name, and what ``predict.scores`` made: a struct if more than labels are wanted.
    names : mapping
        Parameter (``params.NEW_COLUMNS``) → name of its column, or None.
    handling : str
        ``handleInvalid``.
    k : int
    is_cosine : bool
    or_raise : callable (value, label) -> Column
        The value, or an error where the label stands for one.
    """
    name, column = scored
    is_struct = any(names[other] for other in names if other != "predictionCol")
    result = dataset.withColumn(name, column)
    found = F.col(f"{name}.label" if is_struct else name)
    label, n_labels = found, k
    if handling == "skip":
        result = result.where(found.isNotNull())
    elif handling == "keep":
        label, n_labels = F.coalesce(found, F.lit(k)), k + 1
    # Metadata as MLlib writes it: an encoder after this stage knows the number of labels.
    nominal = {"ml_attr": {"type": "nominal", "num_vals": n_labels}}
    cost, nan = F.col(f"{name}.cost"), F.lit(float("nan"))
    values = {
        "predictionCol": label,
        # What comes through pandas (PySpark before 4.1) has null for NaN.
        "distanceCol": F.coalesce(cost if is_cosine else F.sqrt(cost), nan),
        "distancesCol": F.col(f"{name}.distances"),
        "secondCol": F.col(f"{name}.second"),
        "marginCol": F.coalesce(F.col(f"{name}.margin"), nan),
    }
    added: dict[str, Column] = {}
    for parameter, own in names.items():
        if own is not None:  # each may raise: Spark computes only the columns that are asked for
            value = or_raise(values[parameter], found)
            is_label = parameter == "predictionCol"
            added[own] = value.alias("label", metadata=nominal) if is_label else value
    return result.withColumns(added).drop(name)
