"""What most rows are like, whatever values a few of them hold: medians of some rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from localkmeans_spark.kernel.lloyd import Block

# Rows looked at: so many, or fewer if they have more numbers than that together.
_ROWS, _FEWEST, _NUMBERS = 256, 17, 1 << 20
# The share of rows within the scale; more where so many are all alike.
_SHARES = (0.5, 0.75, 0.9)


class Typical(NamedTuple):
    """Where most rows lie, and how far apart.

    Attributes
    ----------
    middle : ndarray of shape (n_features,), float64
        Medians of the columns.
    usual : ndarray of shape (n_features,), float64
        Three quarters of the rows are at most this far from it, column by column.
    scale : float
        Half of the rows are at most this far from it; 0 if nine in ten rows are the same.
    """

    middle: np.ndarray
    usual: np.ndarray
    scale: float


def typical(blocks: Sequence[Block]) -> Typical:
    """Look at some of a partition's rows, spread over all of them.

    Parameters
    ----------
    blocks : sequence of Block
        With at least one row.

    Notes
    -----
    At most 256 rows or 8 MB of them made dense, at least 17 rows. Runs on: executor.
    """
    n = sum(len(block.x) for block in blocks)
    wanted = min(n, rows_looked_at(blocks[0].x.shape[1]))
    places = np.unique(np.linspace(0, n - 1, wanted).astype(np.int64))
    starts = np.cumsum([0] + [len(block.x) for block in blocks])
    some = [
        block.x[places[(places >= start) & (places < start + len(block.x))] - start]
        for block, start in zip(blocks, starts, strict=False)
    ]
    x = np.concatenate(some).astype(np.float64)
    middle, apart = _from_middle(x)
    sq = np.einsum("nd,nd->n", apart, apart)
    apart.sort(axis=0)
    return Typical(middle, apart[3 * len(x) // 4], _scale(sq))


def rows_looked_at(n_features: int) -> int:
    """Say how many rows show what a partition's rows are like."""
    return max(_FEWEST, min(_ROWS, _NUMBERS // max(1, n_features)))


def _from_middle(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = np.sort(x, axis=0)[len(x) // 2]
    return middle, np.abs(x - middle)


@np.errstate(over="ignore", invalid="ignore")
def origin_of(x: np.ndarray) -> np.ndarray:
    """Choose the frame of a partition from its first rows.

    Zero for a column whose values surround or come near zero; about the median for a column that
    lies far from zero compared with its spread, where products of raw values would lose all
    digits (1e6 + noise in float32, 1e9 + noise in float64). The median is rounded to a power of
    two several times the spread, so that partitions with alike rows come to the same frame. A few
    values far from all others do not count for the spread.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), n >= 1, finite

    Returns
    -------
    ndarray of shape (n_features,), float64
    """
    middle, apart = _from_middle(x.astype(np.float64))
    apart.sort(axis=0)
    usual = apart[3 * len(x) // 4]
    spread = np.where(usual > 0, 3.0 * usual, apart[-1])
    cell = np.ldexp(1.0, np.frexp(spread)[1] + 3)
    rounded = np.where(spread > 0, np.rint(middle / cell) * cell, middle)
    return np.where(np.abs(middle) > 16.0 * spread, rounded, 0.0)


def _scale(sq: np.ndarray) -> float:
    sq = np.sort(sq[np.isfinite(sq)])  # rows too large for the dtype: the checks will name them
    if not len(sq):
        return 0.0
    found = sq[[int(share * len(sq)) for share in _SHARES]]
    return float(np.sqrt(found[found > 0][0])) if found.any() else 0.0
