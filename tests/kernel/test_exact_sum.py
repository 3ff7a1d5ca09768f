"""Sums on a grid: any order, the same bits."""

import numpy as np

from localkmeans_spark.kernel.exact_sum import grid_for, grids_for, on_grids, to_grid


def test_any_order_gives_the_same_bits():
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(1000, 5)) * 10.0 ** rng.integers(-8, 8, size=(1000, 1))
    bound = np.abs(parts).sum(axis=0)
    on_grid = to_grid(parts, grid_for(bound))
    plain = {parts[rng.permutation(1000)].cumsum(axis=0)[-1].tobytes() for _ in range(20)}
    exact = {on_grid[rng.permutation(1000)].cumsum(axis=0)[-1].tobytes() for _ in range(20)}
    assert len(plain) > 1, "the case is too easy: plain sums agree as well"
    assert len(exact) == 1


def test_rounding_is_far_below_float32():
    bound = np.array([1e6])
    error = np.abs(to_grid(np.array([np.pi]), grid_for(bound)) - np.pi)
    assert error[0] <= 1e6 * 2.0**-51


def test_integers_and_extremes():
    counts = np.array([3.0, 0.0, 12345.0])
    np.testing.assert_array_equal(to_grid(counts, grid_for(np.array(1e5))), counts)
    for bound in (0.0, 5e-324, 1e-300, 1e300):
        grid = grid_for(np.array([bound]))
        assert np.isfinite(grid).all() and (grid > 0).all()
        assert np.isfinite(to_grid(np.array([bound]), grid)).all()


def test_parts_keep_small_sums_beside_large_ones_in_any_order():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 4)) * np.array([1e30, 1e12, 1.0, 1e-3])
    grids = grids_for(np.full(4, 1e33), 50, 3)
    parts = np.stack([on_grids(row, grids) for row in values])
    sums = {parts[rng.permutation(50)].cumsum(axis=0)[-1].tobytes() for _ in range(20)}
    assert len(sums) == 1
    error = np.abs(parts.sum(axis=0).sum(axis=0) - values.sum(axis=0))
    assert (error[2:] <= 50 * grids[-1, 2:]).all() and grids[-1, 3] < 1e-9
    one = np.stack([on_grids(row, grids[:1]) for row in values])
    assert (one.sum(axis=0)[0, 2:] == 0).all(), "the case is too easy: one part is enough"


def test_the_grid_is_51_bits_below_the_first_power_of_two_above_the_bound():
    bounds = np.array([0.75, 1.0, np.nextafter(2.0, 0.0), 2.0, 3.0, 1e300, 0.0])
    exponents = [0, 1, 1, 2, 2, 997, 51]  # 1 where the bound is 0
    np.testing.assert_array_equal(grid_for(bounds), np.ldexp(1.0, np.array(exponents) - 51))


def test_the_grid_of_tiny_bounds_is_the_smallest_whose_half_is_normal():
    floor = 2.0**-1021
    assert floor == 2.0 * np.finfo(np.float64).smallest_normal
    bounds = np.array([5e-324, 2.0**-972, np.nextafter(2.0**-970, 0.0), 2.0**-970, 2.0**-969])
    np.testing.assert_array_equal(grid_for(bounds), floor * np.array([1, 1, 1, 2, 4]))
