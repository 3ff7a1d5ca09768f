"""Pictures of the report, drawn by Matplotlib as SVG in the colours of the page's style sheet."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from localkmeans_spark.summary import FitRecord
from localkmeans_spark.svg import FAINT, INK, LINE, PAPER, TEN, as_svg

_WARN = "#d9480f"

_GOLDEN = 0.6180339887498949
MOST_NAMED = 60
"""With more clusters than this, pictures show no cluster numbers."""


def cluster_colors(k: int) -> list[str]:
    """Return k colours that stand out from a white and from a dark page.

    Colour is never the only sign of a cluster in the report: pictures carry its number too. The
    first ten are a published set; the others step round the hue circle by the golden section, so
    that neighbours in number are far apart in hue, at three levels of luminance.
    """
    levels = (0.15, 0.24, 0.36)
    others = [_color((i * _GOLDEN) % 1.0, levels[i % 3]) for i in range(len(TEN), k)]
    return [*TEN[:k], *others]


def _color(hue: float, luminance: float) -> str:
    """Return the colour of a hue whose relative luminance, as WCAG defines it, is as given."""
    low, high, rgb = 0.0, 1.0, np.zeros(3)
    for _ in range(20):  # luminance grows with lightness: halve the interval
        lightness = (low + high) / 2
        rgb = np.array(colorsys.hls_to_rgb(hue, lightness, 0.65))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        too_dark = linear @ [0.2126, 0.7152, 0.0722] < luminance
        low, high = (lightness, high) if too_dark else (low, lightness)
    return "#" + "".join(f"{round(part * 255):02x}" for part in rgb)


def rounds_picture(record: FitRecord) -> str:
    """Draw cost and center shift by round, with marks where L changed or a round was undone."""
    rounds = record.rounds
    kept = [row for row in rounds if not row.reverted]
    undone = [row for row in rounds if row.reverted]
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    cost, shift = figure.subplots(2, 1, sharex=True)
    end = len(rounds) + 1
    cost.plot(
        [row.round for row in kept] + [end],
        [row.inertia for row in kept] + [record.inertia],
        color=TEN[0], marker="o", markersize=4, linewidth=1.8,
    )  # fmt: skip
    cost.plot(
        [row.round for row in undone], [row.inertia for row in undone],
        color=_WARN, marker="X", markersize=7, linestyle="none",
    )  # fmt: skip
    costs = [row.inertia for row in rounds] + [record.inertia]
    if min(costs) > 0 and max(costs) > 4 * min(costs):
        cost.set_yscale("log")
    else:
        cost.yaxis.set_major_formatter(Labels())
    cost.set_ylabel("cost")
    moved = [row for row in kept if row.center_shift > 0]
    shift.plot(
        [row.round for row in moved], [row.center_shift for row in moved],
        color=TEN[4], marker="o", markersize=4, linewidth=1.8,
    )  # fmt: skip
    if moved:
        shift.set_yscale("log")
    else:
        shift.set_yticks([])
    still = [row.round for row in kept if row.center_shift == 0]
    # Logarithms have no 0: a round without any move has a ring on the axis and says so.
    shift.plot(
        still, [0] * len(still), color=TEN[4], marker="o", markersize=6, markerfacecolor=PAPER,
        linestyle="none", transform=shift.get_xaxis_transform(), clip_on=False, zorder=5,
    )  # fmt: skip
    for number in still:
        shift.annotate("0", (number, 0), (7, 3), xycoords=("data", "axes fraction"),
                       textcoords="offset points", color=FAINT, fontsize=9)  # fmt: skip
    if record.tol > 0 and moved:
        shift.axhline(record.tol, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
        shift.annotate(
            "tol", (1, record.tol), (-2, 3), xycoords=("axes fraction", "data"), ha="right",
            textcoords="offset points", color=FAINT, fontsize=9,
        )  # fmt: skip
    shift.set_ylabel("center shift")
    shift.set_xlabel("round")
    shift.xaxis.get_major_locator().set_params(integer=True)
    _mark_steps(cost, shift, record)
    return as_svg(figure, "rounds", "Cost and center shift by round")


def _mark_steps(cost: Any, shift: Any, record: FitRecord) -> None:
    steps = None
    for row in record.rounds:
        if row.local_steps != steps:
            for axes in (cost, shift):
                axes.axvline(row.round, color=LINE, linewidth=1, zorder=0)
            cost.annotate(
                f"L = {row.local_steps}", (row.round, 1), (3, 2), color=FAINT, fontsize=9,
                xycoords=("data", "axes fraction"), textcoords="offset points",
            )  # fmt: skip
        steps = row.local_steps


def sizes_picture(sizes: Sequence[int]) -> str:
    """Draw the clusters' sizes as bars, the largest first."""
    k = len(sizes)
    order = np.argsort(-np.asarray(sizes), kind="stable")
    colors = cluster_colors(k)
    named = k <= MOST_NAMED
    figure = Figure(figsize=(7.2, min(max(1.2, 0.5 + 0.24 * k), 12) if named else 3),
                    layout="constrained")  # fmt: skip
    axes = figure.subplots()
    if named:
        axes.barh(range(k), [sizes[i] for i in order], 0.72, color=[colors[i] for i in order])
        axes.set_yticks(range(k), [str(i) for i in order])
        axes.invert_yaxis()
        axes.set_ylim(k - 0.4, -0.6)
        for place, i in enumerate(order):
            axes.annotate(
                f"{sizes[i]:,}", (sizes[i], place), (4, 0), textcoords="offset points",
                va="center", color=INK, fontsize=9,
            )  # fmt: skip
        axes.set_xlim(0, max(*sizes, 1) * 1.12)
        axes.set_ylabel("cluster")
        axes.set_xlabel("rows")
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(Labels())
    else:
        axes.fill_between(range(1, k + 1), [sizes[i] for i in order], color=TEN[0], linewidth=0)
        axes.set_xlabel("clusters, the largest first")
        axes.set_ylabel("rows")
        axes.yaxis.set_major_formatter(Labels())
        axes.set_xlim(1, k)
        axes.set_ylim(0)
    return as_svg(figure, "sizes", "Rows in each cluster")


def projection_picture(
    points: np.ndarray, clusters: np.ndarray, centers: np.ndarray, shares: Sequence[float]
) -> str:
    """Draw sampled rows and centers in the plane, coloured by cluster.

    Parameters
    ----------
    points : ndarray of shape (m, 2)
    clusters : ndarray of shape (m,), int
    centers : ndarray of shape (k, 2)
    shares : two floats
        Share of the sample's variance along each axis.
    """
    k = len(centers)
    colors = np.array(cluster_colors(k))
    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    axes = figure.subplots()
    # Thousands of dots as one bitmap: a page of 300 kB, not of 3 MB.
    axes.scatter(
        points[:, 0], points[:, 1], s=9 if len(points) > 1500 else 16, c=colors[clusters],
        alpha=0.65, linewidths=0, rasterized=True,
    )  # fmt: skip
    named = k <= MOST_NAMED
    axes.scatter(
        centers[:, 0], centers[:, 1], s=190 if named else 22, facecolor=PAPER, edgecolor=colors,
        linewidths=1.6, zorder=3,
    )  # fmt: skip
    if named:
        for i, (x, y) in enumerate(centers):
            axes.text(x, y, str(i), ha="center", va="center_baseline", fontsize=8.5, color=INK,
                      zorder=4 + i)  # fmt: skip
    axes.set_xlabel(f"first component, {shares[0]:.0%} of the variance")
    axes.set_ylabel(f"second component, {shares[1]:.0%} of the variance")
    # A distance looks the same in both directions.
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    return as_svg(figure, "projection", "Sampled rows and centers in two dimensions")


class Labels(Formatter):
    """Labels ticks with as few digits as tell them apart."""

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return one label for each tick."""
        largest = max(map(abs, values), default=0.0)
        style = "{:,.{}f}" if largest < 1e9 else "{:.{}e}"
        apart = np.diff(np.unique(np.asarray(values, dtype=float))).min(initial=largest)
        labels: list[str] = []
        for digits in range(16):
            labels = [style.format(value + 0.0, digits) for value in values]
            shown = [float(label.replace(",", "")) for label in labels]
            if np.abs(np.subtract(shown, values)).max(initial=0.0) <= apart / 100:
                break
        return labels

    def __call__(self, value: float, pos: int | None = None) -> str:
        """Return the label of a single value."""
        return self.format_ticks([value])[0]


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
