"""localSteps="auto": L from what rounds cost."""

from __future__ import annotations

import numpy as np
import pytest

from localkmeans_spark import LocalKMeans
from localkmeans_spark.engine.aggregate import Exchange
from localkmeans_spark.engine.loop import LloydRun, Traffic
from localkmeans_spark.engine.step_choice import RoundTimes, steps_that_pay


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # sqrt(4 * (outside + first - step) / step), step = later / 4
        (RoundTimes(0.0, 0.1, 0.4), 2),  # nothing to spare: the fewest
        (RoundTimes(0.9, 0.1, 0.4), 6),
        (RoundTimes(0.1, 0.4, 0.4), 4),  # cheap later steps pay
        (RoundTimes(100.0, 0.1, 0.4), 20),  # a slow network: the most
        (RoundTimes(0.1, 0.1, 0.0), 20),  # later steps for nothing
    ],
)
def test_by_hand(times, expected):
    assert steps_that_pay(times, local_steps=5) == expected


def test_more_outside_never_means_fewer_steps():
    chosen = [steps_that_pay(RoundTimes(s, 0.1, 0.4), 5) for s in np.linspace(0, 20, 50)]
    assert chosen == sorted(chosen)


def _run():
    return LloydRun(
        np.zeros((1, 1)), local_steps="auto", max_iter=100, tol=0.0, safeguard=True, sum_sq=1.0
    )


def _found(inertia, disagreement=0.0):
    return Exchange(np.full((1, 1), inertia), inertia, 1.0, 0.0, 0.0, disagreement, 0)


def test_every_round_chooses_anew():
    run = _run()
    assert run.next_order().local_steps == 5
    for inertia, outside, expected in ((100.0, 0.9, 6), (90.0, 3.9, 12), (80.0, 0.0, 2)):
        order = run.next_order()
        times = RoundTimes(outside, 0.1, 0.1 * (order.local_steps - 1))
        run.absorb(order, _found(inertia), Traffic(0, 0, 1.0, times))
        assert run.next_order().local_steps == expected


def test_the_safeguard_has_the_last_word():
    run = _run()
    slow = Traffic(0, 0, 1.0, RoundTimes(100.0, 0.1, 0.4))
    run.absorb(run.next_order(), _found(100.0, disagreement=0.9), slow)
    for inertia in (100.0, 90.0):
        order = run.next_order()
        assert order.local_steps == 1
        run.absorb(order, _found(inertia), slow)


def test_a_fit_says_what_it_chose(spark):
    rng = np.random.default_rng(0)
    rows = [(row,) for row in rng.normal(size=(2_000, 3)).tolist()]
    df = spark.createDataFrame(rows, "features array<double>").repartition(2)
    model = LocalKMeans(k=5, seed=1, localSteps="auto", maxIter=30).fit(df)
    record = model.summary.record
    assert record.local_steps == "auto"
    assert record.rounds[0].local_steps == 5
    fixed = LocalKMeans(k=5, seed=1, localSteps=1, maxIter=30).fit(df)
    assert record.inertia < 1.05 * fixed.summary.trainingCost
