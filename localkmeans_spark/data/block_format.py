"""How a block of rows travels between the JVM and the Python workers: raw bytes, no pickling.

Layout: int64 numbers (:data:`_HEADER`), the partition's origin (n_features float64; not if it is
0, and in the partition's first block alone: of wide rows it is longer than the block's rows), sums
of weights and of weighted squares (2 float64), padding to 64 bytes, weights (n float64, if any), x.
Sparse rows (``n_stored`` >= 0) have indptr (n + 1 int32), indices (int32), padding to 8 bytes and
values in place of x. Zeros fill the block to 64 bytes: blocks that lie one behind the other all
begin where numbers may. Reading makes views of the received bytes, not copies.

The first int64 is the CRC-32 of everything after it, taken once, when the block is written. Blocks
that Spark had to make again are compared by it with those of the first pass (``fit.partitions``).
"""

from __future__ import annotations

import sys
import zlib
from operator import add
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.sparse_rows import SparseRows


class LeftOut(NamedTuple):
    """Rows that a partition left out, or would rather have.

    Attributes
    ----------
    invalid_features, invalid_weights, wrong_length : int
        Null, NaN or infinite features; null, NaN, infinite or negative weights; another number of
        features than the first row.
    zero_rows : int
        Rows of zeros left out because they have no direction.
    vanished_rows : int
        Rows that hold numbers, all of which the block's dtype makes 0, in groups of such rows
        alone. These are kept.
    other_length : int
        Length of one of the ``wrong_length`` rows: the greatest.
    """

    invalid_features: int = 0
    invalid_weights: int = 0
    wrong_length: int = 0
    zero_rows: int = 0
    vanished_rows: int = 0
    other_length: int = 0

    def plus(self, other: LeftOut) -> LeftOut:
        """Return the counts of both together."""
        longest = max(self.other_length, other.other_length)
        return LeftOut(*map(add, self, other))._replace(other_length=longest)


_HEADER = (
    "checksum", "partition", "n", "n_features", "has_origin", "is_float64", "is_weighted",
    "n_stored", *LeftOut._fields,
)  # fmt: skip
_ALIGN = 64


class StoredBlock(NamedTuple):
    """One decoded block with what its header says.

    Attributes
    ----------
    partition : int
        Partition the rows were read in.
    block : Block
        Rows relative to ``origin``; may have 0 rows.
    origin : ndarray of shape (n_features,), float64
        Of the partition, in its first block; 0 in the others.
    sum_weights, sum_sq : float
        Sum of w and of ``w * ||x||**2`` over the block's rows (relative to ``origin``).
    left_out : LeftOut
        Since the partition's previous block.
    checksum : int
        Of the block's bytes; ``encode`` works it out.
    """

    partition: int
    block: Block
    origin: np.ndarray
    sum_weights: float
    sum_sq: float
    left_out: LeftOut = LeftOut()
    checksum: int = 0


def encode(stored: StoredBlock) -> bytes:
    """Write a block as bytes (see the module's layout)."""
    x, weight = stored.block
    is_sparse = isinstance(x, SparseRows)
    has_origin = bool(stored.origin.any())
    header = np.array(
        [
            stored.partition, len(x), x.shape[1], has_origin, x.dtype == np.float64,
            weight is not None,
            len(x.values) if is_sparse else -1, *stored.left_out,
        ],
        dtype=np.int64,
    )  # fmt: skip
    sums = np.array([stored.sum_weights, stored.sum_sq])
    origin = stored.origin.astype(np.float64).tobytes() if has_origin else b""
    head = header.tobytes() + origin + sums.tobytes()
    parts: list[bytes | memoryview] = [head, bytes(-(8 + len(head)) % _ALIGN)]
    if weight is not None:
        parts.append(np.ascontiguousarray(weight, dtype=np.float64).data)
    if is_sparse:
        places = np.concatenate([x.indptr, x.indices], dtype=np.int32)
        parts += [places.data, bytes(-places.nbytes % 8), np.ascontiguousarray(x.values).data]
    else:
        parts.append(np.ascontiguousarray(x).data)
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    size = 8 + sum(len(part) if isinstance(part, bytes) else part.nbytes for part in parts)
    return b"".join([checksum.to_bytes(8, sys.byteorder), *parts, bytes(-size % _ALIGN)])


def decode(data: bytes | pa.Buffer) -> StoredBlock:
    """Read a block back; its arrays are read-only views of ``data``."""
    header = [int(value) for value in np.frombuffer(data, dtype=np.int64, count=len(_HEADER))]
    checksum, partition, n, n_features, has_origin, is_float64, *header = header
    is_weighted, n_stored, *counts = header
    offset = 8 * len(_HEADER)
    if has_origin:
        origin = np.frombuffer(data, dtype=np.float64, count=n_features, offset=offset)
        offset += origin.nbytes
    else:
        origin = np.broadcast_to(0.0, (n_features,))
    sum_weights, sum_sq = np.frombuffer(data, dtype=np.float64, count=2, offset=offset)
    offset += 16
    offset += -offset % _ALIGN
    weight = None
    if is_weighted:
        weight = np.frombuffer(data, dtype=np.float64, count=n, offset=offset)
        offset += weight.nbytes
    dtype = np.float64 if is_float64 else np.float32
    if n_stored < 0:
        x = np.frombuffer(data, dtype=dtype, count=n * n_features, offset=offset)
        block = Block(x.reshape(n, n_features), weight)
    else:
        places = np.frombuffer(data, dtype=np.int32, count=n + 1 + n_stored, offset=offset)
        offset += places.nbytes + -places.nbytes % 8
        values = np.frombuffer(data, dtype=dtype, count=n_stored, offset=offset)
        block = Block(SparseRows(places[: n + 1], places[n + 1 :], values, n_features), weight)
    return StoredBlock(
        partition, block, origin, float(sum_weights), float(sum_sq), LeftOut(*counts), checksum,
    )  # fmt: skip
