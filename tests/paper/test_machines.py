"""The measured runs against NumPy, against the fit engine, and against each other."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.paper import mixture as mx
from jobs.paper.experiments import clusters_lost, curve_quantities
from jobs.paper.machines import Run, mixture_machines
from localkmeans_spark import LocalKMeans
from localkmeans_spark import metrics as q


def _mixture(trial, sigma=0.4, m=3):
    rng = mx.generator(11, trial)
    counts = mx.independent_counts(m, 40, 4, rng)
    return mx.Mixture(mx.orthonormal_centers(4, 8, rng), sigma, counts, seed=trial)


def _lloyd(x, centers, steps):
    for _ in range(steps):
        labels = q.sq_distances_between(x, centers).argmin(axis=1)
        means = [x[labels == k].mean(axis=0) if (labels == k).any() else centers[k]
                 for k in range(len(centers))]  # fmt: skip
        centers = np.array(means)
    return centers, labels


@pytest.fixture(scope="module")
def measured(spark):
    mixtures = [_mixture(trial) for trial in range(2)]
    starts = [mx.generator(5, i).normal(0, 0.4, (4, 8)) for i in range(2)]
    runs = [
        Run(trial, starts[trial], steps, by_size)
        for trial in range(2)
        for steps, by_size in ((1, True), (3, True), (None, True), (3, False))
    ]
    with mixture_machines(spark.sparkContext, mixtures) as trials:
        traces = trials.trace(runs, 7)
        again = trials.trace(runs[5:6], 7)
    return mixtures, starts, traces, again


def test_l_of_1_is_lloyd_on_all_rows(measured):
    mixtures, starts, traces, _ = measured
    for trial, mixture in enumerate(mixtures):
        x = np.concatenate([mixture.rows(i)[0] for i in range(3)])
        z = np.concatenate([mixture.rows(i)[1] for i in range(3)])
        trace = traces[4 * trial]
        for t in (1, 2, 5, 7):
            centers, labels = _lloyd(x, starts[trial], t)
            np.testing.assert_allclose(trace.centers[t - 1], centers, atol=1e-10)
            counts = np.zeros((4, 4), dtype=int)
            np.add.at(counts, (z, labels), 1)
            assert trace.counts[t - 1].sum(axis=0).tolist() == counts.tolist()
            before = _lloyd(x, starts[trial], t - 1)[0] if t > 1 else starts[trial]
            assert trace.inertia[t - 1].sum() == pytest.approx(
                q.sq_distances_between(x, before).min(axis=1).sum()
            )
        assert trace.exchanges == list(range(7))


def test_no_aggregation_is_lloyd_on_every_machine(measured):
    mixtures, starts, traces, _ = measured
    trace = traces[2]
    local = np.stack([_lloyd(mixtures[0].rows(i)[0], starts[0], 7)[0] for i in range(3)])
    np.testing.assert_allclose(trace.plain_means[-1], local.mean(axis=0), atol=1e-10)
    sq = np.stack([q.sq_distances_between(one, mixtures[0].centers) for one in local])
    np.testing.assert_allclose(trace.sq_to_truth[-1], sq, rtol=1e-9)
    assert trace.deviation[-1] == pytest.approx(q.deviation(local, trace.centers[-1]))
    assert trace.exchanges == [0]


def test_l_of_3_exchanges_means_by_size_or_plain(measured):
    mixtures, starts, traces, _ = measured
    rows = [mixtures[1].rows(i)[0] for i in range(3)]
    for trace, by_size in ((traces[5], True), (traces[7], False)):
        common = starts[1]
        for steps in (3, 3, 1):
            found = [_lloyd(x, common, steps) for x in rows]
            local = np.stack([centers for centers, _ in found])
            sizes = np.stack([np.bincount(labels, minlength=4) for _, labels in found])
            common = q.virtual_iterate(local, sizes, common, by_size)
        np.testing.assert_allclose(trace.centers[-1], common, atol=1e-9)
        assert trace.exchanges == [0, 3, 6]


def test_a_run_is_the_same_alone_and_among_others(measured):
    _, _, traces, (again,) = measured
    for name in ("counts", "centers", "inertia", "deviation"):
        assert np.array_equal(getattr(again, name), getattr(traces[5], name)), name


def test_the_plain_fit_gives_the_same_centers(spark, measured):
    mixtures, starts, traces, _ = measured
    model = LocalKMeans(
        k=4, localSteps=3, maxIter=7, tol=0.0, safeguard=False, dtype="float64",
        initialCenters=starts[0].tolist(), seed=1,
    ).fit(mixtures[0].frame(spark))  # fmt: skip
    np.testing.assert_allclose(model.clusterCenters(), traces[1].centers[-1], atol=1e-9)


def test_quantities_of_a_curve(measured):
    mixtures, _, traces, _ = measured
    found = curve_quantities(traces[2], mixtures[0].centers, own_matching=True)
    assert {len(values) for values in found.values()} == {7}
    assert (found["A_own"] <= found["A"] + 1e-12).all()
    assert (found["A"] <= found["A_i_max"] + 1e-12).all()
    assert (found["A"] <= found["G"] + 1e-12).all()
    assert (found["Lambda_i_mean"] <= found["Lambda_i_max"]).all()


def test_a_merged_cluster_counts_as_lost():
    assert clusters_lost(np.diag([5, 6, 7])) == 0
    assert clusters_lost(np.array([[5, 0, 0], [6, 0, 0], [0, 3, 4]])) == 1


def test_seeding_draws_by_squared_distance(spark):
    # Two heaps of 30 rows at 0 and 3, one row at 9: after a first center at 0 the chances of
    # the next are 30 * 9 to 81; drawn 400 times.
    x = np.array([[0.0]] * 30 + [[3.0]] * 30 + [[9.0]])
    counts = np.array([[30, 0, 0], [0, 15, 0], [0, 15, 1]])
    mixture = mx.Mixture(np.array([[0.0], [3.0], [9.0]]), 0.0, counts, seed=1)
    with mixture_machines(spark.sparkContext, [mixture]) as trials:
        drawn = np.array([c[:, 0] for c in trials.seed([0] * 1200, 2, seed=4)])
        plain = np.array([c[:, 0] for c in trials.seed([0] * 1200, 2, seed=4, power=1)])
        greedy = trials.seed([0] * 50, 3, seed=4, candidates=5)
    assert (drawn[:, 0] == 9).mean() == pytest.approx(1 / len(x), abs=0.015)
    second = drawn[drawn[:, 0] == 0, 1]
    assert (second == 9).mean() == pytest.approx(81 / (81 + 270), abs=0.06)
    second = plain[plain[:, 0] == 0, 1]
    assert (second == 9).mean() == pytest.approx(9 / (9 + 90), abs=0.045)
    assert sum(sorted(c[:, 0].tolist()) == [0, 3, 9] for c in greedy) == 50
