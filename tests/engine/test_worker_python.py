"""The Python of the workers: the driver's by itself; another one, one line if it cannot serve."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

_SCRIPT = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from localkmeans_spark import InvalidInputError, LocalKMeans
from localkmeans_spark.spark_private import workers_of_sql

spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
df = spark.range(20).select(F.array(F.col("id") * 1.0, F.col("id") % 2).alias("features"))
try:
    model = LocalKMeans(k=2, seed=1).fit(df)
    with workers_of_sql(spark.sparkContext):
        numbers = spark.sparkContext.parallelize([0])
        found = set(numbers.mapPartitions(lambda _: list(__import__("sys").modules)).collect())
    # Rounds were here, and so was Spark SQL, whose functions need pandas.
    print("one process for all", {"localkmeans_spark.fit.exchange", "pandas"} <= found)
    print("needless imports", found & {"pyspark.ml", "localkmeans_spark.fit.partitions"})
    print("labels", model.transform(df).select("prediction").distinct().count())
except InvalidInputError as error:
    print(error)
spark.stop()
"""


def run(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a fit and a transform in a session without settings of ours."""
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    kept = {name: value for name, value in os.environ.items() if "PYSPARK" not in name}
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), **kept, **environment}
    return subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment without packages, as a new ``python -m venv`` makes it."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    assert (folder / "bin" / "python3").exists()
    return folder / "bin"


def test_a_local_master_takes_the_drivers_python(tmp_path: Path, bare: Path) -> None:
    """The first python3 on the path has no NumPy: this environment is not activated."""
    found = run(tmp_path, PATH=f"{bare}{os.pathsep}{os.environ['PATH']}", PYTHONPATH=_without())
    # Python's garbage collector looks at all that a worker imported, after every task.
    expected = "one process for all True\nneedless imports set()\nlabels 2\n"
    assert found.stdout == expected, found.stderr


def _without() -> str:
    """This repository alone, so that a worker's Python has its own packages."""
    return str(Path(__file__).resolve().parents[2])


def test_workers_without_packages_are_told_in_one_line(tmp_path: Path, bare: Path) -> None:
    python = str(bare / "python3")
    found = run(tmp_path, PYSPARK_PYTHON=python, PYTHONPATH=_without())
    assert len(found.stdout.splitlines()) == 1, found.stdout
    assert "LocalKMeans: the Python of Spark's workers must be able to import" in found.stdout
    assert f"got {python} without numpy, scipy, pyarrow, threadpoolctl" in found.stdout
    assert "Traceback" not in found.stderr
    assert len(found.stderr.splitlines()) < 20


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    found = run(tmp_path, PYSPARK_PYTHON="/nowhere/python3", PYTHONPATH=_without())
    assert len(found.stdout.splitlines()) == 1, found.stdout
    assert "got /nowhere/python3, which is not there" in found.stdout


def test_workers_of_another_version_are_told_in_one_line(tmp_path: Path) -> None:
    names = [f"python3.{minor}" for minor in range(10, 15) if minor != sys.version_info[1]]
    others = [path for name in names if (path := shutil.which(name)) and _runs(path)]
    if not others:
        pytest.skip("no other Python here")
    found = run(tmp_path, PYSPARK_PYTHON=others[0], PYTHONPATH=_without())
    assert len(found.stdout.splitlines()) == 1, found.stdout
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"must be Python {version}, as the driver's; got {others[0]}, which" in found.stdout


def _runs(path: str) -> bool:
    return subprocess.run([path, "--version"], capture_output=True).returncode == 0
