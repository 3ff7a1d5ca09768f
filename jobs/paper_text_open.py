"""The part of REPRODUCTION.md about what the paper leaves open, the mean and the seeding's luck."""

from __future__ import annotations

import pandas as pd

from jobs.paper_claims import ALONE, FAILS, HALF, HOLDS, ends_high
from jobs.paper_markdown import markdown_table
from jobs.paper_numbers import Found, Mean, above, errors, mean_of, paired

_BY_SIZE, _PLAIN = "L = 3", "L = 3, plain mean"


def means_text(found: Found) -> str:
    """Say which of the two means reproduces which picture: by size, or the plain 1/m mean."""
    places = [
        (figure, line)
        for figure in ("1a", "1b", "1c", "1d", "4a", "4b", "4c")
        if figure in found
        for line in dict.fromkeys(found[figure]["trials"]["line"].fillna(""))
    ]
    rows: list[dict[str, object]] = []
    alike, apart = True, []
    for figure, line in places:
        by_size = errors(found, figure, _BY_SIZE, line=line)
        plain = errors(found, figure, _PLAIN, line=line)
        difference = paired(plain, by_size)
        if above(difference) and not figure.startswith("4c"):
            apart.append(f"{', '.join(part for part in (figure, line) if part)} ({difference})")
        if figure.startswith("1"):
            alike = alike and abs(difference.mean) <= max(2.0 * difference.se, 0.005)
        rows.append({
            "figure": ", ".join(part for part in (figure, line) if part),
            "by size": mean_of(by_size), "plain": mean_of(plain), "plain - by size": difference,
        })  # fmt: skip
    size_verdict, plain_verdict = (
        HOLDS if ends_high(found, method) else FAILS for method in (_BY_SIZE, _PLAIN)
    )
    high = "both" if alike else "not both alike"
    return f"""## Which mean

Algorithm 1 weighs a machine's center by its number of rows; Section 1.1 and the 2-cluster theory
write the plain mean over machines. Final A at L = 3, from the same data and initial centers:

{markdown_table(rows)}
- Figure 1 (200 rows a machine): {high} give the same end (within 2 se, or 0.005).
- Where else the plain mean ends higher by two standard errors: {", ".join(apart) or "nowhere"}.
- That many machines with few points end high (appendix figure c): by size
  **{size_verdict}**, plain mean **{plain_verdict}**.
  {_conclusion(size_verdict, plain_verdict)}
"""


def _conclusion(by_size: str, plain: str) -> str:
    if plain == HOLDS and by_size == FAILS:
        return (
            "The plain mean draws the paper's picture: a machine without rows of a cluster still "
            "brings its old center into it. Algorithm 1 as written does not show that failure."
        )
    if by_size == HOLDS and plain != HOLDS:
        return "Algorithm 1 as written draws the paper's picture."
    return "This does not tell the two apart."


def _final(found: Found, figure: str) -> pd.DataFrame:
    table = found[figure]["curves"]
    table = table[table["quantity"] == "A"]
    return table[table["t"] == table["T"]]


def choices_text(found: Found) -> str:
    """List the choices made, and what they change."""
    rows = [
        {"choice": row["line"], "method": row["method"], "final A": Mean(row["mean"], row["se"])}
        for _, row in _final(found, "choices").iterrows()
    ]
    return f"""## What the paper leaves open

- **T** is not given; we take 30. It says when {HALF} exchanges, and hardly where it ends.
  {_spread_over(found, "T = ")}
- **The size of the perturbation** is not given; we take a standard deviation of 0.1 in each of the
  100 coordinates (length 1, as long as a center). It decides what is seen without aggregation.
- **d in LocalKMeans++** is read as squared distance, as in k-means++. {_distances(found)}
- **Which matching**: one best matching for the counts of all machines, at every step anew; all
  figures draw this one. Without aggregation machines may number clusters differently, so the
  tables also give A with a matching for each machine (final, {_matchings(found)}).
- **Which mean**: size-weighted, as Algorithm 1 has it; see above for the plain mean.
- **Posture's 38 numbers**: 12 markers are 36; a missing one takes the mean of the row's visible
  ones, and the number of visible markers (times 10) and their spread are the other two. The
  file's own 38 columns cannot be meant: two of them are the class and the person.
- **Cluster sizes**: every point's cluster is drawn independently, all alike.
- **r, K and m of the appendix figure**: K and m panels at r = 3.01.

{markdown_table(rows)}"""


def _spread_over(found: Found, prefix: str) -> str:
    """Say between which values final A lies over the choices whose names begin alike."""
    table = _final(found, "choices")
    table = table[table["line"].str.startswith(prefix)]
    words = [
        f"{method} {mine['mean'].min():.3f} to {mine['mean'].max():.3f}"
        for method, mine in table.groupby("method", sort=False)
    ]
    return f"Final A over the T tried: {', '.join(words)}."


def _distances(found: Found) -> str:
    """Say how much plain instead of squared distances change."""
    table = found["choices"]["trials"]
    words = []
    for line in dict.fromkeys(table["line"]):
        if str(line).startswith("plain distance"):
            squared = str(line).replace("plain", "squared")
            for method in dict.fromkeys(table[table["line"] == line]["method"]):
                plain = errors(found, "choices", method, line=line)
                change = paired(plain, errors(found, "choices", method, line=squared))
                words.append(f"{str(line).split(', ')[-1]}, {method}: {change}")
    return f"Final A with plain distances minus that with squared ones: {'; '.join(words)}."


def _matchings(found: Found) -> str:
    words = []
    for figure in ("1a", "1b"):
        if figure in found:
            table = found[figure]["curves"]
            last = table[(table["method"] == ALONE) & (table["t"] == table["T"])]
            one, own = (last[last["quantity"] == name]["mean"].iloc[0] for name in ("A", "A_own"))
            words.append(f"{figure}: {one:.3f} with one matching, {own:.3f} with one each")
    return "; ".join(words)


def seeding_text(found: Found) -> str:
    """Split the final error by clusters lost, and show what restarts and greedy draws do."""
    tables = found["seeding"]
    luck = [
        {"r": row["r"], "true clusters lost": int(row["lost"]),
         "share of runs": f"{row['share']:.3f}", "final A": Mean(row["mean"], row["se"]),
         "runs": int(row["runs"])}
        for _, row in tables["luck"].iterrows()
    ]  # fmt: skip
    restarts = [
        {"r": row["r"], "seeding": row["seeding"], "final A": Mean(row["mean"], row["se"])}
        for _, row in tables["restarts"].iterrows()
    ]
    return f"""## The seeding's luck

L = 3. A true cluster is lost when it is the largest part of no cluster at the end. Ten
LocalKMeans++ draws on each trial (± takes draws on the same data as independent):

{markdown_table(luck)}
The draw with the smallest final objective of several (machines' rows around their own centers), and
greedy LocalKMeans++ (of 2 + ln K
candidates the one that lowers the objective most):

{markdown_table(restarts)}
![Final misclustering by seeding](figure-seeding.png)
"""
