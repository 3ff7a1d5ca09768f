"""Which rows may have changed cluster since their bounds were taken (Hamerly's two bounds).

A row keeps an upper bound on the distance to its own center and a lower bound on the distance to
every other. Centers that move by ``p_k`` loosen them by the triangle inequality; while the upper
bound stays below the lower one, the row's label stands and its product need not be computed.

References
----------
Hamerly, G.: Making k-means even faster, SDM 2010.
"""

from __future__ import annotations

import numpy as np

from localkmeans_spark.kernel.differences import sq_gaps


class Bounds:
    """Bounds of one block's rows, kept for the local steps of one round.

    Parameters
    ----------
    x : ndarray of shape (n, n_features), float32 or float64
    """

    def __init__(self, x: np.ndarray) -> None:
        self._sq_norms = np.einsum("nd,nd->n", x, x)
        self._norms = np.sqrt(self._sq_norms)
        self._upper = np.empty(len(x), dtype=x.dtype)
        self._lower = np.empty(len(x), dtype=x.dtype)
        eps = float(np.finfo(x.dtype).eps)
        # Rounding of a squared distance made of a product: the sums of d terms, and the norms.
        self._unit = (8.0 * np.sqrt(x.shape[1]) + 16.0) * eps

    def take(
        self, rows: slice | np.ndarray, best: np.ndarray, second: np.ndarray, largest: float
    ) -> None:
        """Set the bounds of some rows from their two highest scores.

        Parameters
        ----------
        rows : slice or ndarray of int
        best, second : ndarray of shape (n_rows,)
            ``x.c - ||c||**2 / 2`` of the nearest and of the second nearest center.
        largest : float
            Largest norm of a center: the scale of rounding errors.
        """
        sq_norms = self._sq_norms[rows]
        slack = self._norms[rows] + largest
        slack *= slack
        slack *= self._unit
        self._upper[rows] = np.sqrt(np.maximum(sq_norms - 2.0 * best, 0.0) + slack)
        self._lower[rows] = np.sqrt(np.maximum(sq_norms - 2.0 * second - slack, 0.0))

    def after_move(
        self, labels: np.ndarray, moved: np.ndarray, half_gaps: np.ndarray
    ) -> np.ndarray:
        """Loosen the bounds by the centers' moves; return the rows whose label may change.

        Parameters
        ----------
        labels : ndarray of shape (n,), int32
        moved : ndarray of shape (k,), float64
            How far each center moved.
        half_gaps : ndarray of shape (k,), float64
            Half the distance from each center to the nearest other one, after the move.

        Returns
        -------
        ndarray of int64
        """
        dtype = self._upper.dtype
        self._upper += moved.astype(dtype)[labels]
        farthest = int(moved.argmax())
        others = np.full(len(moved), moved[farthest])
        others[farthest] = np.delete(moved, farthest).max()
        self._lower -= others.astype(dtype)[labels]
        safe = np.maximum(self._lower, half_gaps.astype(dtype)[labels])
        return np.flatnonzero(self._upper >= safe)


def half_gaps(centers: np.ndarray) -> np.ndarray:
    """Half the distance from each center to its nearest other one, rounded down a little.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features), float64; k >= 2

    Returns
    -------
    ndarray of shape (k,), float64
    """
    rounding = 1e-12 * float(np.einsum("kd,kd->k", centers, centers).max())
    return 0.5 * (1.0 - 1e-6) * np.sqrt(np.maximum(sq_gaps(centers) - rounding, 0.0))
