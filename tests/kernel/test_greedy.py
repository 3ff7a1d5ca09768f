"""Greedy seeding: what is chosen by the cost of a sample."""

import numpy as np
import pytest

from localkmeans_spark.kernel import seeding
from localkmeans_spark.kernel.sample import Sample
from localkmeans_spark.kernel.seeding import choose_centers, n_trials
from tests.kernel.arrivals import arrivals_of, cost


def test_greedy_choice_lowers_the_cost_of_plain_draws():
    # 30 clusters: plain draws miss several of them nearly always.
    rng = np.random.default_rng(1)
    true = 10.0 * rng.normal(size=(30, 5))
    x = (true[:, None] + rng.normal(size=(30, 100, 5))).reshape(-1, 5)
    sample = Sample(x, np.ones(len(x)))
    resolution = np.full(5, 1e-9)
    better = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        first = x[[seed]]
        found = arrivals_of(x, first, 20_000, rng)
        greedy, _ = choose_centers(found, first, 30, resolution, rng, sample, 10)
        plain, _ = choose_centers(found, first, 30, resolution, rng)
        assert len(greedy) == len(plain) == 30
        better.append(cost(x, greedy) < cost(x, plain))
    assert sum(better) >= 10  # by chance alone: 2 %


def test_copies_of_a_row_are_never_two_centers():
    x = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]), 50, axis=0)
    rng = np.random.default_rng(0)
    first = x[:1]
    found = arrivals_of(x, first, 200, rng)
    made, _ = choose_centers(found, first, 5, np.full(2, 1e-9), rng, Sample(x, np.ones(150)), 4)
    np.testing.assert_array_equal(np.unique(made, axis=0), [[0, 0], [1, 0], [5, 5]])
    assert len(made) == 3


def test_draws_a_center_by_hand():
    # 2 + ln k, twice that up to 100 clusters.
    assert [n_trials(k) for k in (1, 7, 8, 100, 101, 1000)] == [4, 6, 8, 12, 6, 8]


@pytest.mark.parametrize("seed", range(3))
def test_many_clusters_are_judged_by_the_rows_around_them_hardly_worse(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    true = 40.0 * rng.random((300, 2))
    x = (true[:, None] + rng.normal(size=(300, 20, 2))).reshape(-1, 2)
    sample, resolution = Sample(x, np.ones(len(x))), np.full(2, 1e-9)

    def cost_of(choose):
        again, centers = np.random.default_rng(5), x[:1]
        while len(centers) < 300:
            found = arrivals_of(x, centers, 8000, again)
            centers, _ = choose(found, centers, again)
        assert len(np.unique(centers, axis=0)) == 300
        return cost(x, centers)

    def greedily(found, centers, rng):
        return choose_centers(found, centers, 300, resolution, rng, sample, 8)

    plain = cost_of(lambda *args: choose_centers(*args[:2], 300, resolution, args[2]))
    by_all = cost_of(greedily)
    monkeypatch.setattr(seeding, "_MANY_CLUSTERS", 1)
    # One anchor: the rows around a candidate are all rows.
    monkeypatch.setattr(seeding, "_ROWS_AROUND", 100_000)
    assert cost_of(greedily) == pytest.approx(by_all, rel=0.02)
    monkeypatch.setattr(seeding, "_ROWS_AROUND", 400)
    assert cost_of(greedily) < 1.04 * by_all < 0.9 * plain
