"""Whether the rows of a table look like square images, and how their pixels are laid out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_SMALLEST_SIDE = 6
_NEIGHBOURS = 0.25
_ABOVE_OTHERS = 0.2
_BELOW_NEIGHBOURS = 0.1


@dataclass(frozen=True)
class Layout:
    """How a row of numbers becomes an image.

    Attributes
    ----------
    side : int
        Height and width in pixels.
    planes : {"gray", "first", "last"}
        One number a pixel, or three: colour planes one after the other (``"first"``), or the
        three numbers of a pixel side by side (``"last"``).
    correlation : float
        Mean correlation of neighbouring pixels, by which the layout was recognised.
    """

    side: int
    planes: str
    correlation: float

    def image(self, row: np.ndarray) -> np.ndarray:
        """Return one row as an array of shape (side, side) or (side, side, 3)."""
        if self.planes == "gray":
            return row.reshape(self.side, self.side)
        if self.planes == "first":
            return row.reshape(3, self.side, self.side).transpose(1, 2, 0)
        return row.reshape(self.side, self.side, 3)


def image_layout(sample: np.ndarray) -> Layout | None:
    """Say whether rows look like square images.

    They do when d is a square or three times a square (side >= 6) and

    - neighbouring pixels go together: their correlation over the sample is at least 0.25 on
      average, across and down alike;
    - that is at least 0.2 above the correlation of pixels picked at random (64 columns that all
      measure about the same thing are no image);
    - the last pixel of a line and the first of the next go together less, by 0.1, than
      neighbours do (a time series of 144 values is no image).

    Parameters
    ----------
    sample : ndarray of shape (m, d)

    Returns
    -------
    Layout or None
    """
    m, d = sample.shape
    if m < 20:
        return None
    candidates = []
    side = math.isqrt(d)
    if side * side == d and side >= _SMALLEST_SIDE:
        candidates.append((side, "gray"))
    side = math.isqrt(d // 3)
    if 3 * side * side == d and side >= _SMALLEST_SIDE:
        candidates += [(side, "first"), (side, "last")]
    if not candidates:
        return None
    centered = sample - sample.mean(axis=0)
    length = np.sqrt((centered**2).sum(axis=0))
    # Constant columns (a digit's empty corners) say nothing: they become NaN and are left out.
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = np.where(length > 0, centered / length, np.nan)
    least = max(_NEIGHBOURS, _random_correlation(unit) + _ABOVE_OTHERS)
    found = []
    for side, planes in candidates:
        across, down, wrapped = _correlations(unit, side, planes)
        correlation = min(across, down)
        if correlation >= least and wrapped <= across - _BELOW_NEIGHBOURS:
            found.append(Layout(side, planes, correlation))
    return max(found, key=lambda layout: layout.correlation, default=None)


def _correlations(unit: np.ndarray, side: int, planes: str) -> tuple[float, float, float]:
    """Return mean correlations of neighbours across, down, and over a line's end."""
    layout = Layout(side, planes, 0.0)
    places = layout.image(np.arange(unit.shape[1])).reshape(side, side, -1)
    across = _correlation(unit, places[:, :-1].ravel(), places[:, 1:].ravel())
    down = _correlation(unit, places[:-1].ravel(), places[1:].ravel())
    wrapped = _correlation(unit, places[:-1, -1].ravel(), places[1:, 0].ravel())
    return across, down, wrapped


def _random_correlation(unit: np.ndarray) -> float:
    order = np.random.default_rng(0).permutation(unit.shape[1])
    return _correlation(unit, order, np.roll(order, 1))


def _correlation(unit: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    products = np.einsum("ij,ij->j", unit[:, left], unit[:, right])
    known = products[np.isfinite(products)]
    return float(known.mean()) if known.size else 0.0
