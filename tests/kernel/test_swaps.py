"""Exchanges of centers for rows of a sample."""

import numpy as np
import pytest

from localkmeans_spark.kernel.sample import Sample, _Exchange, improve_on_sample, settle_on_sample
from tests.kernel.arrivals import cost

SETTINGS = {"steps": 3}


def grid(n_side, rng, rows=60):
    """Rows in round clusters on a square grid."""
    middles = np.stack(np.meshgrid(*[np.arange(n_side) * 10.0] * 2), axis=-1).reshape(-1, 2)
    x = (middles[:, None] + rng.normal(size=(len(middles), rows, 2))).reshape(-1, 2)
    return x - x.mean(axis=0)


def test_two_centers_in_one_cluster_and_none_in_another():
    x = np.repeat([[-10.0], [0.0], [10.0]], 20, axis=0) + np.tile([[-1.0], [1.0]], (30, 1))
    stuck = np.array([[-11.0], [-9.0], [5.0]])
    sample = Sample(x, np.ones(60))
    assert cost(x, settle_on_sample(stuck, sample, 50)) > 900
    found = improve_on_sample(stuck, sample, np.random.default_rng(0), **SETTINGS)
    np.testing.assert_allclose(np.sort(found, axis=0), [[-10], [0], [10]], atol=1e-5)


def test_what_an_exchange_is_said_to_gain_is_what_it_gains():
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=(300, 3)), rng.uniform(1, 5, size=300)
    sample = Sample(x, weight)
    centers = x[:6].copy()
    exchange = _Exchange(centers, sample)
    scale = weight.max()
    for new in rng.choice(x, (20, 4)):
        sq = sample.sq_distances(new)
        which, leaving, gain = exchange._best(sq)
        before = sample.cost(exchange.centers)
        costs = np.empty((4, 6))
        for i, j in np.ndindex(4, 6):
            other = exchange.centers.copy()
            other[j] = new[i]
            costs[i, j] = sample.cost(other)
        assert costs[which, leaving] == pytest.approx(costs.min(), rel=1e-5)
        assert scale * gain == pytest.approx(before - costs.min(), abs=1e-4 * before)
        exchange._put(leaving, new[which], sq[which])  # good or bad: the next is judged from there
    assert exchange.count == 20


def test_a_grid_is_found_from_any_rows():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = grid(6, rng)
        sample = Sample(x, np.ones(len(x)))
        settled = settle_on_sample(x[rng.choice(len(x), 36, replace=False)], sample, 20)
        found = improve_on_sample(settled, sample, rng, **SETTINGS)
        assert cost(x, found) <= cost(x, settled)
        # 2 a row is the clusters' own scatter; a missed cluster adds 50 for each of its rows.
        assert cost(x, found) < 2.2 * len(x) < cost(x, settled)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_as_many_centers_as_distinct_rows_stay(scale):
    rows = scale * np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0], [-3.0, 1.0]])
    sample = Sample(np.repeat(rows, 40, axis=0), np.ones(160))
    found = improve_on_sample(rows, sample, np.random.default_rng(0), **SETTINGS)
    np.testing.assert_array_equal(found, rows)


def test_without_lloyd_steps_new_centers_are_rows():
    rng = np.random.default_rng(2)
    x = grid(4, rng)
    x = x.astype(np.float32).astype(np.float64)
    start = x[rng.choice(len(x), 16, replace=False)]
    sample = Sample(x, np.ones(len(x)))
    found = improve_on_sample(start, sample, rng, rounds=4, steps=0)
    assert cost(x, found) < cost(x, start)
    assert {tuple(row) for row in found} <= {tuple(row) for row in x}


def test_the_same_draws_make_the_same_centers():
    x = grid(5, np.random.default_rng(4))
    sample = Sample(x, np.ones(len(x)))
    found = [
        improve_on_sample(x[:25], sample, np.random.default_rng(7), **SETTINGS) for _ in range(2)
    ]
    np.testing.assert_array_equal(*found)
