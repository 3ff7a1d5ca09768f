"""The mixture generator: placements by hand, and rows that depend on the seed alone."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.paper import mixture as mx
from localkmeans_spark.errors import InvalidInputError


def test_a_frame_holds_the_table_and_its_rows(spark):
    counts = np.array([[5, 0, 7], [0, 0, 0], [2, 2, 2]])
    mixture = mx.Mixture(mx.orthonormal_centers(3, 4, mx.generator(3)), 0.01, counts, seed=9)
    rows = mixture.frame(spark).collect()
    found = np.zeros_like(counts)
    for row in rows:
        found[row["machine"], row["label"]] += 1
        distance = np.linalg.norm(np.array(row["features"]) - mixture.centers[row["label"]])
        assert distance < 0.1
    assert (found == counts).all()
    x, labels = mixture.rows(2)
    mine = [row for row in rows if row["machine"] == 2]
    assert [row["label"] for row in mine] == labels.tolist()
    assert np.array_equal([row["features"] for row in mine], x)


def test_noise_has_the_deviation_asked_for():
    x, _ = mx.Mixture(np.zeros((1, 50)), 0.3, np.array([[4000]]), seed=2).rows(0)
    assert x.std() == pytest.approx(0.3, rel=0.01)
    assert abs(x.mean()) < 0.005


def test_centers_are_orthonormal():
    centers = mx.orthonormal_centers(4, 9, mx.generator(1))
    np.testing.assert_allclose(centers @ centers.T, np.eye(4), atol=1e-12)
    with pytest.raises(InvalidInputError, match="orthonormal"):
        mx.orthonormal_centers(5, 4, mx.generator(1))


def test_placements_by_hand():
    assert mx.balanced_sizes(11, 3).tolist() == [4, 4, 3]
    assert mx.sorted_counts(np.array([3, 5]), 4).tolist() == [[2, 0], [1, 1], [0, 2], [0, 2]]
    assert mx.few_clusters_counts(2, 6, 4, 3).tolist() == [[2, 2, 2, 0], [0, 2, 2, 2]]
    rng = mx.generator(5)
    assert (mx.independent_counts(5, 40, 3, rng).sum(axis=1) == 40).all()
    uneven = mx.dirichlet_counts(50, 200, 10, 0.1, rng)
    assert (uneven.sum(axis=1) == 200).all()
    # Dirichlet(0.1): most machines have one or two clusters in the main.
    assert np.median(uneven.max(axis=1)) > 80
