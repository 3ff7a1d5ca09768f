"""The driver's decisions, without Spark: partitions are simulated by the kernel."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks.in_process import fit_in_process
from localkmeans_spark.config import FitConfig
from localkmeans_spark.fit.exchange import Exchange
from localkmeans_spark.fit.lloyd_run import LloydRun, Traffic

NO_TRAFFIC = Traffic(0, 0, 0.0)


def finding(inertia, shift=1.0, disagreement=0.0, centers=None, spread=0.0):
    centers = np.zeros((1, 1)) if centers is None else centers
    return Exchange(centers, inertia, shift, 0.0, 0.0, disagreement, 0, spread, bound=0.0)


def run_of(**changes):
    options = {"local_steps": 4, "max_iter": 12, "tol": 0.0, "safeguard": True, "sum_sq": 1.0}
    return LloydRun(np.zeros((1, 1)), **{**options, **changes})


def test_rounds_are_t_over_l_rounded_up_and_the_last_is_shorter():
    run = run_of(max_iter=10, safeguard=False)
    steps = []
    while (order := run.next_order()) is not None:
        steps.append(order.local_steps)
        run.absorb(order, finding(1.0), NO_TRAFFIC)
    assert steps == [4, 4, 2]
    assert run.n_iter == 10 and not run.converged


def test_a_rise_goes_back_to_the_best_centers_with_half_the_steps():
    run = run_of()
    good = np.array([[1.0]])
    order = run.next_order()
    run.absorb(order, finding(100.0, centers=good), NO_TRAFFIC)  # now at `good`
    order = run.next_order()
    assert order.centers is good
    run.absorb(order, finding(60.0, centers=np.array([[2.0]])), NO_TRAFFIC)  # good costs 60
    order = run.next_order()
    record = run.absorb(order, finding(80.0, centers=np.array([[3.0]])), NO_TRAFFIC)
    assert record.reverted and "raised" in record.note
    assert run.reverts == 1
    order = run.next_order()
    assert order.centers is good and order.local_steps == 2
    assert run.n_iter == 4, "iterations taken back do not count"


def test_disagreeing_machines_are_taken_back_at_once_and_for_good():
    run = run_of()
    start = run.centers
    record = run.absorb(run.next_order(), finding(100.0, disagreement=0.5), NO_TRAFFIC)
    assert record.reverted and "disagree" in record.note
    order = run.next_order()
    assert order.centers is start and order.local_steps == 1 and run.n_iter == 0
    # Single steps are exact, whatever the partitions hold.
    record = run.absorb(order, finding(100.0, disagreement=0.9), NO_TRAFFIC)
    assert not record.reverted


def test_plain_algorithm_never_goes_back():
    run = run_of(safeguard=False)
    for inertia in (100.0, 200.0, 300.0):
        record = run.absorb(run.next_order(), finding(inertia, disagreement=0.9), NO_TRAFFIC)
        assert not record.reverted
    assert run.next_order() is None
    assert run.settle(1e9)


def test_a_gain_smaller_than_the_machines_differ_leads_to_single_steps():
    run = run_of(max_iter=50)
    run.absorb(run.next_order(), finding(100.0, spread=0.1), NO_TRAFFIC)
    run.absorb(run.next_order(), finding(80.0, spread=0.1), NO_TRAFFIC)
    assert run.next_order().local_steps == 4
    run.absorb(run.next_order(), finding(74.0, spread=0.1), NO_TRAFFIC)
    assert run.next_order().local_steps == 1


def test_where_chance_alone_makes_machines_differ_local_steps_go_on():
    # by chance 0.001: averaging leaves 0.03 of a spread of 0.0015
    run, found = run_of(max_iter=50), {"spread": 0.0015, "disagreement": 0.0005}
    for inertia in (100.0, 99.9, 99.89):
        run.absorb(run.next_order(), finding(inertia, **found), NO_TRAFFIC)
        assert run.next_order().local_steps == 4
    run.absorb(run.next_order(), finding(99.887, **found), NO_TRAFFIC)
    assert run.next_order().local_steps == 1


def test_partitions_that_do_not_differ_do_exact_steps_however_little_they_gain():
    run = run_of(max_iter=50)
    for inertia in (100.0, 99.999999, 99.9999989):
        run.absorb(run.next_order(), finding(inertia, spread=0.0), NO_TRAFFIC)
        assert run.next_order().local_steps == 4


def test_a_standstill_between_local_steps_is_not_convergence():
    run = run_of()
    run.absorb(run.next_order(), finding(100.0, shift=0.0), NO_TRAFFIC)
    assert not run.converged
    order = run.next_order()
    assert order.local_steps == 1
    run.absorb(order, finding(100.0, shift=0.0), NO_TRAFFIC)
    assert run.converged and run.next_order() is None


def test_the_last_pass_can_send_the_run_back():
    run = run_of(max_iter=4)
    start = run.centers
    run.absorb(run.next_order(), finding(100.0, centers=np.array([[9.0]])), NO_TRAFFIC)
    assert run.next_order() is None
    assert not run.settle(130.0)
    order = run.next_order()
    assert order.centers is start and order.local_steps == 2
    run.absorb(order, finding(100.0, centers=np.array([[5.0]])), NO_TRAFFIC)
    run.absorb(run.next_order(), finding(90.0), NO_TRAFFIC)
    assert run.settle(80.0)


@pytest.mark.parametrize("local_steps", [2, 5, 10, 20])
def test_sorted_digits_end_within_a_thousandth_of_centralized(local_steps):
    x, y = load_digits(return_X_y=True)
    parts = np.array_split(x[np.argsort(y, kind="stable")], 10)
    for seed in range(3):
        start = x[np.random.default_rng(seed).choice(len(x), 10, replace=False)]
        config = FitConfig(k=10, initial_centers=start, local_steps=1, tol=0.0)
        central, _ = fit_in_process(parts, config)
        config = replace(config, local_steps=local_steps)
        plain, _ = fit_in_process(parts, replace(config, safeguard=False))
        guarded, run = fit_in_process(parts, config)
        assert guarded <= 1.001 * central
        assert run.n_iter <= 20
        if local_steps >= 5:
            assert plain > 1.05 * central, "the case is too easy: the plain algorithm does it too"
            assert run.lloyd.reverts >= 1


@pytest.mark.parametrize("local_steps", [4, "auto"])
@pytest.mark.parametrize("stop_after", range(7))
def test_a_run_restored_from_its_state_goes_on_the_same(local_steps, stop_after):
    found = [
        finding(100.0, centers=np.array([[1.0]]), spread=0.3),
        finding(60.0, centers=np.array([[2.0]])),
        finding(80.0, centers=np.array([[3.0]])),  # a rise: taken back
        finding(60.0, centers=np.array([[4.0]])),
        replace(finding(50.0, centers=np.array([[5.0]])), filled=np.array([True, False, False])),
        finding(49.99, centers=np.array([[6.0]])),
        finding(49.0, shift=0.0, centers=np.array([[6.0]])),
    ]

    def go_on(run, results):
        orders = []
        for result in results:
            if (order := run.next_order()) is None:
                break
            orders.append(order)
            run.absorb(order, result, Traffic(3, 5, 0.25))
        return orders

    first = run_of(local_steps=local_steps, max_iter=40, reseed=True)
    go_on(first, found[:stop_after])
    values, arrays = first.state()
    second = run_of(local_steps=local_steps, max_iter=40, reseed=True)
    second.restore(json.loads(json.dumps(values)), arrays)
    ours, theirs = go_on(first, found[stop_after:]), go_on(second, found[stop_after:])
    assert [order._replace(centers=None) for order in ours] == [
        order._replace(centers=None) for order in theirs
    ]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.centers, b.centers)
    assert first.rounds == second.rounds
    assert (first.n_iter, first.converged, first.bound) == (
        second.n_iter, second.converged, second.bound)  # fmt: skip
    np.testing.assert_array_equal(first.empty, second.empty)
    np.testing.assert_array_equal(first.centers, second.centers)
    # Known centers are kept, too: a worse end sends both back to the same ones.
    assert first.settle(1e9) == second.settle(1e9)
    np.testing.assert_array_equal(first.centers, second.centers)
    assert first.n_iter == second.n_iter


def test_new_centers_are_put_on_the_first_of_the_empty_clusters():
    run = LloydRun(np.arange(8.0).reshape(4, 2), local_steps=2, max_iter=9, tol=0.0,
                   safeguard=True, sum_sq=1.0, reseed=True)  # fmt: skip
    moved = np.arange(8.0).reshape(4, 2) + 1.0
    filled = np.array([True, False, False, False])
    run.absorb(run.next_order(), replace(finding(9.0, shift=0.0, centers=moved), filled=filled),
               NO_TRAFFIC)  # fmt: skip
    np.testing.assert_array_equal(run.empty, [1, 2, 3])
    before = moved.copy()
    run.place(np.array([[70.0, 71.0], [80.0, 81.0]]))
    np.testing.assert_array_equal(run.centers, [[1, 2], [70, 71], [80, 81], [7, 8]])
    np.testing.assert_array_equal(moved, before)
    assert not run.converged and not len(run.empty) and run.rounds[-1].reseeded == 2
    run.place(np.empty((0, 2)))
    assert run.rounds[-1].reseeded == 2


def test_a_state_has_no_best_centers_before_the_first_round():
    values, arrays = run_of().state()
    assert values["best"] is None and set(arrays) == {"centers"}
