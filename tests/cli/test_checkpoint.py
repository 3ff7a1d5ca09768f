"""A job killed in the middle of a fit, and started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from localkmeans_spark import LocalKMeansModel

SCRIPT = Path(__file__).resolve().parents[2] / "jobs" / "fit.py"


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.timeout(600)
def test_killed_and_run_again_it_ends_with_the_same_centers(
    run: Any, spark: SparkSession, tmp_path: Path
) -> None:
    # overlapping noise and tol 0: never converged by round 25
    np.savez(tmp_path / "x.npz", X=np.random.default_rng(0).random((6_000, 20), np.float32))
    words = [
        "--input", tmp_path / "x.npz", "--k", 25, "--seed", 3, "--max-iter", 25, "--tol", 0,
        "--local-steps", 1, "--n-init", 2, "--partitions", 3, "--no-report",
    ]  # fmt: skip
    whole = run("fit", *words, "--output", tmp_path / "whole")
    assert whole.status == 0, whole.stderr
    assert whole.metrics["resumed_round"] == 0 and whole.metrics["n_init"] == 2

    words += ["--checkpoint-dir", tmp_path / "state", "--output", tmp_path / "out"]
    job = start(*words, "--master", "local[2]")
    assert job.stderr is not None
    for line in job.stderr:
        if line.startswith("fit: round 6:"):
            break
    job.kill()
    job.communicate(timeout=60)
    assert job.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "state").iterdir()
    assert list(folder.glob("round-*.state"))
    assert not (tmp_path / "out").exists()

    again = run("fit", *words)
    assert again.status == 0, again.stderr
    assert "fit: resumed after round" in again.stderr
    centers = [
        np.array(LocalKMeansModel.load(str(tmp_path / name / "model")).clusterCenters()).tobytes()
        for name in ("whole", "out")
    ]
    assert centers[0] == centers[1]
    assert not list((tmp_path / "state").iterdir())
    assert again.metrics["resumed_round"] > 0
    assert (tmp_path / "out" / "metrics.json").exists()


def test_on_another_file_system(run: Any, tmp_path: Path, elsewhere: str) -> None:
    np.savez(tmp_path / "x.npz", X=np.random.default_rng(0).random((300, 3), np.float32))
    words = ["--input", tmp_path / "x.npz", "--k", 4, "--seed", 1, "--no-report"]
    told = run(
        "fit", *words, "--checkpoint-dir", f"{elsewhere}/state", "--output", tmp_path / "out"
    )
    assert told.status == 0, told.stderr
    assert (tmp_path / "elsewhere" / "state").is_dir(), "it was made there"
    assert not list((tmp_path / "elsewhere" / "state").iterdir())


def test_a_place_that_cannot_be_written_to(run: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.random.default_rng(0).random((30, 3), np.float32))
    words = ["--input", tmp_path / "x.npz", "--k", 4, "--output", tmp_path / "out"]
    told = run("fit", *words, "--checkpoint-dir", tmp_path / "x.npz" / "below")
    assert (told.status, told.lines) == (2, [])
    assert "--checkpoint-dir must be a directory that can be written to" in told.stderr
