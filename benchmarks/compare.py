"""Compare this library with its peers: the same Parquet, iterations and cores, in alternation.

Each run is a fresh process; the final cost of every system is computed by one independent
function. Ratios are peer / ours (above 1: ours is faster, or its cost lower), medians over the
repeats. Absolute seconds belong to the machine they were measured on; compare ratios.

Example: ``python -m benchmarks.compare --n 400000 --d 64 --k 64 --repeats 3``
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.data import read_rows, write_mixture
from benchmarks.systems import SYSTEMS

_FIGURES = ("start_s", "read_s", "fit_s", "seed_s", "iterate_s", "total_s", "cost", "iterations")
_RATIOS = {"ratio_total": "total_s", "ratio_fit": "fit_s", "ratio_cost": "cost"}


def inertia(x: np.ndarray, centers: np.ndarray) -> float:
    """Sum of squared distances to the nearest center, in float64, independent of the library."""
    total = 0.0
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096].astype(np.float64)
        labels = (part @ centers.T - 0.5 * (centers**2).sum(axis=1)).argmax(axis=1)
        total += float(((part - centers[labels]) ** 2).sum())
    return total


def run_once(system: str, options: argparse.Namespace, data: Path, seed: int) -> dict[str, Any]:
    """Run one system in a process of its own; return its figures and cost."""
    with tempfile.TemporaryDirectory() as folder:
        centers = Path(folder) / "centers.npy"
        command = [
            sys.executable, "-m", "benchmarks.systems", system,
            "--input", str(data), "--centers", str(centers), "--k", str(options.k),
            "--iterations", str(options.iterations), "--local-steps", str(options.local_steps),
            "--seed", str(seed), "--cores", str(options.cores),
            *(["--warm-up"] if options.warm_up else []),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        found["cost"] = inertia(read_rows(data), np.load(centers))
    return found


def summarise(runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return one row a system: medians, and ratios peer / ours of the medians."""
    rows = []
    for system, found in runs.items():
        row: dict[str, Any] = {"system": system}
        for figure in _FIGURES:
            values = [item[figure] for item in found if figure in item]
            if values:
                row[figure] = median(values)
        row["runs"] = found
        rows.append(row)
    ours = next((row for row in rows if row["system"] == "ours"), None)
    if ours is not None:
        for row in rows:
            for name, figure in _RATIOS.items():
                row[name] = row[figure] / ours[figure]
    return rows


def environment() -> dict[str, Any]:
    """Describe machine, versions and commit."""
    versions = {"python": platform.python_version()}
    for package in ("pyspark", "numpy", "scipy", "pyarrow", "scikit-learn"):
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    machine = {"processor": _processor(), "cores": os.cpu_count(), "system": platform.system()}
    return {"versions": versions, "machine": machine, "commit": commit}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table of medians and ratios."""
    columns = ["system", "start_s", "read_s", "fit_s", "total_s", "iterations", *_RATIOS]
    print("  ".join(f"{name:>12}" for name in columns))
    for row in rows:
        cells = [row.get(name, "") for name in columns]
        print("  ".join(f"{c:>12.3f}" if isinstance(c, float) else f"{c!s:>12}" for c in cells))


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=400_000, help="rows (default: %(default)s)")
    parser.add_argument("--d", type=int, default=64, help="features (default: %(default)s)")
    parser.add_argument("--k", type=int, default=64, help="clusters (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--local-steps", type=int, default=5, help="L of ours (default: 5)")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="(default: all)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument(
        "--peers", default="mllib-block,mllib-row,sklearn", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--warm-up", action="store_true", help="Spark systems fit once before, untimed"
    )
    parser.add_argument("--input", type=Path, help="Parquet with a column 'features' instead")
    parser.add_argument("--json", type=Path, help="append one JSON object a system here")
    options = parser.parse_args()
    systems = ["ours", *options.peers.split(",")]
    unknown = sorted(set(systems) - set(SYSTEMS))
    if unknown:
        parser.error(f"--peers must be some of {', '.join(sorted(SYSTEMS))}; got {unknown}")
    with tempfile.TemporaryDirectory() as folder:
        data = options.input
        if data is None:
            data = Path(folder) / "mixture"
            write_mixture(data, options.n, options.d, options.k, files=2 * options.cores)
        runs: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
        for repeat in range(options.repeats):
            for system in systems:
                found = run_once(system, options, data, seed=repeat)
                runs[system].append(found)
                print(f"{system}: fit {found['fit_s']:.2f} s, cost {found['cost']:.6g}",
                      file=sys.stderr)  # fmt: skip
    rows = summarise(runs)
    show(rows)
    if options.json is not None:
        shape = {name: getattr(options, name) for name in ("n", "d", "k", "local_steps", "warm_up")}
        with options.json.open("a") as out:
            for row in rows:
                out.write(json.dumps({**shape, **row, **environment()}) + "\n")


if __name__ == "__main__":
    main()
