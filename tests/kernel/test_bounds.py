"""Bounds of distances: true, tight, and no row that changes its center is left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from localkmeans_spark.kernel import differences
from localkmeans_spark.kernel.bounds import Bounds, half_gaps


def scores_of(x: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, and the highest and second highest score, in the rows' own dtype."""
    own = centers.astype(x.dtype)
    scores = x @ own.T - 0.5 * np.einsum("kd,kd->k", own, own)
    order = np.sort(scores, axis=1)
    return scores.argmax(axis=1).astype(np.int32), order[:, -1], order[:, -2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_bounds_hold_and_are_tight(dtype: str, offset: float) -> None:
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(9, 5)) * 3 + offset
    x = (centers[rng.integers(0, 9, 400)] + rng.normal(size=(400, 5))).astype(dtype)
    x[:9] = centers  # rows at distance 0
    _, best, second = scores_of(x, centers)
    found = Bounds(x)
    assert found._upper.dtype == found._lower.dtype == dtype
    largest = float(np.sqrt((centers**2).sum(axis=1)).max())
    for rows in (slice(0, 250), np.arange(250, 400)):
        found.take(rows, best[rows], second[rows], largest)
    near = np.sort(cdist(x.astype(float), centers.astype(dtype).astype(float)), axis=1)
    assert (found._upper >= near[:, 0]).all()
    assert (found._lower <= near[:, 1]).all()
    # By no more than rounding of squares may be.
    unit = 64 * np.finfo(dtype).eps * (np.abs(x).max() * 9) ** 2
    np.testing.assert_array_less(found._upper**2, near[:, 0] ** 2 + 2 * unit)
    np.testing.assert_array_less(near[:, 1] ** 2 - 2 * unit, found._lower**2)


@pytest.mark.parametrize("moved", [[0.3, 0.1, 0.0, 0.2], [0.0, 0.0, 1.5, 0.0], [0.0] * 4])
def test_bounds_follow_the_moves(moved: list[float]) -> None:
    found = Bounds(np.zeros((5, 2)))
    found._upper[:], found._lower[:] = [1.0, 2.0, 0.5, 3.0, 1.0], [2.0, 2.1, 0.9, 3.5, 9.0]
    labels = np.array([0, 1, 2, 3, 0], dtype=np.int32)
    upper, lower = found._upper + np.array(moved)[labels], found._lower.copy()
    for row, label in enumerate(labels):
        lower[row] -= max(move for place, move in enumerate(moved) if place != label)
    gaps = np.array([0.7, 0.1, 2.5, 0.1])
    rows = found.after_move(labels, np.array(moved), gaps)
    np.testing.assert_allclose(found._upper, upper)
    np.testing.assert_allclose(found._lower, lower)
    expected = [row for row in range(5) if upper[row] >= max(lower[row], gaps[labels[row]])]
    assert rows.tolist() == expected


def test_a_row_whose_bounds_meet_is_looked_at() -> None:
    found = Bounds(np.zeros((1, 1)))
    found._upper[:] = found._lower[:] = 1.0
    assert found.after_move(np.zeros(1, np.int32), np.zeros(2), np.zeros(2)).tolist() == [0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_row_that_changes_is_left_out_and_few_others_are_looked_at(dtype: str) -> None:
    rng = np.random.default_rng(8)
    for trial in range(20):
        centers = rng.normal(size=(6, 3)) * 4
        x = (centers[rng.integers(0, 6, 500)] + rng.normal(size=(500, 3))).astype(dtype)
        labels, best, second = scores_of(x, centers)
        found = Bounds(x)
        found.take(slice(None), best, second, float(np.sqrt((centers**2).sum(axis=1)).max()))
        for _ in range(3):
            before = centers
            centers = centers + rng.normal(size=centers.shape) * 0.03 * (rng.random((6, 1)) < 0.6)
            moved = np.sqrt(((centers - before) ** 2).sum(axis=1))
            looked_at = found.after_move(labels, moved, half_gaps(centers))
            changed = np.flatnonzero(scores_of(x, centers)[0] != labels)
            assert set(changed) <= set(looked_at), trial
            assert len(looked_at) < 250


def test_half_gaps_are_half_the_way_to_the_nearest_center(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(differences, "rows_made_dense", lambda k: 4)
    centers = np.random.default_rng(2).normal(size=(11, 3)) * [1.0, 5.0, 0.1]
    apart = cdist(centers, centers)
    np.fill_diagonal(apart, np.inf)
    found = half_gaps(centers)
    np.testing.assert_allclose(found, apart.min(axis=1) / 2, rtol=1e-5)
    assert (found < apart.min(axis=1) / 2).all()


def test_centers_that_coincide_have_no_gap() -> None:
    assert half_gaps(np.array([[1e6, 2.0], [1e6, 2.0], [5e6, 1.0]]))[:2].tolist() == [0.0, 0.0]
