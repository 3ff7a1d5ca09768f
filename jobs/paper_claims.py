"""The nine claims of the paper's text, each against our numbers.

A verdict follows from the tables by the rule written beside it; nothing is entered by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jobs.paper_numbers import Found, Mean, above, apart, errors, mean_of, paired, same

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds partly", "does not hold", "not run"

LOW, HIGH, ALONE, HALF = "1a", "1b", "no aggregation", "L = T/2"


class Verdict(NamedTuple):
    """What became of a claim, and the numbers."""

    verdict: str
    evidence: str


def _share(parts: list[bool]) -> str:
    return HOLDS if all(parts) else PARTLY if any(parts) else FAILS


def claim_1(found: Found) -> Verdict:
    """Above centralized by two standard errors, and more than twice as high."""
    alone, central = errors(found, LOW, ALONE), errors(found, LOW, "L = 1")
    gap = paired(alone, central)
    ok = above(gap) and alone.mean() > 2 * central.mean()
    return Verdict(
        HOLDS if ok else FAILS,
        f"final A {mean_of(alone)} without aggregation (one matching for all machines), "
        f"{mean_of(central)} centralized.{_own_matching(found)}",
    )


def _own_matching(found: Found, figure: str = LOW) -> str:
    table = found[figure]["curves"]
    mine = table[(table["method"] == ALONE) & (table["quantity"] == "A_own")]
    last = mine.sort_values("t").iloc[-1]
    return f" With a matching for each machine: {Mean(last['mean'], last['se'])}."


def claim_2(found: Found) -> Verdict:
    """At t = 5 A rises with L; final A of L = 2, 3 equals that of L = 1 (paired, 2 se)."""
    parts, words = [], []
    for figure in (LOW, HIGH):
        early = {steps: errors(found, figure, f"L = {steps}", 5) for steps in (1, 2, 3)}
        slower = all(above(paired(early[s + 1], early[s])) for s in (1, 2))
        ends = {
            steps: paired(errors(found, figure, f"L = {steps}"), errors(found, figure, "L = 1"))
            for steps in (2, 3)
        }
        parts += [slower, *(same(end) for end in ends.values())]
        words.append(
            f"r = {_r(found, figure)}: A at t = 5 "
            + ", ".join(f"{early[s].mean():.3f} (L = {s})" for s in early)
            + "; final A minus centralized "
            + ", ".join(f"{ends[s]} (L = {s})" for s in ends)
        )
    return Verdict(_share(parts), ". ".join(words) + ".")


def _r(found: Found, figure: str) -> str:
    return f"{found[figure]['curves']['r'].iloc[0]:.2f}"


def _last_step(found: Found, figure: str) -> int:
    return int(found[figure]["trials"]["t"].max())


def claim_3(found: Found) -> Verdict:
    """At both r, A falls by a fifth at the exchange; at r = 6.02, of which the paper says that two
    exchanges suffice, final A equals the centralized one (paired, 2 se).
    """
    parts, words = [], []
    for figure in (LOW, HIGH):
        exchange = _last_step(found, figure) // 2
        before = errors(found, figure, HALF, exchange)
        after = errors(found, figure, HALF, exchange + 1)
        drop = paired(before, after)
        end = paired(errors(found, figure, HALF), errors(found, figure, "L = 1"))
        parts.append(above(drop) and drop.mean > 0.2 * before.mean())
        if figure == HIGH:
            parts.append(same(end))
        words.append(
            f"r = {_r(found, figure)}: A falls from {before.mean():.3f} to {after.mean():.3f} "
            f"at the second exchange; final A minus centralized {end}"
        )
    return Verdict(_share(parts), ". ".join(words) + ".")


def claim_4(found: Found) -> Verdict:
    """Final A without aggregation below 0.2, and above centralized by two standard errors."""
    alone, central = errors(found, HIGH, ALONE), errors(found, HIGH, "L = 1")
    worse, acceptable = above(paired(alone, central)), alone.mean() < 0.2
    return Verdict(
        _share([acceptable, worse]),
        f"final A {mean_of(alone)} without aggregation, {mean_of(central)} centralized."
        f"{_own_matching(found, HIGH)} Acceptable is taken to mean "
        "below 0.2: the matching decides.",
    )


def claim_5(found: Found) -> Verdict:
    """At high r from the perturbed truth every method ends below A = 0.01."""
    ends = {
        method: mean_of(errors(found, "1d", method))
        for method in ("L = 1", "L = 2", "L = 3", HALF, ALONE)
    }
    verdict = _share([end.mean < 0.01 for end in ends.values()])
    words = ", ".join(f"{method}: {end}" for method, end in ends.items())
    low = mean_of(errors(found, "1c", ALONE)) if "1c" in found else None
    more = f" At r = 3.01 without aggregation: {low}." if low else ""
    return Verdict(verdict, f"final A {words}.{more}")


def _lines(found: Found, figure: str, method: str = "L = 3") -> dict[str, np.ndarray]:
    lines = dict.fromkeys(found[figure]["trials"]["line"])
    return {line: errors(found, figure, method, line=line) for line in lines}


def _list(ends: dict[str, np.ndarray]) -> str:
    return ", ".join(f"{line}: {mean_of(values)}" for line, values in ends.items())


def claim_6(found: Found) -> Verdict:
    """First and final A fall with r (no rise beyond 2 se); at the smallest r final A > 0.5."""
    ends = _lines(found, "4a")
    starts = {line: errors(found, "4a", "L = 3", 1, line) for line in ends}
    parts = [
        _falls(list(starts.values())), _falls(list(ends.values())),
        next(iter(ends.values())).mean() > 0.5,
    ]  # fmt: skip
    first = ", ".join(f"{line}: {values.mean():.3f}" for line, values in starts.items())
    return Verdict(_share(parts), f"A of the initial centers {first}. Final A {_list(ends)}.")


def _falls(series: list[np.ndarray]) -> bool:
    return series[-1].mean() < series[0].mean() and not any(
        above(apart(later, earlier)) for earlier, later in pairwise(series)
    )


def claim_7(found: Found) -> Verdict:
    """Final A never falls with K (beyond 2 se) and ends higher than it began."""
    ends = _lines(found, "4b")
    return Verdict(HOLDS if _falls(list(ends.values())[::-1]) else FAILS, f"Final A {_list(ends)}.")


def claim_8(found: Found) -> Verdict:
    """With m = 10 and 20 A ends alike (2 se) below 0.2; the largest m ends above 0.3."""
    by_size, plain = many_machines(found)
    words = "; ".join(
        f"{name} ({verdict}): {_list(_lines(found, '4c', method))}"
        for name, verdict, method in (
            ("size-weighted mean", by_size, "L = 3"),
            ("plain mean", plain, "L = 3, plain mean"),
        )
    )
    return Verdict(by_size, f"Final A, {words}.")


def many_machines(found: Found) -> tuple[str, str]:
    """Judge claim 8 with the size-weighted mean, and with the plain mean."""
    judged = []
    for method in ("L = 3", "L = 3, plain mean"):
        first, second, *_, last = _lines(found, "4c", method).values()
        low = max(first.mean(), second.mean()) < 0.2
        judged.append(_share([low and same(apart(first, second)), last.mean() > 0.3]))
    return judged[0], judged[1]


def ends_high(found: Found, method: str) -> bool:
    """Whether many machines with few points end high: final A of the largest m above 0.3."""
    *_, last = _lines(found, "4c", method).values()
    return bool(last.mean() > 0.3)


def claim_9(found: Found) -> Verdict:
    """On each data set: no aggregation has the highest mean, and L = T/2 not the lowest; on Posture
    and MNIST L = 1, 2, 3 end within 0.02; on CIFAR-10 L = 1 ends above the better of L = 2, 3 by
    two standard errors (paired over trials).
    """
    table = found["2"]["trials"]
    parts, words = [], []
    for name in dict.fromkeys(table["line"]):
        ends = {
            method: errors(found, "2", method, line=name)
            for method in dict.fromkeys(table["method"])
        }
        means = {method: mean_of(values) for method, values in ends.items()}
        aggregated = {method: v for method, v in means.items() if method != ALONE}
        worst, more = max(means, key=lambda method: means[method].mean) == ALONE, ""
        best = min(aggregated, key=lambda method: aggregated[method].mean)
        parts += [worst, best != HALF]
        if name == "Posture" or name.startswith("MNIST"):
            small = [aggregated[method].mean for method in ("L = 1", "L = 2", "L = 3")]
            parts.append(max(small) - min(small) < 0.02)
        if name.startswith("CIFAR"):
            several = min((f"L = {s}" for s in (2, 3)), key=lambda name: means[name].mean)
            gain = paired(ends["L = 1"], ends[several])
            parts.append(above(gain))
            more = f"; L = 1 minus {several}, paired: {gain}"
        words.append(
            f"{name} ({len(ends[ALONE])} trials): final A "
            + ", ".join(f"{method} {value}" for method, value in means.items())
            + more
        )
    missing = [] if any(name == "Posture" for name in table["line"]) else ["Posture was not run"]
    verdict = _share(parts)
    return Verdict(PARTLY if missing and verdict == HOLDS else verdict,
                   ". ".join(words + missing) + ".")  # fmt: skip


CLAIMS: list[tuple[str, tuple[str, ...], Callable[[Found], Verdict]]] = [
    ("r = 3.01: without aggregation A stays high", (LOW,), claim_1),
    ("Larger L converges more slowly and ends at the same point", (LOW, HIGH), claim_2),
    ("L = T/2: A drops sharply after each exchange; two exchanges end where centralized ends",
     (LOW, HIGH), claim_3),
    ("r = 6.02: no aggregation is acceptable with LocalKMeans++, not as good as centralized",
     (HIGH,), claim_4),
    ("High r and a strong perturbed start: every method does well", ("1d",), claim_5),
    ("Higher r: better seeding, better end; below a threshold it does not converge",
     ("4a",), claim_6),
    ("More clusters at fixed n: worse", ("4b",), claim_7),
    ("m = 10 and 20 alike at mn = 4000; many machines with few points do badly", ("4c",), claim_8),
    ("Real data: no aggregation is worst; L matters little on Posture and MNIST; on CIFAR-10 "
     "L > 1 can beat L = 1; L = T/2 is not the best", ("2",), claim_9),
]  # fmt: skip


Judged = tuple[str, str, Verdict]
"""A claim, the rule it is judged by, and its verdict."""


def verdicts(found: Found) -> list[Judged]:
    """Return every claim, the rule it is judged by, and its verdict."""
    judged = []
    for text, figures, judge in CLAIMS:
        rule = " ".join((judge.__doc__ or "").split())
        if all(figure in found for figure in figures):
            judged.append((text, rule, judge(found)))
        else:
            judged.append((text, rule, Verdict(UNKNOWN, f"needs figures {', '.join(figures)}.")))
    return judged
