"""Restarts of one fit, without Spark: seeds, the rule by which they are dropped, who wins."""

from types import SimpleNamespace

import numpy as np
import pytest

from localkmeans_spark.engine.aggregate import Assignment, Exchange
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.contest import Contest, restart_seeds
from localkmeans_spark.engine.loop import Traffic
from localkmeans_spark.engine.seeding import Seeding

NO_TRAFFIC = Traffic(0, 0, 0.0)


def contest_of(n_init, **changes):
    # One round of eight steps is enough to be judged.
    settings = {"k": 1, "n_init": n_init, "seed": 7, "tol": 0.0, "local_steps": 8, **changes}
    config = FitConfig(**settings)
    contest = Contest(config, SimpleNamespace(sum_sq=1.0))
    contest.start([Seeding(np.zeros((1, 1)), 1)] * n_init)
    return contest


def play(contest, bounds, disagreement=0.0):
    """One round in which the running restarts reach ``bounds``; return the places dropped."""
    for restart, bound in zip(contest.running, bounds, strict=True):
        order = restart.run.next_order()
        found = Exchange(np.ones((1, 1)), 2 * bound, 1.0, 0.0, 0.0, disagreement, 0, bound=bound)
        restart.run.absorb(order, found, NO_TRAFFIC)
    return sorted(contest.restarts.index(item) for item in contest.drop_hopeless())


def exact(inertia):
    return Assignment(np.array([0]), np.array([1]), np.ones((1, 1)), np.array([[inertia]]))


def test_the_first_restart_has_the_seed_itself_and_the_others_their_own():
    seeds = restart_seeds(7, 5)
    assert seeds[0] == 7 and len(set(seeds)) == 5
    assert restart_seeds(7, 3) == seeds[:3]
    assert not set(seeds) & set(restart_seeds(8, 5))


def test_the_better_half_stays():
    contest = contest_of(5, max_iter=60)
    assert play(contest, [100.0, 104.0, 101.0, 103.0, 102.0]) == [1, 3]
    assert play(contest, [99.0, 98.0, 97.0]) == [0]
    assert play(contest, [96.0, 95.0]) == [2]
    assert play(contest, [90.0]) == []
    assert [item.dropped for item in contest.restarts] == [2, 1, 3, 1, None]


def test_those_far_above_the_best_go_at_once():
    contest = contest_of(5)
    assert play(contest, [126.0, 100.0, 125.1, 200.0, 124.9]) == [0, 2, 3]


def test_equal_restarts_are_dropped_from_the_last():
    assert play(contest_of(4), [1.0, 1.0, 1.0, 1.0]) == [2, 3]


def test_nobody_is_judged_before_eight_iterations():
    contest = contest_of(3, local_steps=1)
    for _ in range(7):
        assert play(contest, [1.0, 50.0, 99.0]) == []
    assert play(contest, [1.0, 50.0, 99.0]) == [1, 2]
    assert play(contest_of(3, max_iter=1), [1.0, 50.0, 99.0]) == [1, 2]


def test_a_round_taken_back_is_no_judgement():
    contest = contest_of(3)
    assert play(contest, [1.0, 50.0, 99.0], disagreement=0.9) == []
    for _ in range(7):
        assert play(contest, [1.0, 50.0, 99.0]) == []
    assert play(contest, [1.0, 50.0, 99.0]) == [1, 2]


def test_the_lowest_exact_inertia_wins():
    contest = contest_of(3, max_iter=5)
    play(contest, [100.0, 101.0, 102.0])
    assert [item.dropped for item in contest.restarts] == [None, None, 1]
    for restart, inertia in zip(contest.unsettled(), [90.0, 80.0], strict=True):
        contest.settle(restart, restart.run.centers, exact(inertia))
    winner, _, assignment = contest.winner()
    assert winner is contest.restarts[1] and assignment.inertia.sum() == 80.0
    assert [(row.inertia, row.dropped, row.chosen) for row in contest.records(winner)] == [
        (90.0, None, False),
        (80.0, None, True),
        (102.0, 1, False),
    ]


@pytest.mark.parametrize("rounds", [1, 2])
def test_state_goes_there_and_back(rounds):
    first = contest_of(4, max_iter=50, local_steps=3)
    for _ in range(rounds):
        play(first, np.linspace(100.0, 101.0, len(first.running)))
    second = Contest(first.config, SimpleNamespace(sum_sq=1.0))
    second.restore(*first.state())
    assert second.resumed_round == rounds
    for a, b in zip(first.restarts, second.restarts, strict=True):
        assert (a.seed, a.passes, a.dropped) == (b.seed, b.passes, b.dropped)
        assert a.run.state()[0] == b.run.state()[0]
        assert a.run.next_order().local_steps == b.run.next_order().local_steps
    assert play(first, [5.0] * len(first.running)) == play(second, [5.0] * len(second.running))
