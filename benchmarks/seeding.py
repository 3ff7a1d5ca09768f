"""What the initial centers are worth: cost after 20 Lloyd iterations, against scikit-learn's.

For each data set, over several seeds: scikit-learn's greedy k-means++ (all rows), and ours: greedy
``k-means++`` (judged on a sample), and ``local-k-means++``, the paper's plain draws. From each, 20
exact Lloyd iterations. Simulated in one process, four machines, with the engine's own functions.

Example: ``python -m benchmarks.seeding --data ../shared/data --seeds 10``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.cluster import kmeans_plusplus
from threadpoolctl import threadpool_limits

from benchmarks.in_process import InProcessMachines, run_lloyd
from localkmeans_spark.engine.seeding import seed_centers

_ROWS = 100_000
_CLUSTERS = {
    "pendigits": 10, "letter": 26, "usps": 10, "sipu_s2": 15, "sipu_unbalance": 8,
    "sipu_birch1": 100, "kddcup99_10pct": 10, "cifar10_embeddings_512": 10,
    "mnist_embeddings_1568_u8": 10,
}  # fmt: skip
_OURS = ("k-means++", "local-k-means++")


def data_sets(folder: Path | None) -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield name, rows (at most 100,000, about 50 MB) and k."""
    rng = np.random.default_rng(0)
    for name, d, k in (("blobs apart", 64, 64), ("blobs overlapping", 20, 50)):
        true = rng.normal(size=(k, d))
        yield name, true[rng.integers(k, size=50_000)] + rng.normal(size=(50_000, d)), k
    true = rng.normal(size=(30, 10))
    heavy = rng.standard_t(2, size=(50_000, 10))
    yield "heavy tails", true[rng.integers(30, size=50_000)] + heavy, 30
    for name, k in _CLUSTERS.items():
        if folder is None:
            break
        x = np.load(folder / f"{name}.npz")["X"]
        kept = rng.permutation(len(x))[: min(_ROWS, (50 << 20) // (8 * x.shape[1]))]
        yield name, x[kept].astype(np.float64), k


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with pendigits.npz and so on")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    print(
        "cost after 20 iterations / median of scikit-learn's: median, best, worst; driver seconds"
    )
    with threadpool_limits(1):
        for name, x, k in data_sets(options.data):
            costs: dict[str, list[float]] = {}
            seconds: dict[str, list[float]] = {}
            for seed in range(options.seeds):
                machines = InProcessMachines(np.array_split(x, 4), seed=seed)
                for mode in ("scikit-learn", *_OURS):
                    began = time.perf_counter()
                    if mode == "scikit-learn":
                        centers, _ = kmeans_plusplus(x, k, random_state=seed)
                    else:
                        found = seed_centers(machines, k, mode, 2, seed)
                        centers = found.centers + machines.data.frame.mean
                    seconds.setdefault(mode, []).append(time.perf_counter() - began)
                    cost, _ = run_lloyd(machines, centers, local_steps=1)
                    costs.setdefault(mode, []).append(cost)
            unit = float(np.median(costs["scikit-learn"]))
            print(f"{name} {x.shape} k={k}")
            for mode, found_costs in costs.items():
                ratio = np.array(found_costs) / unit
                print(f"  {mode:16} {np.median(ratio):7.4f} {ratio.min():7.4f} {ratio.max():7.4f} "
                      f"{np.median(seconds[mode]):7.2f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
