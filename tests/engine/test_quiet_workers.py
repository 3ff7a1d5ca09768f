"""Numbers too large for a fit are told by its checks; NumPy says nothing on the workers' stderr."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from localkmeans_spark.data.block_format import decode
from localkmeans_spark.data.ingest import IngestPlan, encode_partition
from localkmeans_spark.data.partition import Partition, describe

MOST = np.finfo(np.float64).max
ROWS = {
    "largest": [[MOST, MOST], [-MOST, MOST], [MOST, -MOST], [MOST, MOST]],
    "large": [[1e300, 1.0], [1.0, -1e300], [2.0, 3.0]],
    "squares": [[1e154, 1e154]] * 30,
}
INDICES, VALUES = pa.list_(pa.int32()), pa.list_(pa.float64())
SPARSE = pa.struct(
    [("type", pa.int8()), ("size", pa.int32()), ("indices", INDICES), ("values", VALUES)]
)


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weight", [None, MOST])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_no_warning(rows: list[Any], dtype: str, weight: float | None, is_sparse: bool) -> None:
    if is_sparse:
        cells = [{"type": 0, "size": 900, "indices": [0, 7], "values": row} for row in rows]
        features, kind = pa.array(cells, SPARSE), "vector"
    else:
        features, kind = pa.array(rows, pa.list_(pa.float64())), "array"
    columns = [features, pa.array([weight] * len(rows)), pa.array([0] * len(rows))]
    names = ["features", "weight", "partition"]
    if weight is None:
        del columns[1], names[1]
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = IngestPlan(kind, None, weight is not None, dtype)
        blocks = [
            decode(row)
            for piece in encode_partition(iter([batch]), plan)
            for row in piece.column(0).to_pylist()
        ]
        assert describe(Partition(0, blocks), [1]).n_points == len(rows)
