"""Medians of some rows: which rows are looked at, and what is said of them."""

import numpy as np
import pytest

from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.sparse_rows import from_dense
from localkmeans_spark.kernel.typical import typical


def blocks_of(x, *ends, form=np.asarray):
    return [Block(form(part), None) for part in np.split(x, ends)]


def test_by_hand():
    # Column 0: 0 to 8, median 4, differences 0 1 1 2 2 3 3 4 4; column 1: all 5 but one.
    x = np.column_stack([np.arange(9.0), np.full(9, 5.0)])
    x[0, 1] = 105.0
    found = typical(blocks_of(x, 2, 2, 7))
    np.testing.assert_array_equal(found.middle, [4, 5])
    np.testing.assert_array_equal(found.usual, [3, 0])
    assert found.scale == 2.0  # distances 0 1 1 2 2 3 3 4 100


def test_the_scale_is_that_of_the_rows_that_are_not_alike():
    x = np.zeros((20, 1))
    x[-7:, 0] = 0.25, 0.25, 0.5, 0.5, 0.5, 3.0, 4.0
    assert typical(blocks_of(x)).scale == 0.5  # the half and three quarters: 0; nine tenths: 3
    x[-6:, 0] = 0.0
    assert typical(blocks_of(x)).scale == 0.0


def test_rows_beyond_the_dtype_are_left_out():
    x = np.array([[1.0], [np.inf], [-1.0], [0.0]])
    with np.errstate(invalid="ignore"):
        assert typical(blocks_of(x)).scale == 1.0
        assert typical(blocks_of(np.full((3, 1), np.nan))).scale == 0.0


@pytest.mark.parametrize(("n_features", "looked_at"), [(1, 256), (1 << 14, 64), (1 << 19, 17)])
def test_rows_looked_at_are_spread_over_all_blocks(n_features, looked_at):
    n = 600 if n_features == 1 else 90

    class Rows:
        """Rows that say which of them were asked for, without holding any."""

        def __init__(self, start, stop):
            self.numbers, self.shape = np.arange(start, stop), (stop - start, n_features)

        def __len__(self):
            return self.shape[0]

        def __getitem__(self, rows):
            asked.extend(self.numbers[rows])
            return np.zeros((len(rows), 1))

    asked = []
    typical([Block(Rows(0, 10), None), Block(Rows(10, 11), None), Block(Rows(11, n), None)])
    assert len(asked) == looked_at and (asked[0], asked[-1]) == (0, n - 1)
    np.testing.assert_allclose(asked, np.linspace(0, n - 1, looked_at), atol=1.0)


def test_narrow_rows_are_looked_at_in_float64():
    x = (1e8 + np.arange(5.0))[:, None].astype(np.float32)
    assert typical(blocks_of(x)).middle.dtype == np.float64


def test_sparse_rows_have_the_medians_of_dense_ones():
    x = np.zeros((8, 70))
    x[:, 3] = 3.0
    x[5:, 5] = 4.0
    for found, expected in zip(
        typical(blocks_of(x, 3, form=from_dense)), typical(blocks_of(x, 3)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
