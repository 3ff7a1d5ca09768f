"""localSteps="auto": L from what rounds cost."""

from __future__ import annotations

import numpy as np
import pytest

from localkmeans_spark import LocalKMeans
from localkmeans_spark.fit.exchange import Exchange
from localkmeans_spark.fit.lloyd_run import LloydRun, Traffic
from localkmeans_spark.fit.step_choice import RoundTimes, steps_that_pay


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # sqrt(4 * (outside + first - step) / step), step = later / 4
        (RoundTimes(0.0, 0.1, 0.4, 5), 2),  # nothing to spare: the fewest
        (RoundTimes(0.9, 0.1, 0.4, 5), 6),
        (RoundTimes(0.9, 0.1, 0.15, 2.5), 6),  # some partitions did fewer steps
        (RoundTimes(0.1, 0.4, 0.4, 5), 4),  # cheap later steps pay
        (RoundTimes(100.0, 0.1, 0.4, 5), 20),  # a slow network: the most
        (RoundTimes(0.1, 0.1, 0.0, 5), 20),  # later steps for nothing
        (RoundTimes(0.1, 0.1, 0.0, 1), 5),  # no partition did a second step
    ],
)
def test_by_hand(times, expected):
    assert steps_that_pay(times) == expected


def test_more_outside_never_means_fewer_steps():
    chosen = [steps_that_pay(RoundTimes(s, 0.1, 0.4, 5)) for s in np.linspace(0, 20, 50)]
    assert chosen == sorted(chosen)


def _run(near=False, max_iter=100):
    return LloydRun(
        np.zeros((1, 1)), local_steps="auto", max_iter=max_iter, tol=0.0, safeguard=True,
        sum_sq=1.0, near=near,
    )  # fmt: skip


def _found(inertia, disagreement=0.0, local_steps=1):
    return Exchange(
        np.full((1, 1), inertia), inertia, 1.0, 0.0, 0.0, disagreement, 0, local_steps=local_steps
    )


def test_every_round_chooses_anew():
    run = _run()
    assert run.next_order().local_steps == 5
    for inertia, outside, expected in ((100.0, 0.9, 6), (90.0, 3.9, 12), (80.0, 0.0, 2)):
        order = run.next_order()
        assert not order.enough
        times = RoundTimes(outside, 0.1, 0.1 * (order.local_steps - 1), order.local_steps)
        found = _found(inertia, local_steps=order.local_steps)
        run.absorb(order, found, Traffic(0, 0, 1.0, times))
        assert run.next_order().local_steps == expected


def test_near_a_result_the_machines_find_the_steps_of_the_first_round():
    run = _run(near=True)
    order = run.next_order()
    assert order.local_steps == 20 and order.enough > 0
    times = RoundTimes(0.9, 0.1, 0.2, 3)
    record = run.absorb(order, _found(100.0, local_steps=3), Traffic(0, 0, 1.0, times))
    assert record.local_steps == run.n_iter == 3
    order = run.next_order()
    assert order.local_steps == 6 and not order.enough


@pytest.mark.parametrize(("max_iter", "expected"), [(1, 1), (3, 1), (7, 3), (20, 10), (50, 20)])
def test_the_first_round_leaves_half_of_the_iterations(max_iter, expected):
    assert _run(near=True, max_iter=max_iter).next_order().local_steps == expected


def test_clusters_without_rows_wait_for_the_first_exchange():
    run = LloydRun(
        np.zeros((1, 1)), local_steps="auto", max_iter=40, tol=0.0, safeguard=True, sum_sq=1.0,
        near=True, reseed=True,
    )  # fmt: skip
    assert run.next_order().local_steps == 5


def test_steps_that_no_machine_did_do_not_count():
    run = _run()
    times = RoundTimes(1.0, 0.1, 0.1, 2)
    record = run.absorb(run.next_order(), _found(100.0, local_steps=2), Traffic(0, 0, 1.0, times))
    assert record.local_steps == run.n_iter == 2


def test_one_cluster_has_converged_when_its_mean_stands_still(spark):
    rows = [(row,) for row in np.random.default_rng(1).normal(size=(600, 2)).tolist()]
    df = spark.createDataFrame(rows, "features array<double>").repartition(3)
    record = LocalKMeans(k=1, seed=1, localSteps="auto", tol=0.0).fit(df).summary.record
    assert record.converged and record.n_iter <= 5


@pytest.mark.parametrize("near", [False, True])
def test_the_safeguard_has_the_last_word(near):
    run = _run(near)
    slow = Traffic(0, 0, 1.0, RoundTimes(100.0, 0.1, 0.4, 5))
    run.absorb(run.next_order(), _found(100.0, disagreement=0.9, local_steps=5), slow)
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
    assert 1 <= record.rounds[0].local_steps <= 20
    random = LocalKMeans(k=5, seed=1, localSteps="auto", initMode="random").fit(df)
    assert random.summary.record.rounds[0].local_steps == 5
    fixed = LocalKMeans(k=5, seed=1, localSteps=1, maxIter=30).fit(df)
    assert record.inertia < 1.05 * fixed.summary.trainingCost
