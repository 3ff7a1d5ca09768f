"""Compare this library with its peers: the same Parquet, iterations and cores, in alternation.

Each run is a fresh process; the final cost of every system is computed by one independent
function. Figures are medians over the repeats, ratios peer / ours of the medians (above 1: ours
is faster, or its cost lower). Absolute seconds belong to the machine they were measured on;
compare ratios.

Example: ``python -m benchmarks.compare --n 400000 --d 64 --k 64 --peers mllib,sklearn``
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.about import keep, parser
from benchmarks.data import read_rows, write_mixture
from benchmarks.systems import SYSTEMS

_SECONDS = ("start_s", "read_s", "seed_s", "iterate_s", "total_s")
_RATIOS = {"ratio_total": "total_s", "ratio_iterate": "iterate_s", "ratio_cost": "cost"}
_GROUPS = {"mllib": ("mllib-block", "mllib-row")}
Row = dict[str, Any]


def inertia(x: np.ndarray, centers: np.ndarray) -> float:
    """Sum of squared distances to the nearest center, in float64, independent of the library."""
    total = 0.0
    half_norms = 0.5 * (centers**2).sum(axis=1)
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096].astype(np.float64)
        labels = (part @ centers.T - half_norms).argmax(axis=1)
        total += float(((part - centers[labels]) ** 2).sum())
    return total


def run_once(system: str, options: Namespace, x: np.ndarray, seed: int) -> Row:
    """Run one system in a process of its own; return its figures and cost."""
    with tempfile.TemporaryDirectory() as folder:
        centers = Path(folder) / "centers.npy"
        told = {"system": system, "seed": seed, "centers": centers}
        asked = json.dumps(vars(options) | told, default=str)
        command = [sys.executable, "-m", "benchmarks.systems", asked]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            return {"skipped": f"failed with exit status {done.returncode}"}
        found: Row = json.loads(done.stdout.splitlines()[-1])
        if "skipped" not in found:
            found["cost"] = inertia(x, np.load(centers))
    return found


def measure(options: Namespace, systems: list[str]) -> dict[str, list[Row]]:
    """Run all systems in turn, as often as asked; a system that cannot run is tried once."""
    x = read_rows(options.input)
    options.n, options.d = x.shape
    runs: dict[str, list[Row]] = {system: [] for system in systems}
    for seed in range(options.repeats):
        for system in systems:
            if not any("skipped" in found for found in runs[system]):
                found = run_once(system, options, x, seed)
                runs[system].append(found)
                told = found.get("skipped") or f"{found['total_s']:.2f} s, {found['cost']:.6g}"
                print(f"{system}: {told}", file=sys.stderr)
    return runs


def summarise(runs: dict[str, list[Row]], options: Namespace) -> list[Row]:
    """Return one row a system: medians, and ratios peer / ours of the medians."""
    rows = []
    for system, found in runs.items():
        name, solver, _ = SYSTEMS[system]
        row: Row = {"system": name, "solver": solver}
        row |= {"n": options.n, "d": options.d, "k": options.k}
        reasons = [item["skipped"] for item in found if "skipped" in item]
        if reasons:
            row["skipped"] = reasons[0]
        else:
            for figure in ("iterations", *_SECONDS, "cost"):
                row[figure] = median(item[figure] for item in found)
        rows.append(row | {"runs": found})
    ours = rows[0]
    for row in rows:
        if "skipped" not in row and "skipped" not in ours:
            row |= {name: row[figure] / ours[figure] for name, figure in _RATIOS.items()}
    return rows


def main() -> None:
    """Run the comparison and print the table of medians and ratios."""
    flags = parser(
        __doc__, n=400_000, d=64, k=64, noise=1.0, iterations=20, local_steps="5", repeats=3,
        peers="mllib,sklearn,faiss",
    )  # fmt: skip
    flags.add_argument(
        "--input", type=Path, help="folder of Parquet files with arrays 'features', not a mixture"
    )
    flags.add_argument(
        "--warm-up", action="store_true", help="Spark systems fit once before, untimed"
    )
    options = flags.parse_args()
    named = [name for peer in options.peers.split(",") for name in _GROUPS.get(peer, (peer,))]
    unknown = sorted(set(named) - set(SYSTEMS))
    if unknown:
        known = sorted({*SYSTEMS, *_GROUPS} - {"ours"})
        flags.error(f"--peers must be some of {', '.join(known)}; got {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as folder:
        if options.input is None:
            options.input = Path(folder) / "mixture"
            write_mixture(
                options.input, options.n, options.d, options.k, files=2 * options.cores,
                noise=options.noise,
            )  # fmt: skip
        rows = summarise(measure(options, ["ours", *dict.fromkeys(named)]), options)
    shown = ["system", "solver", *_SECONDS, "iterations", *_RATIOS]
    print(pd.DataFrame(rows).reindex(columns=shown).to_string(index=False, float_format="%.3f"))
    asked = {name: getattr(options, name) for name in ("noise", "local_steps", "cores", "warm_up")}
    keep(options.json, [row | asked for row in rows])


if __name__ == "__main__":
    main()
