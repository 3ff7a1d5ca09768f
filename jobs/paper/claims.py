"""The nine claims of the paper's text as checks: a number, its error, a rule, whether it holds.

Every number is of misclustering A, at the last step unless said otherwise; se is its standard
error over trials. Differences of methods are paired: trials share data and initial centers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from jobs.paper.experiments import PAPER_METHODS, PLAIN_MEAN
from jobs.paper.tables import Tables

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds partly", "does not hold", "not run"
ABOVE, SAME = "> 2 se", "within 2 se or 0.005 of 0"
Found = dict[str, Tables]
"""Tables by figure, then by name."""


class _Figure:
    """A of one figure, trial by trial."""

    def __init__(self, found: Found, figure: str) -> None:
        self._table = found[figure]["trials"]
        self.lines = list(dict.fromkeys(self._table["line"]))
        self.last = int(self._table["t"].max())

    def __call__(self, method: str, t: int | None = None, line: str | None = None) -> np.ndarray:
        """Return A of every trial at step t (None: the last), in the order of the trials."""
        mine = self._table[self._table["method"] == method]
        mine = mine[mine["line"] == (self.lines[0] if line is None else line)]
        mine = mine[mine["t"] == (mine["t"].max() if t is None else t)]
        return mine.sort_values("trial")["A"].to_numpy()


def _se(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _check(
    name: str, values: np.ndarray, rule: str, holds: bool | None = None, less: Any = None
) -> dict[str, Any]:
    """Hold a mean over trials against a rule; ``less`` takes off that of independent trials."""
    value, se = float(values.mean()), _se(values)
    if less is not None:
        value, se = value - float(less.mean()), float(np.hypot(se, _se(less)))
    if holds is None:
        rules = {ABOVE: value > 2.0 * se, SAME: abs(value) <= max(2.0 * se, 0.005)}
        sign, limit = rule.split()[:2]
        holds = rules[rule] if rule in rules else (value < float(limit)) == (sign == "<")
    said = "yes" if holds else "no"
    return {"check": name, "value": value, "se": se, "rule": rule, "holds": said}


def _claim_1(found: Found) -> Iterator[dict]:
    low = _Figure(found, "1a")
    alone, central = low("no aggregation"), low("L = 1")
    yield _check("no aggregation - L = 1", alone - central, ABOVE)
    yield _check("no aggregation", alone, f"> {2 * central.mean():.4f} (twice L = 1)")


def _claim_2(found: Found) -> Iterator[dict]:
    for figure, r in (("1a", "3.01"), ("1b", "6.02")):
        a = _Figure(found, figure)
        for fewer, more in (("L = 1", "L = 2"), ("L = 2", "L = 3")):
            yield _check(f"r = {r}, t = 5: {more} - {fewer}", a(more, 5) - a(fewer, 5), ABOVE)
        for method in ("L = 2", "L = 3"):
            yield _check(f"r = {r}: {method} - L = 1", a(method) - a("L = 1"), SAME)


def _claim_3(found: Found) -> Iterator[dict]:
    for figure, r in (("1a", "3.01"), ("1b", "6.02")):
        a = _Figure(found, figure)
        before = a("L = T/2", a.last // 2)
        fall = before - a("L = T/2", a.last // 2 + 1)
        limit = max(0.2 * float(before.mean()), 2.0 * _se(fall))
        rule = f"> {limit:.4f} (a fifth, 2 se)"
        yield _check(f"r = {r}: fall of L = T/2 at the second exchange", fall, rule)
    high = _Figure(found, "1b")
    yield _check("r = 6.02: L = T/2 - L = 1", high("L = T/2") - high("L = 1"), SAME)


def _claim_4(found: Found) -> Iterator[dict]:
    high = _Figure(found, "1b")
    yield _check("no aggregation", high("no aggregation"), "< 0.2")
    yield _check("no aggregation - L = 1", high("no aggregation") - high("L = 1"), ABOVE)


def _claim_5(found: Found) -> Iterator[dict]:
    for method in PAPER_METHODS:
        yield _check(method.name, _Figure(found, "1d")(method.name), "< 0.01")


def _falls(series: list[np.ndarray]) -> bool:
    """Whether the last is below the first and no neighbour rises by two standard errors."""
    steps = [_check("", later, ABOVE, less=earlier) for earlier, later in pairwise(series)]
    rises = any(step["holds"] == "yes" for step in steps)
    return bool(series[-1].mean() < series[0].mean()) and not rises


def _claim_6(found: Found) -> Iterator[dict]:
    a = _Figure(found, "4a")
    for name, t in (("t = 1", 1), ("end", None)):
        series = [a("L = 3", t, line) for line in a.lines]
        yield _check(f"{name}: {a.lines[0]} - {a.lines[-1]}", series[0], "no rise by 2 se",
                     _falls(series), less=series[-1])  # fmt: skip
    yield _check(a.lines[0], a("L = 3"), "> 0.5")


def _claim_7(found: Found) -> Iterator[dict]:
    a = _Figure(found, "4b")
    series = [a("L = 3", None, line) for line in a.lines]
    yield _check(f"{a.lines[-1]} - {a.lines[0]}", series[-1], "no fall by 2 se",
                 _falls(series[::-1]), less=series[0])  # fmt: skip


def _claim_8(found: Found, method: str = "L = 3") -> Iterator[dict]:
    a = _Figure(found, "4c")
    first, second, last = (a(method, None, a.lines[i]) for i in (0, 1, -1))
    yield _check(f"{a.lines[1]} - {a.lines[0]}", second, SAME, less=first)
    yield _check(f"the higher of {a.lines[0]}, {a.lines[1]}",
                 max(first, second, key=np.mean), "< 0.2")  # fmt: skip
    yield _check(a.lines[-1], last, "> 0.3")


def _claim_9(found: Found) -> Iterator[dict]:
    real = _Figure(found, "2")
    for line in real.lines:
        a = {method.name: real(method.name, line=line) for method in PAPER_METHODS}
        alone, few = a.pop("no aggregation"), ["L = 1", "L = 2", "L = 3"]
        worst = max(a, key=lambda name: a[name].mean())
        low, high = (pick(few, key=lambda name: a[name].mean()) for pick in (min, max))
        yield _check(f"{line}: no aggregation - {worst}", alone - a[worst], "> 0")
        yield _check(f"{line}: L = T/2 - {low}", a["L = T/2"] - a[low], "> 0")
        if line.startswith("CIFAR"):
            low = min(few[1:], key=lambda name: a[name].mean())
            yield _check(f"{line}: L = 1 - {low}", a["L = 1"] - a[low], ABOVE)
        else:
            yield _check(f"{line}: {high} - {low}", a[high] - a[low], "< 0.02")


CLAIMS: dict[str, tuple[str, tuple[str, ...], Callable[[Found], Iterator[dict]]]] = {
    "1": ("r = 3.01: without aggregation A stays high", ("1a",), _claim_1),
    "2": ("Larger L converges more slowly, to the same point", ("1a", "1b"), _claim_2),
    "3": ("L = T/2: A drops at an exchange; at r = 6.02 two suffice", ("1a", "1b"), _claim_3),
    "4": ("r = 6.02: no aggregation is acceptable, not as good as L = 1", ("1b",), _claim_4),
    "5": ("r = 6.02, perturbed truth: every method does well", ("1d",), _claim_5),
    "6": ("Higher r: better start, better end; low r does not converge", ("4a",), _claim_6),
    "7": ("More clusters at fixed n: worse", ("4b",), _claim_7),
    "8": ("m = 10 and 20 alike and low; many machines end high", ("4c",), _claim_8),
    "8 (plain mean)": ("The same, exchanging plain means over machines", ("4c",),
                       lambda found: _claim_8(found, PLAIN_MEAN.name)),
    "9": ("No aggregation worst, L = T/2 not best; CIFAR-10: L > 1 beats L = 1; others: L matters "
          "little", ("2",), _claim_9),
}  # fmt: skip
_COLUMNS = ["claim", "text", "verdict", "check", "value", "se", "rule", "holds"]


def claims_table(found: Found) -> pd.DataFrame:
    """Return the checks of every claim, one a row.

    The verdict of a claim is whether all, some or none of its checks hold; a claim whose figure
    was not run has no checks. Verdicts of figures run small (``--quick``) mean nothing.
    """
    rows: list[dict[str, Any]] = []
    for claim, (text, figures, judge) in CLAIMS.items():
        about = {"claim": claim, "text": text, "verdict": UNKNOWN}
        checks = list(judge(found)) if all(figure in found for figure in figures) else []
        if checks:
            held = [check["holds"] == "yes" for check in checks]
            about["verdict"] = HOLDS if all(held) else PARTLY if any(held) else FAILS
        rows += [{**about, **check} for check in checks or [{}]]
    return pd.DataFrame(rows, columns=_COLUMNS)


def claims_markdown(table: pd.DataFrame) -> str:
    """Return the table in Markdown; a claim and its verdict stand once."""
    lines = ["| claim | verdict | A | value | rule | holds |", "|---|---|---|---|---|---|"]
    for claim, mine in table.groupby("claim", sort=False):
        head = f"{claim}. {mine['text'].iloc[0]} | **{mine['verdict'].iloc[0]}**"
        for row in mine.itertuples():
            cells = ["", "", "", ""]
            if pd.notna(row.check):
                se = "" if pd.isna(row.se) else f" ± {row.se:.4f}"
                cells = [row.check, f"{row.value:.4f}{se}", row.rule, row.holds]
            lines.append(f"| {head} | {' | '.join(cells)} |")
            head = " | "
    return "\n".join(lines).replace("-0.0000", "0.0000") + "\n"
