"""Keeping freed memory in a worker process for the next chunk of rows."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# Codes of glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# Arrays of a chunk are at most a few MB; a process keeps up to this much that is free.
_KEPT_BYTES, _LARGEST_KEPT = 64 << 20, 16 << 20


@cache
def keep_freed_memory() -> None:
    """Let the C library keep some memory instead of giving it back after every chunk.

    By default glibc hands arrays of more than 128 KiB, and the free end of its heap, back to the
    system, and fetches them anew, page fault by page fault, for the next chunk: a pass for seeding
    over 200,000 x 64 then took 120 ms, of which 100 in the kernel, instead of 20.

    Once a process; nothing is done where the C library is another one. Runs on: executor.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
