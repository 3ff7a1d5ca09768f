"""The driver's sample: what stands for all rows."""

from dataclasses import replace

import numpy as np
import pytest

from localkmeans_spark.kernel.draws import draw_sample
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.sample import Sample, settle_on_sample
from tests.kernel.arrivals import arrivals_of, cost


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


def test_arrivals_of_two_passes_stand_for_all_rows():
    """The mean of many estimates is the cost, also of centers that no pass knew."""
    rng = np.random.default_rng(3)
    x = rng.standard_t(1.5, size=(3000, 2))
    passes = x[:1], x[[0, int(np.abs(x).sum(axis=1).argmax())]]
    others = x[[5, 6, 7]]
    found = []
    for _ in range(300):
        sample = Sample(x[rng.choice(len(x), 200)], np.full(200, len(x) / 200))
        for centers in passes:
            sample = sample.with_arrivals(arrivals_of(x, centers, 100, rng), centers)
        found.append(sample.cost(others))
    error = np.std(found) / np.sqrt(len(found))
    # Four standard errors: one false alarm in 16,000.
    assert abs(np.mean(found) - cost(x, others)) < 4 * error
    assert error < 0.02 * cost(x, others)


@pytest.mark.parametrize("factor", [2.0**-800, 2.0**800])
def test_all_weights_times_a_constant(factor):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(500, 3))
    passes = x[:1], x[:4]
    drawn = [arrivals_of(x, centers, 100, rng) for centers in passes]

    def cost_with(unit):
        sample = Sample(x[:100], np.full(100, 5.0 * unit))
        for centers, found in zip(passes, drawn, strict=True):
            heavier = replace(found, potential=found.potential * unit)
            sample = sample.with_arrivals(heavier, centers)
        return sample.cost(x[10:15])

    assert cost_with(factor) == factor * cost_with(1.0)


def test_settling_by_hand():
    # Eight rows about 0 and two at 10; no row is nearest the third center, which stays.
    x = np.array([[-1.0], [1.0]] * 4 + [[10.0], [10.0]])
    sample = Sample(x, np.ones(10))
    moved = settle_on_sample(np.array([[0.5], [9.0], [50.0]]), sample, 3)
    np.testing.assert_allclose(moved, [[0.0], [10.0], [50.0]])


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_a_sample_of_extreme_numbers_keeps_its_digits(scale):
    x = scale * np.array([[-1.0], [1.0]] * 4 + [[10.0], [11.0]] * 4)
    sample = Sample(x, np.ones(16))
    moved = settle_on_sample(scale * np.array([[0.5], [9.0]]), sample, 3)
    np.testing.assert_allclose(moved / scale, [[0.0], [10.5]], atol=1e-12)
    assert sample.cost(moved) == pytest.approx(scale**2 * (8 * 1.0 + 8 * 0.25))


def test_settling_by_weight():
    x = np.array([[0.0], [4.0]] * 8 + [[100.0]])
    weight = np.array([3.0, 1.0] * 8 + [1.0])
    moved = settle_on_sample(np.array([[1.0], [99.0], [500.0]]), Sample(x, weight), 5)
    np.testing.assert_allclose(moved, [[1.0], [100.0], [500.0]])  # (3 x 0 + 1 x 4) / 4
    moved = settle_on_sample(np.array([[2.0], [99.0]]), Sample(x, weight), 1)
    np.testing.assert_allclose(moved, [[1.0], [100.0]])


def test_rows_far_beyond_the_others_are_no_part_of_a_sample():
    x = np.concatenate([np.ones((20, 2)), [[1e9, 0.0]]])
    sample = Sample(x, np.ones(21))
    assert len(sample.x) == 20
    far = arrivals_of(x, np.ones((1, 2)), 5, np.random.default_rng(0))
    assert len(far.times) and sample.with_arrivals(far, np.ones((1, 2))) is sample
    nothing = replace(far, potential=0.0)
    assert sample.with_arrivals(nothing, np.ones((1, 2))) is sample


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sample_stays_in_its_precision(dtype):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 2))
    joined = Sample(x[:20], np.full(20, 2.5), dtype).with_arrivals(
        arrivals_of(x, x[:1], 10, rng), x[:1]
    )
    assert joined.x.dtype == dtype and len(joined.x) > 20
    assert joined.limit == Sample(x[:20], np.full(20, 2.5), dtype).limit


def test_of_many_arrivals_a_sample_takes_as_many_as_it_has_rows():
    """The first of them stand for the rest: the estimate stays right."""
    rng = np.random.default_rng(4)
    x = rng.standard_t(3, size=(4000, 2))
    found = []
    for _ in range(200):
        sample = Sample(x[rng.choice(len(x), 150)], np.full(150, len(x) / 150))
        sample = sample.with_arrivals(arrivals_of(x, x[:1], 900, rng), x[:1])
        assert len(sample.x) == 300
        found.append(sample.cost(x[[3, 4]]))
    error = np.std(found) / np.sqrt(len(found))
    # Four standard errors: one false alarm in 16,000.
    assert abs(np.mean(found) - cost(x, x[[3, 4]])) < 4 * error
