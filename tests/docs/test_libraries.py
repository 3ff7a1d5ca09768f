"""What is imported and what is not, and the words when a library is missing or too old."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from localkmeans_spark.libraries import OLDEST
from tests.docs.test_packaging import PROJECT

# Each takes a tenth of a second or more, and is imported where it is needed.
LATE = [
    "scipy.spatial", "scipy.optimize", "scipy.special", "sklearn", "matplotlib", "jinja2", "click",
    "localkmeans_spark.cli", "localkmeans_spark.metrics", "localkmeans_spark.diagnosis",
    "pyspark.pandas",
]  # fmt: skip
CLASSIC = re.compile(r"from py(4j|spark)\S* import .*\b(Py4JE|RDD|SparkCont|Broadcast|SparkFiles)")


def run(code: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path.insert(0, {root!r}); {code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_what_is_slow_is_imported_late():
    names = "from localkmeans_spark import LocalKMeans; print(*sys.modules)"
    before, after = run("import pyspark.ml.base; print(*sys.modules)"), run(names)
    assert after.returncode == 0, after.stderr
    new = set(after.stdout.split()) - set(before.stdout.split())
    assert not new & set(LATE)


@pytest.mark.parametrize(
    "name", ["data.ingest", "data.limits", "fit.requests", "fit.seeding", "fit.measures", "scoring"]
)
def test_workers_import_nothing_that_opens_data_frames(name):
    # PySpark comes to workers as a zip, whose files are compiled anew in every process.
    done = run(f"import localkmeans_spark.{name}; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert not loaded & {"pyspark.ml.linalg", "pyspark.sql.connect", "localkmeans_spark.model"}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "sys.modules['pyspark'] = None",
            "needs pyspark 3.5 or newer; found none. Run: pip install 'localkmeans_spark[spark]' "
            "(Databricks has it",
        ),
        ("import pyspark; pyspark.__version__ = '3.4.4'", "pyspark 3.5 or newer; found 3.4.4. Run"),
        ("import scipy; scipy.__version__ = '1.9.3'", "scipy 1.11.1 or newer; found 1.9.3. Run"),
    ],
)
def test_a_missing_or_old_library_is_one_line(code, told):
    done = run(f"{code}; from localkmeans_spark import LocalKMeans")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: localkmeans_spark needs ")
    assert told in last
    assert "During handling" not in done.stderr


def test_the_oldest_are_those_that_pip_is_told():
    lowest = {}
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["spark"]]:
        name, floor = re.match(r"([a-z_]+)>=([\d.]+)", line).groups()
        lowest.setdefault(name, floor)
    assert {name: lowest[name] for name in OLDEST} == OLDEST


def test_pyspark_is_an_extra_alone():
    assert not [line for line in PROJECT["dependencies"] if line.startswith("pyspark")]


def test_names_that_pyspark_client_lacks_are_imported_where_they_are_used():
    package = Path(__file__).resolve().parents[2] / "localkmeans_spark"
    for file in package.rglob("*.py"):
        at_top = [line for line in file.read_text().splitlines() if CLASSIC.match(line)]
        assert not at_top or "cli" in file.parts, (file, at_top)
