"""Sections of the page about speed: peers, where the time goes, local steps, history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
Groups = dict[tuple[int, int, int], list[Row]]


def table(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table; None is a dash, floats have three digits that count."""
    rows = [list(head), ["---"] * len(head), *[[_cell(item) for item in line] for line in lines]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def machine(rows: Sequence[Row]) -> str:
    """Say where the figures come from."""
    if not rows:
        return ""
    last = rows[-1]
    box, versions = last["machine"], last["versions"]
    memory = f", {box['memory_gb']} GB" if "memory_gb" in box else ""
    packages = ", ".join(f"{name} {number}" for name, number in versions.items())
    return (
        f"Machine: {box['processor']}, {box['cores']} cores{memory}, {box['system']}; {packages}.\n"
    )


def plain(rows: Iterable[Row]) -> list[Row]:
    """Keep comparisons of cold processes that seed for themselves."""
    special = ("given_centers", "warm_up", "latency")
    return [row for row in rows if not any(row.get(name) for name in special)]


def by_size(rows: Iterable[Row]) -> Groups:
    """Group rows by n, d, k; of each size, those of the commit measured last."""
    groups: Groups = {}
    for row in rows:
        groups.setdefault((row["n"], row["d"], row["k"]), []).append(row)
    return {
        size: [row for row in found if row["commit"] == found[-1]["commit"]]
        for size, found in groups.items()
    }


def from_parquet(row: Row) -> float:
    """Return the seconds from Parquet to model in a session that is open."""
    return float(row["total_s"] - row["start_s"])


def name_of(row: Row) -> str:
    return f"{row['system']}, {row['solver']}"


def title_of(size: tuple[int, int, int]) -> str:
    return "{:,} × {}, k = {:,}".format(*size)


def peers(rows: Sequence[Row]) -> str:
    """Tell every comparison."""
    if not rows:
        return ""
    text = [
        "## Against other libraries\n\n"
        "`python -m benchmarks.compare --n 2000000 --d 64 --k 100 --peers "
        "mllib,sklearn,dask-ml,faiss"
        " --repeats 3 --json OUT`: fresh processes in alternation, the same Parquet, "
        "iterations and "
        "cores; medians. *start* is imports and, with Spark, the session; *read* Parquet to "
        "rows in "
        "the form a fit works on (MLlib: cached vectors; ours: cached blocks); *seed* initial "
        "centers, each system's own default for quality (MLlib and dask-ml: k-means||; "
        "scikit-learn:"
        " greedy k-means++; faiss: k-means++); *iterate* the rest. MLlib's seeding time is "
        "what its "
        "log says. Ratios are peer / ours: above 1, ours is faster, or its cost lower. Costs are "
        "computed by one function for all, in float64.\n\n![ratios](benchmarks/compare.png)\n"
    ]
    for size, found in by_size(plain(rows)).items():
        text.append(f"### {title_of(size)}\n\nCommit {found[-1]['commit']}.\n\n{_compared(found)}")
    given = by_size(row for row in rows if row.get("given_centers"))
    for size, found in given.items():
        text.append(
            f"### {title_of(size)}, all from the same random rows\n\n"
            f"`--given-centers`. Commit {found[-1]['commit']}.\n\n{_compared(found)}"
        )
    for size, found in by_size(row for row in rows if row.get("warm_up")).items():
        text.append(
            f"### {title_of(size)}, the second fit of a session\n\n"
            f"`--warm-up`. Commit {found[-1]['commit']}.\n\n{_compared(found)}"
        )
    return "\n".join(text)


def _compared(rows: Sequence[Row]) -> str:
    seconds = ("start_s", "read_s", "seed_s", "iterate_s", "total_s")
    ratios = ("ratio_total", "ratio_iterate", "ratio_cost")
    head = ["system", "start", "read", "seed", "iterate", "total, s", "iterations",
            "total", "from Parquet", "iterate", "cost: peer / ours"]  # fmt: skip
    ours = next(row for row in rows if row["system"] == "ours")
    lines = [
        [name_of(row), *[row[name] for name in seconds], int(row["iterations"]),
         row[ratios[0]], from_parquet(row) / from_parquet(ours), row[ratios[1]], row[ratios[2]]]
        for row in rows if "skipped" not in row
    ]  # fmt: skip
    skipped = [f"{name_of(row)}: left out, {row['skipped']}.\n" for row in rows if "skipped" in row]
    return table(head, lines) + "".join(["\n", *skipped] if skipped else [])


def where(rows: Sequence[Row]) -> str:
    """Tell where the time goes, at the first and at the last commit measured."""
    if not rows:
        return ""
    commits = list(dict.fromkeys(row["commit"] for row in rows))
    text = [
        "## Where the time goes\n\n"
        "`python -m benchmarks.phases`: each part measured by itself in a warm session, seconds. "
        "A round is scheduling + transport + aggregation + kernel; product, comparison and cluster "
        "sums are measured on one core and scaled to all rows.\n"
    ]
    for commit in dict.fromkeys([commits[0], commits[-1]]):
        found = [row for row in rows if row["commit"] == commit]
        names = list(found[0]["parts"])
        titles = [title_of((row["n"], row["d"], row["k"])) for row in found]
        lines: list[list[Any]] = [[n, *[row["parts"].get(n) for row in found]] for n in names]
        lines.append(["**whole fit**", *[row["fit"]["total"] for row in found]])
        lines.append(["outside the kernel, L = 5", *[row["outside_share"] for row in found]])
        lines.append(["first step / bare product", *[row["step_by_product"] for row in found]])
        text.append(f"Commit {commit}:\n\n{table(['part', *titles], lines)}")
    return "\n".join(text)


def local_steps(rows: Sequence[Row]) -> str:
    """Tell the time to come close to the centralized result."""
    if not rows:
        return ""
    steps = list(dict.fromkeys(row["local_steps"] for row in rows))
    cells = {(r["n"], r["d"], r["k"], r["latency"], r["local_steps"]): r for r in rows}
    lines = []
    for key in dict.fromkeys(key[:4] for key in cells):
        found = {step: (cells.get((*key, step)) or {}).get("seconds") for step in steps}
        fixed = [value for step, value in found.items() if value and step != "auto"]
        of_best = found["auto"] / min(fixed) if fixed and found.get("auto") else None
        lines.append([title_of(key[:3]), key[3], *found.values(), of_best])
    return (
        "## Local steps\n\n"
        "`python -m benchmarks.local_steps`: seconds of rounds until the centers are within "
        "0.1 % of"
        " plain Lloyd's after 20 iterations from the same centers (default seeding), by L and by "
        "latency added to every exchange; medians. A dash: not reached in every repeat. Commit "
        f"{rows[-1]['commit']}.\n\n"
        + table(["size", "latency, s", *[f"L = {step}" for step in steps], "auto / best"], lines)
    )


def versions(rows: Sequence[Row], quick: Sequence[Row]) -> str:
    """Tell ratios by commit, of ``make bench-quick`` and of the comparisons above."""
    names = ("mllib, block", "mllib, row", "sklearn, lloyd", "dask-ml, lloyd", "faiss, lloyd")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in [*quick, *plain(rows)]:
        groups.setdefault((row["n"], row["d"], row["k"], row["commit"]), []).append(row)
    lines = []
    for (n, d, k, commit), found in groups.items():
        seconds = {name_of(row): from_parquet(row) for row in found if "skipped" not in row}
        ours = seconds["ours, local steps"]
        ratios = [seconds[name] / ours if name in seconds else None for name in names]
        lines.append([title_of((n, d, k)), commit, ours, *ratios])
    if not lines:
        return ""
    return (
        "## Version by version\n\nSeconds of ours from Parquet to model, and ratios peer / ours. "
        "`make bench-quick` adds a line for 200,000 × 64.\n\n"
        + table(["size", "commit", "ours, s", *names], lines)
    )
