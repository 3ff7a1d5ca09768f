"""The theorems' assumptions and bounds, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from localkmeans_spark import theory as th
from localkmeans_spark.errors import InvalidInputError


def test_the_initial_condition_of_two_clusters():
    limit = 0.5 - 1 / math.sqrt(4000) - (2.56 + math.sqrt(math.log(20))) / 20
    assert th.initial_limit_two(20, 4000) == pytest.approx(limit)
    # Figure 1's r = 3.01 and 6.02: no initial centers satisfy the assumption, or hardly any.
    assert th.initial_limit_two(3.01, 4000) < 0
    assert th.initial_limit_two(6.02, 4000) < 0
    assert th.initial_limit_two(0.5, 4000) == -math.inf
    checks = th.check_two(limit - 0.01, 20, m=20, n=200, d=100)
    assert [check.holds for check in checks] == [True, True, True]
    assert checks[0].margin == pytest.approx(0.01)
    assert not th.check_two(limit + 0.01, 20, m=20, n=200, d=100)[0].holds
    assert not th.check_two(0.1, 20, m=20, n=200, d=200 * 500)[1].holds


def test_the_conditions_of_many_clusters():
    centers = 100.0 * np.eye(4)
    counts = np.full((5, 4), 1000)
    clusters = th.describe_clusters(centers, counts, 0.1)
    assert clusters.gamma == pytest.approx(100 * math.sqrt(2))
    assert (clusters.ratio, clusters.alpha, clusters.beta) == pytest.approx((1.0, 0.25, 0.2))
    r_k = 1000 * math.sqrt(2) * math.sqrt(0.25 / (1 + 16 / 20000))
    assert clusters.r_k == pytest.approx(r_k)
    assert all(check.holds for check in th.check_many(clusters, 0.2, 0.3))
    assert not th.check_many(clusters, 0.5, 0.3)[0].holds
    assert not th.check_many(clusters, 0.2, 0.5)[1].holds
    counts[0, 0] = 10
    uneven = th.check_many(th.describe_clusters(centers, counts, 0.1))
    assert [check.name for check in uneven if not check.holds] == [
        "beta m >= 1/2 (beta of the order of 1/m)"
    ]


def test_bounds_fall_with_r_and_steps():
    by_hand = math.exp(-200) + 1 / 9 + math.exp(-6) / 4000**2 + math.exp(-9)
    assert th.bound_two(3, 20, 200, 100, local_steps=3, q_power=2) == pytest.approx(by_hand)
    low = th.describe_clusters(np.eye(4), np.full((5, 4), 100), 0.1)
    high = th.describe_clusters(np.eye(4), np.full((5, 4), 100), 0.05)
    assert th.bound_many(high, 2, 1) < th.bound_many(low, 2, 1)
    main = 4 / (0.25 * low.r_k**2)
    assert th.bound_many(low, 2, 50) == pytest.approx(main, rel=1e-6)


def test_steps_and_exchanges():
    assert th.steps_needed(4000, 1) == 2 * (9 + 1)
    assert th.exchanges_needed(4000, 1) == 20
    assert th.exchanges_needed(4000, 15) == 4
    assert th.exchanges_needed(10, 10**6) == 3


def test_an_empty_cluster_meets_no_assumption():
    clusters = th.describe_clusters(np.eye(2), [[3, 0], [3, 0]], 0.1)
    checks = th.check_many(clusters, initial_g=0.0, initial_lambda=0.0)
    assert [check.holds for check in checks[:3]] == [False] * 3
    with pytest.raises(InvalidInputError, match="clusters must be free of empty ones"):
        th.bound_many(clusters, 2, 1.0)


@pytest.mark.parametrize(
    ("subject", "call"),
    [
        ("counts", lambda: th.describe_clusters(np.eye(2), [[3, 3, 3]], 0.1)),
        ("sigma", lambda: th.describe_clusters(np.eye(2), [[3, 3]], -0.1)),
        ("r", lambda: th.bound_two(0.0, 2, 3, 4, 1, 1.0)),
        ("m", lambda: th.check_two(0.1, 3.0, 0, 3, 4)),
        ("local_steps", lambda: th.steps_needed(100, 0)),
    ],
)
def test_a_senseless_value_is_named(subject, call):
    with pytest.raises(InvalidInputError, match=f": {subject} must be "):
        call()
