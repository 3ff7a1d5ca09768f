"""How many rows to work on at a time."""

from __future__ import annotations

from collections.abc import Iterator

# One core's share of cache that a chunk of rows and its scores may fill. Measured on cores with
# 1 MiB of L2: half to twice this changes a Lloyd step by less than 5 %.
_CACHE_BYTES = 1 << 20
_MIN_ROWS, _MAX_ROWS = 256, 8192
# Cluster sums start from a (k, d) array of zeros each time, so they want longer runs of rows.
_SUM_BYTES = 4 << 20


def rows_per_chunk(n_features: int, k: int, itemsize: int) -> int:
    """Return how many rows of data and scores together fit the cache.

    Parameters
    ----------
    n_features, k : int
        Columns of the data, and of the scores.
    itemsize : int
        Bytes of one number.

    Returns
    -------
    int, from 256 to 8192 (fewer only when one row is wider than 64 KiB)
    """
    row_bytes = (n_features + k) * itemsize
    rows = min(_MAX_ROWS, max(_MIN_ROWS, _CACHE_BYTES // row_bytes))
    # Very wide rows: keep the chunk at 16 MiB at most.
    return max(1, min(rows, (16 << 20) // row_bytes + 1))


def rows_per_sum(n_features: int, k: int) -> int:
    """Return how many rows to add up at a time in float64 (at least 4 a cluster)."""
    return max(
        1, 4 * k if 32 * k * n_features < (64 << 20) else 256, _SUM_BYTES // (8 * n_features)
    )


def rows_made_dense(n_features: int) -> int:
    """Return how many sparse rows to make dense at a time: 16 MiB of float64, at least one."""
    return max(1, (16 << 20) // (8 * max(1, n_features)))


def slices(n: int, step: int) -> Iterator[slice]:
    """Yield consecutive slices of at most ``step`` that cover ``range(n)``."""
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
