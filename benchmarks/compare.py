"""Compare this library with its peers: the same Parquet, iterations and cores, in alternation.

Each run is a fresh process; the final cost of every system is computed by one independent
function. Figures are medians over the repeats, ratios peer / ours of the medians (above 1: ours
is faster, or its cost lower). Absolute seconds belong to the machine they were measured on;
compare ratios. ``--json`` appends one object a line and system.

Example: ``python -m benchmarks.compare --n 400000 --d 64 --k 64 --peers mllib,sklearn``
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.about import environment
from benchmarks.data import read_rows, write_mixture
from benchmarks.systems import SYSTEMS

SECONDS = ("start_s", "read_s", "seed_s", "iterate_s", "total_s")
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


def run_once(
    system: str, options: argparse.Namespace, x: np.ndarray, seed: int, initial: Path | None
) -> Row:
    """Run one system in a process of its own; return its figures and cost."""
    with tempfile.TemporaryDirectory() as folder:
        centers = Path(folder) / "centers.npy"
        command = [
            sys.executable, "-m", "benchmarks.systems", system,
            "--input", str(options.input), "--centers", str(centers), "--k", str(options.k),
            "--iterations", str(options.iterations), "--local-steps", options.local_steps,
            "--seed", str(seed), "--cores", str(options.cores),
            "--latency", str(options.latency), "--driver-memory", options.driver_memory,
            *(["--warm-up"] if options.warm_up else []),
            *(["--initial", str(initial)] if initial is not None else []),
        ]  # fmt: skip
        path = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return {"skipped": f"failed with exit status {done.returncode}"}
        found: Row = json.loads(done.stdout.splitlines()[-1])
        if "skipped" not in found:
            found["cost"] = inertia(x, np.load(centers))
    return found


def measure(options: argparse.Namespace, systems: list[str]) -> dict[str, list[Row]]:
    """Run all systems in turn, as often as asked; a system that cannot run is tried once."""
    x = read_rows(options.input)
    options.n, options.d = x.shape
    runs: dict[str, list[Row]] = {system: [] for system in systems}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.repeats):
            initial = None
            if options.given_centers:
                initial = Path(folder) / "initial.npy"
                rows = np.random.default_rng(seed).choice(len(x), options.k, replace=False)
                np.save(initial, x[rows].astype(np.float64))
            for system in systems:
                if any("skipped" in item for item in runs[system]):
                    continue
                if initial is not None and not SYSTEMS[system].takes_centers:
                    runs[system].append({"skipped": "takes no initial centers"})
                    continue
                found = run_once(system, options, x, seed, initial)
                runs[system].append(found)
                print(f"{system}: {_told(found)}", file=sys.stderr)
    return runs


def _told(found: Row) -> str:
    if "skipped" in found:
        return f"skipped, {found['skipped']}"
    return f"{found['total_s']:.2f} s, cost {found['cost']:.6g}"


def summarise(runs: dict[str, list[Row]], options: argparse.Namespace) -> list[Row]:
    """Return one row a system: medians, and ratios peer / ours of the medians."""
    rows = []
    for system, found in runs.items():
        row: Row = {"system": SYSTEMS[system].name, "solver": SYSTEMS[system].solver}
        row |= {"n": options.n, "d": options.d, "k": options.k}
        reasons = [item["skipped"] for item in found if "skipped" in item]
        if reasons:
            row["skipped"] = reasons[0]
        else:
            for figure in ("iterations", *SECONDS, "cost"):
                row[figure] = median(item[figure] for item in found)
        rows.append(row | {"runs": found})
    ours = rows[0]
    for row in rows:
        if "skipped" not in row and "skipped" not in ours:
            row |= {name: row[figure] / ours[figure] for name, figure in _RATIOS.items()}
    return rows


def show(rows: list[Row]) -> None:
    """Print the table of medians and ratios."""
    columns = ["system", "solver", *SECONDS, "iterations", *_RATIOS]
    print(" ".join(f"{name:>13}" for name in columns))
    for row in rows:
        if "skipped" in row:
            print(f"{row['system']:>13} {row['solver']:>13} skipped: {row['skipped']}")
            continue
        cells = [row.get(name, "") for name in columns]
        print(" ".join(f"{c:>13.3f}" if isinstance(c, float) else f"{c!s:>13}" for c in cells))


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=400_000, help="rows (default: %(default)s)")
    parser.add_argument("--d", type=int, default=64, help="features (default: %(default)s)")
    parser.add_argument("--k", type=int, default=64, help="clusters (default: %(default)s)")
    parser.add_argument(
        "--input", type=Path, help="folder of Parquet files with arrays 'features', not a mixture"
    )
    parser.add_argument("--noise", type=float, default=1.0, help="of the mixture (default: 1)")
    parser.add_argument("--iterations", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--local-steps", default="5", help="L of ours, or auto (default: 5)")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="(default: all)")
    parser.add_argument("--driver-memory", default="8g", help="of Spark (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument(
        "--peers",
        default="mllib,sklearn,dask-ml,faiss",
        help="mllib stands for mllib-block,mllib-row (default: %(default)s)",
    )
    parser.add_argument(
        "--given-centers", action="store_true", help="all start from the same random rows"
    )
    parser.add_argument(
        "--warm-up", action="store_true", help="Spark systems fit once before, untimed"
    )
    parser.add_argument(
        "--latency", type=float, default=0.0, help="seconds added to each of our exchanges"
    )
    parser.add_argument("--json", type=Path, help="append one JSON object a system here")
    return parser


def main() -> None:
    """Run the comparison."""
    parser = arguments()
    options = parser.parse_args()
    named = [name for peer in options.peers.split(",") for name in _GROUPS.get(peer, (peer,))]
    unknown = sorted(set(named) - set(SYSTEMS))
    if unknown:
        known = sorted({*SYSTEMS, *_GROUPS} - {"ours"})
        parser.error(f"--peers must be some of {', '.join(known)}; got {', '.join(unknown)}")
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1; got {options.repeats}")
    with tempfile.TemporaryDirectory() as folder:
        if options.input is None:
            options.input = Path(folder) / "mixture"
            write_mixture(
                options.input, options.n, options.d, options.k, files=2 * options.cores,
                noise=options.noise,
            )  # fmt: skip
        runs = measure(options, ["ours", *dict.fromkeys(named)])
    rows = summarise(runs, options)
    show(rows)
    if options.json is not None:
        asked = ("noise", "local_steps", "cores", "given_centers", "warm_up", "latency")
        settings = {name: getattr(options, name) for name in asked}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        with options.json.open("a") as out:
            for row in rows:
                out.write(json.dumps({**row, **settings, **environment()}) + "\n")


if __name__ == "__main__":
    main()
