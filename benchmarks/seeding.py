"""What the initial centers are worth: cost after 20 Lloyd iterations, against scikit-learn's.

For each data set, over several seeds: scikit-learn's greedy k-means++ (all rows), and ours: greedy
``k-means++`` (judged on a sample), and ``local-k-means++``, the paper's plain draws. From each, 20
exact Lloyd iterations. Then fits with ``nInit=3`` (L = 5, the worse half of the restarts dropped
every round), to be held against the best of all scikit-learn's. Simulated in one process, four
partitions, with the library's own runs. ``--json`` appends one object a data set.

Example: ``python -m benchmarks.seeding --data ../shared/data --seeds 10``
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import kmeans_plusplus
from threadpoolctl import threadpool_limits

from benchmarks.about import keep, parser
from benchmarks.in_process import InProcessPartitions, fit_in_process, result_of
from localkmeans_spark.config import FitConfig
from localkmeans_spark.fit.seeding import seed_centers

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


def costs_of(
    x: np.ndarray, k: int, n_seeds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return mode → costs after 20 iterations, and → seconds of the seeding, one a seed."""
    costs: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    parts = np.array_split(x, 4)
    for seed in range(n_seeds):
        partitions = InProcessPartitions(parts, seeds=[seed])
        for mode in ("scikit-learn", *_OURS):
            began = time.perf_counter()
            if mode == "scikit-learn":
                centers, _ = kmeans_plusplus(x, k, random_state=seed)
            else:
                asking = seed_centers(partitions.data, k, mode, 2, seed)
                centers = result_of(asking, partitions).centers + partitions.data.frame.mean
            seconds.setdefault(mode, []).append(time.perf_counter() - began)
            given = FitConfig(k=k, initial_centers=centers, local_steps=1, tol=0.0)
            costs.setdefault(mode, []).append(fit_in_process(parts, given)[0])
        config = FitConfig(k=k, seed=seed, n_init=3, tol=0.0)
        costs.setdefault("nInit=3", []).append(fit_in_process(parts, config)[0])
    return costs, seconds


def main() -> None:
    """Run and print."""
    flags = parser(__doc__, seeds=10)
    flags.add_argument("--data", type=Path, help="folder with pendigits.npz and so on")
    options = flags.parse_args()
    print("cost / median of scikit-learn's: median, best, worst; s: seconds of seeding, median")
    with threadpool_limits(1):
        for name, x, k in data_sets(options.data):
            costs, seconds = costs_of(x, k, options.seeds)
            ratios = pd.DataFrame(costs) / np.median(costs["scikit-learn"])
            told = ratios.agg(["median", "min", "max"]).T.assign(s=pd.DataFrame(seconds).median())
            print(f"\n{name} {x.shape} k={k}", told.to_string(float_format="%.4f"), sep="\n")
            row: dict[str, Any] = {"data": name, "n": len(x), "d": x.shape[1], "k": k}
            keep(options.json, [{**row, "ratios": ratios.to_dict("list"), "seconds": seconds}])


if __name__ == "__main__":
    main()
