"""Fixtures for every test."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from localkmeans_spark.cli.session import ensure_java, open_session
from localkmeans_spark.errors import InvalidInputError
from tests.fast_java import make_java_start_fast

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Find a Java once, for Spark here and for the commands that tests run."""
    if config.option.collectonly:
        return
    with contextlib.suppress(InvalidInputError):  # tests without Spark need none
        ensure_java()
        if hasattr(config, "cache"):  # not in `make mutants`, whose tests need no Spark
            with tempfile.TemporaryDirectory() as scratch:
                make_java_start_fast(config.cache.mkdir("java"), Path(scratch))


# Minutes each. Begun last, one of them would leave the other process of `make test` idle.
_LONG = tuple(f"tests/{name}/" for name in ("soak", "fuzz", "connect", "notebooks", "jobs"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long tests first."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores of this machine, shared by all tests: leave it as it was."""
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    with open_session("tests", master="local[2]", conf=settings) as session:
        yield session


@pytest.fixture
def newly_cached(spark: SparkSession) -> Callable[[], set[int]]:
    """Say which RDDs and tables have been cached since the test began.

    Not how many are: what other tests left drops out whenever the JVM collects its garbage.
    """

    def cached() -> set[int]:
        return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())

    before = cached()
    return lambda: cached() - before


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of real data sets that lies beside the repository, if it does."""
    directory = REPOSITORY.parent / "shared" / "data"
    if not directory.is_dir():
        pytest.skip(f"no real data sets at {directory}")
    return directory
