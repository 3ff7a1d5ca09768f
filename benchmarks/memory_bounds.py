"""Peak memory of a fit as formulas, to be checked against measured peaks."""

from __future__ import annotations

from typing import Any

_MB = 1 << 20
# What the imports take, before any row.
_DRIVER_BASE, _WORKER_BASE = 230 * _MB, 180 * _MB
# A seeding pass: the sample, its copies in float64, candidates (engine.greedy_seeding).
_SEEDING = 4 * 16 * _MB + 3 * 64 * _MB
# Summaries that the driver may hold at once before they go through a tree (engine.blocks).
_SUMMARIES = 32 * _MB
_BESIDE_HEAP = 700 * _MB
# Arrow batches, a block being filled, a chunk of scores; what a seeding pass draws (measured, not
# derived: up to 70 MB at K = 512, d = 256).
_BUFFERS, _DRAWS = 64 * _MB, 96 * _MB

FORMULAS = {
    "driver": "imports (230 MiB) + 32 MiB of summaries + at most 256 MiB of seeding's sample and "
    "candidates + 16 arrays of 8 K d bytes; nothing that grows with n",
    "worker": "imports (180 MiB) + 64 MiB of buffers + 96 MiB of a seeding pass's draws + two "
    "machines' rows (2 · 4 n d / m bytes: one at work, one being read) + 16 bytes a row of a "
    "machine (labels, bounds) + 16 arrays of 8 K d bytes + 2 of 8 · 512 K (gaps between centers)",
    "jvm": "its heap (spark.driver.memory in local mode) + 700 MiB beside the heap",
    "storage": "4 n d bytes of float32 + 1 % and 64 KiB a machine; what does not fit goes to disk",
}


def bounds(row: dict[str, Any]) -> dict[str, float]:
    """Return the bytes that driver, worker and storage may take at most for a measured fit."""
    n, d, k, machines = row["n"], row["d"], row["k"], row["machines"]
    centers = 8.0 * k * d
    rows = n / machines
    return {
        "jvm": float(row["heap_bytes"] + _BESIDE_HEAP),
        "driver": _DRIVER_BASE + _SUMMARIES + _SEEDING + 16 * centers,
        "worker": _WORKER_BASE
        + _BUFFERS
        + _DRAWS
        + 2 * 4 * rows * d
        + 16 * rows
        + 16 * centers
        + 16.0 * 512 * k,
        "storage": 1.01 * 4 * n * d + 65536 * machines,
    }
