"""Sections of the page about what initial centers are worth, and about fits of cached data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.page_compare import table

Row = dict[str, Any]
# Costs that end in the same optimum differ in the last digits.
SAME = 1.0005


def seeding(rows: Sequence[Row]) -> str:
    """Tell the cost after seeding and iterating, beside scikit-learn's."""
    if not rows:
        return ""
    lines: list[list[Any]] = []
    for row in rows:
        theirs, ours = row["ratios"]["scikit-learn"], row["ratios"]["k-means++"]
        plain, three = row["ratios"]["local-k-means++"], row["ratios"]["nInit=3"]
        lines.append([
            f"{row['data']}, {row['n']:,} × {row['d']}, k = {row['k']}",
            *[f"{np.median(found):.3f}, {max(found):.3f}" for found in (ours, plain, theirs)],
            f"{np.median(three) / min(theirs):.3f}, {max(three) / min(theirs):.3f}",
        ])  # fmt: skip
    medians = [float(np.median(row["ratios"]["k-means++"])) for row in rows]
    best = [np.median(row["ratios"]["nInit=3"]) / min(row["ratios"]["scikit-learn"])
            for row in rows]  # fmt: skip
    seeds = len(rows[0]["ratios"]["k-means++"])
    return (
        "## Initial centers\n\n"
        f"`python -m benchmarks.seeding --data ../shared/data`: {seeds} seeds, simulated in one "
        "process with the engine's functions. Cost after 20 Lloyd iterations from each seeding, "
        "divided by the median of scikit-learn's (greedy k-means++ on all rows): median, worst. "
        "Last column: fits with `nInit=3`, divided by the best of all of scikit-learn's. "
        f"Commit {rows[-1]['commit']}.\n\n"
        + table(
            ["data", "k-means++ (default)", "local-k-means++ (the paper's)", "scikit-learn",
             f"nInit=3 / best of {seeds}"],
            lines,
        )
        + f"\nAt most scikit-learn's median (wanted everywhere; equal to {SAME - 1:.2%}): "
        f"{sum(m <= SAME for m in medians)} of {len(rows)}, the worst {max(medians):.4f}. "
        f"`nInit=3` at most the best of {seeds} (its median): {sum(b <= SAME for b in best)} of "
        f"{len(rows)}, the worst {max(best):.4f}.\n"
    )  # fmt: skip


def cached(rows: Sequence[Row]) -> str:
    """Tell the fits of a cached DataFrame in a warm session."""
    if not rows:
        return ""
    text = [
        "## Fits of a cached DataFrame\n\n"
        "`python -m benchmarks.cached`: a notebook's case, a warm session with the rows cached as "
        "vectors (what MLlib needs) or arrays; fits in alternation, medians.\n"
    ]
    for row in rows:
        lines = [
            [name, found["seconds"], found["ratio"], found["cost"] / _best_cost(row)]
            for name, found in row["fits"].items()
        ]
        text.append(
            f"{row['n']:,} × {row['d']}, k = {row['k']}, {row['iterations']} iterations; MLlib's "
            f"BLAS: {row['blas']}. Commit {row['commit']}.\n\n"
            + table(["fit", "seconds", "MLlib's best / it", "cost / ours"], lines)
        )
    return "\n".join(text)


def _best_cost(row: Row) -> float:
    return float(row["fits"]["ours, vectors"]["cost"])
