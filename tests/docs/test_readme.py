"""Everything README.md shows is run, and commands of docs/guides.md, as their reader would."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.fast_java import OPTIONS

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text()
GUIDES = (REPOSITORY / "docs" / "guides.md").read_text()


def blocks(language, page=README):
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def command_with(words, page=GUIDES):
    (line,) = [line for block in blocks("sh", page) for line in block.splitlines() if words in line]
    return shlex.split(line, comments=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with the customers.csv that README speaks of."""
    path = tmp_path_factory.mktemp("readme")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, size=300)
    customers = pd.DataFrame(
        {
            "id": np.arange(300),
            "age": np.array([20, 45, 70])[kind] + rng.normal(size=300),
            "income": np.array([20.0, 60.0, 35.0])[kind] + rng.normal(size=300),
        }
    )
    customers.to_csv(path / "customers.csv", index=False)
    return path


def run(command, folder, environment=None, **changes):
    """Run a README command in the folder, with this interpreter and the repository's files."""
    places = {
        "localkmeans": str(Path(sys.executable).with_name("localkmeans")),
        "jobs/fit.py": str(REPOSITORY / "jobs" / "fit.py"),
        **changes,
    }
    return subprocess.run(
        [places.get(word, word) for word in command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **(environment or {})},
    )


def test_python_example(spark, tmp_path, capsys):
    (example,) = blocks("python")
    # Spark takes relative paths from where its JVM was started.
    example = example.replace('"model"', repr(str(tmp_path / "model")))
    names = {"spark": spark}
    exec(compile(example, "README.md", "exec"), names)  # noqa: S102
    assert names["model"].summary.trainingCost == pytest.approx(2.0)
    assert names["same"].numFeatures == 2
    assert "prediction" in capsys.readouterr().out


def test_fit_then_predict(folder):
    done = run(command_with("localkmeans fit", README), folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["n"], result["d"], result["k"]) == (300, 2, 3)
    for name in ("model", "assignments", "history.csv", "report.html", "metrics.json"):
        assert (folder / "out/customers" / name).exists()
    done = run(
        command_with("localkmeans predict"), folder, **{"out/fit/model": "out/customers/model"}
    )
    assert done.returncode == 0, done.stderr
    labelled = pd.read_parquet(folder / "out/labelled").sort_values("id")
    fitted = pd.read_parquet(folder / "out/customers/assignments").sort_values("id")
    np.testing.assert_array_equal(labelled["prediction"], fitted["prediction"])


@pytest.mark.timeout(600)
def test_spark_submit_line(folder, tmp_path):
    settings = f"spark.executor.extraJavaOptions {OPTIONS}\n"
    (tmp_path / "spark-defaults.conf").write_text(settings)
    subprocess.run(["make", "zip", f"PYTHON={sys.executable}"], cwd=REPOSITORY, check=True)
    command = command_with("spark-submit")
    submit = Path(sys.executable).with_name("spark-submit")
    done = run(
        [
            sys.executable,
            str(REPOSITORY / "jobs/local_cluster.py"),
            "--workers",
            "2",
            "--",
            *command,
        ],
        folder,
        {"SPARK_CONF_DIR": str(tmp_path)},
        **{
            "spark-submit": str(submit),
            "spark://host:7077": "{master}",
            "dist/localkmeans_spark.zip": str(REPOSITORY / "dist/localkmeans_spark.zip"),
        },
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["n"] == 300 and (folder / "out/cluster/report.html").exists()


def test_what_is_named_exists():
    for target in re.findall(r"^make (\w+)$", "\n".join(blocks("sh")), flags=re.MULTILINE):
        subprocess.run(["make", "-n", target], cwd=REPOSITORY, check=True, capture_output=True)
    for name in re.findall(r"\]\(([\w./]+)\)|`((?:jobs|conf|docs)/[\w./-]+)`", README):
        assert (REPOSITORY / next(filter(None, name))).exists(), name
