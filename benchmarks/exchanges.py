"""Exchanges until near the end of centralized Lloyd: single steps, plain and anchored rounds.

The figures and pictures of docs/LOCAL_STEPS.md. Simulated in one process with the engine's own
functions: rows over m partitions at random, by Dirichlet(0.5) shares of each label ("uneven"), and
sorted by label; starts from k-means++ without local trials. ``single`` is the safeguard (plain
rounds, then single steps), ``anchored`` goes on with anchored rounds instead, ``plain`` is
``safeguard=False``.

Example: ``python -m benchmarks.exchanges --data ../shared/data --json exchanges.jsonl``, then
``python -m benchmarks.exchanges --table exchanges.jsonl``; ``--pictures docs/local_steps``
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.cluster import kmeans_plusplus

from benchmarks.about import keep, parser
from benchmarks.anchored import AnchoredRun, anchored_round
from benchmarks.in_process import InProcessPartitions
from benchmarks.safeguard import layout
from localkmeans_spark.fit.lloyd_run import LloydRun, Order, Traffic
from localkmeans_spark.fit.requests import assignment, local_round

_CLUSTERS = {
    "pendigits": 20, "letter": 26, "usps": 10, "sipu_s2": 15, "sipu_unbalance": 8,
    "sipu_birch1": 100, "postures_partial": 10, "kddcup99_10pct": 23,
    "mnist_embeddings_1568_u8": 10, "cifar10_embeddings_512": 10,
}  # fmt: skip
_COMPONENTS = 30
_NEAR = (0.01, 0.001, 0.0001)
_MS, _KINDS = (10, 50, 100), ("random", "uneven", "sorted")
_FREE = Traffic(0, 0, 0.0)


def data_sets(folder: Path | None, n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Yield name, rows, labels and k; at most ``n`` rows, wide ones by their main components."""
    rng = np.random.default_rng(0)
    for name, k in _CLUSTERS.items():
        if folder is None:
            break
        stored = np.load(folder / f"{name}.npz")
        kept = rng.permutation(len(stored["X"]))[:n]
        x, y = np.nan_to_num(stored["X"][kept].astype(np.float64)), stored["y"][kept].astype(int)
        if name.startswith("kdd"):  # columns of counts
            x = np.log1p(np.abs(x))
        if x.shape[1] > 2 * _COMPONENTS:
            x = x - x.mean(axis=0)
            x = x @ np.linalg.eigh(x.T @ x)[1][:, -_COMPONENTS:]
        yield name, x / x.std(), y, k
    for name, k, d, noise in (("blobs overlapping", 30, 16, 1.0), ("blobs apart", 50, 20, 0.2)):
        true, y = rng.normal(size=(k, d)), rng.integers(0, k, n)
        yield name, true[y] + noise * rng.normal(size=(n, d)), y, k
    x = rng.uniform(size=(n, 3))
    yield "uniform", x, (10 * x[:, 0]).astype(int), 25


def run(
    partitions: InProcessPartitions, start: np.ndarray, way: str, local_steps: int, max_iter: int
) -> tuple[np.ndarray, LloydRun]:
    """Run one way to its end; return the cost after each exchange, from the start's on."""
    data = partitions.data
    kind = AnchoredRun if way == "anchored" else LloydRun
    state = kind(
        start - data.frame.mean, local_steps=local_steps, max_iter=max_iter, tol=0.0,
        safeguard=way != "plain", sum_sq=data.sum_sq,
    )  # fmt: skip
    while True:
        while (order := state.next_order()) is not None:
            state.absorb(order, _answer(partitions, state, order), _FREE)
        ((found, _),) = partitions.run([assignment(data, state.centers + data.frame.mean)])
        cost = float(found.inertia.sum())
        if state.settle(cost):
            return np.array([*(row.inertia for row in state.rounds), cost]), state


def _answer(partitions: InProcessPartitions, state: LloydRun, order: Order) -> Any:
    if isinstance(state, AnchoredRun) and state.anchor is not None:
        return anchored_round(partitions, state.anchor, order.centers, order.local_steps)
    ((found, _),) = partitions.run([local_round(partitions.data, 1, order)])
    return found


def _reached(costs: np.ndarray, goal: float) -> int | None:
    """Return the exchanges until a cost was reached; None if it never was."""
    return next((place for place, cost in enumerate(costs) if cost <= goal), None)


def measure(options: Any) -> None:
    """Run all ways; keep a row for each. Every set has another m for every seed."""
    ways = [("single", 100), ("anchored", 100), ("plain", 30), ("single", 20), ("anchored", 20)]
    for seed in range(options.seeds):
        for place, (name, x, y, k) in enumerate(data_sets(options.data, options.n)):
            m = _MS[(place + seed) % 3]
            start, _ = kmeans_plusplus(x, k, random_state=seed, n_local_trials=1)
            lloyd, _ = run(InProcessPartitions([x]), start, "plain", 1, 200)
            for kind in _KINDS:
                partitions = InProcessPartitions([x[rows] for rows in layout(kind, y, m)])
                for way, max_iter in ways:
                    costs, state = run(partitions, start, way, options.local_steps, max_iter)
                    goals = [lloyd[-1] * (1 + near) for near in _NEAR]
                    row = {
                        "set": name, "m": m, "layout": kind, "seed": seed, "way": way,
                        "max_iter": max_iter, "reached": [_reached(costs, it) for it in goals],
                        "lloyd": [_reached(lloyd, it) for it in goals],
                        "cost": costs[-1] / lloyd[-1], "exchanges": len(state.rounds),
                    }  # fmt: skip
                    keep(options.json, [row])
        print(f"seed {seed} done", flush=True)


def tell(path: Path) -> None:
    """Print what the rows of a file say."""
    rows = pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    names = [f"to {near:.2%}" for near in _NEAR]
    for place, name in enumerate(names):
        rows[name] = [np.inf if at[place] is None else at[place] for at in rows["reached"]]
    for max_iter, some in rows.groupby("max_iter"):
        cases = some.set_index(["set", "m", "layout", "seed", "way"])
        wide = cases[[*names, "cost", "exchanges"]].unstack("way").dropna()
        print(f"\nT = {max_iter}, {len(wide)} cases")
        for name in (*names, "cost", "exchanges"):
            told = [f"{way} {wide[name][way].median():.5g}" for way in wide[name].columns]
            if "anchored" in wide[name]:
                ours, theirs = wide[name]["anchored"], wide[name]["single"]
                some_end = np.isfinite(ours) | np.isfinite(theirs)
                ratio = (ours.clip(lower=1) / theirs.clip(lower=1))[some_end]
                above = (ratio > (1.001 if name == "cost" else 1.2)).sum()
                told.append(f"anchored / single {ratio.median():.4g} of {len(ratio)}, {above} high")
                told += [f"{of} {it:.4g}" for of, it in ratio.groupby("layout").median().items()]
                long = ratio[theirs >= 10]
                told.append(f"from 10 on {long.median():.4g} of {len(long)}")
            print(f"{name}: {', '.join(told)}")


def draw(folder: Path) -> None:
    """Draw the pictures of docs/LOCAL_STEPS.md."""
    folder.mkdir(parents=True, exist_ok=True)
    _draw_fixed_point().savefig(folder / "fixed_point.png", dpi=110)
    _draw_costs().savefig(folder / "costs.png", dpi=110)


def _draw_fixed_point() -> Figure:
    """Two partitions with unlike rows, from a fixed point of Lloyd's algorithm."""
    rng = np.random.default_rng(1)
    parts = [rng.normal([-1, 0], [1.0, 0.7], (80, 2)), rng.normal([1, 0.6], [0.8, 0.7], (80, 2))]
    both = InProcessPartitions(parts)
    start = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    _, state = run(both, start, "single", 1, 200)
    center = state.centers + both.data.frame.mean
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, way in zip(figure.subplots(1, 2, sharey=True), ("plain", "anchored"), strict=True):
        for part, color in zip(parts, ("tab:blue", "tab:orange"), strict=True):
            axes.scatter(*part.T, s=7, color=color, alpha=0.35)
            path = [center]
            for steps in range(1, 6):
                alone = InProcessPartitions([part])
                began = center - alone.data.frame.mean
                if way == "plain":
                    found: Any = run(alone, center, way, 1, steps)[1]
                else:
                    found = anchored_round(alone, began, began, steps)
                path.append(found.centers + alone.data.frame.mean)
            for line in np.array(path).transpose(1, 2, 0):
                axes.plot(*line, "-o", color=color, markersize=3, linewidth=1.5)
        axes.scatter(*center.T, marker="*", s=170, color="black", zorder=3)
        axes.set_title(f"{way} local steps")
    return figure


def _draw_costs() -> Figure:
    """Cost after each exchange, overlapping blobs over 10 partitions."""
    _, x, y, k = next(data_sets(None, 5_000))
    start, _ = kmeans_plusplus(x, k, random_state=0, n_local_trials=1)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("random", "sorted"), strict=True):
        partitions = InProcessPartitions([x[rows] for rows in layout(kind, y, 10)])
        ways = ("plain", "single", "anchored")
        costs = {way: run(partitions, start, way, 5, 100)[0] for way in ways}
        least = min(cost.min() for cost in costs.values())
        for way, cost in costs.items():
            axes.plot(100 * (np.minimum.accumulate(cost) / least - 1), label=way, marker=".")
        axes.set_yscale("log")
        axes.set_ylim(0.001, 100)
        axes.set_title(f"rows {kind} over 10 partitions")
        axes.set_xlabel("exchanges")
    figure.axes[0].set_ylabel("best cost so far above the least, %")
    figure.axes[1].legend()
    return figure


def main() -> None:
    """Measure, print, or draw."""
    flags = parser(__doc__, n=10_000, seeds=5, local_steps=5)
    flags.add_argument("--data", type=Path, help="folder with pendigits.npz and so on")
    flags.add_argument("--table", type=Path, help="print what the rows of this file say")
    flags.add_argument("--pictures", type=Path, help="draw into this folder")
    options = flags.parse_args()
    if options.table:
        tell(options.table)
    elif options.pictures:
        draw(options.pictures)
    else:
        measure(options)


if __name__ == "__main__":
    main()
