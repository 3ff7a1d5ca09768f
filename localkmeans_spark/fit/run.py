"""A run (one set of centers, from its seeding to its last pass) and a fit (its restarts)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.checks import VALUE_RANGE
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.fit import requests
from localkmeans_spark.fit.lloyd_run import LloydRun, Traffic
from localkmeans_spark.fit.requests import Asking, Assignment, Request
from localkmeans_spark.fit.seeding import Seeding, draw_by_distance, seed_centers
from localkmeans_spark.kernel.draws import RESTARTS
from localkmeans_spark.kernel.spherical import unit_centers
from localkmeans_spark.records import RestartRecord

logger = logging.getLogger("localkmeans_spark")

# A restart is judged when it has this many Lloyd iterations behind it: the cost of a seeding says
# little, what is left of it after some iterations says much. (From the third on, one in twenty fits
# of CIFAR-10 embeddings gave up the only restart that would find all clusters.)
_JUDGED_FROM = 8


def restart_seeds(seed: int, n_init: int) -> list[int]:
    """Return the seeds of the restarts; the first is ``seed`` itself."""
    sequences = (np.random.SeedSequence(seed, spawn_key=(RESTARTS, i)) for i in range(1, n_init))
    return [seed, *(int(sequence.generate_state(1)[0]) for sequence in sequences)]


class JobCost(NamedTuple):
    """What a job that answered some requests cost.

    Attributes
    ----------
    seconds : float
        Wall time.
    n_tasks, n_executors : int
    """

    seconds: float = 0.0
    n_tasks: int = 1
    n_executors: int = 1


class Run:
    """One set of centers, from its seeding to its last pass.

    ``ask`` says what is to be done on the partitions next, ``take`` takes what came of it, until
    ``ask`` returns None.

    Parameters
    ----------
    config : FitConfig
    data : DataSummary
    seed : int
        Of its own random draws.

    Attributes
    ----------
    lloyd : LloydRun or None
        None until the initial centers are there.
    passes : int
        Passes for drawing rows so far; they number the random streams.
    dropped : int or None
        Round after which it was given up.
    final : tuple of (ndarray, Assignment), or None
        Absolute centers and their exact assignment, once the run is over.
    """

    def __init__(self, config: FitConfig, data: DataSummary, seed: int) -> None:
        self.seed = seed
        self.lloyd: LloydRun | None = None
        self.passes = self.seeding_passes = 0
        self.dropped: int | None = None
        self.final: tuple[np.ndarray, Assignment] | None = None
        self._config, self._data = config, data
        self._cost = JobCost()
        self._life: Asking[None] | None = None
        self._request: Request | None = None

    def ask(self) -> Request | None:
        """Return what is to be done on the partitions next; None when there is no more."""
        if self._life is None:
            self._life = self._live()
            self._go_on(None)
        return self._request

    def take(self, answer: Any, cost: JobCost) -> None:
        """Take the answer to what :meth:`ask` returned."""
        self._cost = cost
        self._go_on(answer)

    def _go_on(self, answer: Any) -> None:
        assert self._life is not None
        try:
            self._request = self._life.send(answer)
        except StopIteration:
            self._request = None

    def _live(self) -> Asking[None]:
        """Seeding, rounds, last pass: yield each request, be sent its answer."""
        if self.lloyd is None:
            seeding = yield from self._seed()
            self.passes = self.seeding_passes = seeding.passes
            self.begin(seeding.centers)
        lloyd = self.lloyd
        assert lloyd is not None
        while self.final is None:
            if len(lloyd.empty):
                yield from self._reseed(lloyd)
            order = lloyd.next_order()
            if order is not None:
                request = requests.local_round(self._data, len(lloyd.rounds) + 1, order)
                found = yield request
                cost = self._cost
                down = order.centers.nbytes * cost.n_executors
                traffic = Traffic(down, request.nbytes * cost.n_tasks, cost.seconds)
                lloyd.absorb(order, found, traffic)
                continue
            centers = lloyd.centers + self._data.frame.mean
            assignment = yield requests.assignment(self._data, centers)
            if lloyd.settle(float(assignment.inertia.sum())):
                self.final = centers, assignment

    def begin(self, centers: np.ndarray) -> LloydRun:
        """Make the state of the rounds, from initial centers in the shared frame."""
        config = self._config
        self.lloyd = LloydRun(
            centers,
            # Local steps are judged by their inertia, which is rough beside values that far.
            local_steps=1 if self._data.frame.has_far_rows else config.local_steps,
            max_iter=config.max_iter,
            tol=config.tol,
            safeguard=config.safeguard,
            sum_sq=self._data.sum_sq,
            reseed=config.empty_clusters == "reseed",
        )
        return self.lloyd

    def _seed(self) -> Asking[Seeding]:
        config = self._config
        if config.initial_centers is not None:
            return Seeding(_given_centers(config, self._data), 0)
        return (
            yield from seed_centers(
                self._data, config.k, config.init_mode, config.init_steps, self.seed
            )
        )

    def _reseed(self, lloyd: LloydRun) -> Asking[None]:
        """Give clusters that are empty everywhere a row drawn by distance."""
        filled = np.delete(lloyd.centers, lloyd.empty, axis=0)
        k = len(lloyd.centers)
        seeding = yield from draw_by_distance(
            self._data, filled, k, self.seed, self.passes, potential=lloyd.bound
        )
        self.passes = seeding.passes
        lloyd.place(seeding.centers[len(filled) :])

    @property
    def n_rounds(self) -> int:
        """Rounds run so far."""
        return 0 if self.lloyd is None else len(self.lloyd.rounds)

    @property
    def n_iter(self) -> int:
        """Lloyd iterations behind its centers."""
        return 0 if self.lloyd is None else self.lloyd.n_iter

    @property
    def inertia(self) -> float | None:
        """Exact inertia of the last centers, or an upper bound from the last round, if known."""
        if self.final is not None:
            return float(self.final[1].inertia.sum())
        return None if self.lloyd is None else self.lloyd.bound


def _given_centers(config: FitConfig, data: DataSummary) -> np.ndarray:
    centers = np.asarray(config.initial_centers, dtype=np.float64)
    if centers.shape != (config.k, data.n_features) or not np.isfinite(centers).all():
        n_odd = int((~np.isfinite(centers)).sum())
        odd = f", {n_odd} of the numbers not finite" if n_odd else ""
        raise invalid(
            OWNER, "parameter 'initialCenters'",
            f"a finite array of shape (k={config.k}, {data.n_features} features)",
            Fact(f"shape {centers.shape}{odd}"),
            "Give one row for each cluster, with one number for each feature.",
        )  # fmt: skip
    if config.data.distance_measure == "cosine":
        # Rows have length 1: of shorter centers the mean would leave few digits, or none.
        return unit_centers(centers) - data.frame.mean
    # Beyond, products of rows and centers are not numbers; no row is ever near such a center.
    dtype = config.data.dtype
    limit, size = VALUE_RANGE[dtype][1], float(np.abs(centers).max())
    if size > limit:
        raise invalid(
            OWNER, "parameter 'initialCenters'",
            f"of numbers up to {limit:g} in size for dtype='{dtype}'",
            Fact(f"numbers up to {size:g}"), "Give centers within the range of the rows.",
        )  # fmt: skip
    if data.factors is not None:
        centers = centers * data.factors
    return centers - data.frame.mean


class Fit:
    """The runs of one fit: its restarts, of which the best is returned.

    Parameters
    ----------
    config : FitConfig
    data : DataSummary

    Attributes
    ----------
    runs : list of Run
        In the order of their seeds.
    resumed_round : int
        Round after which a checkpoint was taken up; 0 for a fit from its beginning.
    warnings : list of str
    """

    def __init__(self, config: FitConfig, data: DataSummary) -> None:
        self.config = config
        seeds = restart_seeds(config.seed, config.n_init)
        self.runs = [Run(config, data, seed) for seed in seeds]
        self.warnings: list[str] = []
        self.resumed_round = 0
        self._judged = 0

    @property
    def running(self) -> list[Run]:
        """Runs that were not dropped."""
        return [run for run in self.runs if run.dropped is None]

    @property
    def n_rounds(self) -> int:
        """Rounds of the run that has the most."""
        return max(run.n_rounds for run in self.runs)

    def prune(self) -> list[Run]:
        """Give up the worse half of the restarts, once each has gone on since the last time.

        Judged are those with eight Lloyd iterations behind them whose last round was not taken
        back; the better half of all stays, rounded up, ties by their order. Half as many every
        round keeps the price of all restarts near three rounds of each.

        Returns
        -------
        list of Run
            Those given up now.
        """
        running = self.running
        active = [run for run in running if run.final is None]
        if len(running) == 1 or min((run.n_rounds for run in active), default=0) <= self._judged:
            return []
        self._judged = self.n_rounds
        least = min(_JUDGED_FROM, self.config.max_iter)
        known = {
            place: run.inertia
            for place, run in enumerate(running)
            if run.inertia is not None and (run.final is not None or run.n_iter >= least)
        }
        ranked = sorted(known, key=lambda place: (known[place], place))
        room = max(1, (len(running) + 1) // 2 - (len(running) - len(ranked)))
        dropped = [running[place] for place in sorted(ranked[room:])]
        for run in dropped:
            run.dropped = self.n_rounds
        return dropped

    def winner(self) -> tuple[Run, np.ndarray, Assignment]:
        """Return the run of lowest exact inertia (ties: the first) with its last pass."""
        best = min(self.running, key=lambda run: run.inertia or 0.0)
        assert best.final is not None
        return best, *best.final

    def records(self, chosen: Run) -> list[RestartRecord]:
        """Say what became of every restart."""
        return [
            RestartRecord(
                seed=run.seed,
                inertia=run.inertia or 0.0,
                n_iter=run.n_iter,
                n_rounds=run.n_rounds,
                dropped=run.dropped,
                chosen=run is chosen,
            )
            for run in self.runs
        ]

    def few_rows(self) -> list[str]:
        """Warn if there were fewer distinct rows than clusters asked for."""
        found = max(len(run.lloyd.centers) for run in self.runs if run.lloyd is not None)
        if found >= self.config.k:
            return []
        return [
            f"{OWNER}: k={self.config.k} clusters were asked for, but the data has "
            f"only {count_of(found, 'distinct row')}; the model has {count_of(found, 'cluster')}."
        ]

    def tell_round(self, dropped: Sequence[Run], several_fits: bool) -> None:
        """Log one line about a round, with the record of the leading restart."""
        moved = [run.lloyd for run in self.runs if run.lloyd is not None and run.n_rounds]
        current = [lloyd for lloyd in moved if len(lloyd.rounds) == self.n_rounds]
        leader = min(current, key=lambda lloyd: lloyd.rounds[-1].inertia)
        record = leader.rounds[-1]
        steps = record.local_steps
        words = [f"{steps} local steps" if steps > 1 else "1 local step"]
        if several_fits:
            words.insert(0, f"k={self.config.k}")
        if len(current) > 1:
            words.append(f"{len(current)} restarts")
        if dropped:
            words.append(f"{len(dropped)} dropped")
        if len(leader.empty):
            words.append(f"{count_of(len(leader.empty), 'empty cluster')} to be reseeded")
        inertia = f"{record.inertia:.6g}"
        if len(leader.rounds) > 1:
            before = leader.rounds[-2].inertia
            inertia += f" ({100.0 * (record.inertia / before - 1.0):+.2g} %)" if before else ""
        extra = {"round_record": record}  # for programs that show more than a line
        logger.info(
            "round %d: %s, inertia %s", record.round, ", ".join(words), inertia, extra=extra
        )

    def state(self) -> tuple[dict[str, Any], list[dict[str, np.ndarray]]]:
        """Return what ``restore`` needs: JSON-ready values, and the arrays of every run."""
        states = [({}, {}) if run.lloyd is None else run.lloyd.state() for run in self.runs]
        values = {
            "seed": self.config.seed,
            "judged": self._judged,
            "runs": [
                {
                    "passes": run.passes,
                    "seeding_passes": run.seeding_passes,
                    "dropped": run.dropped,
                    "lloyd": lloyd,
                }
                for run, (lloyd, _) in zip(self.runs, states, strict=True)
            ],
        }
        return values, [arrays for _, arrays in states]

    def restore(self, values: dict[str, Any], arrays: Sequence[dict[str, np.ndarray]]) -> None:
        """Take up the state of another fit with the same parameters and data."""
        self._judged = values["judged"]
        for run, saved, own in zip(self.runs, values["runs"], arrays, strict=True):
            run.passes, run.seeding_passes = saved["passes"], saved["seeding_passes"]
            run.dropped = saved["dropped"]
            if saved["lloyd"]:
                run.begin(own["centers"]).restore(saved["lloyd"], own)
        self.resumed_round = self.n_rounds
