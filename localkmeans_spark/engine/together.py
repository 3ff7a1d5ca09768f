"""Fits and their restarts side by side: one Spark job for what all of them ask for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.contest import Contest, Restart, restart_seeds
from localkmeans_spark.engine.loop import Order
from localkmeans_spark.engine.questions import AskAssignment, Dialogue, hold_dialogues
from localkmeans_spark.engine.record import RoundRecord
from localkmeans_spark.engine.rounds import SparkMachines
from localkmeans_spark.engine.seeding import Seeding, draw_by_distance, seeding_dialogue
from localkmeans_spark.errors import Fact, count_of, invalid

logger = logging.getLogger("localkmeans_spark")


def seed_all(contests: Sequence[Contest], machines: SparkMachines) -> None:
    """Make the initial centers of all restarts of all fits, in shared passes."""
    dialogues: list[Dialogue[Seeding]] = []
    owners: list[Contest] = []
    for contest in contests:
        config = contest.config
        if config.initial_centers is not None:
            contest.start([Seeding(_given_centers(config, machines), 0)])
            continue
        for place, seed in enumerate(restart_seeds(config.seed, config.n_init)):
            owners.append(contest)
            dialogues.append(
                seeding_dialogue(
                    machines.data, config.k, config.init_mode, config.init_steps, seed,
                    walks=contest.walks(place),
                )
            )  # fmt: skip
    found = hold_dialogues(dialogues, machines.answer)
    for contest in dict.fromkeys(owners):
        seedings = [item for owner, item in zip(owners, found, strict=True) if owner is contest]
        contest.start(seedings)
        _warn_of_few_rows(contest, max(len(item.centers) for item in seedings))


def _given_centers(config: FitConfig, machines: SparkMachines) -> np.ndarray:
    data = machines.data
    centers = np.asarray(config.initial_centers, dtype=np.float64)
    if centers.shape != (config.k, data.n_features) or not np.isfinite(centers).all():
        raise invalid(
            config.owner, "parameter 'initialCenters'",
            f"a finite array of shape (k={config.k}, {data.n_features} features)",
            Fact(_what_is_odd(centers)),
            "Give one row for each cluster, with one number for each feature.",
        )  # fmt: skip
    return centers - data.frame.mean


def _what_is_odd(centers: np.ndarray) -> str:
    n_odd = int((~np.isfinite(centers)).sum())
    return f"shape {centers.shape}" + (f", {n_odd} of the numbers not finite" if n_odd else "")


def _warn_of_few_rows(contest: Contest, found: int) -> None:
    config = contest.config
    if found < config.k:
        contest.warnings.append(
            f"{config.owner}: k={config.k} clusters were asked for, but the data has only "
            f"{count_of(found, 'distinct row')}; the model has {count_of(found, 'cluster')}."
        )


def run_to_the_end(
    contests: Sequence[Contest],
    machines: SparkMachines,
    after_round: Callable[[], None],
    stop_clock: Callable[[str], None],
) -> None:
    """Run rounds until every restart has settled or was dropped.

    Parameters
    ----------
    contests : sequence of Contest
    machines : SparkMachines
    after_round : callable
        Called when a round of all is complete (checkpoints).
    stop_clock : callable (phase)
        Called at the end of the rounds and of the last pass.
    """
    while any(contest.unsettled() for contest in contests):
        while _one_round(contests, machines):
            after_round()
        stop_clock("iterate")
        last = [(contest, item) for contest in contests for item in contest.unsettled()]
        centers = [item.run.centers + machines.data.frame.mean for _, item in last]
        found = machines.answer([AskAssignment(array) for array in centers])
        for (contest, item), array, assignment in zip(last, centers, found, strict=True):
            contest.settle(item, array, assignment)
        stop_clock("final")


def _one_round(contests: Sequence[Contest], machines: SparkMachines) -> bool:
    """Advance all that have something to do by one round; False when nobody has."""
    active: list[tuple[Contest, Restart, Order]] = []
    for contest in contests:
        for restart in contest.running:
            order = restart.run.next_order()
            if order is not None:
                active.append((contest, restart, order))
    if not active:
        return False
    number = max(len(restart.run.rounds) for _, restart, _ in active) + 1
    found = machines.round([order for _, _, order in active], _described(number, active))
    for (_, restart, order), (exchange, traffic) in zip(active, found, strict=True):
        restart.run.absorb(order, exchange, traffic)
    _reseed([(contest, restart) for contest, restart, _ in active], machines)
    for contest in dict.fromkeys(contest for contest, _, _ in active):
        moved = [restart for owner, restart, _ in active if owner is contest]
        _tell_round(contest, moved, contest.drop_hopeless(), len(contests) > 1)
    return True


def _described(number: int, active: Sequence[tuple[Contest, Restart, Order]]) -> str:
    steps = sorted({order.local_steps for _, _, order in active})
    sets = "" if len(active) == 1 else f" of {len(active)} sets of centers"
    return f"round {number}{sets}, {_steps(steps[0], steps[-1])}"


def _steps(least: int, most: int) -> str:
    number = f"{least}" if least == most else f"{least} to {most}"
    return "1 local step" if number == "1" else f"{number} local steps"


def _reseed(moved: Sequence[tuple[Contest, Restart]], machines: SparkMachines) -> None:
    """Give clusters that are empty everywhere a row drawn by distance, as seeding draws them."""
    wanting = [(contest, restart) for contest, restart in moved if len(restart.run.empty)]
    dialogues = []
    for _, restart in wanting:
        run = restart.run
        filled = np.delete(run.centers, run.empty, axis=0)
        dialogues.append(
            draw_by_distance(
                machines.data, filled, len(run.centers), restart.seed, restart.passes,
                potential=run.bound,
            )
        )  # fmt: skip
    drawn = hold_dialogues(dialogues, machines.answer)
    for (_, restart), seeding in zip(wanting, drawn, strict=True):
        run = restart.run
        restart.passes = seeding.passes
        run.place(seeding.centers[len(run.centers) - len(run.empty) :])


def _tell_round(
    contest: Contest, moved: Sequence[Restart], dropped: Sequence[Restart], several_fits: bool
) -> None:
    """Log one line about a round of a fit, with the record of its leading restart."""
    leader = min(moved, key=lambda item: (item.dropped is not None, item.run.rounds[-1].inertia))
    record: RoundRecord = leader.run.rounds[-1]
    words = [_steps(record.local_steps, record.local_steps)]
    if several_fits:
        words.insert(0, f"k={contest.config.k}")
    if len(moved) > 1:
        words.append(f"{len(moved)} restarts")
    if dropped:
        words.append(f"{len(dropped)} dropped")
    if record.reseeded:
        words.append(f"{count_of(record.reseeded, 'empty cluster')} reseeded")
    message = "round %d: %s, inertia %.6g"
    extra = {"round_record": record}  # for programs that show more than a line
    logger.info(message, record.round, ", ".join(words), record.inertia, extra=extra)
    if contest.config.on_round is not None:
        contest.config.on_round(record)
