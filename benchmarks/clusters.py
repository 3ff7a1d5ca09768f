"""The cost model taken to clusters: seconds of a round by executors, and what becomes the limit.

Assumptions, all in :class:`Cluster` and listed on the page: every executor's core is one of the
measured machine's; rows are spread evenly and stay in memory; the network and the driver's pace in
starting tasks are as stated, not measured here.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

from localkmeans_spark.engine import blocks
from localkmeans_spark.engine.merge_tree import levels, tree_depth

Rates = dict[str, dict[str, float]]


class Cluster(NamedTuple):
    """What a cluster is taken to be."""

    executors: int
    cores: int = 4
    network: float = 1.25e9  # bytes a second of every machine, the driver's too (10 Gbit/s)
    tasks_a_second: float = 1500.0  # that the driver starts and hears of, one after the other
    round_trip: float = 0.001
    merge: float = 2e9  # bytes of sums a second that Python reads and adds
    memory: float = 16e9  # bytes an executor has for rows


class Load(NamedTuple):
    """What is clustered."""

    n: float
    d: int
    k: int
    local_steps: int = 5


LOADS = (
    Load(1e11, 64, 100),
    Load(1e11, 64, 100, 1),
    Load(1e11, 64, 10_000),
    Load(1e9, 256, 50_000),
)
EXECUTORS = (1, 10, 100, 1000)


def tree(tasks: int, summary: float, cluster: Cluster) -> tuple[float, list[int]]:
    """Return the seconds of merging, and how many summaries are left at each level.

    Mergers of a level work side by side, as many as there are executors for them; the driver
    merges what the last level leaves, alone.
    """
    by_byte = 1.0 / cluster.network + 1.0 / cluster.merge
    counts = levels(tasks, tree_depth(tasks, int(summary)))
    seconds = counts[-1] * summary * by_byte
    for more, fewer in pairwise(counts):
        waves = math.ceil(fewer / cluster.executors)
        seconds += waves * (more / fewer) * summary * by_byte + fewer / cluster.tasks_a_second
    return seconds, counts


def round_seconds(rates: Rates, load: Load, cluster: Cluster) -> dict[str, Any]:
    """Return where the time of one round goes."""
    cores = cluster.executors * cluster.cores
    tasks = blocks._TASKS_PER_CORE * cores
    rows, later = load.n / cores, load.local_steps - 1
    kernel = rows * sum(
        steps * (load.k * load.d * step["product"] + load.k * step["comparison"]
                 + load.d * step["number"] + step["row"])
        for steps, step in ((1, rates["first"]), (later, rates["later"]))
    )  # fmt: skip
    summary = 8.0 * load.k * load.d
    merging, counts = tree(tasks, summary, cluster)
    broadcast = summary / cluster.network * math.ceil(math.log2(cluster.executors + 1))
    found = {
        "kernel_s": kernel,
        "transport_s": rows * load.d * rates["outside"]["number moved"],
        "scheduling_s": rates["outside"]["job"]
        + tasks / cluster.tasks_a_second
        + cluster.round_trip,
        "broadcast_s": broadcast,
        "aggregation_s": merging,
    }
    outside = found["scheduling_s"] + found["broadcast_s"] + found["aggregation_s"]
    total = sum(found.values())
    return {
        **load._asdict(), "executors": cluster.executors, "tasks": tasks, "levels": counts, **found,
        "round_s": total, "share_at_driver": outside / total,
        "driver_bytes": summary * counts[-1],
        "memory_share": 4.0 * load.n * load.d / cluster.executors / cluster.memory,
    }  # fmt: skip


def limit(rates: Rates, load: Load, share: float = 0.5) -> dict[str, Any] | None:
    """Return the smallest cluster where more than ``share`` of a round is not on the executors."""
    executors = 1
    while executors <= 1 << 17:
        found = round_seconds(rates, load, Cluster(executors))
        if found["share_at_driver"] > share:
            return found
        executors = math.ceil(executors * 1.1)
    return None


def extrapolate(rates: Rates) -> dict[str, Any]:
    """Return the assumptions, the rounds by cluster, and the limit of every load."""
    return {
        "assumptions": Cluster(0)._asdict(),
        "rounds": [round_seconds(rates, load, Cluster(e)) for load in LOADS for e in EXECUTORS],
        "loads": [load._asdict() for load in LOADS],
        "limits": [limit(rates, load) for load in LOADS],
    }
