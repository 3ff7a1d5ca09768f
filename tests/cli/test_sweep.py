"""localkmeans sweep: the table, the picture, the model of the best k."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from localkmeans_spark import LocalKMeansModel


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    rng = np.random.default_rng(1)
    x = np.repeat([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]], 60, axis=0) + rng.normal(size=(180, 2))
    path = tmp_path_factory.mktemp("three") / "three.csv"
    pd.DataFrame(x, columns=["age", "visits"]).to_csv(path, index=False)
    return path


def test_table_picture_and_model(spark, run, three, tmp_path):
    out = tmp_path / "out"
    told = run("sweep", "--input", three, "--k", "2-4,6", "--seed", 1, "--output", out)
    assert told.status == 0, told
    assert told.metrics["best_k"] == 3 and told.metrics["model"] == f"{out}/model"
    assert told.lines[-2].startswith("k = 3: silhouette 0.9")
    table = pd.read_csv(out / "sweep.csv")
    assert list(table["k"]) == [2, 3, 4, 6]
    assert json.loads((out / "sweep.json").read_text())["table"][1]["k"] == 3
    assert b"<svg" in (out / "sweep.svg").read_bytes()
    assert LocalKMeansModel.load(str(out / "model")).summary.trainingCost == table["cost"][1]
    labelled = tmp_path / "labelled"
    assert (
        run("predict", "--model", out / "model", "--input", three, "--output", labelled).status == 0
    )
    again = run("sweep", "--input", three, "--k", "2", "--output", out)
    assert "--overwrite" in again.error


@pytest.mark.parametrize("words", ["0-3", "5-2", "a", "", "1-2000", "2,,3"])
def test_wrong_ks(run, words, three, tmp_path):
    told = run("sweep", "--input", three, "--k", words, "--output", tmp_path / "out")
    assert "--k must be numbers of clusters" in told.error
