"""The parts of a fit, measured one by one, run on what the engine is today."""

from __future__ import annotations

import numpy as np

from benchmarks.data import write_mixture
from benchmarks.phases import ingest_parts, kernel_parts, round_parts
from localkmeans_spark.engine.blocks import open_blocks
from localkmeans_spark.engine.config import FitConfig


def test_parts_of_ingest_and_round_add_up(spark, tmp_path):
    write_mixture(tmp_path / "rows", 2000, 4, 3, files=2)
    config = FitConfig(k=3)
    ingest = ingest_parts(spark, tmp_path / "rows", config, repeats=1)
    parts = ("JVM read", "conversion", "encoding and cache")
    assert np.isclose(sum(ingest[part] for part in parts), ingest["ingest through Spark"])
    with open_blocks(spark.read.parquet(str(tmp_path / "rows")), config) as blocks:
        found = round_parts(blocks, np.eye(3, 4), repeats=1)
    assert found["scheduling"] > 0 and found["round of 5"] > 0
    assert np.isclose(found["first step"] + found["4 later steps"], found["round of 5"] - (
        found["round of 1"] - found["first step"]))  # fmt: skip


def test_kernel_takes_longer_than_its_bare_product():
    x = np.random.default_rng(0).normal(size=(4096, 16)).astype(np.float32)
    found = kernel_parts(x, x[:200].astype(float), repeats=3)
    assert found["step"] > found["product"] > 0
