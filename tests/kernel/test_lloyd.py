"""Lloyd steps against hand-worked cases, laws, and scikit-learn."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from localkmeans_spark.kernel.assign import assign_rows, exact_nearest
from localkmeans_spark.kernel.lloyd import (
    Block,
    inertia_from_sums,
    lloyd_step,
    means_or_kept,
)
from localkmeans_spark.kernel.local_steps import local_phase
from localkmeans_spark.kernel.nearest import Scorer


def blocks_of(x, weight=None, size=7, dtype=np.float64):
    x = np.ascontiguousarray(x, dtype=dtype)
    return [
        Block(x[i : i + size], None if weight is None else weight[i : i + size])
        for i in range(0, len(x), size)
    ]


def sum_sq(x, weight=None):
    sq = (np.asarray(x, dtype=float) ** 2).sum(axis=1)
    return float(sq.sum() if weight is None else sq @ weight)


def test_one_step_by_hand():
    # Centers 0 and 10 on the line; 1, 2 go left; 6, 9 go right.
    x = np.array([[1.0], [2.0], [6.0], [9.0]])
    sums, weights = lloyd_step(blocks_of(x), np.array([[0.0], [10.0]]))
    np.testing.assert_array_equal(sums, [[3.0], [15.0]])
    np.testing.assert_array_equal(weights, [2.0, 2.0])
    assert inertia_from_sums(sums, weights, np.array([[0.0], [10.0]]), sum_sq(x)) == 1 + 4 + 16 + 1


def test_two_local_steps_by_hand():
    # First step from 0 and 10: {1, 2} and {6, 9} -> 1.5 and 7.5; the second changes nothing.
    # From 0 and 4: {1, 2 (tie, lowest)} and {6, 9} -> 1.5 and 7.5.
    x = np.array([[1.0], [2.0], [6.0], [9.0]])
    phase = local_phase(blocks_of(x), np.array([[0.0], [4.0]]), 2, sum_sq(x))
    np.testing.assert_array_equal(phase.sums / phase.weights[:, None], [[1.5], [7.5]])
    assert phase.inertia == 1 + 4 + 4 + 25


def test_ties_go_to_the_lowest_index():
    x = np.array([[0.0], [1.0], [-1.0]])
    labels = np.empty(3, dtype=np.int32)
    Scorer(np.array([[1.0], [-1.0], [1.0]])).nearest(x, labels)
    np.testing.assert_array_equal(labels, [0, 0, 1])


def test_an_empty_cluster_keeps_its_center_and_weighs_nothing():
    x = np.array([[0.0, 0.0], [1.0, 1.0]])
    centers = np.array([[0.5, 0.5], [1e6, 1e6]])
    phase = local_phase(blocks_of(x), centers, 5, sum_sq(x))
    np.testing.assert_array_equal(phase.weights, [2.0, 0.0])
    np.testing.assert_array_equal(phase.sums[1], [0.0, 0.0])
    moved = means_or_kept(phase.sums, phase.weights, centers)
    np.testing.assert_array_equal(moved, [[0.5, 0.5], [1e6, 1e6]])


def test_light_rows_near_0_by_hand():
    # Weights below 1, an inertia below 1.
    x, w = np.array([[0.1], [0.3], [0.9]]), np.array([0.25, 0.25, 0.5])
    centers = np.array([[0.1], [0.9]])
    phase = local_phase(blocks_of(x, w), centers, 1, sum_sq(x, w))
    np.testing.assert_allclose(phase.inertia, 0.25 * 0.2**2)
    means = means_or_kept(phase.sums, phase.weights, centers)
    np.testing.assert_allclose(means, [[0.2], [0.9]])


def test_rows_that_leave_take_their_rounding_along():
    # A row of weight 1e15 goes from the first cluster to the second: what stays is exact.
    x = np.concatenate([np.linspace(0.1, 1.0, 49), [3.3], np.linspace(9.0, 11.0, 50)])[:, None]
    w = np.where(x[:, 0] == 3.3, 1e15, 1.0)
    given = iter([np.array([[0.0], [4.0]])])
    phase = local_phase(
        blocks_of(x, w), np.array([[0.0], [10.0]]), 2, sum_sq(x, w), update=lambda *_: next(given)
    )
    assert phase.weights[0] == 49.0
    np.testing.assert_allclose(phase.sums[0], x[:49].sum(axis=0), rtol=1e-13)


@pytest.mark.parametrize("move", [lambda c: -c, lambda c: c[::-1], lambda c: c + 1e-9])
def test_steps_are_exact_however_far_centers_move(move):
    rng = np.random.default_rng(9)
    x, centers = rng.normal(size=(3000, 64)).astype(np.float32), rng.normal(size=(40, 64))
    phase = local_phase(
        blocks_of(x, size=700, dtype=np.float32), centers, 3, sum_sq(x),
        update=lambda sums, weights, centers: move(centers),
    )  # fmt: skip
    sums, weights = lloyd_step(blocks_of(x, dtype=np.float32), move(move(centers)))
    np.testing.assert_array_equal(phase.weights, weights)
    np.testing.assert_allclose(phase.sums, sums, rtol=1e-10, atol=1e-10)


def test_the_largest_norm_by_hand():
    assert Scorer(np.array([[3.0, 4.0], [1.0, 0.0]])).largest_norm == 5.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_local_steps_equal_scikit_learn(dtype, weighted, steps):
    rng = np.random.default_rng(steps)
    x = rng.normal(size=(500, 9)).astype(dtype)
    weight = rng.integers(1, 4, size=500).astype(float) if weighted else None
    centers = x[:6].astype(float)
    phase = local_phase(blocks_of(x, weight, 64, dtype), centers, steps, sum_sq(x, weight))
    reference = KMeans(6, init=x[:6], n_init=1, max_iter=steps, tol=0).fit(
        x.astype(float), sample_weight=weight
    )
    # scikit-learn stops one update later when labels repeat; the centers are the same.
    ours = means_or_kept(phase.sums, phase.weights, centers)
    np.testing.assert_allclose(ours, reference.cluster_centers_, rtol=1e-6, atol=1e-6)


def test_integer_weights_equal_repeated_rows():
    rng = np.random.default_rng(1)
    x, repeats = rng.normal(size=(60, 3)), rng.integers(1, 5, size=60)
    centers = x[:4].copy()
    weighted = local_phase(
        blocks_of(x, repeats.astype(float)), centers, 4, sum_sq(x, repeats.astype(float))
    )
    repeated = np.repeat(x, repeats, axis=0)
    plain = local_phase(blocks_of(repeated), centers, 4, sum_sq(repeated))
    np.testing.assert_allclose(weighted.sums, plain.sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weighted.weights, plain.weights)
    assert weighted.inertia == pytest.approx(plain.inertia, rel=1e-12)


def test_the_size_of_blocks_and_the_order_of_rows_change_nothing_but_rounding():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 5))
    centers = x[:8].copy()
    a = local_phase(blocks_of(x, size=300), centers, 5, sum_sq(x))
    b = local_phase(blocks_of(x[rng.permutation(300)], size=11), centers, 5, sum_sq(x))
    np.testing.assert_allclose(a.sums, b.sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(a.weights, b.weights)


def test_float32_sums_lose_no_digits():
    # 100,000 rows of 0.1 in float32: a float32 sum is off in the fourth digit.
    x = np.full((100_000, 2), 0.1, dtype=np.float32)
    sums, _ = lloyd_step([Block(x, None)], np.zeros((1, 2)))
    np.testing.assert_allclose(sums, 100_000 * float(np.float32(0.1)), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 33])
def test_exact_labels_equal_brute_force_with_many_ties(dtype, k):
    rng = np.random.default_rng(k)
    x = rng.integers(0, 4, size=(2000, 3)).astype(dtype)
    centers = rng.integers(0, 4, size=(k, 3)).astype(float) + rng.choice([0, 0.5], size=(k, 3))
    labels, sq = exact_nearest(x, centers)
    brute = ((x[:, None].astype(float) - centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels, brute.argmin(axis=1))
    np.testing.assert_array_equal(sq, brute.min(axis=1))


def test_a_label_does_not_depend_on_the_rows_around_it():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5000, 40)).astype(np.float32)
    centers = rng.normal(size=(50, 40))
    whole, _ = exact_nearest(x, centers)
    for size in (1, 3, 17, 999):
        parts = [exact_nearest(x[i : i + size], centers)[0] for i in range(0, 1000, size)]
        np.testing.assert_array_equal(np.concatenate(parts)[:1000], whole[:1000])


@pytest.mark.parametrize(("offset", "dtype"), [(1e6, "float32"), (1e9, "float64")])
def test_two_tight_pairs_far_from_zero(offset, dtype):
    x = offset + np.array([[0.0], [0.25], [4.0], [4.25]])
    centers = offset + np.array([[0.125], [4.125]])
    labels, sq = assign_rows(x, centers, np.array([offset]), dtype)
    np.testing.assert_array_equal(labels, [0, 0, 1, 1])
    np.testing.assert_array_equal(sq, 0.125**2)


@pytest.mark.parametrize("k", [3, 60])
def test_stopping_when_a_step_gains_little(k):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(2000, 40))
    centers = x[:k].copy()

    def phase(local_steps, enough=0.0):
        return local_phase(blocks_of(x), centers, local_steps, sum_sq(x), enough=enough)

    assert phase(9).steps == 9
    assert phase(9, enough=1.0).steps == 1
    counts = [phase(200, enough).steps for enough in (0.1, 0.01, 0.001, 0.0001)]
    assert counts == sorted(counts) and counts[-1] < 200
    for enough, count in zip((0.1, 0.01, 0.001, 0.0001), counts, strict=True):
        np.testing.assert_array_equal(phase(200, enough).sums, phase(count).sums)
    # By hand: the move after the last step is too small, the one before was not.
    before, last = phase(counts[-1] - 1), phase(counts[-1])
    limit = 0.0001 * last.inertia

    def gain(one, other):
        began, ended = (item.sums / item.weights[:, None] for item in (one, other))
        return one.weights @ ((ended - began) ** 2).sum(axis=1)

    assert gain(last, before) < limit <= gain(before, phase(counts[-1] - 2))
