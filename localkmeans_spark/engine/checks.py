"""What the first pass found, held against the rules, before any long work."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.engine.aggregate import Statistics
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.errors import Fact, invalid

# Squares and products must stay inside the dtype: largest magnitude below, smallest above.
_RANGE = {"float32": (1e-15, 1e16), "float64": (1e-140, 1e140)}


def check_statistics(found: list[Statistics], config: FitConfig) -> None:
    """Raise the first broken rule, with its count.

    Raises
    ------
    InvalidInputError
    """
    owner, data = config.owner, config.data
    features = (
        f"columns {', '.join(data.features_cols)}"
        if data.features_cols
        else f"column '{data.features_col}'"
    )
    widths = sorted({item.n_features for item in found if item.n_points})
    wrong_length = sum(item.wrong_length for item in found)
    if wrong_length or len(widths) > 1:
        what = f"{widths[0]} to {widths[-1]} features" if len(widths) > 1 else (
            f"{wrong_length} rows with another number than {widths[0] if widths else 'the first'}"
        )
        raise invalid(
            owner, features, "of one length in all rows", Fact(what),
            "Make every row a vector of the same length.",
        )  # fmt: skip
    bad_weights = sum(item.invalid_weights for item in found)
    if bad_weights:
        raise invalid(
            owner, f"column '{data.weight_col}' (weightCol)", "finite and >= 0 in every row",
            Fact(f"{bad_weights} rows with a negative, NaN, infinite or null weight"),
            "Filter or fill these rows; a weight of 0 leaves a row out.",
        )  # fmt: skip
    bad_rows = sum(item.invalid_features for item in found)
    n_points = sum(item.n_points for item in found)
    if bad_rows and data.handle_invalid == "error":
        raise invalid(
            owner, features, "finite numbers in every row",
            Fact(f"{bad_rows} of {bad_rows + n_points} rows with null, NaN or infinite values"),
            "Drop or fill them, or set handleInvalid='skip'.",
        )  # fmt: skip
    if n_points == 0:
        left_out = f" ({bad_rows} with null, NaN or infinite values left out)" if bad_rows else ""
        why = " of weight > 0" if data.weight_col is not None else ""
        raise invalid(
            owner, "the data", f"at least 1 row{why}", Fact(f"0 rows{left_out}"),
            "Check the filter or the path the DataFrame comes from.",
        )  # fmt: skip
    if widths == [0]:
        raise invalid(
            owner, features, "at least 1 feature long", Fact("0 features"), "Add features."
        )
    _check_range(found, config, features)


def _check_range(found: list[Statistics], config: FitConfig, features: str) -> None:
    smallest, largest = _RANGE[config.data.dtype]
    found = [item for item in found if item.n_points]
    size = 0.0
    for item in found:
        shift = np.abs(item.origin - found[0].origin)
        size = max(size, float(item.largest.max()), float(shift.max()))
    if size == 0 or smallest <= size <= largest:
        return
    fix = "Rescale the features." if config.data.dtype == "float64" else (
        "Set dtype='float64', or rescale the features."
    )
    raise invalid(
        config.owner, features,
        f"between {smallest:g} and {largest:g} in size for dtype='{config.data.dtype}'",
        Fact(f"values up to {size:g}"), fix,
    )  # fmt: skip
