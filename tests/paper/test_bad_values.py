"""Values that make no sense end in one line that names them, at every door of the experiments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.paper import mixture as mx
from localkmeans_spark.paper import quantities as q
from localkmeans_spark.paper import theory as th

EYE = np.eye(2)
COUNTS = np.array([[3, 3]])
RNG = mx.generator(1)


def _mixture(centers=EYE, sigma=0.1, counts=COUNTS, seed=1):
    return mx.Mixture(centers, sigma, counts, seed)


@pytest.mark.parametrize(
    ("subject", "call"),
    [
        ("sigma", lambda: _mixture(sigma=math.inf)),
        ("sigma", lambda: _mixture(sigma=math.nan)),
        ("sigma", lambda: _mixture(sigma=-1.0)),
        ("sigma", lambda: _mixture(sigma="0.1")),
        ("centers", lambda: _mixture(centers=[[math.nan, 0.0], [1.0, 2.0]])),
        ("centers", lambda: _mixture(centers=[0.0, 1.0])),
        ("centers", lambda: _mixture(centers=[[1.0], [1.0, 2.0]])),
        ("counts", lambda: _mixture(counts=[[1.0, 2.0]])),
        ("counts", lambda: _mixture(counts=[[1, -2]])),
        ("counts", lambda: _mixture(counts=[1, 2])),
        ("counts", lambda: _mixture(counts=[[1, 2, 3]])),
        ("seed", lambda: _mixture(seed=-1)),
        ("n_rows", lambda: next(_mixture().chunks(0, n_rows=0))),
        ("seed", lambda: mx.generator(-1)),
        ("k", lambda: mx.orthonormal_centers(0, 4, RNG)),
        ("theta", lambda: mx.symmetric_centers([math.inf, 0.0])),
        ("n_rows", lambda: mx.balanced_sizes(-5, 2)),
        ("n_rows", lambda: mx.balanced_sizes(5.5, 2)),
        ("k", lambda: mx.balanced_sizes(5, 0)),
        ("sizes", lambda: mx.sorted_counts([-3, 5], 2)),
        ("sizes", lambda: mx.sorted_counts([1.5, 5], 2)),
        ("m", lambda: mx.sorted_counts([3, 5], 0)),
        ("sizes", lambda: mx.random_counts([[3, 5]], 2, RNG)),
        ("sizes", lambda: mx.random_counts([0, 0], 2, RNG)),
        ("m", lambda: mx.random_counts([3, 5], 0, RNG)),
        ("n", lambda: mx.independent_counts(2, 0, 2, RNG)),
        ("shares", lambda: mx.independent_counts(2, 5, 2, RNG, shares=[0.5, 0.3, 0.2])),
        ("shares", lambda: mx.independent_counts(2, 5, 2, RNG, shares=[0.5, 0.4])),
        ("shares", lambda: mx.independent_counts(2, 5, 2, RNG, shares=[1.5, -0.5])),
        ("a", lambda: mx.dirichlet_counts(2, 5, 2, 0.0, RNG)),
        ("a", lambda: mx.dirichlet_counts(2, 5, 2, math.nan, RNG)),
        ("per_machine", lambda: mx.few_clusters_counts(2, 6, 2, 3)),
        ("per_machine", lambda: mx.few_clusters_counts(2, 6, 2, 0)),
        ("sigma", lambda: q.snr_two(1.0, 0.0, 10, 100)),
        ("r", lambda: q.sigma_of_snr_two(-1.0, 1.0, 10, 100)),
        ("sigma", lambda: q.snr_many(1.0, -0.1, 0.1, 10, 10, 100)),
        ("r", lambda: q.sigma_of_snr_many(0.0, 1.0, 0.1, 10, 10, 100)),
        ("n_rows", lambda: q.snr_two(1.0, 0.3, 10, 0)),
        ("centers", lambda: q.separation(np.ones((1, 3)))),
        ("centers", lambda: q.separation(np.ones((2, 3)))),
        ("clusters", lambda: th.bound_many(th.describe_clusters(EYE, [[3, 0]], 0.1), 2, 1.0)),
        ("counts", lambda: th.describe_clusters(EYE, [[3, 3, 3]], 0.1)),
        ("r", lambda: th.bound_two(0.0, 2, 3, 4, 1, 1.0)),
        ("m", lambda: th.check_two(0.1, 3.0, 0, 3, 4)),
        ("local_steps", lambda: th.steps_needed(100, 0)),
    ],
)
def test_a_senseless_value_is_named(subject, call):
    with pytest.raises(InvalidInputError, match=f": {subject} must be ") as caught:
        call()
    assert "\n" not in str(caught.value)


def test_lists_are_taken_for_arrays():
    mixture = mx.Mixture([[0, 0], [3, 4]], 0, [[2, 1], [0, 3]], seed=1)
    assert mixture.n_machines == 2
    x, labels = mixture.rows(1)
    assert x.tolist() == [[3.0, 4.0]] * 3 and labels.tolist() == [1] * 3
    assert mx.random_counts([3, 5], 2, RNG).sum() == 8
    assert q.separation([[0, 0], [3, 4], [0, 4]]) == (3.0, pytest.approx(5 / 3))


def test_an_empty_cluster_meets_no_assumption():
    clusters = th.describe_clusters(EYE, [[3, 0], [3, 0]], 0.1)
    checks = th.check_many(clusters, initial_g=0.0, initial_lambda=0.0)
    assert [check.holds for check in checks[:3]] == [False] * 3
