"""REPRODUCTION.md, written from the tables of the paper's experiments."""

from __future__ import annotations

import math

from jobs.paper_claims import Judged, verdicts
from jobs.paper_markdown import markdown_table
from jobs.paper_numbers import Found
from jobs.paper_text_beyond import beyond_text
from jobs.paper_text_curves import curves_text
from jobs.paper_text_open import choices_text, means_text, seeding_text
from localkmeans_spark.paper.figures import HIGH, LOW, PAPER_STEPS
from localkmeans_spark.paper.quantities import snr_many, snr_two
from localkmeans_spark.paper.theory import (
    exchanges_needed,
    initial_limit_g,
    initial_limit_lambda,
    initial_limit_two,
    steps_needed,
)


def reproduction(found: Found) -> str:
    """Return the whole text, in Markdown.

    Parameters
    ----------
    found : dict of str to dict of str to DataFrame
        Tables by figure, then by name; figures that were not run are absent.
    """
    judged = verdicts(found)
    parts = [_HEAD, _sizes(found), _claims(judged), _theory(), curves_text(found, judged)]
    if "4c" in found:
        parts.append(means_text(found))
    if "choices" in found:
        parts.append(choices_text(found))
    if "seeding" in found:
        parts.append(seeding_text(found))
    if "beyond" in found:
        parts.append(beyond_text(found))
    return "\n".join(parts)


_HEAD = """# The paper's experiments, repeated

Written by `jobs/reproduce_paper.py` from its CSV files. Do not edit: run `make paper` again.

Synthetic data as in the paper: orthonormal centers, Gaussian noise, d = 100, K = 10, m = 20,
n = 200 unless said otherwise. A is the share of misclustered points at step t of Algorithm 1:
A at t = 1 is that of the initial centers. ± is one standard error over trials; the bands of the
pictures are one standard deviation, as in the paper. Figures 1, 4b and 4c have sigma = 0.3 or 0.15,
called r = 3.01 and 6.02 (3.0117, 6.0234); figure 4a has r itself, so its numbers differ a little.
"""


def _sizes(found: Found) -> str:
    """Warn of figures that were run small."""
    small = [
        figure
        for figure, tables in found.items()
        if figure[0] in "1234" and (tables["curves"]["T"] < PAPER_STEPS).any()
    ]
    if not small:
        return ""
    return (
        f"**Figures {', '.join(small)} were run small (`--quick`): they show that the script runs, "
        "and their verdicts mean nothing.**\n"
    )


def _claims(judged: list[Judged]) -> str:
    lines = ["## The nine claims\n", "| # | claim | verdict | our numbers |", "|---|---|---|---|"]
    rules = []
    for number, (text, rule, verdict) in enumerate(judged, start=1):
        lines.append(f"| {number} | {text} | **{verdict.verdict}** | {verdict.evidence} |")
        rules.append(f"{number}. {rule}")
    rule_text = "\n".join(rules)
    return "\n".join(lines) + f"\n\nA claim holds if:\n\n{rule_text}\n"


def _theory() -> str:
    rows = []
    for sigma in (LOW, HIGH):
        r = snr_two(1.0, sigma, 100, 4000)
        r_k = snr_many(math.sqrt(2.0), sigma, 0.1, 10, 100, 4000)
        rows.append(
            {
                "sigma": sigma, "r": f"{r:.2f}", "r_K": f"{r_k:.2f}",
                "A(0) at most (2 clusters)": f"{initial_limit_two(r, 4000):.2f}",
                "G(0) below": f"{initial_limit_g(r_k, 1.0):.2f}",
                "Lambda(0) at most": f"{initial_limit_lambda(r_k):.2f}",
            }
        )  # fmt: skip
    return f"""## The theorems and these experiments

What the assumptions on initial centers allow at the noise of Figure 1 (balanced clusters):

{markdown_table(rows)}
Limits below 0 hold for no initial centers, so the theorems say nothing about these experiments;
G(0) asks for r_K above 144. They work all the same. At L = 3 the theory's number of steps is
2 (ceil(log mn) + L) = {steps_needed(4000, 3)}, or {exchanges_needed(4000, 3)} exchanges.
"""
