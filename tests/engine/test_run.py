"""Restarts of one fit, without Spark: seeds, the rule by which they are dropped, who wins."""

from types import SimpleNamespace

import numpy as np
import pytest

from localkmeans_spark.config import FitConfig
from localkmeans_spark.fit.exchange import Exchange
from localkmeans_spark.fit.requests import Assignment
from localkmeans_spark.fit.run import Fit, JobCost, restart_seeds

FRAME = SimpleNamespace(
    mean=np.zeros(1), sum_grids=np.ones((1, 1)), is_cosine=False, has_far_rows=False
)
DATA = SimpleNamespace(sum_sq=1.0, n_features=1, frame=FRAME, factors=None)


def fit_of(n_init, **changes):
    # One round of eight steps is enough to be judged.
    settings = {"k": 1, "n_init": n_init, "seed": 7, "tol": 0.0, "local_steps": 8, **changes}
    fit = Fit(FitConfig(initial_centers=np.zeros((1, 1)), **settings), DATA)
    for run in fit.runs:
        run.ask()
    return fit


def play(fit, bounds, disagreement=0.0):
    """One round in which the running restarts reach ``bounds``; return the places dropped."""
    for run, bound in zip(fit.running, bounds, strict=True):
        assert run.ask().phase == "iterate"
        found = Exchange(np.ones((1, 1)), 2 * bound, 1.0, 0.0, 0.0, disagreement, 0, bound=bound)
        run.take(found, JobCost())
    return sorted(fit.runs.index(item) for item in fit.prune())


def exact(inertia):
    return Assignment(np.array([1]), np.ones((1, 1)), np.array([[inertia]]))


def test_the_first_restart_has_the_seed_itself_and_the_others_their_own():
    seeds = restart_seeds(7, 5)
    assert seeds[0] == 7 and len(set(seeds)) == 5
    assert restart_seeds(7, 3) == seeds[:3]
    assert not set(seeds) & set(restart_seeds(8, 5))


def test_the_better_half_stays():
    fit = fit_of(5, max_iter=60)
    assert play(fit, [100.0, 104.0, 101.0, 103.0, 102.0]) == [1, 3]
    assert play(fit, [99.0, 98.0, 97.0]) == [0]
    assert play(fit, [96.0, 95.0]) == [2]
    assert play(fit, [90.0]) == []
    assert [item.dropped for item in fit.runs] == [2, 1, 3, 1, None]


def test_equal_restarts_are_dropped_from_the_last():
    assert play(fit_of(4), [1.0, 1.0, 1.0, 1.0]) == [2, 3]


def test_nobody_is_judged_before_eight_iterations():
    fit = fit_of(3, local_steps=1)
    for _ in range(7):
        assert play(fit, [1.0, 50.0, 99.0]) == []
    assert play(fit, [1.0, 50.0, 99.0]) == [2]
    assert play(fit_of(3, max_iter=1), [1.0, 50.0, 99.0]) == [2]


def test_a_round_taken_back_is_no_judgement():
    fit = fit_of(3)
    assert play(fit, [1.0, 50.0, 99.0], disagreement=0.9) == []
    for _ in range(7):
        assert play(fit, [1.0, 50.0, 99.0]) == []
    assert play(fit, [1.0, 50.0, 99.0]) == [2]


def test_the_lowest_exact_inertia_wins():
    fit = fit_of(3, max_iter=5)
    play(fit, [100.0, 101.0, 102.0])
    assert [item.dropped for item in fit.runs] == [None, None, 1]
    for run, inertia in zip(fit.running, [90.0, 80.0], strict=True):
        assert run.ask().phase == "final"
        run.take(exact(inertia), JobCost())
        assert run.ask() is None
    winner, _, assignment = fit.winner()
    assert winner is fit.runs[1] and assignment.inertia.sum() == 80.0
    assert [(row.inertia, row.dropped, row.chosen) for row in fit.records(winner)] == [
        (90.0, None, False),
        (80.0, None, True),
        (102.0, 1, False),
    ]


@pytest.mark.parametrize("rounds", [1, 2])
def test_state_goes_there_and_back(rounds):
    first = fit_of(4, max_iter=50, local_steps=3)
    for _ in range(rounds):
        play(first, np.linspace(100.0, 101.0, len(first.running)))
    second = Fit(first.config, DATA)
    second.restore(*first.state())
    assert second.resumed_round == rounds
    for a, b in zip(first.runs, second.runs, strict=True):
        assert (a.seed, a.passes, a.dropped) == (b.seed, b.passes, b.dropped)
        assert a.lloyd.state()[0] == b.lloyd.state()[0]
        assert a.lloyd.next_order().local_steps == b.lloyd.next_order().local_steps
    assert play(first, [5.0] * len(first.running)) == play(second, [5.0] * len(second.running))


def test_a_restart_that_is_over_still_counts_when_others_are_judged():
    fit = fit_of(2, max_iter=16)
    play(fit, [1.0, 1.0], disagreement=0.9)  # taken back: one step at a time from here on
    first, second = fit.runs
    first.lloyd.converged = True
    first._life = None  # ask again, from where it stands now
    assert first.ask().phase == "final"
    first.take(exact(5.0), JobCost())
    for _ in range(8):
        assert first.dropped is None and second.dropped is None
        play_one(second, 7.0)
        dropped = fit.prune()
    assert dropped == [second]


def play_one(run, bound):
    found = Exchange(np.ones((1, 1)), 2 * bound, 1.0, 0.0, 0.0, 0.0, 0, bound=bound)
    run.take(found, JobCost())
