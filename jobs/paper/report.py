"""The figures as PNG and SVG, means with a band of one standard deviation, and one report."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jobs.paper import tables as tb
from jobs.paper.claims import claims_markdown, claims_table
from jobs.paper.experiments import PAPER_STEPS, PLAIN_MEAN, THREE
from jobs.paper.tables import Tables

TITLES = {
    "1a": "Figure 1a: LocalKMeans++, r = 3.01",
    "1b": "Figure 1b: LocalKMeans++, r = 6.02",
    "1c": "Figure 1c: perturbed truth, r = 3.01",
    "1d": "Figure 1d: perturbed truth, r = 6.02",
    "2": "Figure 2: misclustering on real data",
    "3": "Figure 3: K-means objective on real data",
    "4a": "Appendix figure a: signal-to-noise ratio (L = 3)",
    "4b": "Appendix figure b: number of clusters (L = 3, r = 3.01)",
    "4c": "Appendix figure c: number of machines (L = 3, mn = 4000, r = 3.01)",
    "seeding": "The seeding's luck (L = 3)",
    "beyond": "Beyond the paper: machines with different rows",
}
# Petroff's colours (arXiv:2107.02270); the line styles tell curves apart without them.
_COLORS = ("#3f90da", "#e39400", "#bd1f01", "#832db6", "#717581", "#45aeb2", "#a96b59")
_STYLES = ("-", "--", "-.", ":", (0, (6, 2, 1, 2)), (0, (3, 1)), (0, (1, 1)))


def draw(figure: str, tables: Tables) -> Figure | None:
    """Draw a figure in the paper's form; None for one that is a table only."""
    if figure == "seeding":
        table = tables["restarts"].assign(of=[f"r = {r}" for r in tables["restarts"]["r"]])
        return _points(table, "mean", "se", "seeding", "of", "final misclustering A, ± 1 se")
    if figure == "beyond":
        table = tables["placements"]
        table = table.assign(
            of=[f"L = {row.L} {row.method}" for row in table.itertuples()],
            above=100.0 * (table["relative"] - 1.0), error=100.0 * table["relative_se"].fillna(0.0),
        )  # fmt: skip
        label = "objective above centralized, %"
        return _points(table, "above", "error", "placement", "of", label)
    if figure not in TITLES:
        return None
    table = tables["curves"]
    quantity = "objective" if figure == "3" else "A"
    if figure in ("2", "3"):
        return _curves(table, dict(iter(table.groupby("line", sort=False))), quantity, "method")
    if figure.startswith("4"):
        panels = {"L = 3, size-weighted mean (Algorithm 1)": table[table["method"] == THREE.name]}
        if figure == "4c":
            plain = table[table["method"] == PLAIN_MEAN.name]
            panels["L = 3, plain mean (Section 1.1)"] = plain
        return _curves(table, panels, quantity, "line")
    shown = table[table["method"] != PLAIN_MEAN.name]
    return _curves(shown, {TITLES[figure]: shown}, quantity, "method")


def _curves(table: pd.DataFrame, panels: Tables, quantity: str, by: str) -> Figure:
    """Draw panels of curves against t; ``by`` tells curves apart, in the order of the table."""
    figure = Figure(figsize=(5.4 * len(panels), 3.4), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, rows) in zip(all_axes, panels.items(), strict=True):
        rows = rows[rows["quantity"] == quantity]
        for place, name in enumerate(dict.fromkeys(table[by])):
            mine = rows[rows[by] == name].sort_values("t")
            color, style = _COLORS[place % len(_COLORS)], _STYLES[place % len(_STYLES)]
            axes.plot(mine["t"], mine["mean"], color=color, linestyle=style, label=name)
            low, high = mine["mean"] - mine["std"], mine["mean"] + mine["std"]
            axes.fill_between(mine["t"], low.clip(lower=0), high, color=color, alpha=0.13, lw=0)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("iteration t")
        axes.set_ylabel("misclustering A" if quantity == "A" else "K-means objective")
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axes.margins(x=0.01)
        if quantity == "A":
            axes.set_ylim(0)
        _plain(axes)
    return figure


def _points(
    table: pd.DataFrame, value: str, error: str, group: str, series: str, label: str
) -> Figure:
    """Draw groups of points with error bars, a colour for each series."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    groups, names = list(dict.fromkeys(table[group])), list(dict.fromkeys(table[series]))
    for place, name in enumerate(names):
        mine = table[table[series] == name].set_index(group).reindex(groups)
        offset = (place - (len(names) - 1) / 2) * 0.7 / len(names)
        guarded = "safeguarded" in name
        color = _COLORS[place % len(_COLORS)]
        axes.errorbar([i + offset for i in range(len(groups))], mine[value], mine[error],
                      label=name, fmt="s" if guarded else "o", markersize=4, capsize=2, lw=1,
                      color=color, markerfacecolor="white" if guarded else color)  # fmt: skip
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel(label)
    axes.legend(fontsize=8, frameon=False, ncols=2)
    _plain(axes)
    return figure


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e2de", linewidth=0.6)
    axes.set_axisbelow(True)


def write_figure(folder: Path, figure: str, tables: Tables) -> None:
    """Write the tables of a figure and its picture; the same bytes in every run."""
    for name, table in tables.items():
        tb.write(folder / tb.csv_name(figure, name), tb.csv_bytes(table))
    picture = draw(figure, tables)
    if picture is None:
        return
    for kind in ("png", "svg"):
        file, metadata = io.BytesIO(), {"Date": None} if kind == "svg" else {"Software": None}
        with matplotlib.rc_context({"svg.hashsalt": "paper", "svg.fonttype": "none"}):
            picture.savefig(file, format=kind, dpi=120, facecolor="white", metadata=metadata)
        tb.write(folder / f"figure-{figure}.{kind}", file.getvalue())


def write_report(folder: Path) -> Path:
    """Write claims.csv, misclustering.csv and report.md from all CSV files in the folder."""
    found = tb.read_tables(folder, (*TITLES, "choices"))
    claims = claims_table(found)
    tb.write(folder / "claims.csv", tb.csv_bytes(claims))
    curves = [tables["curves"] for tables in found.values() if "curves" in tables]
    if curves:
        tb.write(
            folder / "misclustering.csv", tb.csv_bytes(tb.misclustering_table(curves), digits=5)
        )
    pictures = [
        f"## {title}\n\n![{title}](figure-{figure}.png)\n"
        for figure, title in TITLES.items()
        if figure in found
    ]
    small = any((table.get("T", pd.Series(PAPER_STEPS)) < 20).any() for table in curves)
    text = ["# The LocalKMeans paper, reproduced\n", claims_markdown(claims), *pictures]
    if small:
        text.insert(1, "Some figures were run small (`--quick`): their verdicts mean nothing.\n")
    tb.write(folder / "report.md", "\n".join(text).encode())
    return folder / "report.md"
