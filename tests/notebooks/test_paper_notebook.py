"""The notebook about the paper runs from its first cell to its last."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_paper_notebook_runs(monkeypatch, tmp_path):
    notebook = nbformat.read(REPOSITORY / "notebooks" / "02_paper.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "stored without output"
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("MPLBACKEND", "agg")
    nbclient.NotebookClient(
        notebook, timeout=250, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    last = notebook.cells[-3]["outputs"][0]["data"]["text/plain"]
    assert "no aggregation" in last
