"""jobs/diagnose.py on tables whose partitions are known."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jobs.diagnose import main
from localkmeans_spark import LocalKMeans
from localkmeans_spark.paper.diagnosis import diagnose

CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


def _run(capsys, *argv):
    main(argv)
    out = capsys.readouterr().out
    return out, json.loads(out.splitlines()[-1])


def test_rows_in_any_order_allow_local_steps(spark, tmp_path, capsys):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat(np.arange(3), 200))
    np.savez(tmp_path / "mixed.npz", X=CENTERS[y] + rng.normal(size=(600, 2)), y=y)
    out, found = _run(
        capsys, "--input", str(tmp_path / "mixed.npz"), "--label-col", "label", "--partitions", "4"
    )
    assert (found["partitions"], found["k"], found["local_steps"]) == (4, 3, 5)
    expected = min(np.bincount(part, minlength=3).min() for part in y.reshape(4, 150)) / 200 * 4
    assert found["beta_m"] == pytest.approx(expected, abs=1e-6)
    assert found["gamma_over_sigma"] == pytest.approx(10.0, rel=0.05)
    assert "evenly" in out and "Advice: L = 5." in out


def test_sorted_rows_ask_for_single_steps(spark, tmp_path, capsys):
    y = np.repeat(np.arange(3), 200)
    x = CENTERS[y] + np.random.default_rng(1).normal(size=(600, 2))
    np.savez(tmp_path / "sorted.npz", X=x, y=y)
    path = str(tmp_path / "sorted.npz")
    out, found = _run(capsys, "--input", path, "--label-col", "label", "--partitions", "3")
    assert (found["beta_m"], found["local_steps"]) == (0.0, 1)
    assert "very unevenly" in out and "repartition" in out

    frame = spark.createDataFrame([(row.tolist(),) for row in x], "features array<double>")
    LocalKMeans(k=3, seed=1).fit(frame).write().save(str(tmp_path / "model"))
    _, by_model = _run(
        capsys, "--input", path, "--model", str(tmp_path / "model"), "--partitions", "3"
    )
    assert by_model["beta_m"] == found["beta_m"]
    assert by_model["gamma_over_sigma"] == pytest.approx(found["gamma_over_sigma"], rel=0.01)


def test_one_of_label_and_model_is_needed(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--input", "x.npz"])
    assert stopped.value.code == 2
    assert "--label-col or --model" in capsys.readouterr().err


def test_a_few_rows_a_machine_ask_for_fewer_partitions():
    counts = np.full((50, 3), 4)
    found = diagnose(CENTERS, counts, 1.0, ["a", "b", "c"])
    assert found.local_steps == 1
    assert "fewer partitions" in found.text()
    half = np.full((4, 3), 100)
    half[1, 2] = 20
    found = diagnose(CENTERS, half, 1.0, ["a", "b", "c"])
    assert found.scarcest == ("c", 1, pytest.approx(20 / 320 * 4))
    assert found.local_steps == 2
