"""A wrong --master is told at once, and not blamed on Java."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from localkmeans_spark.cli.session import check_master
from localkmeans_spark.errors import InvalidInputError


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[ 2 , 3 ]", "local-cluster[2,1,1024]", "yarn",
     "k8s://https://nowhere.invalid:443"],
)  # fmt: skip
def test_masters_that_spark_knows(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master",
    ["lokal[2]", "local[0]", "local[x]", "local[2", "", "spark", "spark://", "spark://host",
     "127.0.0.1:7077", "http://host:7077", "sc://host:15002"],
)  # fmt: skip
def test_others_are_no_masters(master: str) -> None:
    with pytest.raises(InvalidInputError, match=r"--master must be local, .*; got .*spelling"):
        check_master(master)


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize(
    "place", ["127.0.0.1:1", "nowhere.invalid:7077", "[::1]:1", "127.0.0.1:99999", "..:1"]
)
def test_a_master_that_does_not_answer(place: str) -> None:
    told = r"--master must be a Spark master that can be reached .*; got 'spark://.*connection fail"
    with pytest.raises(InvalidInputError, match=told):
        check_master(f"spark://{place}")


def test_the_command_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    words = f"fit --input {tmp_path}/t.csv --k 2 --output {tmp_path}/out --master lokal[2]".split()
    code = f"from localkmeans_spark.cli.main import main; main({words})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--master must be local" in done.stderr.splitlines()[-1]
    assert "Java" not in done.stderr
