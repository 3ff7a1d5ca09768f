"""docs/REPRODUCTION.md says what the CSV files beside it say."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from jobs.paper.claims import claims_markdown
from localkmeans_spark import metrics, theory

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "REPRODUCTION.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def claims():
    return pd.read_csv(DOCS / "paper" / "claims.csv")


@pytest.fixture(scope="module")
def ends():
    """A of every curve at its last step."""
    table = pd.read_csv(DOCS / "paper" / "misclustering.csv").fillna({"line": ""})
    curves = ["figure", "line", "method", "quantity"]
    return table.loc[table.groupby(curves)["t"].idxmax()].set_index(curves).sort_index()


def _rows(title):
    section = TEXT.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_claims_is_that_of_the_csv(claims):
    assert claims_markdown(claims) in TEXT


def test_the_claims_follow_from_the_curves(claims, ends):
    def a(figure, method, line=""):
        return ends.loc[(figure, line, method, "A"), "mean"]

    value = claims.set_index(["claim", "check"])["value"]
    gap = a("1a", "no aggregation") - a("1a", "L = 1")
    assert value["1", "no aggregation - L = 1"] == pytest.approx(gap, abs=1e-5)
    for steps in (2, 3):
        for figure, r in (("1a", "3.01"), ("1b", "6.02")):
            gap = a(figure, f"L = {steps}") - a(figure, "L = 1")
            assert value["2", f"r = {r}: L = {steps} - L = 1"] == pytest.approx(gap, abs=1e-5)
    assert value["8", "m = 400"] == pytest.approx(a("4c", "L = 3", "m = 400"))
    cifar = "CIFAR-10 embeddings"
    gap = a("2, 3", "L = T/2", cifar) - a("2, 3", "L = 3", cifar)
    assert value["9", f"{cifar}: L = T/2 - L = 3"] == pytest.approx(gap, abs=1e-5)


def test_final_errors_are_those_of_the_csv(ends):
    (_, *methods), _, *rows = _rows("Final A")
    for label, *cells in rows:
        name, _, line = label.partition(", ")
        figure, line = ("2, 3", name) if "embeddings" in name else (name, line)
        line = "" if figure.startswith("1") else line
        for method, cell in zip(methods, cells, strict=True):
            if (figure, line, method, "A") not in ends.index:
                assert cell == ""
                continue
            row = ends.loc[(figure, line, method, "A")]
            assert cell == f"{row['mean']:.4f} ± {row['se']:.4f}", (label, method)


def test_every_number_of_the_text_is_in_a_csv(claims, ends):
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    restarts = pd.read_csv(DOCS / "paper" / "figure-seeding-restarts.csv")
    columns = (ends["mean"], claims["value"].dropna(), restarts["mean"])
    known = {f"{number:.3f}" for column in columns for number in column}
    found = set(re.findall(r"(?<![\d.])0\.\d{3}(?!\d)", prose))
    assert len(found) > 10 and found <= known, found - known
    fits = pd.read_csv(DOCS / "paper" / "figure-beyond-placements.csv")
    worst = 100 * (fits.groupby("method")["relative"].max() - 1)
    words = " ".join(prose.split())
    assert f"no mean objective is more than {worst['safeguarded']:.2f} % above" in words
    assert f"the plain algorithm's is up to {worst['plain']:.2f} % above" in words


def test_the_limits_of_the_theorems():
    for sigma, r, r_k, *limits in _rows("The theorems")[2:]:
        two = metrics.snr_two(1.0, float(sigma), 100, 4000)
        many = metrics.snr_many(math.sqrt(2.0), float(sigma), 0.1, 10, 100, 4000)
        assert (r, r_k) == (f"{two:.2f}", f"{many:.2f}")
        known = [
            theory.initial_limit_two(two, 4000),
            theory.initial_limit_g(many, 1.0),
            theory.initial_limit_lambda(many),
        ]
        assert limits == [f"{limit:.2f}" for limit in known]


def test_pictures_are_there():
    pictures = re.findall(r"\]\((paper/[^)]+)\)", TEXT)
    assert len(pictures) == 11
    assert all((DOCS / picture).is_file() for picture in pictures)
