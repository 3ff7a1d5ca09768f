"""The part of REPRODUCTION.md that shows each figure: what the paper says of it, and its curves."""

from __future__ import annotations

import pandas as pd

from jobs.paper_claims import ALONE, Judged
from jobs.paper_markdown import markdown_table
from jobs.paper_numbers import Found, Mean

COMPARED_STEPS = (1, 2, 3, 5, 10, 15, 30)

_SAYS: dict[str, tuple[str, tuple[int, ...]]] = {
    "1a": ("without aggregation A stays high; more local steps converge more slowly, to the same "
           "point; L = T/2 drops at each exchange", (1, 2, 3)),
    "1b": ("without aggregation A is acceptable, not as good as centralized; two exchanges "
           "suffice", (2, 3, 4)),
    "1c": ("nothing of this panel alone", ()),
    "1d": ("all methods do well", (5,)),
    "4a": ("a higher r gives better initial centers and a better end; below a threshold nothing "
           "converges", (6,)),
    "4b": ("more clusters do worse", (7,)),
    "4c": ("m = 10 and 20 are alike and end very low; more machines end high", (8,)),
    "2": ("no aggregation is worst; L matters little on Posture and MNIST; on CIFAR-10 L = 1 is "
          "worse than several local steps; L = T/2 is not the best", (9,)),
}  # fmt: skip
"""What the paper's text says of a figure, and the numbers of the claims that judge it."""


def curves_text(found: Found, judged: list[Judged]) -> str:
    """Return every figure with its table of A at some steps."""
    parts = ["## Figure by figure\n"]
    for figure, (says, claims) in _SAYS.items():
        if figure not in found:
            continue
        verdicts = ", ".join(f"{n} {judged[n - 1][2].verdict}" for n in claims)
        after = f" (claim {verdicts})" if claims else ""
        picture = f"![Figure {figure}](figure-{figure}.png)\n"
        words = f"The paper: {says}{after}.\n"
        parts += [f"### Figure {figure}\n", words, picture, _curves(found[figure]["curves"])]
    parts.append(_objectives(found))
    return "\n".join(parts)


def _curves(table: pd.DataFrame) -> str:
    table = table[table["quantity"].isin(["A", "A_own"])].fillna({"line": ""})
    rows: list[dict[str, object]] = []
    for (line, method, quantity), mine in table.groupby(["line", "method", "quantity"], sort=False):
        name = ", ".join(part for part in (line, method) if part)
        name += " (a matching for each machine)" if quantity == "A_own" else ""
        steps = {f"t = {t}": _at(mine, t) for t in COMPARED_STEPS if t in set(mine["t"])}
        rows.append({"curve": name, **steps, "trials": mine["trials"].iloc[0]})
    return markdown_table(rows)


def _at(table: pd.DataFrame, t: int) -> str:
    mine = table[table["t"] == t]
    return str(Mean(mine["mean"].iloc[0], mine["se"].iloc[0])) if len(mine) else ""


def _aggregation_helps(rows: list[dict[str, object]]) -> str:
    """Say where a run without aggregation ends, in both objectives."""
    words = [
        f"{row['data']}, {row['own centers, % of L = 1']} % of L = 1 as drawn, "
        f"{row['common, % of L = 1']} % around common centers"
        for row in rows
        if row["method"] == ALONE
    ]
    return (
        f"Without aggregation: {'; '.join(words)}. As drawn, machines that keep to themselves fit "
        "their own rows well; that aggregation helps shows around common centers.\n"
    )


def _objectives(found: Found) -> str:
    if "3" not in found:
        return ""
    table = found["3"]["curves"]
    rows: list[dict[str, object]] = []
    for line, of_data in table.groupby("line", sort=False):
        ends = {
            method: mine[mine["t"] == mine["t"].max()].set_index("quantity")
            for method, mine in of_data.groupby("method", sort=False)
        }
        for method, last in ends.items():
            row: dict[str, object] = {"data": line, "method": method}
            for name, words in (("objective", "own centers"), ("objective_common", "common")):
                mean, central = last.loc[name, "mean"], ends["L = 1"].loc[name, "mean"]
                row[words] = f"{mean:.5g} ± {last.loc[name, 'se']:.2g}"
                row[f"{words}, % of L = 1"] = f"{100 * mean / central:.2f}"
            rows.append(row)
    return f"""### Figure 3

The paper: little difference between the methods on Posture and MNIST; on CIFAR-10 aggregation
helps, and several local steps end lower than one.

![Figure 3](figure-3.png)

At the end: every machine's rows around the centers it has (as drawn: between exchanges machines
fit their own rows, which lowers it), and all rows around the virtual iterate.

{markdown_table(rows)}
{_aggregation_helps(rows)}"""
