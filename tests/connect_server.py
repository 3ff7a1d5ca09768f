"""A server of Spark Connect in a process of its own, as clients on other machines meet it."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from jobs.local_cluster import end_group


@contextmanager
def connect_server(submit: list[str], env: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Start a server by spark-submit and yield its address; skip where PySpark has none."""
    if pyspark.__version__ < "4":
        pytest.skip("the package of PySpark 3.5 has no server of Spark Connect")
    pytest.importorskip("grpc")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [*submit, "--conf", f"spark.connect.grpc.binding.port={port}"]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    log = folder / "server.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            [*words, "spark-internal"], env=env, cwd=folder,
            stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while "started at" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        end_group(server, signal.SIGKILL)
        server.wait()
