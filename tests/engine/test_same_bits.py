"""Same data, partitions and seed: the same bits, whatever the order in which tasks finish."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from localkmeans_spark.cli.session import open_session
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit.driver import fit

REPOSITORY = Path(__file__).resolve().parents[2]


def fits(spark: SparkSession) -> Iterator[list[str]]:
    """Yield the name, the centers and the cost of fits of rows that come at their own pace."""

    def some_slow(rows: list[list[float]]) -> Iterator[tuple[list[float]]]:
        for row in rows:
            if random.random() < 0.002:
                time.sleep(random.uniform(0, 0.2))
            yield (row,)

    x = np.random.default_rng(0).normal(size=(2000, 7)) + np.arange(2000)[:, None] / 300
    parts = [part.tolist() for part in np.array_split(x, 9)]
    rows = spark.sparkContext.parallelize(parts, 9).flatMap(some_slow)
    frame = spark.createDataFrame(rows, "features array<double>")
    modes = ("k-means++", "local-k-means++", "k-means||", "random")
    runs: list[Any] = [(mode, frame, {"init_mode": mode}) for mode in modes]
    runs += [("numPartitions", frame, {"data": DataConfig(num_partitions=5)})]
    runs += [("shuffled", frame.repartition(6, "features"), {})]
    for name, df, changes in runs:
        found = fit(df, FitConfig(k=12, seed=42, local_steps=3, max_iter=12, **changes))
        yield [name, found.centers.tobytes().hex(), found.record.inertia.hex()]


@pytest.mark.timeout(900)
def test_bits_do_not_depend_on_cores_or_task_order(spark):
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.test_same_bits"],
        cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    seen: dict[str, set[tuple[str, ...]]] = {}
    elsewhere = [json.loads(line) for line in done.stdout.splitlines()]
    for name, *bits in [*fits(spark), *elsewhere]:
        seen.setdefault(name, set()).add(tuple(bits))
    assert len(elsewhere) == len(seen) == 6
    assert {name: len(bits) for name, bits in seen.items()} == dict.fromkeys(seen, 1)


if __name__ == "__main__":
    with open_session("bits", master="local[5]", conf={"spark.ui.enabled": "false"}) as session:
        for found in fits(session):
            print(json.dumps(found))
