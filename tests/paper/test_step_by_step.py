"""Algorithm 1 on one small instance, step by step, against a table worked by hand.

Three machines with 8 points each, K = 3, L = 2, T = 6. Machine 0 never has a point of cluster 2:
it keeps its center until an exchange gives it the others'. The steps from t = 3 on repeat those
from t = 1 on (the exchanged centers lead back to the same labels): local steps need not converge.
"""

from __future__ import annotations

import numpy as np
import pytest

from jobs.paper.machines import Rows, Run, array_machines, walk_leg
from localkmeans_spark import LocalKMeans
from localkmeans_spark.kernel.lloyd import means_or_kept
from localkmeans_spark.kernel.nearest import Scorer

POINTS = np.array([
    [(-1, 4), (-1, -1), (10, 4), (7, 3), (9, 5), (11, 0), (1, 2), (8, -1)],
    [(5, 5), (8, 0), (2, 8), (7, 11), (0, 5), (9, 1), (8, 3), (5, 11)],
    [(11, 5), (2, 5), (8, -1), (11, -1), (11, 1), (8, 10), (2, 1), (4, 11)],
], dtype=float)  # fmt: skip
START = np.array([(9, 3), (9, 2), (10, 8)], dtype=float)

# z_ij^(t): labels of every machine.
ODD_LABELS = [[0, 1, 0, 0, 0, 1, 1, 1], [0, 1, 2, 2, 0, 1, 0, 2], [0, 0, 1, 1, 1, 2, 1, 2]]
EVEN_LABELS = [[1, 1, 0, 0, 0, 0, 1, 1], [0, 1, 2, 2, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2, 0, 2]]
LABELS = [ODD_LABELS, EVEN_LABELS] * 3

# theta_ki^(t): machine by machine. Cluster 2 of machine 0 keeps its first center until the
# exchange at t = 2, and the exchanged one from then on.
KEPT_FIRST, KEPT_LATER = (10, 8), (26 / 5, 51 / 5)


def _odd(kept):
    return [
        [(25 / 4, 4), (19 / 4, 0), kept],
        [(13 / 3, 13 / 3), (17 / 2, 1 / 2), (14 / 3, 10)],
        [(13 / 2, 5), (8, 0), (6, 21 / 2)],
    ]


def _even(kept):
    return [
        [(37 / 4, 3), (7 / 4, 1), kept],
        [(5 / 2, 5), (25 / 3, 4 / 3), (14 / 3, 10)],
        [(5, 11 / 3), (10, -1 / 3), (6, 21 / 2)],
    ]


LOCAL = [
    _odd(KEPT_FIRST), _even(KEPT_FIRST), _odd(KEPT_LATER),
    _even(KEPT_LATER), _odd(KEPT_LATER), _even(KEPT_LATER),
]  # fmt: skip

# theta_k^(t): what an exchange at t gives; machine 0 has weight 0 in cluster 2.
ODD_COMMON = [(17 / 3, 13 / 3), (34 / 5, 1 / 10), (26 / 5, 51 / 5)]
EVEN_COMMON = [(19 / 3, 11 / 3), (31 / 5, 7 / 10), (26 / 5, 51 / 5)]
COMMON = [ODD_COMMON, EVEN_COMMON] * 3


def test_machines_labels_and_centers_follow_the_table():
    began = START
    for t in range(0, 6, 2):
        for machine, points in enumerate(POINTS):
            rows = Rows(0, machine, points, np.zeros(8, dtype=np.int32))
            part = walk_leg(rows, began, 2, None, 2.0**-40, (points**2).sum())
            centers = began
            for step in range(2):
                labels = np.empty(8, dtype=np.int32)
                Scorer(centers).nearest(points, labels)
                assert labels.tolist() == LABELS[t + step][machine]
                assert part["sizes"][step].tolist() == np.bincount(labels, minlength=3).tolist()
                centers = means_or_kept(part["sums"][step], part["sizes"][step], centers)
                np.testing.assert_allclose(centers, LOCAL[t + step][machine], rtol=1e-12)
                # The plain sum of centers counts a kept center, too.
                np.testing.assert_allclose(part["moved"][step], centers - began, atol=1e-11)
        began = np.array(COMMON[t + 1])


def test_exchanged_centers_and_counts_follow_the_table(spark):
    labels = np.array(LABELS[0]).reshape(-1)  # the first assignment taken for the truth
    machine_of_row = np.repeat(np.arange(3), 8)
    x = POINTS.reshape(24, 2)
    with array_machines(spark.sparkContext, x, labels, machine_of_row) as machines:
        trace, alone = machines.trace([Run(0, START, 2), Run(0, START, None)], 6)
    assert trace.exchanges == [0, 2, 4]
    assert alone.exchanges == [0]
    np.testing.assert_allclose(trace.centers, COMMON, rtol=1e-12)
    np.testing.assert_allclose(trace.plain_means, np.mean(LOCAL, axis=1), rtol=1e-9)
    for t in range(6):
        for machine in range(3):
            expected = np.zeros((3, 3), dtype=int)
            np.add.at(expected, (LABELS[0][machine], LABELS[t][machine]), 1)
            assert trace.counts[t, machine].tolist() == expected.tolist()
        difference = np.array(LOCAL[t]) - np.array(COMMON[t])
        assert trace.deviation[t] == pytest.approx((difference**2).sum() / 3)
        before = START if t == 0 else LOCAL[t - 1]
        if t in (2, 4):
            before = COMMON[t - 1]
        own = np.broadcast_to(before, (3, 3, 2))
        inertia = [((POINTS[i] - own[i][LABELS[t][i]]) ** 2).sum() for i in range(3)]
        np.testing.assert_allclose(trace.inertia[t], inertia, rtol=1e-12)


def test_the_fit_ends_where_the_table_ends(spark):
    rows = [(machine, point.tolist()) for machine in range(3) for point in POINTS[machine]]
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, 3), "machine int, features array<double>"
    )
    model = LocalKMeans(
        k=3, localSteps=2, maxIter=6, tol=0.0, safeguard=False, dtype="float64",
        initialCenters=START.tolist(), seed=1,
    ).fit(frame)  # fmt: skip
    assert frame.rdd.glom().map(len).collect() == [8, 8, 8]
    np.testing.assert_allclose(model.clusterCenters(), COMMON[-1], rtol=1e-12)
