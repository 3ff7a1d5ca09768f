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
         "exchanges": f"{row['exchanges']:.1f} ± {row['exchanges_se']:.1f}",
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

{markdown_table(placements)}
{safeguard_text(tables["placements"])}
Communication until the objective is within 0.1 % of the centralized one (rows placed at random;
means over the trials that got there; the others ended in another local optimum):

{markdown_table(reached)}
{_saving(reach)}"""


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


def _saving(reach: pd.DataFrame) -> str:
    plain = reach[(reach["method"] == "plain") & reach["exchanges"].notna()].copy()
    plain["L"] = plain["L"].astype(int)
    plain = plain.set_index("L")
    if 1 not in plain.index:
        return ""
    one = plain.loc[1, "exchanges"]
    words = ", ".join(
        f"{one / plain.loc[steps, 'exchanges']:.1f} times fewer for L = {steps}"
        for steps in plain.index
        if steps > 1 and plain.loc[steps, "exchanges"] > 0
    )
    return (
        "L times fewer exchanges for the same T is not L times fewer for the same quality: "
        f"it was {words}.\n"
    )
