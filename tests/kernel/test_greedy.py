"""Greedy seeding: what stands for all rows, and what is chosen by it."""

import numpy as np
import pytest

from localkmeans_spark.kernel.draws import Arrivals, draw_arrivals, draw_sample
from localkmeans_spark.kernel.greedy import Sample, greedy_centers, settle_on_sample
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.seeding import accept_in_time_order


def arrivals_of(x, centers, count, rng):
    potential = ((x[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()
    found = draw_arrivals([Block(x, None)], centers, count / potential, rng)
    order = np.argsort(found.times)
    rows, sq_distances = found.rows[order], found.sq_distances[order]
    return Arrivals(found.times[order], rows, sq_distances, found.potential)


def cost(x, centers):
    return ((x[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()


class TestDrawSample:
    def test_few_rows_are_all_taken_with_their_weights(self):
        x = np.arange(6.0).reshape(3, 2)
        block = Block(x, np.array([1.0, 2.0, 5.0]))
        rows, weights = draw_sample([block], 3, np.random.default_rng(0))
        np.testing.assert_array_equal(rows, x)
        np.testing.assert_array_equal(weights, [1, 2, 5])

    def test_weights_add_up_and_heavy_rows_come_more_often(self):
        x = np.array([[0.0], [1.0]]).repeat(500, axis=0)
        weight = np.where(x[:, 0] == 1, 9.0, 1.0)
        rows, weights = draw_sample([Block(x, weight)], 400, np.random.default_rng(0))
        assert weights.sum() == pytest.approx(5000)
        # 360 of 400 expected, standard deviation 6.
        assert abs(rows.sum() - 360) < 30


def test_a_sample_with_arrivals_sees_rare_far_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 3))
    x[:4] += 3000.0  # a uniform sample of 500 misses them nine times in ten
    first = x[10:11]
    plain = Sample(x[rng.choice(len(x), 500)], np.full(500, len(x) / 500))
    with_them = plain.with_arrivals(arrivals_of(x, first, 500, rng), first)
    for centers in (first, np.concatenate([first, x[:1]]), x[[10, 0, 50, 51]]):
        assert with_them.cost(centers) == pytest.approx(cost(x, centers), rel=0.2)
    assert plain.cost(first) < 0.01 * cost(x, first)


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
        greedy, _ = greedy_centers(found, first, 30, sample, resolution, rng, 10)
        plain, _ = accept_in_time_order(found, first, 30, resolution, rng)
        assert len(greedy) == len(plain) == 30
        better.append(cost(x, greedy) < cost(x, plain))
    assert sum(better) >= 10  # by chance alone: 2 %


def test_copies_of_a_row_are_never_two_centers():
    x = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]), 50, axis=0)
    rng = np.random.default_rng(0)
    first = x[:1]
    found = arrivals_of(x, first, 200, rng)
    made, _ = greedy_centers(found, first, 5, Sample(x, np.ones(150)), np.full(2, 1e-9), rng, 4)
    np.testing.assert_array_equal(np.unique(made, axis=0), [[0, 0], [1, 0], [5, 5]])
    assert len(made) == 3


def test_settling_by_hand():
    # Eight rows about 0 and two at 10: the second center has too few rows to move.
    x = np.array([[-1.0], [1.0]] * 4 + [[10.0], [10.0]])
    sample = Sample(x, np.ones(10))
    moved = settle_on_sample(np.array([[0.5], [9.0]]), sample, 3)
    np.testing.assert_allclose(moved, [[0.0], [9.0]])


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_a_sample_of_extreme_numbers_keeps_its_digits(scale):
    x = scale * np.array([[-1.0], [1.0]] * 4 + [[10.0], [11.0]] * 4)
    sample = Sample(x, np.ones(16))
    moved = settle_on_sample(scale * np.array([[0.5], [9.0]]), sample, 3)
    np.testing.assert_allclose(moved / scale, [[0.0], [10.5]], atol=1e-12)
    assert sample.cost(moved) == pytest.approx(scale**2 * (8 * 1.0 + 8 * 0.25))
