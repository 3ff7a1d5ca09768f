"""The paper's figures as PNG and SVG: means with a band of one standard deviation."""

from __future__ import annotations

import io

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Petroff's colours (arXiv:2107.02270); the line styles tell curves apart without them.
_COLORS = ("#3f90da", "#e39400", "#bd1f01", "#832db6", "#717581", "#45aeb2", "#a96b59")
_STYLES = ("-", "--", "-.", ":", (0, (6, 2, 1, 2)), (0, (3, 1)), (0, (1, 1)))
_AXIS = {
    "A": "misclustering A",
    "objective": "K-means objective",
    "Lambda": "center error Λ",
    "G": "cluster-wise error G",
}


def curves_picture(
    table: pd.DataFrame, panels: dict[str, pd.DataFrame], quantity: str, by: str
) -> Figure:
    """Draw panels of curves against the iteration t.

    Parameters
    ----------
    table : DataFrame
        All of the figure; only its order of curves is used.
    panels : dict of str to DataFrame
        Rows of each panel, by its title.
    quantity : str
        ``"A"``, ``"objective"``, ...
    by : str
        Column that tells curves apart: ``"method"`` or ``"line"``.
    """
    names = list(dict.fromkeys(table[by]))
    figure = Figure(figsize=(5.4 * len(panels), 3.4), layout="constrained")
    for axes, (title, rows) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        _draw(axes, rows[rows["quantity"] == quantity], names, by)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("iteration t")
        axes.set_ylabel(_AXIS.get(quantity, quantity))
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        if quantity == "A":
            axes.set_ylim(0)
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, names: list[str], by: str) -> None:
    for place, name in enumerate(names):
        mine = rows[rows[by] == name].sort_values("t")
        if mine.empty:
            continue
        color = _COLORS[place % len(_COLORS)]
        axes.plot(mine["t"], mine["mean"], color=color, label=name, linewidth=1.6,
                  linestyle=_STYLES[place % len(_STYLES)])  # fmt: skip
        low, high = mine["mean"] - mine["std"], mine["mean"] + mine["std"]
        axes.fill_between(mine["t"], low.clip(lower=0), high, color=color, alpha=0.13, linewidth=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e2de", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)


def points_picture(
    table: pd.DataFrame, value: str, error: str, by: str, rows: str, mark: str | None = None
) -> Figure:
    """Draw grouped points with error bars.

    Parameters
    ----------
    table : DataFrame
    value, error : str
        Columns with the height of a point and half its error bar.
    by : str
        Column that gives a point its colour.
    rows : str
        Column that gives a point its group.
    mark : str or None
        Column that gives a point its marker.
    """
    groups, colors = list(dict.fromkeys(table[rows])), list(dict.fromkeys(table[by]))
    marks = list(dict.fromkeys(table[mark])) if mark else [""]
    series = table[[by, mark] if mark else [by]].drop_duplicates().to_numpy().tolist()
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    for place, names in enumerate(series):
        kind = names[1] if mark else ""
        mine = table[table[by] == names[0]]
        mine = (mine[mine[mark] == kind] if mark else mine).set_index(rows).reindex(groups)
        offset = (place - (len(series) - 1) / 2) * 0.7 / max(len(series), 1)
        axes.errorbar(
            [i + offset for i in range(len(groups))], mine[value], mine[error],
            label=" ".join(map(str, names)), markersize=4, capsize=2, linewidth=1,
            color=_COLORS[colors.index(names[0]) % len(_COLORS)],
            fmt="osD"[marks.index(kind)],
            markerfacecolor="white" if marks.index(kind) else None,
        )  # fmt: skip
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e2de", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, frameon=False, ncols=2)
    return figure


def picture_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a ``png`` or ``svg`` file, the same in every run."""
    file = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with matplotlib.rc_context({"svg.hashsalt": "paper", "svg.fonttype": "none"}):
        figure.savefig(file, format=kind, dpi=120, facecolor="white", metadata=metadata)
    return file.getvalue()
