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
from localkmeans_spark.metrics import Confusion, best_matching, misclustering
from localkmeans_spark.summary import FitRecord

_MOST_CLUSTERS = 100
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


def render(data: ReportData) -> str:
    """Return the page as HTML, with pictures, style and all inside it."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        # Names of columns and labels may hold anything; pictures are marked safe and stay.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )  # fmt: skip
    environment.filters |= {"n": _integer, "g": _number, "share": _share, "bytes": _bytes,
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
    }


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


def _number(value: float) -> str:
    if 1e4 <= abs(value) < 1e10:
        return f"{value:,.0f}"
    return f"{value:.6g}" if abs(value) >= 1e10 else f"{value:.4g}"


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 0.001 or value == 0 else "< 0.1%"


def _bytes(value: float) -> str:
    step = 0
    while value >= 1000 and step < len(_UNITS) - 1:
        value, step = value / 1000, step + 1
    return f"{value:.3g} {_UNITS[step]}"
