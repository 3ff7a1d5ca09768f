"""Java that starts in less than half the time: the tests start some sixty of them.

The first compiler alone, a collector without threads and much room for what lives short (Spark's
many short jobs here never need more), and Java's archive of loaded classes, made once. Measure
speed without any of them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pyspark

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:NewRatio=1"
# Loads what most tests use: DataFrames, Python workers by Arrow, Parquet.
_PROGRAM = """
import sys
from localkmeans_spark import LocalKMeans
from localkmeans_spark.cli.session import open_session

with open_session("classes", master="local[2]", conf={"spark.ui.enabled": "false"}) as spark:
    rows = spark.createDataFrame([([float(i), 1.0],) for i in range(9)], ["features"])
    rows.write.parquet(sys.argv[1])
    LocalKMeans(k=2, seed=1).fit(spark.read.parquet(sys.argv[1])).transform(rows).collect()
"""


def make_java_start_fast(folder: Path, scratch: Path) -> None:
    """Set options of Spark's launcher, drivers and daemons in this process's environment.

    Parameters
    ----------
    folder : Path
        Where the archive is kept from one run of the tests to the next.
    scratch : Path
        Where a table may be written.
    """
    for name in ("SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS", "SPARK_SUBMIT_OPTS"):
        os.environ[name] = OPTIONS
    java = Path(os.environ.get("JAVA_HOME", "java"))
    archive = folder / f"{java.name}-{pyspark.__version__}-{Path(sys.prefix).name}.jsa"
    if not archive.exists():
        command = [sys.executable, "-c", _PROGRAM, str(scratch / "table")]
        making = f"{OPTIONS} -Xlog:disable -XX:ArchiveClassesAtExit={archive}"
        env = {**os.environ, "SPARK_SUBMIT_OPTS": making}
        with contextlib.suppress(subprocess.TimeoutExpired):  # then the tests do without
            subprocess.run(command, env=env, capture_output=True, timeout=300)
    if archive.exists():  # not by Java 11 and older, which stop at these options
        os.environ["SPARK_SUBMIT_OPTS"] += f" -Xlog:disable -XX:SharedArchiveFile={archive}"
