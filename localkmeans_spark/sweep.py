"""What a sweep over k found: a table of measures, a picture, and the k to take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from localkmeans_spark.errors import invalid
from localkmeans_spark.params import checked
from localkmeans_spark.records import FitResult
from localkmeans_spark.svg import CURVE, TEN, Illustrated, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from localkmeans_spark.model import LocalKMeansModel

# Fits that agree less than this by the adjusted Rand index find other clusters each time.
STABLE = 0.75


def checked_ks(ks: Any) -> list[int]:
    """Return the different k in order, or raise if one is none."""
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        ks = [ks]
    found = sorted({int(checked("LocalKMeans", "k", k)) for k in ks})
    if not found:
        raise invalid(
            "LocalKMeans", "argument 'ks'", "at least one number of clusters", [],
            "Use range(2, 21), for example.",
        )  # fmt: skip
    return found


class Sweep(Illustrated):
    """Clusterings of the same rows with different k, side by side.

    ``LocalKMeans.sweep`` makes it. In a notebook it shows its picture and table. The picture has
    cost with its elbow, silhouette and agreement by k; ``best_k`` is marked.

    Parameters
    ----------
    models : dict of int to LocalKMeansModel
        By the k asked for, in order.
    results : sequence of FitResult
        Of these fits, with measures.

    Attributes
    ----------
    models : dict of int to LocalKMeansModel
        ``sweep.models[sweep.best_k]`` is the one to use.
    table : pandas.DataFrame
        A row for each k: ``k``; ``clusters`` (fewer than k if there were fewer distinct rows);
        ``cost`` (sum of weight times squared distance, or times 1 - cos); ``silhouette``,
        ``calinski_harabasz``, ``davies_bouldin`` and ``agreement`` (see ``records.Measures``);
        ``n_iter``, ``converged`` and ``seed`` of the fit.
    best_k : int
    reason : str
        Why, in a sentence.
    """

    _name, _title, _digits = "sweep", "Cost, silhouette and agreement by k", 5
    _hidden = ("clusters", "n_iter", "converged", "seed")

    def __init__(self, models: dict[int, LocalKMeansModel], results: Sequence[FitResult]) -> None:
        self.models = models
        rows = []
        for k, result in zip(models, results, strict=True):
            record = result.record
            assert result.measures is not None
            row: dict[str, Any] = {"k": k, "clusters": record.k, "cost": record.inertia}
            row |= asdict(result.measures)
            row |= {"n_iter": record.n_iter, "converged": record.converged, "seed": record.seed}
            rows.append(row)
        self.table = pd.DataFrame(rows)
        self.best_k, self.reason = _best(self.table)

    def __repr__(self) -> str:
        return f"Sweep: k = {self.table['k'].min()} to {self.table['k'].max()}. {self.reason}"

    @property
    def elbow(self) -> int | None:
        """The k where the cost bends most: farthest below the line from first to last."""
        return _elbow(self.table)

    def toPandas(self) -> pd.DataFrame:
        """Return a copy of :attr:`table`."""
        return self.table.copy()

    def _picture(self, ink: str, faint: str) -> Figure:
        table, best_k, elbow = self.table, self.best_k, self.elbow
        figure = new_figure(7.2, 6.2)
        panels = figure.subplots(3, 1, sharex=True)
        names = ("cost", "silhouette", "agreement")
        for axes, name, color in zip(panels, names, (TEN[0], TEN[4], TEN[9]), strict=True):
            axes.plot(table["k"], table[name], color=color, **CURVE)
            axes.axvline(best_k, color=faint, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
            axes.set_ylabel(name)
            axes.spines[["top", "right"]].set_visible(False)
        cost = dict(zip(table["k"], table["cost"], strict=True))
        panels[0].set_ylim(0)
        panels[0].annotate(
            f"best k = {best_k}", (best_k, 1), (4, -2), xycoords=("data", "axes fraction"),
            textcoords="offset points", color=ink, fontsize=10, va="top",
        )  # fmt: skip
        if elbow is not None:
            panels[0].plot([elbow], [cost[elbow]], "o", markersize=11, fillstyle="none", color=ink)
            panels[0].annotate(
                "elbow", (elbow, cost[elbow]), (8, 8), textcoords="offset points", color=ink,
                fontsize=9,
            )  # fmt: skip
        panels[2].axhline(STABLE, color=faint, linewidth=1, linestyle=":", zorder=0)
        panels[2].set_ylim(min(0.0, table["agreement"].min()), 1.05)
        panels[2].set_xlabel("k")
        panels[2].xaxis.get_major_locator().set_params(integer=True)
        return figure


def _best(table: pd.DataFrame) -> tuple[int, str]:
    """Choose the highest silhouette among the k whose fits agree, and say so."""
    known = table[table["silhouette"].notna()]
    if known.empty:
        k = int(table["k"].iloc[0])
        return k, f"k = {k}: no k above 1 was tried that gave two clusters or more."
    stable = known[known["agreement"] >= STABLE]
    among = known if stable.empty else stable
    shown = known["silhouette"].round(3)  # of those that are the same then, the smallest k
    best = shown[among.index].idxmax()
    row = known.loc[best]
    k = int(row["k"])
    told = f"k = {k}: silhouette {row['silhouette']:.3f}"
    if known["agreement"].isna().all():
        return k, f"{told}, the highest; k is too large to compare fits from other seeds."
    if stable.empty:
        return k, (
            f"{told}, the highest, but no k gives the same clusters from other seeds (adjusted "
            f"Rand index at most {known['agreement'].max():.2f}): the rows may have no clusters."
        )
    agrees = f"a fit from another seed agrees to {row['agreement']:.2f} (adjusted Rand index)"
    higher = known[shown > shown[best]]
    if higher.empty:
        return k, f"{told}, the highest, and {agrees}."
    worse = higher.loc[higher["silhouette"].idxmax()]
    return k, (
        f"{told}, the highest where {agrees}; k = {int(worse['k'])} has "
        f"{worse['silhouette']:.3f}, but its fits agree to {worse['agreement']:.2f} only."
    )


def _elbow(table: pd.DataFrame) -> int | None:
    k, cost = table["k"].to_numpy(float), table["cost"].to_numpy(float)
    if len(k) < 3 or cost[0] <= cost[-1]:
        return None
    line = cost[0] + (cost[-1] - cost[0]) * (k - k[0]) / (k[-1] - k[0])
    return int(k[int(np.argmax(line - cost))]) if (line > cost).any() else None
