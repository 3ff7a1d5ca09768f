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
        Grid spacing: ``2**(e - 51)`` for a bound of at least ``2**(e - 1)`` and below ``2**e``, but
        not below ``2**-1021``; 1 where the bound is 0.
    """
    _, exponents = np.frexp(bound)
    # Spacings below the smallest normal number would make the rounding itself inexact.
    spacing = np.ldexp(1.0, np.maximum(exponents - 51, -1021))
    return np.where(bound > 0, spacing, 1.0)


def grids_for(bound: np.ndarray, n_summands: int, n_parts: int) -> np.ndarray:
    """Return the grids of sums that are kept in several parts, the coarse one first.

    Parameters
    ----------
    bound : ndarray of any shape, float64, >= 0
        As for :func:`grid_for`.
    n_summands : int
        Most values that are ever added up.
    n_parts : int

    Returns
    -------
    ndarray of shape (n_parts, *bound.shape), float64
    """
    grids = [grid_for(bound)]
    for _ in range(1, n_parts):
        # What rounding left over is at most half a spacing, a summand.
        grids.append(grid_for(0.5 * n_summands * grids[-1]))
    return np.stack(grids)


def on_grids(values: np.ndarray, grids: np.ndarray) -> np.ndarray:
    """Split values into multiples of every grid; what the last one leaves is lost.

    Parameters
    ----------
    values : ndarray, float64
    grids : ndarray of shape (n_parts, ...), float64
        From :func:`grids_for`; each broadcasts against the values.

    Returns
    -------
    ndarray of shape (n_parts, *values.shape), float64
    """
    parts = []
    for grid in grids:
        parts.append(to_grid(values, grid))
        values = values - parts[-1]  # exact: both are multiples of the value's last bit
    return np.stack(parts)


def to_grid(values: np.ndarray, grid: np.ndarray | float) -> np.ndarray:
    """Round values to the nearest multiple of the grid (ties to even)."""
    return np.rint(values / grid) * grid
