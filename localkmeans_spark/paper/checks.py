"""Checks of the numbers that the paper's experiments are described by."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from localkmeans_spark.errors import Fact, InvalidInputError, invalid


def check_whole(owner: str, name: str, value: Any, least: int = 1) -> None:
    """Raise unless the value is a whole number >= least; NumPy's count, booleans do not."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise invalid(owner, name, f"a whole number >= {least}", value, "Give such a number.")


def check_wholes(owner: str, **values: Any) -> None:
    """Raise unless every value is a whole number >= 1."""
    for name, value in values.items():
        check_whole(owner, name, value)


def check_positive(owner: str, name: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise unless the value is a finite number > 0, or >= 0."""
    real = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not real or value < 0 or (value == 0 and not or_zero):
        rule = "a finite number >= 0" if or_zero else "a finite number > 0"
        raise invalid(owner, name, rule, value, "Give such a number.")


def whole_numbers(owner: str, name: str, values: Any, n_axes: int) -> np.ndarray:
    """Return counts of rows as an array of int64: whole, >= 0, not empty, of so many axes."""
    array = _array(owner, name, values)
    if array.ndim != n_axes or array.size == 0:
        shape = "(clusters,)" if n_axes == 1 else "(machines, clusters)"
        raise _wrong(owner, name, f"of shape {shape}, not empty", f"shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise _wrong(owner, name, "whole numbers", f"dtype {array.dtype}")
    if (array < 0).any():
        raise _wrong(owner, name, "whole numbers >= 0", f"{array.min()}")
    return array.astype(np.int64, copy=False)


def center_rows(owner: str, name: str, values: Any) -> np.ndarray:
    """Return centers as an array of float64 of shape (K, d), finite, not empty."""
    array = _array(owner, name, values)
    if array.ndim != 2 or array.size == 0:
        raise _wrong(owner, name, "of shape (clusters, dimensions)", f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise _wrong(owner, name, "real numbers", f"dtype {array.dtype}")
    if not np.isfinite(array).all():
        raise _wrong(owner, name, "finite", "NaN or infinity")
    return array.astype(np.float64, copy=False)


def share_numbers(owner: str, name: str, values: Any, k: int) -> np.ndarray:
    """Return k shares as an array of float64: >= 0, with the sum 1 up to rounding."""
    array = _array(owner, name, values)
    if array.shape != (k,) or array.dtype.kind not in "iuf":
        raise _wrong(owner, name, f"{k} numbers", f"shape {array.shape}, dtype {array.dtype}")
    array = array.astype(np.float64)
    if not (array >= 0).all() or abs(array.sum() - 1.0) > 1e-9:
        raise _wrong(owner, name, "numbers >= 0 whose sum is 1", f"{array.tolist()}")
    return array


def _array(owner: str, name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        raise _wrong(owner, name, "an array of numbers", "rows of several lengths") from None


def _wrong(owner: str, name: str, rule: str, fact: str) -> InvalidInputError:
    return invalid(owner, name, rule, Fact(fact), "Give such an array or list.")
