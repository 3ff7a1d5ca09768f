"""Write docs/BENCHMARKS.md from benchmarks/results/*.json: ``python -m benchmarks.page``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import jinja2

from benchmarks.growth import SWEEPS, Point

Row = dict[str, Any]
RESULTS, DOCS = Path("benchmarks/results"), Path("docs")
PEERS = {"mllib": "MLlib", "sklearn": "scikit-learn", "faiss": "faiss"}
GROWS = {"n": "rows", "d": "features", "k": "clusters", "m": "partitions", "local_steps": "L"}
PHASES = {"ingest": "read", "seed": "seed", "iterate": "iterate", "final": "end", "total": "all"}
# Rows alike in these were measured again: the last commit's are shown.
_SAME = {"growth": ("kind", *Point._fields), "seeding": ("data",), "many": ("n", "d", "k")}


def load(folder: Path) -> dict[str, list[Row]]:
    """Return benchmark → rows, in the order of measuring, each with what it comes from."""
    machines: dict[str, str] = {}
    found: dict[str, list[Row]] = {}
    for path in sorted(folder.glob("*.json")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        last: dict[Any, str] = {}
        for row in rows:
            text = "{processor}, {cores} cores, {memory_gb} GB, {system}; ".format(**row["machine"])
            row["on"] = text + ", ".join(" ".join(item) for item in row["versions"].items())
            letter = machines.setdefault(row["on"], chr(ord("A") + len(machines)))
            row["source"] = f"{row['commit']}, {row['date']}, {letter}"
            row["same"] = tuple(row[name] for name in _SAME.get(path.stem, ()))
            last[row["same"]] = row["source"]
        old = [row["same"] and row["source"] != last[row["same"]] for row in rows]
        found[path.stem] = [row for row, is_old in zip(rows, old, strict=True) if not is_old]
    return found


def comparisons(rows: list[Row]) -> list[Row]:
    """Return the last run of every comparison, as system → row, with MLlib's faster solver."""
    runs: dict[tuple[Any, ...], Row] = {}
    run: Row = {}
    for row in (row for row in rows if "skipped" not in row):
        if row["system"] == "ours":
            run = runs[row["warm_up"], row["noise"], row["n"], row["d"], row["k"]] = {}
        row["parquet_s"] = row["total_s"] - row["start_s"]
        if row["parquet_s"] <= run.get(row["system"], row)["parquet_s"]:
            run[row["system"]] = row
            row["ratio_parquet"] = row["parquet_s"] / run["ours"]["parquet_s"]
    return [runs[key] for key in sorted(runs)]


def sweep(rows: list[Row], name: str) -> list[Row]:
    """Return the faster fit for each value of one quantity, all others as in the base point."""
    points = [("time", *Point()._replace(**{name: value})) for value in SWEEPS[name]]
    fits = [[row for row in rows if row["same"] == point] for point in points]
    return [min(found, key=lambda row: row["seconds"]["total"]) for found in fits if found]


def size(row: Row) -> str:
    """Name rows, features, clusters, and what is special about a comparison."""
    told = f"{row['n']:,} × {row['d']:,}, k = {row['k']:,}"
    told += ", overlapping" if row.get("noise", 1) > 1 else ""
    return told + (", second fit of a session" if row.get("warm_up") else "")


def number(x: float | None) -> str:
    return "–" if not x else f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def render(results: dict[str, list[Row]]) -> str:
    """Return the page."""
    cached = results["cached"][::-1]
    return jinja2.Template(
        Path(__file__).with_name("page.md.j2").read_text(), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    ).render(
        {**results, "peers": PEERS, "grows": GROWS, "phases": PHASES},
        size=size, number=number, median=median,
        machines={row["source"][-1]: row["on"] for rows in results.values() for row in rows},
        runs=comparisons(results["compare"]),
        classic=next(row for row in cached if not row.get("connect")),
        connect=next((row for row in cached if row.get("connect")), None),
        sweeps={name: sweep(results["growth"], name) for name in GROWS},
        memory=[row for row in results["growth"] if row["kind"] == "memory"],
        cluster=[row for row in results["growth"] if row["kind"] == "cluster"],
    )  # fmt: skip


def draw(results: dict[str, list[Row]], folder: Path) -> None:
    """Draw both pictures of the page."""
    from matplotlib import pyplot as plt

    runs = comparisons(results["compare"])
    figure, ax = plt.subplots(figsize=(9, 0.6 * len(runs) + 1), layout="constrained")
    for i, (peer, title) in enumerate(PEERS.items()):
        ratios = {y: run[peer]["ratio_parquet"] for y, run in enumerate(runs) if peer in run}
        bars = ax.barh([y + 0.27 * i for y in ratios], list(ratios.values()), 0.25, label=title)
        ax.bar_label(bars, [f"{ratio:.1f}" for ratio in ratios.values()], padding=2, size="small")
    ax.set_yticks([y + 0.27 for y in range(len(runs))], [size(run["ours"]) for run in runs])
    ax.set(xscale="log", xlabel="their seconds / ours, Parquet to model")
    ax.set_xticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1", "2", "5", "10", "20"])
    ax.axvline(1, color="black", linewidth=0.8)
    ax.invert_yaxis()
    ax.legend()
    figure.savefig(folder / "compare.png", dpi=110)
    figure, axes = plt.subplots(1, len(GROWS), figsize=(13, 3), sharey=True, layout="constrained")
    for ax, (name, title) in zip(axes, GROWS.items(), strict=True):
        fits = sweep(results["growth"], name)
        for phase, told in PHASES.items():
            seconds = [fit["seconds"][phase] for fit in fits]
            ax.loglog([fit[name] for fit in fits], seconds, "o-", markersize=3, label=told)
        ends = [fits[0][name], fits[-1][name]]
        ax.set(xlabel=title, xticks=ends, xticklabels=map("{:,}".format, ends))
        ax.xaxis.minorticks_off()
    axes[0].set_ylabel("seconds")
    axes[0].legend(fontsize="small")
    figure.savefig(folder / "growth.png", dpi=110)


if __name__ == "__main__":
    found = load(RESULTS)
    draw(found, DOCS / "benchmarks")
    (DOCS / "BENCHMARKS.md").write_text(render(found))
