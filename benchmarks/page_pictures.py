"""Pictures of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.ticker import NullFormatter

from benchmarks.memory_bounds import bounds
from benchmarks.page_compare import by_size, from_parquet, name_of, plain, title_of
from benchmarks.page_growth import QUANTITIES, sweep

Row = dict[str, Any]


def compare(rows: Sequence[Row], path: Path) -> None:
    """Draw peer / ours from Parquet to model, by size."""
    groups = by_size(plain(rows))
    if not groups:
        return
    names = list(dict.fromkeys(
        name_of(row) for found in groups.values() for row in found
        if row["system"] != "ours" and "skipped" not in row
    ))  # fmt: skip
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    width = 0.8 / max(1, len(names))
    for place, name in enumerate(names):
        x, ratios = [], []
        for group, found in enumerate(groups.values()):
            ours = from_parquet(next(row for row in found if row["system"] == "ours"))
            for row in found:
                if name_of(row) == name and "skipped" not in row:
                    x.append(group + (place - (len(names) - 1) / 2) * width)
                    ratios.append(from_parquet(row) / ours)
        axes.bar(x, ratios, width, label=name)
    axes.axhline(1.0, color="black", linewidth=1)
    axes.set_yscale("log")
    axes.set_ylabel("seconds of the peer / ours, Parquet to model")
    axes.yaxis.set_major_formatter("{x:g}")
    titles = [title_of(size).replace(", ", "\n") for size in groups]
    axes.set_xticks(range(len(groups)), titles, fontsize=8)
    figure.legend(loc="outside upper center", ncols=len(names), fontsize=8)
    _save(figure, path)


def growth(rows: Sequence[Row], path: Path) -> None:
    """Draw seconds over each quantity, on logarithmic scales."""
    if not rows:
        return
    figure, axes = plt.subplots(1, len(QUANTITIES), figsize=(14, 3.2), layout="constrained")
    for axis, (name, (title, *_)) in zip(axes, QUANTITIES.items(), strict=True):
        for phase in ("ingest", "seed", "iterate", "final"):
            x, seconds = sweep(rows, name, phase)
            axis.loglog(x, seconds, marker="o", markersize=3, label=phase)
        axis.xaxis.set_minor_formatter(NullFormatter())  # else labels overlap
        axis.set_xlabel(title)
    axes[0].set_ylabel("seconds")
    axes[0].legend(fontsize=8)
    _save(figure, path)


def memory(rows: Sequence[Row], path: Path) -> None:
    """Draw measured peaks over their bounds."""
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    for who in bounds(rows[0]):
        limits = [bounds(row)[who] / 1e6 for row in rows]
        axes.loglog(limits, [row["peak_bytes"][who] / 1e6 for row in rows], "o", label=who)
    ends = axes.get_xlim()
    axes.plot(ends, ends, color="black", linewidth=1)
    axes.set_xlabel("bound by the formula, MB")
    axes.set_ylabel("measured peak, MB")
    axes.legend(fontsize=8)
    _save(figure, path)


def clusters(model: Row, path: Path) -> None:
    """Draw the parts of a round by executors, a panel for every load."""
    rounds = model["clusters"]["rounds"]
    loads = model["clusters"]["loads"]
    figure, axes = plt.subplots(
        1, len(loads), figsize=(3.5 * len(loads), 3.4), layout="constrained"
    )
    for axis, load in zip(axes, loads, strict=True):
        found = [row for row in rounds if all(row[name] == load[name] for name in load)]
        for part in ("kernel", "transport", "scheduling", "broadcast", "aggregation"):
            x, seconds = [row["executors"] for row in found], [row[f"{part}_s"] for row in found]
            axis.loglog(x, seconds, marker="o", markersize=3, label=part)
        axis.set_title(
            "n = {n:.0e}, d = {d}, K = {k}, L = {local_steps}".format(**load), fontsize=8
        )
        axis.set_xlabel("executors")
    axes[0].set_ylabel("seconds a round")
    axes[0].legend(fontsize=7)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
