"""The report: one self-contained page about a fit, its pictures inside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import jinja2
import numpy as np

from localkmeans_spark.cli.messages import MOST_SHOWN, printable, round_note
from localkmeans_spark.metrics import Confusion, best_matching
from localkmeans_spark.progress import duration
from localkmeans_spark.records import FitRecord
from localkmeans_spark.svg import (
    INK,
    PAPER,
    TEN,
    as_svg,
    draw_costs,
    high_and_low,
    new_figure,
    readable,
)
from localkmeans_spark.sweep import STABLE

_MOST_FEATURES = 8
_PLANE_ROWS = 1_000  # by which the directions of the projection are found


@dataclass(frozen=True)
class ReportData:
    """What the page is made from.

    Attributes
    ----------
    title : str
    record : FitRecord
    centers : ndarray of shape (k, d)
    feature_names : list of str
        Empty where they are unknown: features are numbered then.
    sample : ndarray of shape (m, d), finite
    sample_clusters : ndarray of shape (m,), int
    confusion : Confusion or None
    run : dict of str to str
        What was run and on what, in the order to be shown.
    command : str
        The line that repeats the run.
    weighted : bool
    measures : dict of str to float
        ``silhouette``, ``calinski_harabasz``, ``agreement``, as far as they are known; with
        ``confusion`` also ``misclustering``, ``adjusted_rand`` and ``mutual_info``.
    scales : ndarray of shape (d,), or None
        What the fit divided features by (``standardize``).
    """

    title: str
    record: FitRecord
    centers: np.ndarray
    feature_names: list[str]
    sample: np.ndarray
    sample_clusters: np.ndarray
    confusion: Confusion | None = None
    run: dict[str, str] = field(default_factory=dict)
    command: str = ""
    weighted: bool = False
    measures: dict[str, float] = field(default_factory=dict)
    scales: np.ndarray | None = None


def render(data: ReportData) -> str:
    """Return the page as HTML, with pictures, style and all inside it."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        # Names of columns and labels may hold anything; pictures are marked safe and stay.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    environment.filters |= {"n": "{:,.0f}".format, "g": readable, "share": _share, "time": duration}
    # Read as a resource: the package may live in a zip given to spark-submit.
    page = resources.files("localkmeans_spark.cli").joinpath("report.html.j2")
    return environment.from_string(page.read_text(encoding="utf-8")).render(**_context(data))


def _context(data: ReportData) -> dict[str, Any]:
    record = data.record
    order = sorted(range(record.k), key=lambda i: (-record.cluster_sizes[i], i))
    is_cosine = record.distance_measure == "cosine"
    differences = _differences(data)
    most = np.argsort(-np.abs(differences).max(axis=0), kind="stable")[:_MOST_FEATURES]
    features: list[int] = sorted(most.tolist())
    names = data.feature_names or [f"feature {i}" for i in range(record.n_features)]
    return {
        **vars(data),
        "cosine": is_cosine,
        "power": 1.0 if is_cosine else 0.5,
        "rounds": [(row, round_note(record, place)) for place, row in enumerate(record.rounds)],
        "rounds_picture": rounds_picture(record) if record.rounds else "",
        "projection_picture": projection_picture(data, is_cosine) if len(data.sample) else "",
        "shown": order[:MOST_SHOWN],
        "colors": cluster_colors(record.k),
        "features": [(i, names[i]) for i in features],
        "labels": _labels(data.confusion),
        "quality": _quality(data),
        "stable": STABLE,
        "cards": [_card(data, differences, i, features, names) for i in order[:MOST_SHOWN]],
    }


def _quality(data: ReportData) -> dict[str, float]:
    """Return what is known of silhouette, agreement and the share that the clusters explain."""
    known = dict(data.measures)
    free = data.record.sum_weights - data.record.k
    if data.record.k > 1 and free > 0 and "calinski_harabasz" in known:
        # The index is (between / (k - 1)) / (within / (n - k)).
        ratio = known["calinski_harabasz"] * (data.record.k - 1) / free
        known["explained"] = ratio / (1.0 + ratio)
    return {name: value for name, value in known.items() if np.isfinite(value)}


def _differences(data: ReportData) -> np.ndarray:
    """Return how many standard deviations each center lies from the others' mean, shape (k, d).

    Deviations are those of the sample; 0 for a feature that does not vary in it.
    """
    weights = np.asarray(data.record.cluster_weights, dtype=float)[:, None]
    total = weights.sum()
    if data.record.k < 2 or len(data.sample) < 2 or not total:
        return np.zeros(data.centers.shape)
    rest = np.maximum(total - weights, np.finfo(float).tiny)
    of_rest = ((weights * data.centers).sum(axis=0) - weights * data.centers) / rest
    deviation = data.sample.std(axis=0)
    apart = np.where(total > weights, data.centers - of_rest, 0.0)
    return np.divide(apart, deviation, out=np.zeros(apart.shape), where=deviation > 0)


def _card(
    data: ReportData, differences: np.ndarray, i: int, features: list[int], names: list[str]
) -> dict[str, Any]:
    """Return a small profile of a cluster: words, and a bar for each of the features."""
    own = differences[i]
    bars = []
    for j in features:
        width = 50.0 * min(abs(own[j]) / 3.0, 1.0)  # three standard deviations fill the bar
        left = 50.0 if own[j] >= 0 else 50.0 - width
        # What rounding leaves of a 0 is no number to show.
        is_zero = abs(data.centers[i, j]) <= 1e-9 * np.abs(data.centers[:, j]).max()
        mean = 0.0 if is_zero else data.centers[i, j]
        bars.append((names[j], f"left:{left:.1f}%;width:{width:.1f}%", mean))
    return {"cluster": i, "words": high_and_low(own, names), "bars": bars}


def _labels(confusion: Confusion | None) -> dict[str, Any] | None:
    """Return the confusion table with clusters in the order of the labels they match."""
    if confusion is None or not confusion.labels:
        return None
    counts = confusion.counts
    partner = best_matching(counts)
    order = sorted(partner, key=lambda cluster: partner[cluster])
    order += [cluster for cluster in range(counts.shape[1]) if cluster not in partner]
    return {
        "names": confusion.labels,
        "counts": counts,
        "shares": counts / np.maximum(counts.sum(axis=1, keepdims=True), 1),
        "clusters": order,
        "partner": partner,
        "n_unlabelled": confusion.n_unlabelled,
        "fits": max(counts.shape) <= MOST_SHOWN,
    }


def cluster_colors(k: int) -> list[str]:
    """Return k colours, the same again after ten.

    Colour is never the only sign of a cluster in the report: pictures carry its number too.
    """
    return [TEN[i % len(TEN)] for i in range(k)]


def rounds_picture(record: FitRecord) -> str:
    """Draw the cost by round; rounds that were undone have a mark."""
    figure = new_figure(7.2, 3.0)
    axes = figure.subplots()
    draw_costs(axes, record, color=TEN[0])
    axes.set(xlabel="round", ylabel="cost")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return as_svg(figure, "rounds", "Cost by round")


def projection_picture(data: ReportData, is_cosine: bool) -> str:
    """Draw sampled rows and centers in the plane of their principal components."""
    # The picture shows the rows as the fit saw them: standardized, or as directions.
    scales = 1.0 if data.scales is None else data.scales
    rows, centers = data.sample / scales, data.centers / scales
    if is_cosine:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    middle, directions, shares = principal_plane(rows)
    points, centers = ((each - middle) @ directions.T for each in (rows, centers))
    colors = np.array(cluster_colors(data.record.k))
    is_named = data.record.k <= MOST_SHOWN
    figure = new_figure(7.2, 5.4)
    axes = figure.subplots()
    # Thousands of dots as one bitmap: a page of 300 kB, not of 3 MB.
    axes.scatter(
        points[:, 0], points[:, 1], s=9 if len(points) > 1500 else 16,
        c=colors[data.sample_clusters], alpha=0.65, linewidths=0, rasterized=True,
    )  # fmt: skip
    axes.scatter(
        centers[:, 0], centers[:, 1], s=190 if is_named else 22, facecolor=PAPER, edgecolor=colors,
        linewidths=1.6, zorder=3,
    )  # fmt: skip
    for i, (x, y) in enumerate(centers[: data.record.k if is_named else 0]):
        axes.text(x, y, str(i), ha="center", va="center_baseline", fontsize=8.5, color=INK,
                  zorder=4 + i)  # fmt: skip
    axes.set(
        xlabel=f"first component, {shares[0]:.0%} of the variance",
        ylabel=f"second component, {shares[1]:.0%} of the variance",
        xticks=[], yticks=[],
    )  # fmt: skip
    # A distance looks the same in both directions.
    axes.set_aspect("equal", adjustable="datalim")
    return as_svg(figure, "projection", "Sampled rows and centers in two dimensions")


def principal_plane(sample: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, two principal directions, shape (2, d), and their shares of variance.

    The largest entry of each direction is positive, so that pictures of two runs are no mirror
    images. What does not exist, the second direction of a single column, is 0.
    """
    middle = sample.mean(axis=0)
    some = (sample - middle)[:: 1 + len(sample) // _PLANE_ROWS]
    _, singular, right = np.linalg.svd(some, full_matrices=False)
    directions, shares = np.zeros((2, sample.shape[1])), np.zeros(2)
    for i, direction in enumerate(right[:2]):
        directions[i] = direction * (-1 if direction.max() < -direction.min() else 1)
        shares[i] = singular[i] ** 2 / max((singular**2).sum(), np.finfo(float).tiny)
    return middle, directions, shares


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 0.001 or value == 0 else "< 0.1%"
