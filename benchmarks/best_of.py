"""What ``nInit`` gives and costs: fits of one session, alone and with restarts, seed by seed.

A fit is good if its cost is within 0.1 % of the best one seen. Every fit reads the rows anew.

Example: ``python -m benchmarks.best_of --input ../shared/data/cifar10_embeddings_512.npz --k 10``
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.about import environment
from benchmarks.spark_systems import session

_CLOSE = 1.001


def write_rows(x: np.ndarray, folder: Path, files: int) -> None:
    """Write rows as Parquet with an array column, one file a partition."""
    folder.mkdir()
    for number, part in enumerate(np.array_split(x.astype(np.float32), files)):
        offsets = np.arange(0, part.size + 1, part.shape[1], dtype=np.int32)
        rows = pa.ListArray.from_arrays(offsets, pa.array(part.ravel()))
        pq.write_table(pa.table({"features": rows}), folder / f"part-{number}.parquet")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", type=Path, required=True, help="npz with the rows as X")
    parser.add_argument("--k", type=int, required=True)
    parser.add_argument("--init-mode", default="local-k-means++", help="(default: %(default)s)")
    parser.add_argument("--n-init", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--max-iter", type=int, default=30, help="(default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="(default: all)")
    parser.add_argument("--driver-memory", default="8g", help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, help="append one JSON object here")
    options = parser.parse_args()
    costs: dict[int, list[float]] = {1: [], options.n_init: []}
    seconds: dict[int, list[float]] = {1: [], options.n_init: []}
    with tempfile.TemporaryDirectory() as folder, session(options) as spark:
        from localkmeans_spark import LocalKMeans

        rows = Path(folder) / "rows"
        write_rows(np.load(options.input)["X"], rows, options.partitions)
        frame = spark.read.parquet(str(rows))
        for seed in range(options.seeds + 1):  # the first warms the session up
            for n_init, reached in costs.items():
                kmeans = LocalKMeans(
                    k=options.k, nInit=n_init, seed=seed, initMode=options.init_mode,
                    maxIter=options.max_iter,
                )  # fmt: skip
                began = time.perf_counter()
                cost = kmeans.fit(frame).summary.trainingCost
                if seed:
                    seconds[n_init].append(time.perf_counter() - began)
                    reached.append(cost)
                    print(f"seed {seed}, nInit={n_init}: {cost:.6g}", file=sys.stderr)
    best = min(map(min, costs.values()))
    found = {
        "input": options.input.name, "k": options.k, "init_mode": options.init_mode,
        "seeds": options.seeds, "max_iter": options.max_iter, "best": best,
        "good": {n: sum(cost <= _CLOSE * best for cost in costs[n]) for n in costs},
        "seconds": {n: median(seconds[n]) for n in seconds},
        "ratio": median(seconds[options.n_init]) / median(seconds[1]),
        "most_ratio": max(many / one for many, one in zip(seconds[options.n_init], seconds[1],
                                                          strict=True)),
    }  # fmt: skip
    print(json.dumps(found))
    if options.json is not None:
        with options.json.open("a") as out:
            out.write(json.dumps({**found, **environment()}) + "\n")


if __name__ == "__main__":
    main()
