"""A wrong --master is told in one line."""

from __future__ import annotations

import socket

import pytest

from localkmeans_spark.cli.session import check_reachable
from localkmeans_spark.errors import InvalidInputError


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://nowhere.invalid:443"])
def test_masters_without_a_place_to_reach(master: str) -> None:
    check_reachable(master)


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize(
    "place", ["127.0.0.1:1", "nowhere.invalid:7077", "[::1]:1", "127.0.0.1:99999", "..:1"]
)
def test_a_master_that_does_not_answer(place: str) -> None:
    told = (
        r"--master must be a Spark master or server that can be .*; got 'spark://.*connection fail"
    )
    with pytest.raises(InvalidInputError, match=told):
        check_reachable(f"spark://{place}")


def test_a_server_of_spark_connect_that_does_not_answer() -> None:
    with pytest.raises(InvalidInputError, match=r"'sc://127.0.0.1:1/;token=.*connection failed"):
        check_reachable("sc://127.0.0.1:1/;token=x")
    with pytest.raises(InvalidInputError, match=r"'sc://nowhere\.invalid'"):
        check_reachable("sc://nowhere.invalid")
