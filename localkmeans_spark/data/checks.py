"""What the first pass found, held against the rules, before any long work."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

import numpy as np

from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.block_format import LeftOut
from localkmeans_spark.data.partition import Statistics
from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid

# Squares and products must stay inside the dtype: smallest and largest magnitude of the data.
VALUE_RANGE = {"float32": (1e-15, 1e16), "float64": (1e-140, 1e140)}

# Outside, sums of weighted rows come near the ends of the numbers there are.
_WEIGHT_RANGE = (1e-250, 1e250)

# The same for sums of weights times squares.
_LEAST_MASS = 1e-300

_ONE_LENGTH = "of one length in all rows"
_MAKE_ONE_LENGTH = "Make every row a vector of the same length."


def check_statistics(found: list[Statistics], config: FitConfig) -> LeftOut:
    """Raise the first broken rule, with its count; else return what was left out."""
    left_out = reduce(LeftOut.plus, [item.left_out for item in found], LeftOut())
    _check_lengths(found, config)
    _check_weights(left_out.invalid_weights, found, config)
    _check_rows(left_out, found, config)
    with_rows = [item for item in found if item.n_points]
    if with_rows[0].n_features == 0:
        rule, fix = "at least 1 feature long", "Add features."
        raise invalid(OWNER, _features(config), rule, Fact("0 features"), fix)
    _check_range(left_out.vanished_rows, with_rows, config)
    return left_out


def _features(config: FitConfig) -> str:
    names = ", ".join(config.data.features_cols)
    return f"columns {names}" if names else f"column '{config.data.features_col}'"


def several_widths(widths: Collection[int], config: FitConfig) -> InvalidInputError:
    """Build the error for rows of several widths; those of the first rows alone are known."""
    return invalid(
        OWNER, _features(config), _ONE_LENGTH,
        Fact(f"rows of {min(widths):,} and of {max(widths):,} features"), _MAKE_ONE_LENGTH,
    )  # fmt: skip


def _check_lengths(found: list[Statistics], config: FitConfig) -> None:
    odd = [item for item in found if item.left_out.wrong_length]
    if not odd:
        return
    # The length that rows were held against is the partition's first row's.
    usual, other = odd[0].n_features, odd[0].left_out.other_length
    rows = count_of(sum(item.left_out.wrong_length for item in odd), "row")
    fact = f"{rows} of another length ({other:,} where others have {usual:,} features)"
    if other == usual:
        fact = f"{rows} with indices outside their {usual:,} features"
    raise invalid(OWNER, _features(config), _ONE_LENGTH, Fact(fact), _MAKE_ONE_LENGTH)


def bad_weights(owner: str, subject: str, rows: str) -> InvalidInputError:
    """Build the error for weights that are none."""
    return invalid(
        owner,
        subject,
        "finite and >= 0 in every row",
        Fact(f"{rows} with a negative, NaN, infinite or null weight"),
        "Filter or fill these rows; a weight of 0 leaves a row out.",
    )


def _check_weights(count: int, found: list[Statistics], config: FitConfig) -> None:
    subject = f"column '{config.data.weight_col}' (weightCol)"
    if count:
        raise bad_weights(OWNER, subject, count_of(count, "row"))
    total = sum(item.sum_weights for item in found)
    least, most = _WEIGHT_RANGE
    if total and not least <= total <= most:
        raise invalid(
            OWNER,
            subject,
            f"of a sum from {least:g} to {most:g}",
            Fact(f"weights that add up to {total:g}"),
            f"{'Multiply' if total < least else 'Divide'} all weights by a constant: only their "
            "ratios matter to the centers.",
        )


def _check_rows(left_out: LeftOut, found: list[Statistics], config: FitConfig) -> None:
    n_bad, n_zero = left_out.invalid_features, left_out.zero_rows
    n_points = sum(item.n_points for item in found)
    seen = count_of(n_bad + n_zero + n_points, "row")
    if n_bad and config.data.handle_invalid == "error":
        raise invalid(
            OWNER,
            _features(config),
            "finite numbers in every row",
            Fact(f"{n_bad:,} of {seen} with null, NaN or infinite values"),
            "Drop or fill them, or set handleInvalid='skip'.",
        )
    if n_zero and config.data.handle_invalid == "error":
        raise invalid(
            OWNER,
            _features(config),
            "different from 0 in every row (distanceMeasure='cosine' compares directions)",
            Fact(f"{n_zero:,} of {seen} of zeros"),
            "Drop them, or set handleInvalid='skip'.",
        )
    if n_points == 0:
        weighted = " of weight > 0" if config.data.weight_col is not None else ""
        without = f" ({n_bad} with null, NaN or infinite values left out)" if n_bad else ""
        without += f" ({n_zero} of zeros left out)" if n_zero else ""
        raise invalid(
            OWNER,
            "the data",
            f"at least 1 row{weighted}",
            Fact(f"0 rows{without}"),
            "Check the filter or the path the DataFrame comes from.",
        )


def _check_range(vanished: int, found: list[Statistics], config: FitConfig) -> None:
    dtype = config.data.dtype
    smallest, largest = VALUE_RANGE[dtype]
    size = 0.0
    for item in found:
        shift = np.abs(item.origin - found[0].origin)
        size = max(size, float(item.largest.max()), float(shift.max()))
    mass = sum(item.sum_weights for item in found) * size * size
    if config.data.weight_col is not None and size and not _LEAST_MASS < mass < 1 / _LEAST_MASS:
        raise invalid(
            OWNER,
            _features(config),
            f"small enough in weight times square (column '{config.data.weight_col}', weightCol)",
            Fact(f"a sum of about {mass:g}"),
            "Multiply or divide all weights by a constant: only their ratios matter.",
        )
    if smallest <= size <= largest or (size == 0 and not vanished):
        return
    # Rows are kept relative to an origin, so sizes are, too; the user never saw those.
    moved = any(item.origin.any() for item in found)
    what = "distances from the middle of a column" if moved else "values"
    if size == 0:
        fact = f"values so small that {dtype} makes them 0 in {count_of(vanished, 'row')}"
    elif np.isfinite(size):
        fact = f"{what} up to {size:g}"
    else:
        fact = f"values too large for {dtype}"
    raise invalid(
        OWNER,
        _features(config),
        f"between {smallest:g} and {largest:g} in size for dtype='{dtype}'",
        Fact(fact),
        "Rescale the features."
        if dtype == "float64"
        else "Set dtype='float64', or rescale the features.",
    )
