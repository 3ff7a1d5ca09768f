"""The restarts of one fit: their seeds, who goes on, who wins. No Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from localkmeans_spark.engine.aggregate import Assignment
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.loop import LloydRun
from localkmeans_spark.engine.record import RestartRecord
from localkmeans_spark.engine.seeding import Seeding

# After a round, a restart is judged when it has this many Lloyd iterations behind it: the cost of
# a seeding says little, what is left of it after some iterations says much. (From the third on, one
# in twenty fits of CIFAR-10 embeddings gave up the only restart that would find all clusters.)
_JUDGED_FROM = 8
# Of the restarts that go on, the better half stays, and of these only those within this share of
# the best. Half as many every round keeps the price of all restarts near three rounds of each.
_WITHIN = 0.25
# Walks over the candidates of a seeding pass, of which the best is kept; not in the first restart,
# which is the fit that nInit=1 gives. On CIFAR-10 embeddings, k = 10, the seeds that find all
# clusters go from 4 to 8 in 10.
_WALKS = 16
_RESTART_STREAM = 2**32 - 1


def restart_seeds(seed: int, n_init: int) -> list[int]:
    """Return the seeds of the restarts; the first is ``seed`` itself."""
    sequences = (
        np.random.SeedSequence(seed, spawn_key=(_RESTART_STREAM, i)) for i in range(1, n_init)
    )
    return [seed, *(int(sequence.generate_state(1)[0]) for sequence in sequences)]


@dataclass
class Restart:
    """One of the runs of a fit.

    Attributes
    ----------
    seed : int
    run : LloydRun
    passes : int
        Passes for drawing rows so far; they number the random streams.
    dropped : int or None
        Round after which it was given up.
    """

    seed: int
    run: LloydRun
    passes: int
    dropped: int | None = None


class Contest:
    """All restarts of one fit, advancing side by side.

    Parameters
    ----------
    config : FitConfig
    data : DataSummary
    """

    def __init__(self, config: FitConfig, data: DataSummary) -> None:
        self.config = config
        self.restarts: list[Restart] = []
        self.warnings: list[str] = []
        self.resumed_round = 0
        self.seeding_passes = 0
        self.n_rounds = 0
        self._data = data
        self._settled: dict[int, tuple[np.ndarray, Assignment]] = {}
        self._is_final = False

    @staticmethod
    def walks(place: int) -> int:
        """Walks over the candidates for the restart at a place; the first is today's fit."""
        return 1 if place == 0 else _WALKS

    def start(self, seedings: list[Seeding]) -> None:
        """Take the initial centers of the restarts, in the order of their seeds."""
        seeds = restart_seeds(self.config.seed, self.config.n_init)
        for seed, seeding in zip(seeds, seedings, strict=True):
            self.restarts.append(Restart(seed, self._new_run(seeding.centers), seeding.passes))
        self.seeding_passes = max(seeding.passes for seeding in seedings)

    def _new_run(self, centers: np.ndarray) -> LloydRun:
        return LloydRun(
            centers,
            local_steps=self.config.local_steps,
            max_iter=self.config.max_iter,
            tol=self.config.tol,
            safeguard=self.config.safeguard,
            sum_sq=self._data.sum_sq,
            reseed=self.config.empty_clusters == "reseed",
            # These seeds were settled on a sample.
            settled=self.config.init_mode == "k-means++",
            # Centers that a user has are mostly those of an earlier fit.
            near=self.config.init_mode in ("k-means++", "given"),
        )

    @property
    def running(self) -> list[Restart]:
        """Restarts that were not dropped."""
        return [restart for restart in self.restarts if restart.dropped is None]

    def drop_hopeless(self) -> list[Restart]:
        """Give restarts up after a round of all of them; return those given up now.

        Judged are those with eight Lloyd iterations behind them whose last round was not taken
        back. The better half of all stays (rounded up), and of these only those whose inertia is
        at most 25 % above that of the best.
        """
        self.n_rounds += 1
        running = self.running
        least = min(_JUDGED_FROM, self.config.max_iter)
        values = {
            place: restart.run.bound
            for place, restart in enumerate(running)
            if restart.run.bound is not None and restart.run.n_iter >= least
        }
        if self._is_final or len(running) == 1 or not values:
            return []
        ranked = sorted(values, key=lambda place: (values[place], place))
        room = max(1, (len(running) + 1) // 2 - (len(running) - len(ranked)))
        limit = values[ranked[0]] * (1.0 + _WITHIN)
        dropped = [
            running[place]
            for rank, place in enumerate(ranked)
            if rank >= room or values[place] > limit
        ]
        for restart in dropped:
            restart.dropped = self.n_rounds
        return dropped

    def unsettled(self) -> list[Restart]:
        """Return the restarts whose last pass is still to come."""
        return [item for item in self.running if id(item) not in self._settled]

    def settle(self, restart: Restart, centers: np.ndarray, assignment: Assignment) -> None:
        """Take the last pass of a restart: absolute centers and their exact assignment."""
        self._is_final = True  # nobody is dropped from here on
        if restart.run.settle(float(assignment.inertia.sum())):
            self._settled[id(restart)] = centers, assignment

    def winner(self) -> tuple[Restart, np.ndarray, Assignment]:
        """Return the restart of lowest exact inertia (ties: the first) with its last pass."""
        best = min(self.running, key=self._exact_inertia)
        return best, *self._settled[id(best)]

    def _exact_inertia(self, restart: Restart) -> float:
        return float(self._settled[id(restart)][1].inertia.sum())

    def records(self, chosen: Restart) -> list[RestartRecord]:
        """Say what became of every restart."""
        return [
            RestartRecord(
                seed=item.seed,
                inertia=self._exact_inertia(item) if item.dropped is None else item.run.bound or 0,
                n_iter=item.run.n_iter,
                n_rounds=len(item.run.rounds),
                dropped=item.dropped,
                chosen=item is chosen,
            )
            for item in self.restarts
        ]

    def state(self) -> tuple[dict[str, Any], list[dict[str, np.ndarray]]]:
        """Return what ``restore`` needs, as JSON-ready values and arrays of every restart."""
        states = [item.run.state() for item in self.restarts]
        values = {
            "seed": self.config.seed,
            "n_rounds": self.n_rounds,
            "is_final": self._is_final,
            "seeding_passes": self.seeding_passes,
            "warnings": self.warnings,
            "restarts": [
                {"seed": item.seed, "passes": item.passes, "dropped": item.dropped, "run": run}
                for item, (run, _) in zip(self.restarts, states, strict=True)
            ],
        }
        return values, [arrays for _, arrays in states]

    def restore(self, values: dict[str, Any], arrays: list[dict[str, np.ndarray]]) -> None:
        """Take up the state of another contest with the same parameters and data."""
        self.n_rounds = self.resumed_round = values["n_rounds"]
        self._is_final = values["is_final"]
        self.seeding_passes = values["seeding_passes"]
        self.warnings = list(values["warnings"])
        for saved, own in zip(values["restarts"], arrays, strict=True):
            run = self._new_run(own["centers"])
            run.restore(saved["run"], own)
            self.restarts.append(Restart(saved["seed"], run, saved["passes"], saved["dropped"]))
