"""Fits in a session of Spark Connect give the bits of classic sessions, and nothing is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.connect.script import SOME
from tests.frozen.test_frozen_fits import FILE, arithmetic

# Which libraries that takes depends on PySpark's version, and it names them.
pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script printed: a process has either kind of session, not both."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.connect.script", str(tmp_path_factory.mktemp("connect"))],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.timeout(1800)
def test_the_same_bits_as_in_a_classic_session(found: dict[str, Any]) -> None:
    kept = json.loads(FILE.read_text())
    for name, now in found["fits"].items():
        before = kept["fits"][name]
        if kept["arithmetic"] != arithmetic():
            before, now = ({**each, "bits": "", "cost": 0} for each in (before, now))
        assert now == before, name


@pytest.mark.parametrize("way", ["payload in a file", "answers merged by tasks", "nothing kept"])
def test_large_centers_large_answers_and_no_cache_change_no_bit(
    found: dict[str, Any], way: str
) -> None:
    for name in SOME:
        assert found[way][name] == found["fits"][name], name


def test_a_task_for_each_core_and_fewer_answers_where_they_are_large(found: dict[str, Any]) -> None:
    assert found["tasks"] == ([2, 1] if pyspark.__version__ >= "4" else [6, 2])


def test_answers_do_not_depend_on_what_is_kept(found: dict[str, Any]) -> None:
    kept, read_again = found["answers"]
    assert len(kept) >= 7 and all(table.count("\n") > 2 for table in kept)
    assert read_again == kept


def test_a_setting_of_the_session_is_set_back_after_the_last_fit(found: dict[str, Any]) -> None:
    if pyspark.__version__ < "4":
        pytest.skip("PySpark 3.5 has no such setting")
    before, inner, outer, after = found["batch bytes"]
    assert inner == outer == str(8 << 20)
    assert before == after != inner


def test_models_are_saved_loaded_and_used(found: dict[str, Any]) -> None:
    fresh, loaded = found["labels"]
    assert fresh == loaded
    assert len(set(fresh)) == 3
    assert found["cost"][0] == pytest.approx(found["cost"][1], rel=1e-9)
    assert found["k"] == 4


def test_pipelines_and_tuning(found: dict[str, Any]) -> None:
    if pyspark.__version__ < "4":
        pytest.skip("pyspark.ml needs PySpark 4.0 on Connect")
    fresh, loaded = found["pipelines"]["labels"]
    assert fresh == loaded and len(set(fresh)) == 3
    assert len(found["pipelines"]["metrics"]) == 2


def test_the_command_line(found: dict[str, Any]) -> None:
    told = found["commands"]
    for name in ("fit", "table", "describe", "diagnose", "far"):
        status, text = told[name]
        assert not status, (name, text)
    assert told["labelled"] == 1500
    one, far = (json.loads(told[name][1].splitlines()[-1]) for name in ("fit", "far"))
    assert one["cost"] == far["cost"]
    assert "L = " in told["diagnose"][1] or "local steps" in told["diagnose"][1]
    for name, flag in (("npz", "--input"), ("label", "--label-col")):
        status, text = told[name]
        assert status == 2
        assert flag in text.splitlines()[-1] and "Spark Connect" in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("exists", "write().overwrite()"),
        ("null", "null"),
        ("checkpoint", "Spark Connect"),
        ("mllib", "Spark Connect"),
        ("too large", "Spark Connect"),
    ],
)
def test_one_line_says_what_is_wrong(found: dict[str, Any], what: str, words: str) -> None:
    line = found["errors"][what]
    assert words in line and "\n" not in line, line
