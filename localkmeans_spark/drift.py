"""How new rows differ from those of the fit, by their clusters: ``model.drift(df)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from localkmeans_spark.records import FitRecord, LocalKMeansEvaluation
from localkmeans_spark.svg import TEN, Illustrated, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The population stability index as credit scoring reads it: below the first little has changed,
# from the second on much has.
_SOME, _MUCH = 0.1, 0.25
# Shares below this count as this much: an empty cluster would make the index infinite.
_LEAST_SHARE = 1e-4
_WORDS = ("little has changed", "something has changed", "much has changed: fit again")


@dataclass(frozen=True)
class Drift(Illustrated):
    """New rows against those of the fit; in a notebook a picture and a table.

    The picture has the clusters' shares and distances, before and now.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each cluster: ``share_before`` and ``share`` of the weight in the fit and now;
        ``distance_before`` and ``distance``, the root mean square distance from the center (with
        cosine distance the mean); ``psi``, the cluster's part of the index.
    psi : float
        Population stability index: sum of (share - share_before) * log(share / share_before).
    reason : str
        What it means, in a sentence.
    """

    table: pd.DataFrame
    psi: float
    reason: str

    _name, _title, _digits = "drift", "Shares and distances before and now", 4

    def __repr__(self) -> str:
        return f"Drift: {self.reason}"

    def _picture(self, ink: str, faint: str) -> Figure:
        table = self.table
        figure = new_figure(7.2, min(12.0, 1.6 + 0.34 * len(table)))
        places = np.arange(len(table))
        for axes, name in zip(
            figure.subplots(1, 2, sharey=True), ("share", "distance"), strict=True
        ):
            before, now = table[f"{name}_before"], table[name]
            axes.hlines(places, before, now, color=faint, linewidth=1.5, zorder=1)
            axes.scatter(
                before, places, s=90, facecolor="none", edgecolor=faint, label="in the fit"
            )
            axes.scatter(now, places, s=42, color=TEN[0], label="now", zorder=2)
            axes.set_xlabel("share of the rows" if name == "share" else "distance from the center")
            most = max(before.max(), now.max())
            axes.set_xlim(left=0, right=1.05 * most or None)  # distances may all be 0
            axes.set_yticks(places, [str(cluster) for cluster in table["cluster"]])
            axes.spines[["top", "right"]].set_visible(False)
        first = figure.axes[0]
        first.invert_yaxis()
        first.set_ylabel("cluster")
        figure.legend(
            *first.get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False,
            labelcolor=ink,
        )  # fmt: skip
        return figure


def drift_of(record: FitRecord, now: LocalKMeansEvaluation) -> Drift:
    """Compare what a model found on new data with what its fit found.

    Parameters
    ----------
    record : FitRecord
    now : LocalKMeansEvaluation
    """
    is_cosine = record.distance_measure == "cosine"
    shares, distances = [], []
    for weights, costs in (
        (record.cluster_weights, record.cluster_inertia),
        (now.clusterWeights, now.clusterInertia),
    ):
        weight, cost = np.array(weights, dtype=float), np.array(costs, dtype=float)
        shares.append(weight / max(weight.sum(), np.finfo(float).tiny))
        mean = np.divide(cost, weight, out=np.full(len(cost), np.nan), where=weight > 0)
        distances.append(mean if is_cosine else np.sqrt(mean))
    before, after = (np.maximum(share, _LEAST_SHARE) for share in shares)
    parts = (after - before) * np.log(after / before)
    table: Any = pd.DataFrame(
        {
            "cluster": range(len(parts)),
            "share_before": shares[0],
            "share": shares[1],
            "distance_before": distances[0],
            "distance": distances[1],
            "psi": parts,
        }
    )
    psi = float(parts.sum())
    most = int(parts.argmax())
    word = _WORDS[(psi >= _SOME) + (psi >= _MUCH)]
    first, last = (f"{share[most]:.1%}" for share in shares)
    moved = f"cluster {most} moved most, from {first} to {last} of the rows"
    if first == last:
        moved = "each cluster has the share of rows that it had"
    reason = f"Population stability index {psi:.3f}: {word}; {moved}."
    return Drift(table, psi, reason)
