"""The notebooks for users run as they are, in a classic session and in one of Spark Connect."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connect_server import connect_server

nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = ["01_quickstart", "03_choose_k_and_describe", "04_from_mllib", "05_large"]
SETTINGS = {
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "localkmeans_spark.daemon",
}
SUBMIT = ["--master", "local[2]", *(f"--conf={name}={value}" for name, value in SETTINGS.items())]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Of kernels and of the server: both find the package here."""
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": " ".join([*SUBMIT, "pyspark-shell"]),
    }


@pytest.fixture(scope="module")
def address(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of one server of Spark Connect for all notebooks, as on Databricks."""
    submit = str(Path(sys.executable).with_name("spark-submit"))
    env = {**os.environ, **environment}
    with connect_server([submit, *SUBMIT], env, tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("name", "remote"),
    # 03 asks for what tests/connect asks for in a session of Spark Connect, and takes longest.
    [(name, remote) for name in NAMES for remote in (False, True)[: 1 if "03" in name else 2]],
)
def test_runs(
    name: str,
    remote: bool,
    environment: dict[str, str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    if remote:  # MLlib, too, is on Connect where PySpark has a server
        monkeypatch.setenv("SPARK_REMOTE", request.getfixturevalue("address"))
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    notebook = nbformat.read(REPOSITORY / "notebooks" / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
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
