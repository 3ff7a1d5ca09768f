"""A sample of the rows in two dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plane:
    """The plane of the two directions along which a sample varies most.

    Attributes
    ----------
    middle : ndarray of shape (d,)
    axes : ndarray of shape (2, d)
        Orthonormal; the largest entry of each is positive, so that the picture is not mirrored
        from one run to the next.
    shares : tuple of two floats
        Shares of the sample's variance along the axes.
    """

    middle: np.ndarray
    axes: np.ndarray
    shares: tuple[float, float]

    def project(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows' places in the plane, an array of shape (n, 2)."""
        return (rows - self.middle) @ self.axes.T


def principal_plane(sample: np.ndarray) -> Plane:
    """Return the plane of the first two principal components.

    Parameters
    ----------
    sample : ndarray of shape (m, d), finite

    Notes
    -----
    An SVD of the smaller of the two Gram matrices: min(m, d)**3 operations.
    """
    m, d = sample.shape
    middle = sample.mean(axis=0) if m else np.zeros(d)
    centered = sample - middle
    total = float((centered**2).sum())
    if total == 0.0:
        return Plane(middle, np.eye(2, d), (0.0, 0.0))
    if d <= m:
        directions, squares, _ = np.linalg.svd(centered.T @ centered, hermitian=True)
        axes = directions.T[:2]
    else:
        left, squares, _ = np.linalg.svd(centered @ centered.T, hermitian=True)
        axes = left.T[:2] @ centered
        lengths = np.linalg.norm(axes, axis=1, keepdims=True)
        axes = np.divide(axes, lengths, out=np.zeros_like(axes), where=lengths > 0)
    axes = np.vstack([axes, np.zeros((2 - len(axes), d))])
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.where(axes[range(2), largest] < 0, -1.0, 1.0)[:, None]
    shares = [*(squares[:2] / total), 0.0]
    return Plane(middle, axes, (float(shares[0]), float(shares[1])))
