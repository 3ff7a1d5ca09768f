"""Data sets for benchmarks: a mixture of Gaussians, written as Parquet a piece at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_ROWS_AT_A_TIME = 100_000


def write_mixture(
    path: Path, n: int, d: int, k: int, *, files: int, seed: int = 0, noise: float = 1.0
) -> None:
    """Write n rows of d features, a mixture of k Gaussians, as ``files`` Parquet files.

    Each file becomes one partition of the DataFrame (if the files are large enough). The true
    centers are standard normal, ``noise`` is the standard deviation around them.
    """
    path.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d)).astype(np.float32)
    schema = pa.schema([("features", pa.list_(pa.float32()))])
    for i, rows in enumerate(np.array_split(np.arange(n), files)):
        with pq.ParquetWriter(path / f"part-{i:04d}.parquet", schema) as writer:
            for start in range(0, len(rows), _ROWS_AT_A_TIME):
                count = min(_ROWS_AT_A_TIME, len(rows) - start)
                x = rng.standard_normal((count, d), dtype=np.float32)
                x *= np.float32(noise)
                x += centers[rng.integers(0, k, size=count)]
                offsets = np.arange(0, (count + 1) * d, d, dtype=np.int32)
                lists = pa.ListArray.from_arrays(offsets, x.ravel())
                writer.write_table(pa.table({"features": lists}, schema=schema))


def read_rows(path: Path) -> np.ndarray:
    """Read all rows back, shape (n, d), float32."""
    column = pq.read_table(path)["features"].combine_chunks()
    return column.values.to_numpy().reshape(len(column), -1)
