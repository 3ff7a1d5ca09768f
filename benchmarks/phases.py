"""Where the time of a fit goes, by size: each part measured by itself, in one warm session.

Ingest: the JVM reads the Parquet; rows are converted to Arrow and handed to Python; they are
encoded, cached and summarised. A round: scheduling (the same tasks without data), transport (tasks
that take the blocks and do nothing), aggregation (they send sums of the right size), and the
kernel: product, comparison and cluster sums of the first local step, and the later steps. The
kernel's parts are measured in this process on one block and scaled to all rows and cores.

Example: ``python -m benchmarks.phases --sizes 400000,64,64 --json benchmarks/results/phases.json``
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from threadpoolctl import threadpool_limits

from benchmarks.about import environment
from benchmarks.data import write_mixture
from benchmarks.spark_systems import session
from localkmeans_spark.engine.aggregate import RoundSummary, merge_rounds
from localkmeans_spark.engine.blocks import Blocks, open_blocks
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.machine import Machine
from localkmeans_spark.engine.machine_rounds import RoundOrder, local_round
from localkmeans_spark.kernel.chunks import rows_per_chunk, slices
from localkmeans_spark.kernel.lloyd import Block, add_cluster_sums
from localkmeans_spark.kernel.local_steps import local_phase

_BLOCK_BYTES = 5 << 20
# Clusters overlap.
_NOISE = 2.0


def _nothing(on_machine: Machine, order: Any) -> None:
    """Take the blocks and leave it at that."""


def _first(left: Any, right: Any) -> Any:
    return left


def _zeros(on_machine: Machine, order: RoundOrder) -> list[RoundSummary]:
    """Send a round's summary without computing it."""
    k, d = order.centers[0].shape
    one_a_machine = [np.ones(1)] * (len(fields(RoundSummary)) - 2)
    return [RoundSummary(np.zeros((1, k, d)), np.zeros((1, k)), *one_a_machine)]


def _drain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield from ()


def _drain_numbers(numbers: Iterable[int]) -> Iterable[None]:
    return [None for _ in numbers]


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median seconds of several runs after one that warms up."""
    taken = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken[1:])


def ingest_parts(spark: Any, path: Path, config: FitConfig, repeats: int) -> dict[str, Any]:
    """Split the ingest pass; measure the same from a cached DataFrame, beside ``toArrow``."""
    frame = spark.read.parquet(str(path))

    def read() -> None:
        frame.write.format("noop").mode("overwrite").save()

    def hand_over() -> None:
        frame.mapInArrow(_drain, "nothing int").write.format("noop").mode("overwrite").save()

    def ingest(source: DataFrame) -> None:
        with open_blocks(source, config):
            pass

    cached = spark.read.parquet(str(path)).cache()
    cached.count()
    from_cache, to_arrow = seconds(lambda: ingest(cached), repeats), None
    if hasattr(cached, "toArrow"):  # PySpark 4.0 and newer
        to_arrow = seconds(cached.toArrow, repeats)
    cached.unpersist(blocking=True)
    jvm, handed = seconds(read, repeats), seconds(hand_over, repeats)
    whole = seconds(lambda: ingest(frame), repeats)
    return {
        "JVM read": jvm, "conversion": handed - jvm, "encoding and cache": whole - handed,
        "ingest": whole,
        "ingest of a cached DataFrame": from_cache, "its toArrow()": to_arrow,
    }  # fmt: skip


def round_parts(blocks: Blocks, centers: np.ndarray, repeats: int) -> dict[str, float]:
    """Split one round; ``first step`` and ``later steps`` are kernel seconds in the workers."""
    frame, context = blocks.data.frame, blocks.tasks.context
    n_tasks, nbytes = blocks.tasks.getNumPartitions(), centers.nbytes
    numbers = context.parallelize(range(n_tasks), n_tasks).mapPartitions(_drain_numbers)

    def order(local_steps: int) -> RoundOrder:
        return RoundOrder(frame, [centers - frame.mean], [local_steps], [True], [0.0])

    def run(worker: Any, local_steps: int, merge: Any = merge_rounds) -> float:
        return seconds(
            lambda: blocks.run(worker, order(local_steps), merge, "profile", nbytes), repeats
        )

    scheduling = seconds(lambda: numbers.treeAggregate(None, _first, _first, depth=1), repeats)
    moved, summed = run(_nothing, 1, _first), run(_zeros, 1)
    one, five = run(local_round, 1), run(local_round, 5)
    return {
        "scheduling": scheduling,
        "transport": moved - scheduling,
        "aggregation": max(0.0, summed - moved),
        "first step": one - summed,
        "4 later steps": five - one,
        "round of 1": one,
        "round of 5": five,
    }


def kernel_parts(x: np.ndarray, centers: np.ndarray, repeats: int) -> dict[str, float]:
    """Seconds a row, on one core, of the first local step and its parts, and of four later ones."""
    transposed = np.ascontiguousarray(centers.T, dtype=x.dtype)
    half = (0.5 * (centers**2).sum(axis=1)).astype(x.dtype)
    step = rows_per_chunk(x.shape[1], len(centers), x.itemsize)
    scores = np.empty((step, len(centers)), dtype=x.dtype)
    labels = np.empty(len(x), dtype=np.int32)

    def product(compare: bool) -> None:
        for some in slices(len(x), step):
            part = scores[: some.stop - some.start]
            np.matmul(x[some], transposed, out=part)
            if compare:
                part -= half
                labels[some] = part.argmax(axis=1)

    block = Block(x, None)
    sum_sq = float((x.astype(np.float64) ** 2).sum())
    with threadpool_limits(limits=1, user_api="blas"):
        bare = seconds(lambda: product(False), repeats)
        compared = seconds(lambda: product(True), repeats)
        sums = seconds(lambda: add_cluster_sums(block, labels, np.zeros(centers.shape)), repeats)
        first = seconds(lambda: local_phase([block], centers, 1, sum_sq), repeats)
    parts = {"product": bare, "comparison": compared - bare, "cluster sums": sums, "step": first}
    return {name: value / len(x) for name, value in parts.items()}


def measure(spark: Any, path: Path, size: tuple[int, int, int], options: argparse.Namespace) -> Any:
    """Measure all parts for one size, and a whole fit beside them."""
    from localkmeans_spark import LocalKMeans

    n, d, k = size
    repeats = options.repeats
    frame = spark.read.parquet(str(path))
    fitted = [LocalKMeans(k=k, seed=seed, tol=0.0).fit(frame) for seed in range(2)][-1]
    # Centers that still move: from a fixed point there would be no later steps to measure.
    early = LocalKMeans(k=k, seed=0, tol=0.0, maxIter=2, localSteps=1).fit(frame)
    centers = np.array(early.clusterCenters())
    config = FitConfig(k=k)
    found = ingest_parts(spark, path, config, repeats)
    with open_blocks(frame, config) as blocks:
        found |= round_parts(blocks, centers, repeats)
    rows = _BLOCK_BYTES // (4 * d)
    x = np.random.default_rng(0).choice(centers, rows).astype(np.float32)
    x += np.random.default_rng(1).standard_normal(x.shape, dtype=np.float32)
    kernel = kernel_parts(x, centers, repeats)
    scaled = {name: value * n / options.cores for name, value in kernel.items() if name != "step"}
    record = fitted.summary.record
    return {
        "n": n, "d": d, "k": k, "cores": options.cores, "parts": found | scaled,
        "step_by_product": kernel["step"] / kernel["product"], "fit": record.seconds,
        "outside_share": (found["scheduling"] + found["transport"] + found["aggregation"])
        / found["round of 5"],
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", nargs="+", default=["400000,64,64"], metavar="N,D,K", help="(default: one size)"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--driver-memory", default="8g")
    parser.add_argument("--json", type=Path, help="append one JSON object a size here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, session(options) as spark:
        for text in options.sizes:
            n, d, k = (int(item) for item in text.split(","))
            path = Path(folder) / text
            write_mixture(path, n, d, k, files=2 * options.cores, noise=_NOISE)
            found = measure(spark, path, (n, d, k), options)
            for name, value in found["parts"].items():
                if value is not None:
                    print(f"{text:>18} {name:<28} {value:8.3f} s")
            print(f"{text:>18} first step / bare product {found['step_by_product']:.2f}")
            if options.json is not None:
                with options.json.open("a") as out:
                    out.write(json.dumps({**found, **environment()}) + "\n")


if __name__ == "__main__":
    main()
