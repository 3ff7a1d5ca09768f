"""Checks of the numbers and arrays that users give; NumPy alone would take text and dates, too."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from localkmeans_spark.errors import Fact, InvalidInputError, invalid

_REAL_KINDS = "fiub"


def real_array(value: Any) -> np.ndarray:
    """Return an array of floats: those given, or float64 of integers, bools, Decimals, Fractions.

    Raises
    ------
    TypeError, ValueError, OverflowError
        For text, dates, complex numbers, masked values, other objects, and ragged lists.
    """
    parts = value if isinstance(value, list | tuple) else [value]
    if any(np.ma.is_masked(item) for item in parts):
        raise ValueError("masked values")
    array = np.asarray(value)
    if array.dtype.kind == "O":
        kinds = {type(item) for item in array.flat}
        if not all(issubclass(kind, Real | Decimal | np.bool_) for kind in kinds):
            raise TypeError("not numbers")
        return array.astype(np.float64)
    check_real(array.dtype)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def check_real(dtype: Any) -> None:
    """Raise TypeError unless an array of this type holds real numbers."""
    if np.dtype(dtype).kind not in _REAL_KINDS:
        raise TypeError("not real numbers")


def check_number(owner: str, name: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise unless the value is a finite number > 0, or >= 0."""
    real = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not real or value < 0 or (value == 0 and not or_zero):
        rule = f"a finite number {'>=' if or_zero else '>'} 0"
        raise invalid(owner, name, rule, value, "Give such a number.")


def check_wholes(owner: str, least: int = 1, **values: Any) -> None:
    """Raise unless every value is a whole number >= least; NumPy's count, booleans do not."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            rule = f"a whole number >= {least}"
            raise invalid(owner, name, rule, value, "Give such a number.")


def check_counts(owner: str, counts: Any, k: int | None = None) -> np.ndarray:
    """Return rows by partition and cluster as int64 of shape (m, K), with at least one row."""
    array = _as_array(owner, "counts", counts)
    if array.ndim != 2 or k not in (None, array.shape[1]) or array.dtype.kind not in "iu":
        shape = "(partitions, clusters)" if k is None else f"(partitions, {k})"
        raise wrong_array(owner, "counts", f"whole numbers of shape {shape}",
                     f"{array.dtype} of shape {array.shape}")  # fmt: skip
    if not array.any() or array.min() < 0:
        fact = "no rows" if not array.any() else f"{array.min()}"
        raise wrong_array(owner, "counts", "whole numbers >= 0 with at least 1 row", fact)
    return array.astype(np.int64, copy=False)


def check_centers(owner: str, name: str, values: Any) -> np.ndarray:
    """Return centers as float64 of shape (K, d), finite, not empty."""
    array = _as_array(owner, name, values)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iuf":
        raise wrong_array(owner, name, "numbers of shape (clusters, dimensions)",
                     f"{array.dtype} of shape {array.shape}")  # fmt: skip
    if not np.isfinite(array).all():
        raise wrong_array(owner, name, "finite", "NaN or infinity")
    return array.astype(np.float64, copy=False)


def _as_array(owner: str, name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        raise wrong_array(owner, name, "an array of numbers", "rows of several lengths") from None


def wrong_array(owner: str, name: str, rule: str, fact: str) -> InvalidInputError:
    """Build the error for an array that breaks a rule."""
    return invalid(owner, name, rule, Fact(fact), "Give such an array or list.")
