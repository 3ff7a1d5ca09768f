"""The daemon of Python workers that the command line's sessions have."""

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession


@pytest.mark.skipif(sys.platform != "linux", reason="the session has Spark's own daemon")
def test_workers_take_what_the_daemon_imported(spark: SparkSession) -> None:
    def look(_: int) -> tuple[int, bool, str, list[str]]:
        import gc
        import sys

        import pyspark

        loaded = "localkmeans_spark.model" in sys.modules
        return gc.get_freeze_count(), loaded, pyspark.__file__, sys.path

    frozen, loaded, place, path = spark.sparkContext.parallelize([0], 1).map(look).first()
    assert frozen > 10_000 and loaded
    assert "pyspark.zip" not in place
    assert not any(folder.endswith("pyspark.zip") for folder in path)


@pytest.mark.parametrize("layout", ["python", "site-packages/pyspark/python", "archive alone"])
def test_pyspark_comes_from_beside_the_archive(tmp_path, layout):
    home = tmp_path / layout
    package = {"python": home, "archive alone": None}.get(layout, tmp_path / "site-packages")
    (home / "lib").mkdir(parents=True)
    if package is not None:
        (package / "pyspark").mkdir(exist_ok=True)
        (package / "pyspark" / "__init__.py").touch()
        (package / "pyspark" / "worker.py").touch()
    archive = str(home / "python/lib/pyspark.zip" if package is None else home / "lib/pyspark.zip")
    program = f"""
import sys
from localkmeans_spark.daemon import _import_pyspark_unpacked

for name in [name for name in sys.modules if name.split(".")[0] == "pyspark"]:
    del sys.modules[name]
sys.path.insert(0, {archive!r})
before = list(sys.path)
_import_pyspark_unpacked()
print(sys.modules["pyspark"].__file__ if "pyspark" in sys.modules else None)
print(before == sys.path, before[1:] == sys.path)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    found = str(package / "pyspark" / "__init__.py") if package else None
    assert run.stdout.splitlines() == [str(found), f"{package is None} {package is not None}"]
