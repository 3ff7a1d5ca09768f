"""Sections of the page about growth: time, memory, the cost model, other clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.growth import log_slope, straight_line
from benchmarks.memory_bounds import FORMULAS, bounds
from benchmarks.model import TOLERANCE, merged
from benchmarks.page_compare import table
from localkmeans_spark.engine.merge_tree import DIRECT_BYTES, TREE_BYTES

Row = dict[str, Any]

QUANTITIES = {
    "n": ("rows n", "ingest", "iterate"),
    "d": ("features d", "ingest", "iterate"),
    "k": ("clusters K", "seed", "iterate"),
    "m": ("machines m", "ingest", "iterate"),
    "local_steps": ("local steps L", "iterate"),
}


def sweep(rows: Sequence[Row], name: str, phase: str) -> tuple[list[float], list[float]]:
    """Return one quantity's values and the seconds of a phase, the base point among them."""
    found = [row for row in merged(rows) if row["sweep"] in (name, "base")]
    found.sort(key=lambda row: row[name])
    return [row[name] for row in found], [row["seconds"][phase] for row in found]


def growth(rows: Sequence[Row]) -> str:
    """Tell slopes with their intervals."""
    if not rows:
        return ""
    base = next(row for row in rows if row["sweep"] == "base")
    lines = []
    for name, (title, *phases) in QUANTITIES.items():
        for phase in phases:
            x, seconds = sweep(rows, name, phase)
            if len(x) < 3:
                continue
            slope, line = log_slope(x, seconds), straight_line(x, seconds)
            lines.append([
                title, phase, f"{x[0]:,} to {x[-1]:,}", seconds[0], seconds[-1],
                f"{slope.slope:.2f} ({slope.low:.2f} to {slope.high:.2f})",
                f"{line.fixed:.3g} + {line.rate:.2g} x", line.r_squared,
            ])  # fmt: skip
    head = ["grows", "phase", "from, to", "first, s", "last, s",
            "log-log slope (95 %)", "straight line, s", "R²"]  # fmt: skip
    return (
        "## Growth\n\n"
        "`python -m benchmarks.growth`: one quantity grows from the base "
        f"n = {base['n']:,}, d = {base['d']}, K = {base['k']}, m = {base['m']}, "
        f"L = {base['local_steps']}; {base['iterations']} iterations of the plain algorithm, warm "
        "session, the faster of the repeats. Rows are shuffled into the m machines "
        "(`numPartitions`). "
        "A slope below 1 is a fixed cost that larger sizes outgrow: the straight "
        "line says how large it is. More local steps make fewer rounds: a slope below 0. "
        f"Commit {rows[-1]['commit']}.\n\n![growth](benchmarks/growth.png)\n\n" + table(head, lines)
    )


def many_rows(rows: Sequence[Row]) -> str:
    """Tell the time of more and more rows, and where they are kept."""
    if not rows:
        return ""
    lines = []
    for row in rows:
        seconds, kept = row["seconds"], row["kept_bytes"]
        steps = sum(each["steps"] for each in row["rounds"])
        lines.append([
            row["n"], kept["memory"] / 1e6, kept["disk"] / 1e6,
            *[seconds[phase] for phase in ("ingest", "seed", "iterate", "final", "total")],
            f"{1e9 * seconds['iterate'] / row['n'] / steps:.0f}",
        ])  # fmt: skip
    slope = log_slope([row["n"] for row in rows], [row["seconds"]["total"] for row in rows])
    base = rows[0]
    return (
        "## Many rows\n\n"
        "`python -m benchmarks.growth --rows`: narrow rows, until Spark's memory does not hold "
        f"them and blocks go to disk. d = {base['d']}, K = {base['k']}, in {base['m']} files, "
        f"L = {base['local_steps']}, {base['iterations']} iterations, a heap of "
        f"{base['heap_bytes'] / 1e9:.1f} GB. Log-log slope of the total: {slope.slope:.2f}. "
        f"Commit {rows[-1]['commit']}.\n\n"
        + table(
            ["n", "in memory, MB", "on disk, MB", "ingest", "seed", "iterate", "final",
             "total, s", "ns a row and iteration"],
            lines,
        )
    )  # fmt: skip


def memory(rows: Sequence[Row]) -> str:
    """Tell peak memory beside its bounds."""
    if not rows:
        return ""
    lines = []
    for row in rows:
        limit = bounds(row)
        peak = row["peak_bytes"]
        cells = [f"{peak[who] / 1e6:,.0f} of {limit[who] / 1e6:,.0f}" for who in limit]
        lines.append([row["n"], row["d"], row["k"], row["machines"], *cells])
    names = list(bounds(rows[0]))
    said = "".join(f"- {who}: {text}\n" for who, text in FORMULAS.items())
    return (
        "## Memory\n\n"
        "`python -m benchmarks.growth --memory`: each fit in a fresh process; MB at the peak, of "
        "the bound that the formula gives. Driver and worker are resident memory, *storage* the "
        "blocks that Spark keeps.\n\n"
        f"{said}\nCommit {rows[-1]['commit']}.\n\n![memory](benchmarks/memory.png)\n\n"
        + table(["n", "d", "K", "machines", *names], lines)
    )


def cost_model(model: Row | None) -> str:
    """Tell how well the model predicts fits it was not fitted to."""
    if model is None:
        return ""
    checked = model["held_out"]
    within = sum(abs(row["error"]) <= TOLERANCE for row in checked)
    lines = [
        [row["n"], row["d"], row["k"], row["m"], row["local_steps"],
         row["predicted_s"], row["measured_s"], f"{row['error']:+.0%}"]
        for row in checked
    ]  # fmt: skip
    rates = [
        [phase, name, f"{rate:.3g}"]
        for phase, terms in model["rates"].items() for name, rate in terms.items() if rate > 0
    ]  # fmt: skip
    return (
        "## Cost model\n\n"
        "`python -m benchmarks.model`: seconds of each phase as a sum of terms (a job, a task, a "
        "machine, a number moved, a product of the row's work n·K·d, sums merged), rates fitted to "
        f"{model['fitted_to']} measured points and checked on {len(checked)} others: "
        f"**{within} of {len(checked)} within {TOLERANCE:.0%}**.\n\n"
        + table(["n", "d", "K", "m", "L", "predicted, s", "measured, s", "error"], lines)
        + "\nRates in seconds a unit of work; terms of rate 0 are left out:\n\n"
        + table(["phase", "term", "rate"], rates)
    )


def clusters(model: Row | None) -> str:
    """Tell a round's seconds on clusters that were not measured."""
    if model is None:
        return ""
    found = model["clusters"]
    taken = found["assumptions"]
    parts = ("kernel_s", "transport_s", "scheduling_s", "broadcast_s", "aggregation_s", "round_s")
    lines = [
        [f"{row['n']:.0e}", row["d"], row["k"], row["local_steps"], row["executors"],
         len(row["levels"]), *[row[part] for part in parts], row["share_at_driver"],
         row["driver_bytes"] / 1e6, row["memory_share"]]
        for row in found["rounds"]
    ]  # fmt: skip
    head = ["n", "d", "K", "L", "executors", "levels of the tree", "kernel", "transport",
            "scheduling", "broadcast", "aggregation", "round, s", "share outside the executors",
            "sums at the driver, MB", "rows / memory"]  # fmt: skip
    limits = "".join(_limit(row, load) for row, load in zip(
        found["limits"], found["loads"], strict=True))  # fmt: skip
    return (
        "## Clusters of other sizes\n\n"
        "The model's rates on more cores; nothing here was measured on a cluster. Assumed: every "
        f"executor has {taken['cores']} cores like this machine's and keeps its rows in "
        f"{taken['memory'] / 1e9:.0f} GB (rows / memory above 1: it would read from disk); "
        f"rows are spread evenly; every machine's link carries {taken['network'] / 1e9:.2f} GB/s; "
        f"the driver starts {taken['tasks_a_second']:,.0f} tasks a second; Python adds up "
        f"{taken['merge'] / 1e9:.0f} GB/s of sums; a round trip takes {taken['round_trip']} s.\n\n"
        "![clusters](benchmarks/clusters.png)\n\n"
        + table(head, lines)
        + "\nWhere the driver becomes the limit (more than half of a round is scheduling, "
        "broadcast "
        f"and aggregation):\n\n{limits}"
        + "\nWhat the code does before that: L local steps share one exchange; a task holds "
        "several "
        "machines, three tasks a core at most; when all sums together pass "
        f"{DIRECT_BYTES >> 20} MB they are merged through a tree, as deep as leaves the driver at "
        f"most {TREE_BYTES >> 20} MB (`engine.merge_tree`); `engine.limits` refuses centers that "
        "the driver could not hold before the data is read.\n"
    )


def _limit(row: Row | None, load: Row) -> str:
    what = f"n = {load['n']:.0e}, d = {load['d']}, K = {load['k']:,}, L = {load['local_steps']}"
    if row is None:
        return f"- {what}: not up to 100,000 executors\n"
    parts = {name: row[f"{name}_s"] for name in ("scheduling", "broadcast", "aggregation")}
    most = max(parts, key=lambda name: parts[name])
    return f"- {what}: at {row['executors']:,} executors, by {most} ({parts[most]:.3g} s a round)\n"
