"""Means, standard errors and differences from the tables of the paper's experiments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

Found = dict[str, dict[str, pd.DataFrame]]
"""Tables by figure, then by name."""


class Mean(NamedTuple):
    """A mean over trials and its standard error."""

    mean: float
    se: float

    def __str__(self) -> str:
        return f"{_four_digits(self.mean)} ± {_four_digits(self.se)}"


def _four_digits(value: float) -> str:
    """Format alike what is alike up to rounding of float64 and of the CSV files."""
    text = f"{round(value, 9):.4f}"
    return "0.0000" if text == "-0.0000" else text


def mean_of(values: np.ndarray) -> Mean:
    """Return the mean and its standard error."""
    n = len(values)
    return Mean(float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0)


def errors(
    found: Found, figure: str, method: str, t: int | None = None, line: str = "",
    column: str = "A",
) -> np.ndarray:  # fmt: skip
    """Return A of every trial at step t (None: the last), in the order of the trials."""
    table = found[figure]["trials"]
    mine = table[(table["method"] == method) & (table["line"].fillna("") == line)]
    step = mine["t"].max() if t is None else t
    return mine[mine["t"] == step].sort_values("trial")[column].to_numpy()


def paired(left: np.ndarray, right: np.ndarray) -> Mean:
    """Return the mean difference over trials that share data and initial centers."""
    return mean_of(left - right)


def above(difference: Mean) -> bool:
    """Whether a difference is above 0 by two standard errors."""
    return difference.mean > 2.0 * difference.se


def same(difference: Mean, margin: float = 0.005) -> bool:
    """Whether it is within two standard errors, or smaller than half a point in a hundred rows."""
    return abs(difference.mean) <= max(2.0 * difference.se, margin)


def apart(left: np.ndarray, right: np.ndarray) -> Mean:
    """Return the difference of two means over independent trials."""
    a, b = mean_of(left), mean_of(right)
    return Mean(a.mean - b.mean, float(np.hypot(a.se, b.se)))
