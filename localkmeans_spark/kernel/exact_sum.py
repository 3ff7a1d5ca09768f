"""Sums that come out bit for bit the same in whatever order they are merged."""

from __future__ import annotations

import numpy as np


def grid_for(bound: np.ndarray) -> np.ndarray:
    """Return the power-of-two grid on which sums up to ``bound`` add exactly.

    Multiples of ``g`` below ``2**52 * g`` are float64 numbers, and so are their sums: adding them
    never rounds, hence the order of adding does not matter.

    Parameters
    ----------
    bound : ndarray of any shape, float64, >= 0
        Upper bound of every partial sum's absolute value.

    Returns
    -------
    ndarray of the same shape, float64
        Grid spacing; 1 where the bound is 0.
    """
    _, exponents = np.frexp(bound)
    # Spacings below the smallest normal number would make the rounding itself inexact.
    spacing = np.ldexp(1.0, np.maximum(exponents - 51, -1021))
    return np.where(bound > 0, spacing, 1.0)


def to_grid(values: np.ndarray, grid: np.ndarray | float) -> np.ndarray:
    """Round values to the nearest multiple of the grid (ties to even)."""
    return np.rint(values / grid) * grid
