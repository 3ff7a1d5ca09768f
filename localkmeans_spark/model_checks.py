"""What a model checks of the numbers that it is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from localkmeans_spark.data.checks import VALUE_RANGE
from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid
from localkmeans_spark.real_numbers import real_array
from localkmeans_spark.scoring import ModelFrame

_LARGEST = VALUE_RANGE["float64"][1]


def unusable_rows(frame: ModelFrame, n_rows: int) -> InvalidInputError:
    """Build the error for rows of finite numbers that have no label all the same."""
    rows = count_of(n_rows, "row")
    if not frame.is_cosine:
        return invalid(
            "LocalKMeansModel", "value", f"free of {frame.too_far()}", Fact(f"{rows} with such"),
            "Rescale the features before the fit.",
        )  # fmt: skip
    return invalid(
        "LocalKMeansModel", "value", "different from 0 with distanceMeasure='cosine'",
        Fact(f"{rows} of zeros"), "A row of zeros has no direction.",
    )  # fmt: skip


def checked_numbers(
    subject: str, value: Any, rule: str, shape: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return a float64 copy of finite numbers of the given shape, or of any (k, n_features)."""
    try:
        numbers = real_array(value).astype(np.float64)
        found = f"an array of shape {numbers.shape}"
        if not np.isfinite(numbers).all():
            found += " with NaN or infinite numbers"
        elif np.abs(numbers).max(initial=0.0) > _LARGEST:
            found += f" with numbers beyond {_LARGEST:g}, whose squares do not fit"
        elif numbers.shape == shape or (shape is None and numbers.ndim == 2 and numbers.size):
            return numbers + 0.0  # -0.0 becomes 0.0
    except (TypeError, ValueError, OverflowError):
        found = f"a value of type {type(value).__name__}"
    fix = "Give one row of numbers for each cluster." if shape is None else "Leave it out."
    raise invalid("LocalKMeansModel", subject, rule, Fact(found), fix)
