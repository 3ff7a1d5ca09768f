"""Rows against centers: one matrix product a chunk, or a k-d tree; never anything of size n x k.

Rows with few features are compared with one row of scores a center, not a row: NumPy's argmax along
short rows costs 30 ns a row and more, several times the product of 8 to 32 features. Whole vectors
of scores, one a center, are compared at memory speed instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from localkmeans_spark.kernel.chunks import rows_per_chunk, slices
from localkmeans_spark.kernel.differences import decide, score_rounding, sq_gaps

# Products with the rows transposed take longer; up to here the comparison makes up for it.
_MAX_FEATURES, _MAX_CENTERS = 32, 64
# From so many centers a feature on, and up to so many features, a k-d tree takes less time.
_TREE_CENTERS, _TREE_FEATURES = 500, 6
# Products of float32 are off by up to eps times the squared norm, which moves the border between
# two clusters by a tenth of their gap if that, squared, is five times as much. (Groups of spread 1,
# 3 apart: at 7e3 from 0 the cost was 0.0 to 0.1 % too high, at 1e4 0.7 to 8 %.) Looked for up to so
# many centers: that takes a hundredth of the time of a step.
_ROUGH_GAP, MOST_LOOKED_AT = 5.0, 512


def tree_of(centers: np.ndarray) -> Any:
    """Return a k-d tree of centers, or None where products with all of them take less time.

    Of 10,000 centers a row finds the nearest 20, 9, 8, 6 and 4 times as fast with 1, 2, 3, 4 and 6
    features; of 500 a feature 1.5 times.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64
    """
    k, n_features = centers.shape
    if n_features > _TREE_FEATURES or k < _TREE_CENTERS * n_features:
        return None
    from scipy.spatial import cKDTree  # 0.15 s to import

    return cKDTree(centers)


def too_close(centers: np.ndarray, dtype: np.dtype | str) -> np.ndarray:
    """Say which centers lie too close to another, and too far from 0, for products of a dtype."""
    if len(centers) < 2:
        return np.zeros(len(centers), dtype=bool)
    least = sq_gaps(centers)  # 0 of equal centers
    rough = _ROUGH_GAP * float(np.finfo(dtype).eps) * np.einsum("kd,kd->k", centers, centers)
    return (least > 0) & (least < rough)


def are_mixed_up(centers: np.ndarray, dtype: np.dtype) -> bool:
    """Whether products are to be made in float64, for centers too close for float32."""
    if dtype == np.float64 or len(centers) > MOST_LOOKED_AT:
        return False
    return bool(too_close(centers, dtype).any())


def is_narrow(n_features: int, k: int) -> bool:
    """Whether scores are to be kept one row a center."""
    return n_features <= _MAX_FEATURES and k <= _MAX_CENTERS


def highest(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each column the row of its highest score, and that score.

    Parameters
    ----------
    scores : ndarray of shape (k, n), float32 or float64; k <= 64

    Returns
    -------
    labels : ndarray of shape (n,), int32
        Ties go to the lowest row; k - 1 where a score is NaN.
    best : ndarray of shape (n,), dtype of ``scores``
    """
    k = len(scores)
    best = scores.max(axis=0)
    # The row counted from the end, so that the largest number is the first row; 0 for none.
    codes = np.arange(k, 0, -1, dtype=np.uint8)
    found = (scores == best).view(np.uint8)
    found *= codes[:, None]
    labels = k - found.max(axis=0).astype(np.int32)
    return np.minimum(labels, k - 1, out=labels), best


class Two(NamedTuple):
    """Labels and scores of the two nearest centers of some rows; scores as products are made."""

    labels: np.ndarray
    second_labels: np.ndarray
    best: np.ndarray
    second: np.ndarray


class Scorer:
    """Centers made ready for products with many blocks of rows.

    The score ``x.c - ||c||**2 / 2`` is highest at the nearest center. Ties, and differences below
    the rounding of x's dtype, go to the lowest index that rounds highest; to any in a k-d tree.
    Where centers lie too close together, and too far from 0, for products of float32, they are made
    in float64, which takes twice as long.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64
        In the frame of the rows.

    Notes
    -----
    Runs on: executor.
    """

    def __init__(self, centers: np.ndarray) -> None:
        self._centers = centers
        self._half_sq_norms = 0.5 * np.einsum("kd,kd->k", centers, centers)
        self.largest_norm = float(np.sqrt(2.0 * self._half_sq_norms.max()))
        self._ready: dict[np.dtype, tuple[np.ndarray, np.ndarray]] = {}
        self._buffer = np.empty(0)
        self._is_rough: bool | None = None
        self._tree = tree_of(centers)

    @property
    def has_tree(self) -> bool:
        """Whether :meth:`nearest` needs no products."""
        return self._tree is not None

    def nearest(self, x: np.ndarray, labels: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Write the index of each row's nearest center into ``labels``.

        Parameters
        ----------
        x : ndarray of shape (n, n_features), float32 or float64
        labels : ndarray of shape (n,) or as long as ``rows``, int32
            Written.
        rows : ndarray of int, or None
            The rows of ``x`` to look at; None for all.
        """
        if len(self._centers) == 1:
            labels[:] = 0
            return
        if (tree := self._tree) is not None:
            found = tree.query(x if rows is None else x[rows])[1]
            np.minimum(found, len(self._centers) - 1, out=labels)  # none: distances overflowed
            return
        if is_narrow(x.shape[1], len(self._centers)):
            for some, scores in self._scores(x, rows, by_center=True):
                labels[some], _ = highest(scores)
            return
        for some, scores in self._scores(x, rows):
            labels[some] = scores.argmax(axis=1)

    def nearest_two(
        self, x: np.ndarray, rows: np.ndarray | None = None
    ) -> Iterator[tuple[slice, Two]]:
        """Yield, chunk by chunk, nearest centers with the two highest scores; k >= 2.

        The slices count from the start of ``x``, or of ``rows`` if given.
        """
        k = len(self._centers)
        for some, scores in self._scores(x, rows):
            flat = scores.reshape(-1)
            starts = np.arange(0, flat.size, k)
            labels = scores.argmax(axis=1)
            at = starts + labels
            best = flat[at]
            flat[at] = -np.inf
            second_labels = scores.argmax(axis=1)
            yield some, Two(labels, second_labels, best, flat[second_labels + starts])

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Return each row's nearest center, free of rounding: that of float64 differences.

        Rows whose two best scores are within rounding are decided by the differences.

        Parameters
        ----------
        x : ndarray of shape (n, n_features), float32 or float64

        Returns
        -------
        ndarray of shape (n,), int32
            Ties go to the lowest index.
        """
        labels = np.zeros(len(x), dtype=np.int32)
        if len(self._centers) == 1:
            return labels
        rows = None
        if (tree := self._tree) is not None:
            distances, found = tree.query(x, k=2)
            labels[:] = found[:, 0]
            # Trees round by far less. Not >=: distances that overflowed are close, too.
            rows = np.flatnonzero(~(distances[:, 0] < (1.0 - 1e-12) * distances[:, 1]))
        largest = self.largest_norm
        dtype = self._dtype_for(x)
        unit = score_rounding(x.shape[1], dtype) * largest
        transposed, half_sq_norms = self._as(dtype)
        for some, nearest, best, second in self._two_highest(x, rows):
            own = some if rows is None else rows[some]
            part = x[own]
            norms = np.sqrt(np.einsum("nd,nd->n", part, part))
            least = best - unit * (norms + largest)
            # Not >=: a row whose scores overflowed to NaN must be settled, too.
            several = np.flatnonzero(~(second < least))
            if len(several):
                part = part[several].astype(dtype, copy=False)
                close = ~(part @ transposed - half_sq_norms < least[several, None])
                few = close.argmax(axis=1)
                decide(part, self._centers, close, few)
                nearest[several] = few
            labels[own] = nearest
        return labels

    def _two_highest(
        self, x: np.ndarray, rows: np.ndarray | None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield labels with the two highest scores; k >= 2."""
        if not is_narrow(x.shape[1], len(self._centers)):
            for some, two in self.nearest_two(x, rows):
                yield some, two.labels, two.best, two.second
            return
        for some, scores in self._scores(x, rows, by_center=True):
            labels, best = highest(scores)
            scores[labels, np.arange(len(best))] = -np.inf
            yield some, labels, best, scores.max(axis=0)

    def _scores(
        self, x: np.ndarray, rows: np.ndarray | None, by_center: bool = False
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield scores chunk by chunk, of shape (n, k), or (k, n) by center."""
        dtype = self._dtype_for(x)
        transposed, half_sq_norms = self._as(dtype)
        n_features, k = transposed.shape
        n = len(x) if rows is None else len(rows)
        step = rows_per_chunk(n_features, k, dtype.itemsize)
        if by_center:
            half_sq_norms = half_sq_norms[:, None]
        elif self._buffer.dtype != dtype or len(self._buffer) < min(step, n):
            self._buffer = np.empty((min(step, n), k), dtype=dtype)
        for some in slices(n, step):
            part = (x[some] if rows is None else x[rows[some]]).astype(dtype, copy=False)
            if by_center:
                scores = transposed.T @ part.T
            else:
                scores = np.matmul(part, transposed, out=self._buffer[: len(part)])
            scores -= half_sq_norms
            yield some, scores

    def _dtype_for(self, x: np.ndarray) -> np.dtype:
        """What products with rows are made in."""
        if self._is_rough is None:
            self._is_rough = are_mixed_up(self._centers, x.dtype)
        return np.dtype(np.float64) if self._is_rough else x.dtype

    def _as(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Centers transposed, and half their squared norms, in a dtype."""
        if dtype not in self._ready:
            self._ready[dtype] = (
                np.ascontiguousarray(self._centers.T, dtype=dtype),
                self._half_sq_norms.astype(dtype),
            )
        return self._ready[dtype]
