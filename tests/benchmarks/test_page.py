"""``docs/BENCHMARKS.md`` says what ``benchmarks/results`` holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.page import page, pictures
from benchmarks.page_reasons import Results
from benchmarks.page_targets import targets

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS, PAGE = REPOSITORY / "benchmarks" / "results", REPOSITORY / "docs" / "BENCHMARKS.md"


def test_page_is_in_step_with_the_results():
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(RESULTS), "run: python -m benchmarks.page"


def test_pictures_are_there_and_are_drawn(tmp_path):
    shown = re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text(encoding="utf-8"))
    pictures(RESULTS, tmp_path / "benchmarks")
    for name in shown:
        assert (PAGE.parent / name).is_file()
        assert (tmp_path / name).is_file()


def test_results_say_what_they_were_measured_with():
    for path in RESULTS.glob("*.json"):
        if path.name != "model.json":
            for line in path.read_text().splitlines():
                row = json.loads(line)
                assert row["commit"] and row["versions"]["python"] and row["machine"]["cores"]


def _row(system: str, solver: str, total: float) -> dict:
    size = {"n": 2_000_000, "d": 64, "k": 100, "commit": "c"}
    seconds = {"start_s": 1.0, "read_s": 2.0, "total_s": total}
    return {"system": system, "solver": solver, **size, **seconds}


def test_a_target_is_met_or_missed_by_mllibs_best_solver():
    ours = _row("ours", "local steps", 11.0)
    row, block = _row("mllib", "row", 401.0), _row("mllib", "block", 301.0)
    assert "| ≥ 20 | 30 | met |" in targets(Results([ours, row, block]))
    assert "| ≥ 20 | 10 | **missed** |" in targets(
        Results([ours, row, {**block, "total_s": 101.0}])
    )


def test_without_results_there_is_a_page(tmp_path):
    assert page(tmp_path).startswith("# Benchmarks")
