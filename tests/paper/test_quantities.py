"""The paper's quantities on tables worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from localkmeans_spark.paper import quantities as q

# Machine 0: true 0 -> cluster 1 (8 of 10), true 1 -> cluster 0 (10 of 10).
# Machine 1: true 0 -> cluster 0 (9 of 10), true 1 -> cluster 1 (10 of 10): turned round.
COUNTS = np.array([[[2, 8], [10, 0]], [[9, 1], [1, 9]]])


def test_matching_takes_all_machines_together():
    total = COUNTS.sum(axis=0)  # [[11, 9], [11, 9]]
    assert q.misclustering(total) == pytest.approx(0.5)
    assert q.misclustering_own_matching(COUNTS) == pytest.approx((2 + 2) / 40)
    assert q.misclustering(COUNTS, np.array([1, 0])) == pytest.approx(1 - 20 / 40)
    assert q.matching(COUNTS[0]).tolist() == [1, 0]


def test_local_misclustering_uses_the_common_matching():
    each = q.agreement_error(q.reordered(COUNTS, np.array([1, 0])))
    assert each.tolist() == pytest.approx([2 / 20, 18 / 20])


def test_a_machine_without_rows_has_no_misclustering():
    assert np.isnan(q.agreement_error(np.zeros((1, 2, 2), dtype=int))).all()


def test_clusterwise_error_by_hand():
    counts = np.array([[8, 2, 0], [0, 5, 5], [0, 0, 20]])
    # Cluster 1 has 7 rows, 2 of them false; true 1 lost 5 of 10: the worst.
    assert q.clusterwise_error(counts) == pytest.approx(0.5)
    counts = np.array([[8, 2], [0, 1]])
    # Cluster 1: 2 of its 3 rows are false.
    assert q.clusterwise_error(counts) == pytest.approx(2 / 3)
    assert q.clusterwise_error(np.array([[3, 0], [0, 0]])) == 0.0


def test_separation_and_center_error():
    truth = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 10.0]])
    gamma, ratio = q.separation(truth)
    assert gamma == pytest.approx(5.0)
    assert ratio == pytest.approx(10.0 / 5.0)
    estimate = truth[[1, 0, 2]] + np.array([[0.0, 0.5], [0, 0], [2.0, 0.0]])
    sq = q.sq_distances_between(estimate, truth)
    assert q.center_error(sq, np.array([1, 0, 2]), gamma) == pytest.approx(2.0 / 5.0)


def test_virtual_iterate_by_size_and_plain():
    local = np.array([[[0.0], [5.0]], [[4.0], [7.0]]])
    sizes = np.array([[3, 0], [1, 0]])
    before = np.array([[9.0], [6.5]])
    assert q.virtual_iterate(local, sizes, before).tolist() == [[1.0], [6.5]]
    assert q.virtual_iterate(local, sizes, before, by_size=False).tolist() == [[2.0], [6.0]]
    assert q.deviation(local, np.array([[2.0], [6.0]])) == pytest.approx((4 + 1 + 4 + 1) / 2)


def test_shares_of_a_table():
    counts = np.array([[10, 30], [30, 30]])
    assert q.smallest_share(counts) == pytest.approx(0.4)
    assert q.smallest_spread(counts) == pytest.approx(0.25)


def test_both_signal_to_noise_ratios_invert():
    assert q.snr_two(1.0, 0.3, 100, 4000) == pytest.approx(3.0117, abs=1e-4)
    assert q.snr_two(1.0, 0.15, 100, 4000) == pytest.approx(6.0234, abs=1e-4)
    assert q.snr_two(1.0, q.sigma_of_snr_two(2.5, 1.0, 30, 500), 30, 500) == pytest.approx(2.5)
    by_hand = math.sqrt(2) / 0.3 * math.sqrt(0.1 / (1 + 10 * 100 / 4000))
    assert q.snr_many(math.sqrt(2), 0.3, 0.1, 10, 100, 4000) == pytest.approx(by_hand)
    sigma = q.sigma_of_snr_many(by_hand, math.sqrt(2), 0.1, 10, 100, 4000)
    assert sigma == pytest.approx(0.3)


def test_objective():
    x = np.array([[0.0, 0.0], [4.0, 0.0]])
    assert q.objective(x, np.array([[1.0, 0.0], [9.0, 0.0]])) == pytest.approx(1 + 9)
