"""Random draws: their law, and what must never happen.

Statistical tests use fixed seeds, so they do not flake; the levels say how unlikely a failure
would have been had the seed been drawn.
"""

import numpy as np
import pytest
from scipy.stats import chisquare

from localkmeans_spark.kernel import seeding
from localkmeans_spark.kernel.draws import (
    Arrivals,
    draw_arrivals,
    draw_row,
    draw_rows_without_replacement,
    generator,
    smallest_keys,
    sq_distances_to_nearest,
    weighted_indices,
)
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.seeding import (
    choose_centers,
    distinct_rows,
    reduce_candidates,
)
from tests.kernel.arrivals import arrivals_of

LEVEL = 1e-4


class _One:
    """A generator whose draws are all as large as can be."""

    def random(self, size):
        return np.full(size, np.nextafter(1.0, 0.0))


def test_the_index_never_runs_past_the_end_nor_hits_mass_zero():
    mass = np.array([0.1] * 10 + [0.0, 0.0])
    assert weighted_indices(mass, 5, _One()).max() == 9
    mass = np.array([0.0, 1.0, 0.0])
    assert set(weighted_indices(mass, 1000, np.random.default_rng(0))) == {1}


def test_same_key_same_draws():
    assert generator(7, 1, 2).random() == generator(7, 1, 2).random()
    assert generator(7, 1, 2).random() != generator(7, 2, 1).random()
    assert generator(7, 1).random() != generator(7, 1, 0).random()


def test_rows_are_drawn_by_weight_over_all_blocks():
    blocks = [
        Block(np.array([[0.0], [1.0]], dtype=np.float32), np.array([1.0, 2.0])),
        Block(np.array([[2.0]], dtype=np.float32), np.array([5.0])),
    ]
    rng = np.random.default_rng(0)
    drawn = np.bincount([int(draw_row(blocks, rng)[0]) for _ in range(8000)], minlength=3)
    assert chisquare(drawn, [1000, 2000, 5000]).pvalue > LEVEL


@pytest.mark.parametrize("weighted", [False, True])
def test_arrivals_follow_the_law_of_algorithm_2(weighted):
    x = np.array([[0.0], [1.0], [2.0], [4.0], [5.0]])
    weight = np.array([1.0, 2.0, 1.0, 0.5, 3.0]) if weighted else None
    blocks = [
        Block(x[:2], None if weight is None else weight[:2]),
        Block(x[2:], None if weight is None else weight[2:]),
    ]
    centers = np.array([[0.0], [5.5]])
    rates = np.array([0.0, 1.0, 4.0, 2.25, 0.25]) * (1.0 if weight is None else weight)
    found = draw_arrivals(blocks, centers, 20_000 / rates.sum(), np.random.default_rng(1))
    assert found.potential == pytest.approx(rates.sum())
    assert abs(len(found.times) - 20_000) < 5 * np.sqrt(20_000)
    counts = np.array([(found.rows[:, 0] == value).sum() for value in x[:, 0]])
    assert counts[0] == 0, "a row that is a center already cannot arrive"
    expected = rates[1:] / rates[1:].sum() * counts.sum()
    assert chisquare(counts[1:], expected).pvalue > LEVEL
    np.testing.assert_allclose(
        found.sq_distances, np.minimum(found.rows[:, 0] ** 2, (found.rows[:, 0] - 5.5) ** 2)
    )


def test_draws_without_replacement_merge_like_one():
    x = np.arange(10.0)[:, None]
    keys, rows = draw_rows_without_replacement([Block(x[:4], None), Block(x[4:], None)], 6,
                                               np.random.default_rng(0))  # fmt: skip
    assert len(np.unique(rows)) == 6
    assert (np.diff(keys) >= 0).all()
    merged_keys, merged = smallest_keys(
        np.concatenate([keys[:3], keys[3:]]), [rows[:3], rows[3:]], 4
    )
    np.testing.assert_array_equal(merged, rows[:4])
    np.testing.assert_array_equal(merged_keys, keys[:4])


def test_distances_are_zero_at_centers_and_exact_far_from_zero():
    x = np.array([[0.0, 0.0], [3.0, 4.0], [1e4, 1e4]], dtype=np.float32)
    np.testing.assert_array_equal(sq_distances_to_nearest(x, x[[0, 2]].astype(float)), [0, 25, 0])


def test_distinct_rows_up_to_rounding():
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [1e-17, 0.0], [1.0, 0.0], [2.0, 5.0]])
    kept = distinct_rows(rows, np.array([1e-15, 0.0]))
    np.testing.assert_array_equal(kept, rows[[0, 1, 4]])


def test_reduced_candidates_find_the_clusters():
    rng = np.random.default_rng(3)
    true = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    candidates = np.repeat(true, 20, axis=0) + 0.1 * rng.normal(size=(60, 2))
    centers = reduce_candidates(candidates, rng.uniform(1, 5, 60), 3, rng)
    gaps = ((centers[:, None] - true) ** 2).sum(axis=2)
    assert sorted(gaps.argmin(axis=1)) == [0, 1, 2]
    assert gaps.min(axis=1).max() < 0.05


@pytest.mark.parametrize("seed", range(4))
def test_distinct_rows_are_those_that_repeat_none_before_them(seed):
    rng = np.random.default_rng(seed)
    # Close pairs, far pairs, pairs close in one column only; the last column knows no rounding.
    rows = np.column_stack([
        rng.integers(0, 4, 300) + 1e-3 * rng.integers(0, 2, 300),
        rng.integers(-3, 3, 300) + 2e-3 * rng.integers(0, 2, 300),
        rng.integers(0, 2, 300) * 1e-12,
    ])  # fmt: skip
    resolution = np.array([2e-3, 4e-3, 0.0])
    kept = distinct_rows(rows, resolution)
    expected = []
    for row in rows:
        if not any((np.abs(row - other) <= resolution).all() for other in expected):
            expected.append(row)
    np.testing.assert_array_equal(kept, expected)
    assert 100 > len(kept) > 40


@pytest.mark.parametrize("batch", [1, 3, 256])
def test_candidates_are_accepted_by_their_chances_whatever_the_batch(monkeypatch, batch):
    """The same centers and the same mean as a plain reading of the rule."""
    monkeypatch.setattr(seeding, "_BATCH", batch)
    rng = np.random.default_rng(2)
    x = np.repeat(rng.normal(size=(40, 3)), 2, axis=0)
    first = x[[0, 7]]
    found = arrivals_of(x, first, 150, rng)
    n = len(found.times)
    for k in (4, 9, 60):
        centers, remaining = choose_centers(
            found, first, k, np.full(3, 1e-9), np.random.default_rng(5)
        )
        chances = np.random.default_rng(5).random(n)
        expected = list(first)
        for row, before, chance in zip(found.rows, found.sq_distances, chances, strict=True):
            now = min(((row - center) ** 2).sum() for center in expected)
            if len(expected) < k and chance * before < now:
                expected.append(row)
        np.testing.assert_array_equal(centers, expected)
        ratios = [
            min(((row - center) ** 2).sum() for center in expected) / before
            for row, before in zip(found.rows, found.sq_distances, strict=True)
        ]
        assert remaining == pytest.approx(max(1 / (n + 1), np.mean(ratios)))


def test_nothing_remains_but_one_part_in_the_arrivals():
    # All arrivals are copies of one row: once it is a center, no distance is left.
    found = Arrivals(np.arange(4.0), np.ones((4, 2)), np.full(4, 2.0), 8.0)
    centers, remaining = choose_centers(
        found, np.zeros((1, 2)), 3, np.full(2, 1e-9), np.random.default_rng(0)
    )
    np.testing.assert_array_equal(centers, [[0, 0], [1, 1]])
    assert remaining == 1 / 5
    nobody = Arrivals(np.empty(0), np.empty((0, 2)), np.empty(0), 0.0)
    rng = np.random.default_rng(0)
    assert choose_centers(nobody, np.zeros((1, 2)), 3, np.zeros(2), rng)[1] == 1.0


def test_light_rows_are_drawn_last_without_replacement():
    # Weights 1e9 apart: heavy rows come first but once in 1e8.
    x = np.arange(8.0, dtype=np.float32)[:, None]
    weight = np.where(np.arange(8) % 2, 1e9, 1.0)
    _, rows = draw_rows_without_replacement([Block(x, weight)], 4, np.random.default_rng(1))
    assert sorted(rows[:, 0]) == [1, 3, 5, 7] and rows.dtype == np.float64
    _, rows = draw_rows_without_replacement([Block(x, weight)], 20, np.random.default_rng(1))
    assert sorted(rows[:, 0]) == list(range(8))


def test_equal_keys_keep_the_order_of_their_rows():
    keys = np.zeros(40)
    kept, rows = smallest_keys(keys, [np.arange(40.0)[:, None]], 20)
    np.testing.assert_array_equal(rows[:, 0], np.arange(20))
    np.testing.assert_array_equal(kept, np.zeros(20))


def test_reduced_candidates_weigh_by_their_rows():
    candidates = np.array([[0.0], [1.0], [10.0]])
    rng = np.random.default_rng(0)
    for _ in range(5):
        centers = reduce_candidates(candidates, np.array([3.0, 1.0, 2.0]), 2, rng)
        np.testing.assert_allclose(np.sort(centers[:, 0]), [0.25, 10.0])
    # k of k candidates: every one is a center, though nothing weighs there.
    centers = reduce_candidates(candidates, np.array([1.0, 0.0, 0.0]), 3, rng)
    np.testing.assert_array_equal(np.sort(centers[:, 0]), [0, 1, 10])
