"""Kinds of parameter values: what turns a value given into a clean one, or refuses it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from localkmeans_spark.real_numbers import real_array


def as_integer(value: Any) -> int:
    """Return a whole number, which may come as a float."""
    if isinstance(value, bool | np.bool_):
        raise TypeError
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    return operator.index(value)


def as_steps(value: Any) -> int | str:
    """Return a whole number or ``"auto"``."""
    return value if isinstance(value, str) and value == "auto" else as_integer(value)


def as_number(value: Any) -> float:
    """Return a real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise TypeError
    return float(value)


def as_flag(value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def as_text(value: Any) -> str:
    """Return text."""
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def as_names(value: Any) -> list[str]:
    """Return a list of names."""
    if hasattr(value, "tolist"):  # of NumPy, or the columns of a pandas DataFrame
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise TypeError
    return [as_text(name) for name in value]


class CenterRows(list[list[float]]):
    """Centers as rows of numbers: unlike an array, pyspark.ml can write them into its JSON."""

    def __repr__(self) -> str:
        return f"an array of shape ({len(self)}, {len(self[0])})"


def as_centers(value: Any) -> CenterRows:
    """Return centers as rows of numbers; takes arrays and models that have centers."""
    if isinstance(value, CenterRows):
        return value
    if callable(getattr(value, "clusterCenters", None)):  # this library's and MLlib's models
        value = value.clusterCenters()
    elif hasattr(value, "cluster_centers_"):  # scikit-learn's
        value = value.cluster_centers_
    centers = real_array(value).astype(np.float64)
    if centers.ndim != 2 or not centers.size or not np.isfinite(centers).all():
        raise ValueError
    return CenterRows(centers.tolist())


def one_of(*choices: str) -> Callable[[Any], bool]:
    """Accept one of these words."""
    return lambda value: value in choices


def anything(value: Any) -> bool:
    """Accept every value (of the right type)."""
    return True


@dataclass(frozen=True)
class Parameter:
    """One row of the table.

    Attributes
    ----------
    default : object
        None when the parameter starts out unset.
    rule : str
        What must hold, continuing "must be".
    convert : callable
        Returns the clean value; raises TypeError, ValueError or OverflowError for a wrong type.
    holds : callable
        Whether a clean value is in range.
    doc : str
        What the parameter does.
    fix : str
        What to do about a wrong value.
    owner : str
        Who has it: ``"fit"`` is the estimator's alone; the model keeps the value of a ``"both"``;
        that of a ``"rows"`` can be set on the model, too, since transform reads rows by it.
    """

    default: Any
    rule: str
    convert: Callable[[Any], Any]
    holds: Callable[[Any], bool]
    doc: str
    fix: str
    owner: str = "both"

    @property
    def help(self) -> str:
        """Meaning and range, as ``explainParams`` shows them."""
        return f"{self.doc} Must be {self.rule}."
