"""One system, one fit, in this process: ``python -m benchmarks.systems ours --input …``.

``benchmarks.compare`` runs this once for every system and repeat. Writes one JSON object to
stdout and the centers to a file. Seconds:

- ``start_s``: imports and, with Spark, the session.
- ``read_s``: Parquet to rows in memory, in the form the system's fit works on.
- ``seed_s``: initial centers.
- ``iterate_s``: everything after that until the fitted model is there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import other_systems, spark_systems
from benchmarks.other_systems import Found


class System(NamedTuple):
    """A system with the solver that it is asked to use."""

    name: str
    solver: str
    run: Callable[[argparse.Namespace], Found]
    takes_centers: bool = True


SYSTEMS = {
    "ours": System("ours", "local steps", spark_systems.ours),
    "mllib-block": System("mllib", "block", spark_systems.mllib_block, takes_centers=False),
    "mllib-row": System("mllib", "row", spark_systems.mllib_row, takes_centers=False),
    "sklearn": System("sklearn", "lloyd", other_systems.sklearn),
    "dask-ml": System("dask-ml", "lloyd", other_systems.dask_ml),
    "faiss": System("faiss", "lloyd", other_systems.faiss),
}


def arguments() -> argparse.ArgumentParser:
    """Return what one run of one system is told."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--centers", type=Path, required=True, help="where to put them (.npy)")
    parser.add_argument("--initial", type=Path, help="initial centers (.npy) instead of seeding")
    parser.add_argument("--k", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--local-steps", default="5", help="a number, or auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--driver-memory", default="8g", help="of Spark (default: %(default)s)")
    parser.add_argument("--warm-up", action="store_true", help="Spark: fit once before, untimed")
    parser.add_argument(
        "--latency", type=float, default=0.0, help="seconds added to each of our exchanges"
    )
    return parser


def main() -> None:
    """Run one system once."""
    options = arguments().parse_args()
    if hasattr(os, "sched_setaffinity"):  # the same cores for everyone, JVM and threads included
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    try:
        found = SYSTEMS[options.system].run(options)
    except ImportError as error:
        json.dump({"skipped": f"cannot be imported here: {error}"}, sys.stdout)
        return
    np.save(options.centers, np.asarray(found.pop("centers"), dtype=np.float64))
    parts = ("start_s", "read_s", "seed_s", "iterate_s")
    found["total_s"] = sum(found[part] for part in parts)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
