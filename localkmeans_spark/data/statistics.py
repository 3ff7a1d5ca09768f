"""What the first pass says of a partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Statistics:
    """What the first pass says of one partition (sums relative to ``origin``).

    ``first_rows`` holds one row drawn by weight for every seed asked for; ``checksum`` is that of
    its blocks; ``other_length`` is the length of one of the ``wrong_length`` rows; ``middle``,
    ``usual`` and ``scale`` are those of :class:`~kernel.typical.Typical`.
    """

    partition: int
    n_points: int
    n_features: int
    sum_weights: float
    sums: np.ndarray
    sum_sq: float
    largest: np.ndarray
    origin: np.ndarray
    middle: np.ndarray
    usual: np.ndarray
    scale: float
    invalid_features: int
    invalid_weights: int
    wrong_length: int
    first_rows: dict[int, np.ndarray]
    zero_rows: int = 0
    vanished_rows: int = 0
    least_weight: float = 1.0
    checksum: int = 0
    other_length: int = 0


def concatenate(left: list, right: list) -> list:
    """Merge lists of per-partition findings."""
    return left + right
