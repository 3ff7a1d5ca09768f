"""The notebooks for users run as they are, in a classic session and in one of Spark Connect."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = ["01_quickstart", "03_choose_k_and_describe", "04_from_mllib", "05_large"]
# For the JVMs of both kinds of session.
SETTINGS = (
    "--conf spark.sql.shuffle.partitions=4 --conf spark.ui.enabled=false "
    "--conf spark.python.daemon.module=localkmeans_spark.daemon"
)


def executed(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path, remote: bool) -> Any:
    notebook = nbformat.read(REPOSITORY / "notebooks" / f"{name}.ipynb", as_version=4)
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    if remote:
        monkeypatch.setenv("SPARK_REMOTE", "local[2]")
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{SETTINGS} pyspark-shell")
    else:
        monkeypatch.delenv("SPARK_REMOTE", raising=False)
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--master local[2] {SETTINGS} pyspark-shell")
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
    return notebook


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("name", "remote"),
    # 03 asks for what tests/connect asks for in a session of Spark Connect, and takes longest.
    [(name, remote) for name in NAMES for remote in (False, True)[: 1 if "03" in name else 2]],
)
def test_runs(name: str, remote: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if remote:
        pytest.importorskip("grpc")
        if pyspark.__version__ < "4":
            pytest.skip("remote('local') begins with PySpark 4, and so does MLlib on Connect")
    notebook = executed(name, monkeypatch, tmp_path, remote)
    said = [
        output.get("text") or output["data"]["text/plain"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output["output_type"] != "stream" or output["name"] == "stdout"
    ]
    if name == "01_quickstart":
        assert any("converged" in text for text in said)
        assert float(said[-1]) > 0
    elif name == "03_choose_k_and_describe":
        assert any(text.startswith("k = 3: silhouette 0.4") for text in said)
        assert any("high proline" in text and "low flavanoids" in text for text in said)
        assert "keep their number" in said[-1]
    elif name == "05_large":
        (end,) = (text for text in said if "checkpointDir" in text or "'rounds'" in text)
        assert ("Spark Connect" in end) == remote
    else:
        assert "0" in said  # rows that the two label differently
        assert ("needs" in said[-1] or "must be a classic one" in said[-1]) == remote


@pytest.mark.parametrize("name", NAMES)
def test_is_stored_without_output_and_paths_of_a_machine(name: str) -> None:
    file = REPOSITORY / "notebooks" / f"{name}.ipynb"
    notebook = nbformat.read(file, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert not [
        place for place in ("/home/", "/tmp/", "/Users/", "file:") if place in file.read_text()
    ]
