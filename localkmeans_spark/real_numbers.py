"""What people give as numbers → floats, where NumPy alone would take text and dates, too."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

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
