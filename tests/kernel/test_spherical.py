"""Unit rows, directions as centers."""

import numpy as np
import pytest

from localkmeans_spark.kernel.lloyd import Block, lloyd_step
from localkmeans_spark.kernel.local_steps import local_phase
from localkmeans_spark.kernel.sparse_rows import from_dense
from localkmeans_spark.kernel.spherical import directions_or_kept, unit_centers, unit_rows


@pytest.mark.parametrize("form", [np.asarray, from_dense])
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_rows_become_unit_vectors(form, size):
    x = np.array([[3.0, 4.0, 0], [0, 0, 0], [0, 0, -2.0]]) * size
    units, is_zero = unit_rows(form(x))
    units = units if isinstance(units, np.ndarray) else units.toarray()
    np.testing.assert_allclose(units, [[0.6, 0.8, 0], [0, 0, 0], [0, 0, -1]], rtol=1e-15)
    np.testing.assert_array_equal(is_zero, [False, True, False])


def test_no_zero_rows_is_said_quickly():
    assert unit_rows(np.eye(2, dtype=np.float32))[1] is None


def test_integer_rows():
    np.testing.assert_allclose(unit_rows(np.array([[3, 4]]))[0], [[0.6, 0.8]])


def test_unit_centers_keep_their_bits():
    centers = unit_rows(np.random.default_rng(0).normal(size=(50, 7)))[0]
    assert unit_centers(centers) is centers
    again = unit_centers(np.concatenate([centers, [[0, 0, 5.0, 0, 0, 0, 0]]]))
    np.testing.assert_array_equal(again[:-1], centers)
    np.testing.assert_array_equal(again[-1], np.eye(7)[2])


def test_directions_by_hand():
    old = np.array([[1.0, 0], [0, 1.0], [0, 1.0]])
    sums = np.array([[3.0, 4.0], [0, 0], [0, 0]])  # the last one's rows cancel out
    found = directions_or_kept(sums, np.array([7.0, 0, 2.0]), old)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 1], [0, 1]])


@pytest.mark.parametrize("form", [np.asarray, from_dense])
def test_a_local_phase_goes_from_direction_to_direction(form):
    x = unit_rows(np.random.default_rng(1).normal(size=(200, 4)))[0]
    centers = x[:3]
    expected = centers
    for _ in range(3):
        expected = directions_or_kept(*lloyd_step([Block(x, None)], expected), expected)
    phase = local_phase([Block(form(x), None)], centers, 3, 200.0, update=directions_or_kept)
    ended = directions_or_kept(phase.sums, phase.weights, centers)
    np.testing.assert_allclose(ended, expected, rtol=1e-12)
    cosines = (x @ centers.T).max(axis=1)
    assert phase.inertia == pytest.approx(2.0 * (1.0 - cosines).sum(), rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, from_dense])
def test_rows_of_large_and_unusable_numbers_raise_nothing(form):
    x = np.array([[3e38, 4e38], [np.inf, 1], [1e-30, 0], [0, 0]], dtype=np.float64)
    x[2] *= 1e-300
    with np.errstate(all="raise"):
        units, is_zero = unit_rows(form(np.array(x)))
    units = units if isinstance(units, np.ndarray) else units.toarray()
    np.testing.assert_allclose(units[0], [0.6, 0.8])
    assert not np.isfinite(units[1]).all()
    np.testing.assert_array_equal(units[3], [0, 0])
    assert is_zero[3]


def test_narrow_rows_are_scaled_in_float64():
    units, _ = unit_rows(np.array([[1, 3]], dtype=np.float32))
    assert units.dtype == np.float64
    assert (units**2).sum() == pytest.approx(1.0, rel=1e-15)
