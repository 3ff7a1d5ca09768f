"""Same data, partitions and seed: the same bits, whatever the order in which tasks finish."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

PROGRAM = """
import json, sys, time
import numpy as np
from localkmeans_spark.cli.session import open_session
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit.driver import fit
from localkmeans_spark.data import partition

def slow(row):
    import random, time
    if random.random() < 0.002:
        time.sleep(random.uniform(0, 0.2))
    return row

with open_session("bits", master=sys.argv[1], conf={"spark.ui.enabled": "false"}) as spark:
    x = np.random.default_rng(0).normal(size=(2000, 7)) + np.arange(2000)[:, None] / 300
    parts = [p.tolist() for p in np.array_split(x, 9)]
    rows = spark.sparkContext.parallelize(parts, 9).flatMap(lambda p: [(r,) for r in p]).map(slow)
    frame = spark.createDataFrame(rows, "features array<double>")
    modes = ("k-means++", "local-k-means++", "k-means||", "random")
    runs = [(mode, frame, {"init_mode": mode}) for mode in modes]
    runs += [("numPartitions", frame, {"data": DataConfig(num_partitions=5)})]
    runs += [("shuffled", frame.repartition(6, "features"), {})]
    for name, rows, changes in runs * int(sys.argv[2]):
        found = fit(rows, FitConfig(k=12, seed=42, local_steps=3, max_iter=12, **changes))
        print(json.dumps([name, found.centers.tobytes().hex(), found.record.inertia.hex()]))
"""


@pytest.mark.timeout(900)
def test_bits_do_not_depend_on_cores_or_task_order(tmp_path):
    program = tmp_path / "bits.py"
    program.write_text(PROGRAM)
    seen = {}
    for master, times in (("local[1]", 1), ("local[4]", 2)):
        done = subprocess.run(
            [sys.executable, str(program), master, str(times)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        for line in done.stdout.splitlines():
            name, *bits = json.loads(line)
            seen.setdefault(name, set()).add(tuple(bits))
    assert len(seen) == 6
    assert {name: len(bits) for name, bits in seen.items()} == dict.fromkeys(seen, 1)
