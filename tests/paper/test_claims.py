"""Verdicts follow the numbers of the trials."""

from __future__ import annotations

import pandas as pd
import pytest

from jobs.paper.claims import FAILS, HOLDS, PARTLY, UNKNOWN, claims_markdown, claims_table


def _trials(figure, ends):
    """Tables of a figure: A at t = 30 by line and method, trial by trial."""
    rows = [
        {"figure": figure, "line": line, "method": method, "trial": trial, "t": 30, "A": value}
        for (line, method), values in ends.items()
        for trial, value in enumerate(values)
    ]
    return {figure: {"trials": pd.DataFrame(rows)}}


def _verdicts(found):
    return claims_table(found).groupby("claim")["verdict"].first().to_dict()


def test_claim_1_by_hand():
    central = [0.1, 0.12, 0.09]
    found = _trials("1a", {("", "no aggregation"): [0.7, 0.71, 0.69], ("", "L = 1"): central})
    # Only t = 30 is known, so the claims that ask for more steps are left out here.
    table = claims_table({"1a": found["1a"]})
    first = table[table["claim"] == "1"]
    assert first["verdict"].tolist() == [HOLDS] * 2
    # Differences 0.6, 0.59, 0.6: mean 0.59667, standard error 0.0057735 / sqrt(3).
    assert first["value"].iloc[0] == pytest.approx(1.79 / 3)
    assert first["se"].iloc[0] == pytest.approx(0.01 / 3)
    assert set(table[table["claim"] != "1"]["verdict"]) == {UNKNOWN}
    assert "| **holds** | no aggregation - L = 1 | 0.5967 ± 0.0033 | > 2 se | yes |" in (
        claims_markdown(table)
    )
    same = _trials("1a", {("", "no aggregation"): central, ("", "L = 1"): central})
    assert _verdicts(same)["1"] == FAILS


def test_claim_4_holds_partly_when_one_check_fails():
    ends = {("", "no aggregation"): [0.3, 0.31], ("", "L = 1"): [0.1, 0.11]}
    assert _verdicts(_trials("1b", ends))["4"] == PARTLY


def _machines(by_size, plain):
    return _trials("4c", {
        (f"m = {m}", method): [value, value + 0.01]
        for method, ends in (("L = 3", by_size), ("L = 3, plain mean", plain))
        for m, value in zip((10, 20, 400), ends, strict=True)
    })  # fmt: skip


def test_claim_8_is_judged_with_either_mean():
    verdicts = _verdicts(_machines((0.1, 0.1, 0.1), (0.1, 0.1, 0.5)))
    assert (verdicts["8"], verdicts["8 (plain mean)"]) == (PARTLY, HOLDS)
    verdicts = _verdicts(_machines((0.1, 0.1, 0.5), (0.1, 0.3, 0.1)))
    assert (verdicts["8"], verdicts["8 (plain mean)"]) == (HOLDS, FAILS)


def test_claim_7_allows_no_fall_on_the_way():
    def of_k(*ends):
        lines = zip((2, 5, 10), ends, strict=True)
        return _trials("4b", {(f"K = {k}", "L = 3"): [a, a + 0.01] for k, a in lines})

    assert _verdicts(of_k(0.1, 0.2, 0.3))["7"] == HOLDS
    assert _verdicts(of_k(0.1, 0.4, 0.3))["7"] == FAILS


def test_claim_9_on_each_data_set():
    methods = ("L = 1", "L = 2", "L = 3", "L = T/2", "no aggregation")

    def real(*ends):
        pairs = zip(methods, ends, strict=True)
        return _trials("2", {("MNIST embeddings", name): [a, a + 0.01] for name, a in pairs})

    assert _verdicts(real(0.30, 0.30, 0.31, 0.33, 0.40))["9"] == HOLDS
    assert _verdicts(real(0.30, 0.30, 0.35, 0.29, 0.40))["9"] == PARTLY
