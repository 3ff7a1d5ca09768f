"""Reading encoded blocks from the JVM into memory that a worker process uses again.

A worker reads its machines' blocks once a round. Fresh memory would cost a page fault for every
4 KiB of them, about as much as the copy itself, so the buffers of one task serve the next.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from pyspark.serializers import NoOpSerializer, SpecialLengths, read_int

# Buffers a process keeps between tasks, bytes; what a task needs beyond them is given back.
_KEPT_BYTES = 256 << 20
# Small arrays come from the heap, which is used again anyway.
_SMALL = 1 << 20
# References to a buffer nobody reads: the list's, the loop variable's, getrefcount's own.
_UNUSED = 3

_buffers: list[np.ndarray] = []


class BlockSerializer(NoOpSerializer):
    """Yields each byte array of the stream as a uint8 ndarray, in a buffer of this process.

    A buffer is used again only when no array refers to it any more.
    """

    def load_stream(self, stream: BinaryIO) -> Iterator[np.ndarray]:
        """Yield the arrays until the end of the data."""
        while (length := read_int(stream)) != SpecialLengths.END_OF_DATA_SECTION:
            data = _buffer(length)[:length]
            if stream.readinto(data) < length:  # type: ignore[attr-defined]
                raise EOFError
            yield data
            del data  # the reader's own references decide


def _buffer(length: int) -> np.ndarray:
    """Return a uint8 array of at least ``length`` bytes that nothing refers to."""
    if length < _SMALL:
        return np.empty(length, dtype=np.uint8)
    for buffer in _buffers:
        if len(buffer) >= length and sys.getrefcount(buffer) == _UNUSED:
            return buffer
    buffer = np.empty(length + length // 64, dtype=np.uint8)
    if sum(map(len, _buffers)) + len(buffer) <= _KEPT_BYTES:
        _buffers.append(buffer)
    return buffer
