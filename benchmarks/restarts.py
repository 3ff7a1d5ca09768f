"""What dropping restarts early costs: five restarts in a contest against the best of five fits.

``python -m benchmarks.restarts --data ../shared/data``
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.in_process import InProcessMachines, run_lloyd
from localkmeans_spark.engine import machine
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.contest import Contest, restart_seeds
from localkmeans_spark.engine.loop import Traffic
from localkmeans_spark.engine.questions import AskAssignment, hold_dialogues
from localkmeans_spark.engine.seeding import seeding_dialogue

SETS = {
    "pendigits": 10, "letter": 26, "usps": 10, "sipu_s2": 15, "sipu_birch1": 100,
    "cifar10_embeddings_512": 10,
}  # fmt: skip
_NO_TRAFFIC = Traffic(0, 0, 0.0)


def contest(machines: InProcessMachines, config: FitConfig) -> tuple[float, int, list[float]]:
    """Return the cost, the Lloyd steps of all restarts, and the costs of single fits."""
    seeds = restart_seeds(config.seed, config.n_init)
    drawn = [machine.describe(m, seeds) for m in machines.machines]
    machines.data = replace(machines.data, statistics=drawn)
    found = Contest(config, machines.data)
    dialogues = [
        seeding_dialogue(machines.data, config.k, config.init_mode, 2, seed, found.walks(place))
        for place, seed in enumerate(seeds)
    ]
    seedings = hold_dialogues(dialogues, machines.answer)
    mean = machines.data.frame.mean
    alone = [run_lloyd(machines, item.centers + mean, local_steps=5)[0] for item in seedings]
    found.start(seedings)
    steps = 0
    while found.unsettled():
        moved = True
        while moved:
            moved = False
            for restart in found.running:
                order = restart.run.next_order()
                if order is not None:
                    restart.run.absorb(order, machines.round(order), _NO_TRAFFIC)
                    steps += order.local_steps
                    moved = True
            if moved:
                found.drop_hopeless()
        for restart in found.unsettled():
            centers = restart.run.centers + mean
            (assignment,) = machines.answer([AskAssignment(centers)])
            found.settle(restart, centers, assignment)
    return float(found.winner()[2].inertia.sum()), steps, alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=5_000)
    options = parser.parse_args()
    print(
        "set, excess over the best of 5 in %: contest, first alone, mean alone; Lloyd steps a fit"
    )
    for name, k in SETS.items():
        x = np.load(options.data / f"{name}.npz")["X"].astype(np.float64)
        x = x[np.random.default_rng(0).permutation(len(x))[: options.rows]]
        machines = InProcessMachines(np.array_split(x, 8))
        rows = []
        for seed in range(options.seeds):
            config = FitConfig(k=k, seed=seed, n_init=5, tol=0.0, init_mode="local-k-means++")
            cost, steps, alone = contest(machines, config)
            best = min(alone)
            rows.append([cost / best - 1, alone[0] / best - 1, np.mean(alone) / best - 1, steps])
        excess = np.array(rows).mean(axis=0)
        print(name, *(f"{100 * value:.2f}" for value in excess[:3]), f"{excess[3]:.0f}")


if __name__ == "__main__":
    main()
