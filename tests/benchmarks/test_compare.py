"""The comparison: its cost function, medians, ratios and fields."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.compare import inertia, summarise
from benchmarks.systems import seeding_seconds

REPOSITORY = Path(__file__).resolve().parents[2]
FIELDS = """system solver n d k iterations start_s read_s seed_s iterate_s total_s cost
ratio_total ratio_iterate ratio_cost versions machine commit date""".split()


def run(total: float, iterate: float, cost: float) -> dict:
    parts = {"start_s": 1.0, "read_s": 1.0, "seed_s": 1.0, "iterate_s": iterate}
    return {"iterations": 20, **parts, "total_s": total, "cost": cost}


def test_inertia_by_hand():
    x = np.array([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0]], dtype=np.float32)
    assert inertia(x, np.array([[1.0, 0.0], [10.0, 1.0]])) == pytest.approx(1 + 1 + 1)


def test_ratios_are_of_medians_peer_by_ours():
    runs = {
        "ours": [run(5.0, 2.0, 10.0), run(4.0, 2.0, 10.0), run(90.0, 2.0, 10.0)],
        "mllib-block": [run(40.0, 30.0, 11.0), run(50.0, 30.0, 11.0), run(60.0, 30.0, 11.0)],
        "faiss": [{"skipped": "cannot be imported here"}],
    }
    ours, mllib, faiss = summarise(runs, Namespace(n=3, d=2, k=2))
    assert (ours["ratio_total"], ours["ratio_iterate"], ours["ratio_cost"]) == (1.0, 1.0, 1.0)
    assert (mllib["system"], mllib["solver"]) == ("mllib", "block")
    assert mllib["ratio_total"] == 50.0 / 5.0
    assert mllib["ratio_iterate"] == 15.0
    assert mllib["ratio_cost"] == pytest.approx(1.1)
    assert faiss["skipped"] == "cannot be imported here"
    assert "ratio_total" not in faiss


def test_seeding_time_from_either_form_of_mllibs_log():
    log = "[a1] Initialization with k-means|| took 0.250 seconds.\nIterations took 3.1 seconds.\n"
    assert seeding_seconds(log) == 0.25
    assert seeding_seconds(log + "Initialization with k-means|| took 4428 ms.\n") == 4.428


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.compare", *words]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)


def test_unknown_peer_is_refused():
    found = compare("--peers", "mllib,weka")
    assert found.returncode == 2
    assert "weka" in found.stderr.splitlines()[-1]


def test_writes_one_object_a_system_with_all_fields(tmp_path):
    out = tmp_path / "found.json"
    found = compare(
        *"--n 2000 --d 4 --k 3 --repeats 1 --peers sklearn --driver-memory 1g".split(),
        "--iterations", "5", "--json", str(out),
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["system"] for row in rows] == ["ours", "sklearn"]
    for row in rows:
        assert set(FIELDS) <= set(row)
        parts = row["start_s"] + row["read_s"] + row["seed_s"] + row["iterate_s"]
        assert row["total_s"] == pytest.approx(parts)
        assert (row["n"], row["d"], row["k"]) == (2000, 4, 3)
    assert rows[1]["ratio_cost"] == pytest.approx(1.0, abs=0.1)
