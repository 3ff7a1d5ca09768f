"""The part of REPRODUCTION.md beyond the paper: machines that differ, communication for quality."""

from __future__ import annotations

import pandas as pd

from jobs.paper_markdown import markdown_table
from jobs.paper_numbers import Found


def beyond_text(found: Found) -> str:
    """Show plain against safeguarded fits, and exchanges until the objective is near enough."""
    tables = found["beyond"]
    placements = [
        {"rows on machines": row["placement"], "method": row["method"], "L": row["L"],
         "objective above centralized, %": f"{100 * (row['relative'] - 1):.2f} ± "
         f"{100 * row['relative_se']:.2f}",
         "worst, %": f"{100 * (row['worst'] - 1):.2f}", "exchanges": f"{row['exchanges']:.1f}",
         "MB": f"{row['bytes'] / 1e6:.2f}", "trials": row["trials"]}
        for _, row in tables["placements"].iterrows()
    ]  # fmt: skip
    reach = tables["reach"]
    reach = reach[reach["placement"] == "random"]
    reached: list[dict[str, object]] = [
        {"method": row["method"], "L": row["L"], "reached": f"{row['reached']} of {row['trials']}",
         "exchanges": f"{row['exchanges']:.1f}"
         + (f" ± {row['exchanges_se']:.1f}" if row["reached"] > 1 else ""),
         "MB": f"{row['bytes'] / 1e6:.2f}"}
        if row["reached"] else
        {"method": row["method"], "L": row["L"], "reached": f"0 of {row['trials']}",
         "exchanges": "never", "MB": ""}
        for _, row in reach.iterrows()
    ]  # fmt: skip
    return f"""## Beyond the paper

Machines that hold different rows, r = 3.01, through `LocalKMeans.fit` from the same initial
centers, at most 30 iterations: the plain algorithm against the library's safeguard, which adapts
L while the fit runs (fewer local steps once they gain less than the machines differ).

![Objective above the centralized one](figure-beyond.png)

{markdown_table(placements)}
{safeguard_text(tables["placements"])}
Communication until the objective is within 0.1 % of the centralized one (rows placed at random;
means over the trials that got there; the others ended in another local optimum):

{markdown_table(reached)}
{_saving(tables["fits"])}"""


def safeguard_text(placements: pd.DataFrame) -> str:
    """Say where the safeguard leaves the objective more than 1 % above the centralized one."""
    guarded = placements[placements["method"] == "safeguarded"]
    left = guarded[guarded["relative"] > 1.01]
    if left.empty:
        worst = 100.0 * (guarded["relative"].max() - 1.0)
        return f"Safeguarded, no mean is more than 1 % above the centralized one ({worst:.2f} %).\n"
    words = ", ".join(
        f"{row['placement']} at L = {row['L']} ({100 * (row['relative'] - 1):.2f} %)"
        for _, row in left.iterrows()
    )
    return f"The safeguard leaves the mean more than 1 % above the centralized one for: {words}.\n"


def _saving(fits: pd.DataFrame) -> str:
    """Say how many times fewer exchanges each L needs than L = 1, over trials that both share."""
    table = (
        fits[fits["placement"] == "random"]
        .astype({"L": int})
        .pivot_table(index="trial", columns=["method", "L"], values="reach_exchanges", dropna=False)
    )
    if ("plain", 1) not in table:
        return ""
    one = table["plain", 1]
    times: dict[str, list[str]] = {"plain": [], "safeguarded": []}
    for method, steps in table:
        both = one.notna() & table[method, steps].notna()
        spent = table.loc[both, (method, steps)].sum()
        # Of the few trials that most of them missed, none says much.
        if steps > 1 and spent > 0 and both.sum() >= len(one) / 2:
            times[method].append(f"{one[both].sum() / spent:.1f} times fewer for L = {steps}")
    words = "; ".join(f"{method}, {', '.join(each)}" for method, each in times.items() if each)
    return (
        "L times fewer exchanges for the same T is not L times fewer for the same quality. Against "
        "L = 1, over the trials where both came near enough, if those are at least half: "
        f"{words or 'none'}.\n"
    )
