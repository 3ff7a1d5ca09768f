"""Many clusters: CPU seconds of the initial centers and of a Lloyd step, in one process.

No Spark; one thread. The seconds of the initial centers are the partitions' and the driver's share
together. Where a k-d tree finds the nearest centers, ``product_s`` is the step without it.

Example: ``python -m benchmarks.many --n 250000 --d 2 --k 10000``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.about import keep, parser
from benchmarks.in_process import InProcessPartitions, result_of
from localkmeans_spark.fit.seeding import seed_centers
from localkmeans_spark.kernel import nearest
from localkmeans_spark.kernel.lloyd import Block, lloyd_step, means_or_kept

_PARTITIONS, _STEPS = 4, 2


def mixture(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Return n rows of k Gaussians that touch their neighbours."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    spread = 0.5 if d > 2 else 0.0125
    return centers[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d))


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds that an action takes, and what it returns."""
    began = time.process_time()
    found = action()
    return time.process_time() - began, found


def measure(n: int, d: int, k: int, seed: int) -> dict[str, float]:
    """Return the CPU seconds of seeding and of a Lloyd step, and the step's inertia."""
    parts = np.array_split(mixture(n, d, k, seed), _PARTITIONS)
    partitions = InProcessPartitions(parts, seeds=(seed,), dtype="float32")
    ask = seed_centers(partitions.data, k, "k-means++", 2, seed)
    found: dict[str, float] = {}
    found["seed_s"], seeding = seconds(lambda: result_of(ask, partitions))
    mean = partitions.data.frame.mean
    blocks = [Block((part - mean).astype(np.float32), None) for part in parts]
    centers = seeding.centers

    def step() -> np.ndarray:
        return means_or_kept(*lloyd_step(blocks, centers), centers)

    found["step_s"] = min(seconds(step)[0] for _ in range(_STEPS))
    if nearest.tree_of(centers) is not None:
        with mock.patch.object(nearest, "tree_of", return_value=None):
            found["product_s"], _ = seconds(step)
    return found


def main() -> None:
    """Run and print."""
    options = parser(__doc__, n=250_000, d=2, k=10_000, seed=0).parse_args()
    shape = {name: getattr(options, name) for name in ("n", "d", "k")}
    with threadpool_limits(1):
        row = {**shape, **measure(**shape, seed=options.seed)}
    print(pd.DataFrame([row]).to_string(index=False))
    keep(options.json, [row])


if __name__ == "__main__":
    main()
