"""The report: one self-contained page about a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import jinja2
import numpy as np

from localkmeans_spark.cli.pictures import (
    cluster_colors,
    principal_plane,
    projection_picture,
    rounds_picture,
    sizes_picture,
)
from localkmeans_spark.cli.printed import round_note
from localkmeans_spark.cli.progress import duration
from localkmeans_spark.cli.text import printable
from localkmeans_spark.metrics import (
    Confusion,
    adjusted_rand,
    best_matching,
    misclustering,
    normalized_mutual_info,
)
from localkmeans_spark.summary import FitRecord
from localkmeans_spark.svg import readable

_MOST_CLUSTERS = 100
# Cards of clusters; standard deviations from which a feature is called high or low, how many are,
# and at which bars end.
_MOST_CARDS, _TELLING, _NAMED, _LONGEST_BAR = 24, 0.5, 3, 3.0
_MOST_FEATURES = 12
_SHOWN_OF_MANY = 8
_MOST_CONFUSION = 40
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class ReportData:
    """What the page is made from.

    Attributes
    ----------
    title : str
    record : FitRecord
    centers : ndarray of shape (k, d)
    feature_names : list of str
        Names of the features, or empty: they are numbered then.
    sample : ndarray of shape (m, d)
        Some rows, all of them finite.
    sample_clusters : ndarray of shape (m,), int
    confusion : Confusion or None
    run : dict of str to str
        What was run and on what, in the order to be shown.
    command : str
        The line that repeats the run.
    weighted : bool
    measures : mapping or None
        ``silhouette``, ``calinski_harabasz``, ``agreement`` of the clustering.
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
    measures: Any = None


def render(data: ReportData) -> str:
    """Return the page as HTML, with pictures, style and all inside it."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        # Names of columns and labels may hold anything; pictures are marked safe and stay.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    environment.filters |= {"n": _integer, "g": readable, "share": _share, "bytes": _bytes,
                            "time": duration}  # fmt: skip
    # Read as a resource: the package may live in a zip given to spark-submit.
    source = (
        resources.files("localkmeans_spark.cli")
        .joinpath("report.html.j2")
        .read_text(encoding="utf-8")
    )
    return environment.from_string(source).render(**_context(data))


def _directions(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _context(data: ReportData) -> dict[str, Any]:
    record = data.record
    order = sorted(range(record.k), key=lambda i: (-record.cluster_sizes[i], i))
    is_cosine = record.distance_measure == "cosine"
    # Cosine compares directions: the picture shows the rows as the fit saw them.
    rows = _directions(data.sample) if is_cosine else data.sample
    plane = principal_plane(rows)
    projection = projection_picture(
        plane.project(rows), data.sample_clusters, plane.project(data.centers), plane.shares
    )
    return {
        "title": data.title,
        "record": record,
        "run": data.run,
        "command": data.command,
        "weighted": data.weighted,
        "cosine": is_cosine,
        "power": 1.0 if is_cosine else 0.5,
        "n_sample": len(data.sample),
        "rounds": [(row, round_note(record, place)) for place, row in enumerate(record.rounds)],
        "rounds_picture": rounds_picture(record) if record.rounds else "",
        "sizes_picture": sizes_picture(record.cluster_sizes),
        "projection_picture": projection if len(data.sample) else "",
        "shown": order[:_MOST_CLUSTERS],
        "colors": cluster_colors(record.k),
        "features": _telling_features(data),
        "centers": data.centers,
        "labels": _labels(data.confusion),
        "quality": _quality(data),
        "cards": _cards(data, order[:_MOST_CARDS]),
    }


def _quality(data: ReportData) -> dict[str, float]:
    """Return what is known of silhouette, agreement and the share that the clusters explain."""
    found = {} if data.measures is None else dict(data.measures)
    known = {name: float(found[name]) for name in ("silhouette", "agreement") if name in found}
    record = data.record
    free = record.sum_weights - record.k
    if record.k > 1 and free > 0 and "calinski_harabasz" in found:
        # The index is (between / (k - 1)) / (within / (n - k)).
        ratio = float(found["calinski_harabasz"]) * (record.k - 1) / free
        known["explained"] = ratio / (1.0 + ratio)
    return {name: value for name, value in known.items() if np.isfinite(value)}


def _differences(data: ReportData) -> np.ndarray:
    """Return how many standard deviations each center lies from the others' mean, shape (k, d).

    Deviations are those of the sample; 0 for a feature that does not vary in it.
    """
    weights = np.asarray(data.record.cluster_weights, dtype=float)
    if data.record.k < 2 or len(data.sample) < 2 or not weights.sum():
        return np.zeros(data.centers.shape)
    total = weights.sum()
    rest = np.maximum(total - weights, np.finfo(float).tiny)[:, None]
    of_rest = (weights @ data.centers - weights[:, None] * data.centers) / rest
    deviation = data.sample.std(axis=0)
    apart = np.where((total > weights)[:, None], data.centers - of_rest, 0.0)
    return np.divide(apart, deviation, out=np.zeros(apart.shape), where=deviation > 0)


def _cards(data: ReportData, shown: list[int]) -> list[dict[str, Any]]:
    """Return one small profile for each cluster, the same features in the same order in all."""
    differences = _differences(data)
    chosen = np.sort(np.argsort(-np.abs(differences).max(axis=0), kind="stable")[:_SHOWN_OF_MANY])
    names = data.feature_names or [f"feature {i}" for i in range(data.centers.shape[1])]
    largest = max(1.0, float(np.minimum(np.abs(differences[:, chosen]), _LONGEST_BAR).max()))
    spreads = np.abs(data.centers).max(axis=0)
    cards = []
    for i in shown:
        order = np.argsort(-np.abs(differences[i]), kind="stable")[:_NAMED]
        telling = [j for j in order if abs(differences[i, j]) >= _TELLING]
        words = [f"{'high' if differences[i, j] > 0 else 'low'} {names[j]}" for j in telling]
        bars = []
        for j in chosen:
            width = 50.0 * min(abs(differences[i, j]), _LONGEST_BAR) / largest
            left = 50.0 if differences[i, j] >= 0 else 50.0 - width
            # What rounding leaves of a 0 is no number to show.
            mean = data.centers[i, j] if abs(data.centers[i, j]) > 1e-9 * spreads[j] else 0.0
            bars.append((names[j], f"left:{left:.1f}%;width:{width:.1f}%", mean))
        cards.append({"cluster": i, "words": ", ".join(words), "bars": bars})
    return cards


def _telling_features(data: ReportData) -> list[tuple[int, str]]:
    """Return the features that differ most between centers, in the order of the table."""
    weights = np.asarray(data.record.cluster_weights, dtype=float)
    if weights.sum() == 0:
        weights = np.ones(len(weights))
    mean = np.average(data.centers, axis=0, weights=weights)
    spread = np.average((data.centers - mean) ** 2, axis=0, weights=weights)
    # A table of all features if it fits the page; of many, only so many as fit without scrolling.
    n_shown = len(mean) if len(mean) <= _MOST_FEATURES else _SHOWN_OF_MANY
    chosen = sorted(np.argsort(-spread, kind="stable")[:n_shown].tolist())
    return [(i, data.feature_names[i] if data.feature_names else str(i)) for i in chosen]


def _labels(confusion: Confusion | None) -> dict[str, Any] | None:
    """Return the confusion table with clusters in the order of the labels they match."""
    if confusion is None or not confusion.labels:
        return None
    counts = confusion.counts
    partner = best_matching(counts)
    order = sorted(partner, key=lambda cluster: partner[cluster])
    order += [cluster for cluster in range(counts.shape[1]) if cluster not in partner]
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return {
        "misclustering": misclustering(counts),
        "adjusted_rand": adjusted_rand(counts),
        "mutual_info": normalized_mutual_info(counts),
        "names": confusion.labels,
        "counts": counts,
        "shares": counts / totals,
        "clusters": order,
        "partner": partner,
        "n_unlabelled": confusion.n_unlabelled,
        "fits": max(counts.shape) <= _MOST_CONFUSION,
    }


def _integer(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 0.001 or value == 0 else "< 0.1%"


def _bytes(value: float) -> str:
    step = 0
    while value >= 1000 and step < len(_UNITS) - 1:
        value, step = value / 1000, step + 1
    return f"{value:.3g} {_UNITS[step]}"
