"""What a task takes at any width: its blocks, a few chunks, a few rows of centers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from localkmeans_spark.data.block_format import decode
from localkmeans_spark.data.ingest import IngestPlan, encode_partition
from localkmeans_spark.data.partition import Partition, describe
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.local_steps import local_phase

_BATCH, _CHUNK = 8 << 20, 16 << 20


def batches(n: int, n_features: int) -> Iterator[pa.RecordBatch]:
    """Rows in two groups, in the batches that Spark sends."""
    rng = np.random.default_rng(0)
    size = max(1, _BATCH // (8 * n_features))
    for start in range(0, n, size):
        rows = min(size, n - start)
        numbers = rng.normal(size=rows * n_features) + 1000.0 + 10.0 * (start % 2)
        ends = pa.array(np.arange(0, (rows + 1) * n_features, n_features, dtype=np.int32))
        lists = pa.ListArray.from_arrays(ends, pa.array(numbers))
        partition = pa.array(np.zeros(rows, dtype=np.int32))
        yield pa.record_batch([lists, partition], ["features", "partition"])


def peak_of_encoding(n: int, n_features: int, **plan: object) -> tuple[list[bytes], int]:
    """Encoded blocks, and the most memory beside them while they were made."""
    blocks, most = [], 0
    settings = {"is_weighted": False, "dtype": "float32", **plan}
    tracemalloc.start()
    try:
        for batch in encode_partition(
            batches(n, n_features),
            IngestPlan("array", None, **settings),  # type: ignore[arg-type]
        ):
            most = max(most, tracemalloc.get_traced_memory()[1] - sum(map(len, blocks)))
            blocks.append(batch.column(0)[0].as_py())
            tracemalloc.reset_peak()
        most = max(most, tracemalloc.get_traced_memory()[1] - sum(map(len, blocks)))
    finally:
        tracemalloc.stop()
    return blocks, most


# 160 MB of doubles each, 80 MB of blocks; the third width is more than a batch holds.
SHAPES = [(320_000, 64), (1_000, 20_000), (60, 333_333), (14, 1_500_000)]


@pytest.mark.parametrize(("n", "n_features"), SHAPES)
@pytest.mark.parametrize("cosine", [False, True])
def test_encoding(n: int, n_features: int, cosine: bool) -> None:
    """The first rows are held until there are enough (16 at least) to place the origin."""
    blocks, most = peak_of_encoding(n, n_features, is_cosine=cosine)
    stored = sum(map(len, blocks))  # the rows, one origin, a header a block
    assert 0 <= stored - 4 * n * n_features <= 8 * n_features + 256 * len(blocks)
    held = max(_BATCH, 16 * 8 * n_features) + _BATCH
    assert most < 6 * held


@pytest.mark.parametrize(("n", "n_features"), SHAPES)
def test_a_round_and_the_last_pass(n: int, n_features: int) -> None:
    blocks, _ = peak_of_encoding(n, n_features)
    partition = Partition(0, [decode(block) for block in blocks])
    rows = [partition.blocks[0].x[0], partition.blocks[-1].x[-1]]
    centers = np.array(rows, dtype=np.float64)
    tracemalloc.start()
    try:
        describe(partition, (1,))
        local_phase(partition.blocks, centers, 3, partition.sum_sq)
        for block in partition.blocks:
            exact_nearest(block.x, centers)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    some = 3 * 8 * n_features * min(n, 17)  # looked at for where most rows lie
    assert most < 6 * _CHUNK + 12 * centers.nbytes + some + 32 * n
