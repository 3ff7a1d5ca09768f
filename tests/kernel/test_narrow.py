"""Scores kept one row a center, for rows with few features."""

from __future__ import annotations

import numpy as np
import pytest

from localkmeans_spark.kernel import nearest
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.nearest import Scorer, highest, is_narrow


def test_highest_by_hand():
    scores = np.array([[1.0, 5.0, -2.0, np.nan], [3.0, 5.0, -2.0, 0.0], [2.0, 4.0, -1.0, 0.0]])
    labels, best = highest(scores[:, :3])
    np.testing.assert_array_equal(labels, [1, 0, 2])  # the tie goes to the first row
    np.testing.assert_array_equal(best, [3.0, 5.0, -1.0])
    assert highest(scores)[0][3] == 2  # no number to choose by: a cluster that there is


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n_features", "k"), [(1, 2), (2, 64), (8, 7), (32, 64)])
def test_labels_are_those_of_scores_kept_by_rows(monkeypatch, dtype, n_features, k):
    assert is_narrow(n_features, k)
    rng = np.random.default_rng(0)
    # Small integers: many exact ties, no rounding.
    x = rng.integers(-3, 4, (30_000, n_features)).astype(dtype)
    centers = rng.integers(-3, 4, (k, n_features)).astype(float)
    found = []
    for _ in range(2):
        labels, some = np.empty(len(x), dtype=np.int32), np.empty(500, dtype=np.int32)
        Scorer(centers).nearest(x, labels)
        Scorer(centers).nearest(x, some, np.arange(0, 30_000, 60))
        found.append((labels, some, *exact_nearest(x, centers)))
        monkeypatch.setattr(nearest, "is_narrow", lambda *_: False)
    for narrow, wide in zip(*found, strict=True):
        np.testing.assert_array_equal(narrow, wide)


@pytest.mark.parametrize(("n_features", "k"), [(33, 2), (2, 65)])
def test_wider_rows_and_more_centers_are_not_narrow(n_features, k):
    assert not is_narrow(n_features, k)
