"""The paper's quantities on tables worked by hand; values that make no sense are named."""

from __future__ import annotations

import math

import numpy as np
import pytest

from localkmeans_spark import metrics as q
from localkmeans_spark.errors import InvalidInputError

# Partition 0: true 0 -> cluster 1 (8 of 10), true 1 -> cluster 0 (10 of 10).
# Partition 1: true 0 -> cluster 0 (9 of 10), true 1 -> cluster 1 (9 of 10): turned round.
COUNTS = np.array([[[2, 8], [10, 0]], [[9, 1], [1, 9]]])


def test_one_matching_serves_all_partitions():
    assert q.matching(COUNTS[0]).tolist() == [1, 0]
    assert q.matching(np.array([[0, 5, 0], [0, 0, 5], [5, 0, 0]])).tolist() == [1, 2, 0]
    heavy = COUNTS * np.array([2, 1])[:, None, None]  # partition 0 decides: cluster 1 is true 0
    assert q.matching(heavy).tolist() == [1, 0]
    assert q.misclustering(heavy.sum(axis=0)) == pytest.approx((2 * 2 + 9 + 9) / 60)
    each = q.partition_misclustering(heavy)
    assert each.tolist() == pytest.approx([2 / 20, 18 / 20])
    assert np.average(each, weights=[40, 20]) == pytest.approx(q.misclustering(heavy.sum(axis=0)))


def test_a_partition_without_rows_has_no_misclustering():
    counts = np.array([[[3, 1], [0, 4]], [[0, 0], [0, 0]]])
    assert q.partition_misclustering(counts).tolist() == pytest.approx([1 / 8, np.nan], nan_ok=True)
    assert q.clusterwise_error(counts).tolist() == pytest.approx([1 / 4, 0.0])


def test_clusterwise_error_by_hand():
    counts = np.array([[8, 2, 0], [0, 5, 5], [0, 0, 20]])
    # Cluster 1 has 7 rows, 2 of them false; true 1 lost 5 of 10: the worst.
    assert q.clusterwise_error(counts) == pytest.approx(0.5)
    assert q.clusterwise_error(counts[:, [2, 0, 1]]) == pytest.approx(0.5)  # numbered otherwise
    assert q.clusterwise_error(np.array([[8, 2], [0, 1]])) == pytest.approx(2 / 3)  # 2 of 3 false
    assert q.clusterwise_error(np.array([[3, 0], [0, 0]])) == 0.0
    assert q.misclustering(counts) <= q.clusterwise_error(counts)


def test_separation_and_center_error():
    truth = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 10.0]])
    assert q.separation(truth) == pytest.approx((5.0, 10.0 / 5.0))
    estimate = truth[[1, 0, 2]] + np.array([[0.0, 0.5], [0, 0], [2.0, 0.0]])
    sq = q.sq_distances_between(estimate, truth)
    assert q.center_error(sq, np.array([1, 0, 2]), 5.0) == pytest.approx(2.0 / 5.0)
    both = np.stack([estimate, truth[[1, 0, 2]]])
    errors = q.center_error(q.sq_distances_between(both, truth), np.array([1, 0, 2]), 5.0)
    assert errors.tolist() == pytest.approx([2.0 / 5.0, 0.0])


def test_virtual_iterate_by_size_and_plain():
    local = np.array([[[0.0], [5.0]], [[4.0], [7.0]]])
    sizes = np.array([[3, 0], [1, 0]])
    before = np.array([[9.0], [6.5]])
    assert q.virtual_iterate(local, sizes, before).tolist() == [[1.0], [6.5]]
    assert q.virtual_iterate(local, sizes, before, by_size=False).tolist() == [[2.0], [6.0]]
    assert q.deviation(local, np.array([[2.0], [6.0]])) == pytest.approx((4 + 1 + 4 + 1) / 2)


def test_balance_of_a_table():
    counts = np.array([[10, 30, 0], [30, 30, 0]])
    assert q.smallest_share(counts[:, :2]) == pytest.approx(0.4)
    assert q.smallest_share(counts) == 0.0
    assert q.smallest_spread(counts) == pytest.approx(0.25)  # the empty cluster is left out
    assert q.smallest_spread(np.full((5, 3), 7)) == pytest.approx(1 / 5)


def test_signal_to_noise_ratios():
    assert q.snr_two(1.0, 0.3, 100, 4000) == pytest.approx(3.0117, abs=1e-4)
    assert q.snr_two(1.0, 0.15, 100, 4000) == pytest.approx(6.0234, abs=1e-4)
    sigma = q.snr_two(1.0, 2.5, 30, 500)  # of r, gives the sigma that has it
    assert q.snr_two(1.0, sigma, 30, 500) == pytest.approx(2.5)
    by_hand = math.sqrt(2) / 0.3 * math.sqrt(0.1 / (1 + 10 * 100 / 4000))
    assert q.snr_many(math.sqrt(2), 0.3, 0.1, 10, 100, 4000) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("subject", "call"),
    [
        ("counts", lambda: q.matching(np.ones((2, 3), dtype=int))),
        ("counts", lambda: q.clusterwise_error(np.ones(3, dtype=int))),
        ("counts", lambda: q.smallest_share([[1.0, 2.0]])),
        ("counts", lambda: q.smallest_share([1, 2])),
        ("counts", lambda: q.smallest_spread([[3, -1]])),
        ("counts", lambda: q.smallest_spread([[0, 0]])),
        ("centers", lambda: q.separation([[math.nan, 0.0], [1.0, 2.0]])),
        ("centers", lambda: q.separation([[1.0], [1.0, 2.0]])),
        ("centers", lambda: q.separation(np.ones((1, 3)))),
        ("centers", lambda: q.separation(np.ones((2, 3)))),
        ("sigma", lambda: q.snr_two(1.0, 0.0, 10, 100)),
        ("sigma", lambda: q.snr_two(1.0, "0.1", 10, 100)),
        ("sigma", lambda: q.snr_many(1.0, math.inf, 0.1, 10, 10, 100)),
        ("n_rows", lambda: q.snr_two(1.0, 0.3, 10, 0)),
    ],
)
def test_a_senseless_value_is_named(subject, call):
    with pytest.raises(InvalidInputError, match=f": {subject} must be ") as caught:
        call()
    assert "\n" not in str(caught.value)
