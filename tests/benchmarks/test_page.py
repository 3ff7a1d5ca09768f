"""docs/BENCHMARKS.md is what the results say, and every result says where it comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.page import comparisons, load, render

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS, PAGE = REPOSITORY / "benchmarks" / "results", REPOSITORY / "docs" / "BENCHMARKS.md"


def test_the_page_is_in_step_with_the_results():
    text = PAGE.read_text()
    assert text == render(load(RESULTS)), "run: python -m benchmarks.page"
    pictures = re.findall(r"\]\((.*?\.png)\)", text)
    found = {str(path.relative_to(PAGE.parent)) for path in PAGE.parent.glob("benchmarks/*")}
    assert found == set(pictures)


def test_every_row_names_commit_date_machine_and_versions():
    for path in RESULTS.glob("*.json"):
        for row in map(json.loads, path.read_text().splitlines()):
            assert re.fullmatch(r"[0-9a-f]{7,}", row["commit"]), "measured with changes not kept"
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
            assert {"processor", "cores", "memory_gb", "system"} <= set(row["machine"])
            assert {"python", "pyspark", "numpy"} <= set(row["versions"])


def fit(system: str, total: float, solver: str = "lloyd") -> dict:
    place = {"n": 9, "d": 2, "k": 3, "noise": 1.0, "warm_up": False, "start_s": 1.0}
    return {"system": system, "solver": solver, "total_s": total, **place}


def test_the_last_run_of_a_comparison_and_mllibs_faster_solver_are_shown():
    old = [fit("ours", 3.0), fit("mllib", 9.0)]
    new = [fit("ours", 2.0), fit("mllib", 8.0, "block"), fit("mllib", 6.0, "row")]
    (found,) = comparisons([*old, *new, {"system": "faiss", "skipped": "not here"}])
    assert found["mllib"]["solver"] == "row"
    assert found["mllib"]["ratio_parquet"] == 5.0
    assert set(found) == {"ours", "mllib"}
