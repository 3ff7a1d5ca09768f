"""Sparse rows: the same answers as dense rows, from the same entries."""

import numpy as np
import pytest
from scipy import sparse as sp

from localkmeans_spark.kernel import sparse
from localkmeans_spark.kernel.assign import assign_rows, exact_nearest
from localkmeans_spark.kernel.chunks import rows_made_dense
from localkmeans_spark.kernel.draws import draw_arrivals, draw_row, sq_distances_to_nearest
from localkmeans_spark.kernel.lloyd import Block, lloyd_step
from localkmeans_spark.kernel.local_steps import local_phase
from localkmeans_spark.kernel.sparse_rows import (
    SparseRows,
    concatenate,
    finite_rows,
    from_csr,
    from_dense,
    rows_within,
)


def thin(n, d, seed=0, density=0.05, dtype=np.float64):
    """Small whole numbers in few places: products of them are exact. Some rows are empty."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 9, size=(n, d)) * (rng.random((n, d)) < density)
    x[:: max(1, n // 5)] = 0
    return x.astype(dtype)


def test_one_step_by_hand():
    # Rows (2, 0, 0), (0, 0, 4), (0, 0, 0); centers (1, 0, 0) and (0, 0, 3); weights 1, 2, 5.
    # Squared distances: 1 to the first, 1 to the second, 1 to the first.
    rows = from_dense(np.array([[2.0, 0, 0], [0, 0, 4.0], [0, 0, 0]]))
    centers = np.array([[1.0, 0, 0], [0, 0, 3.0]])
    sums, weights = lloyd_step([Block(rows, np.array([1.0, 2.0, 5.0]))], centers)
    np.testing.assert_array_equal(sums, [[2, 0, 0], [0, 0, 8]])
    np.testing.assert_array_equal(weights, [6, 2])
    labels, sq_distances = sparse.exact_nearest(rows, centers)
    np.testing.assert_array_equal(labels, [0, 1, 0])
    np.testing.assert_array_equal(sq_distances, [1, 1, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_local_phase_equals_the_dense_one(dtype, weighted):
    x = thin(300, 90, dtype=dtype)
    weight = np.arange(1.0, 301.0) if weighted else None
    centers = x[[3, 17, 101, 200]].astype(float) + 0.25
    sum_sq = float(
        (x.astype(float) ** 2).sum(axis=1) @ (np.ones(300) if weight is None else weight)
    )
    dense = local_phase([Block(x, weight)], centers, 4, sum_sq)
    rows = from_dense(x)
    halves = [Block(rows[part], None if weight is None else weight[part])
              for part in (slice(0, 140), slice(140, 300))]  # fmt: skip
    found = local_phase(halves, centers, 4, sum_sq)
    np.testing.assert_allclose(found.sums, dense.sums, rtol=1e-12)
    np.testing.assert_array_equal(found.weights, dense.weights)
    assert found.inertia == pytest.approx(dense.inertia, rel=1e-12)


def test_exact_labels_and_distances_equal_those_of_dense_rows():
    x = thin(400, 120, seed=2)
    centers = np.random.default_rng(3).normal(size=(7, 120)) * (x[:7] > 0) + x[20:27]
    labels, sq_distances = sparse.exact_nearest(from_dense(x), centers)
    expected = exact_nearest(x, centers)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(sq_distances, expected[1], rtol=1e-11)


def test_a_row_that_equals_its_center_is_at_distance_zero():
    # Values whose squares round: a plain difference of sums would leave 1e-17 or turn negative.
    x = thin(50, 200, seed=4) / 7.0 + 1e3 * (thin(50, 200, seed=4) > 0)
    _, sq_distances = sparse.exact_nearest(from_dense(x), x)
    np.testing.assert_array_equal(sq_distances, np.zeros(50))
    np.testing.assert_array_equal(sq_distances_to_nearest(from_dense(x), x), np.zeros(50))


def test_a_rows_label_does_not_depend_on_the_rows_around_it():
    x = from_dense(thin(200, 80, seed=5))
    centers = np.random.default_rng(6).normal(size=(9, 80))
    together, _ = sparse.exact_nearest(x, centers)
    alone = [int(sparse.exact_nearest(x[i : i + 1], centers)[0][0]) for i in range(200)]
    np.testing.assert_array_equal(together, alone)


def test_ties_are_settled_as_for_dense_rows():
    # Binary rows and centers of equal length: rounding of the norms alone would decide.
    rng = np.random.default_rng(10)
    x = (rng.random((300, 70)) < 0.05).astype(float)
    first = (rng.random((1, 70)) < 0.5) / 3.0
    centers = np.concatenate([rng.permutation(first[0])[None] for _ in range(12)])
    dense, _ = exact_nearest(x, centers)
    np.testing.assert_array_equal(sparse.exact_nearest(from_dense(x), centers)[0], dense)
    tied = np.sort(x @ centers.T, axis=1)
    assert (tied[:, -1] - tied[:, -2] < 1e-12).sum() > 50


@pytest.mark.parametrize("far", [1e6, 1e9, 1e15])
def test_far_center_and_far_column_stay_accurate(far):
    rows = from_dense(np.array([[0.0, far, 0], [0, far + 1, 0]]))
    _, sq_distances = sparse.exact_nearest(rows, np.array([[0.0, far, 0.5], [far, 0, 0]]))
    np.testing.assert_allclose(sq_distances, [0.25, 1.25], rtol=1e-9)


def test_a_column_far_from_0_in_every_row_costs_no_digits():
    x = thin(50, 70, seed=9)
    x[:, 0] = 1e15
    center = x.mean(axis=0, keepdims=True)
    _, sq_distances = sparse.exact_nearest(from_dense(x), center)
    np.testing.assert_allclose(sq_distances, ((x - center) ** 2).sum(axis=1), rtol=1e-12)


def test_column_summary_by_hand():
    rows = from_dense(np.array([[2.0, 0, -3.0], [0, 0, 1.0]]))
    sums, largest = sparse.column_summary(rows, np.array([1.0, 10.0]))
    np.testing.assert_array_equal(sums, [2, 0, 7])
    np.testing.assert_array_equal(largest, [2, 0, 3])


def test_draws_give_dense_rows_of_the_data():
    x = thin(60, 70, seed=7)
    block = Block(from_dense(x), None)
    rng = np.random.default_rng(0)
    assert (x == draw_row([block], rng)).all(axis=1).any()
    found = draw_arrivals([block], x[:1], 0.05, rng)
    assert len(found.rows) > 3
    assert all((x == row).all(axis=1).any() for row in found.rows)
    assert found.potential == pytest.approx(((x - x[0]) ** 2).sum())


@pytest.mark.parametrize("origin", [0.0, 2.0])
@pytest.mark.parametrize("density", [0.03, 0.6])
def test_raw_rows_get_the_labels_of_dense_rows_in_every_frame(origin, density):
    x = thin(90, 64, seed=8, density=density)
    centers = x[:5] + 0.5
    origin = np.full(64, origin)
    found = assign_rows(from_dense(x), centers, origin, "float32")
    expected = assign_rows(x, centers, origin, "float32")
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)


def test_rows_as_a_matrix():
    x = thin(30, 20, seed=9)
    rows = from_dense(x)
    np.testing.assert_array_equal(rows.toarray(), x)
    np.testing.assert_array_equal(rows[4:9].toarray(), x[4:9])
    np.testing.assert_array_equal(rows[4:4].toarray(), x[4:4])
    np.testing.assert_array_equal(rows[x[:, 0] > 0].toarray(), x[x[:, 0] > 0])
    np.testing.assert_array_equal(rows[np.array([5, 5, 1])], x[[5, 5, 1]])
    np.testing.assert_array_equal(rows[np.array([], dtype=int)], x[:0])
    np.testing.assert_array_equal(rows[7], x[7])
    np.testing.assert_array_equal(concatenate([rows[:3], rows[3:3], rows[3:]]).toarray(), x)
    np.testing.assert_allclose(rows.sq_norms(), (x**2).sum(axis=1))


def test_scipy_rows_with_64_bit_indices_and_repeated_entries():
    matrix = sp.csr_array(
        (np.array([1, 2, 3]), np.array([4, 4, 0], dtype=np.int64), np.array([0, 2, 3])),
        shape=(2, 5),
    )
    np.testing.assert_array_equal(from_csr(matrix).toarray(), [[0, 0, 0, 0, 3], [3, 0, 0, 0, 0]])


def test_rows_with_nan_are_found():
    x = np.zeros((4, 10))
    x[1, 3], x[2, 5], x[3, 1] = np.nan, np.inf, 1.0
    np.testing.assert_array_equal(finite_rows(from_dense(x)), [True, False, False, True])
    assert finite_rows(from_dense(np.eye(3))) is None


@pytest.mark.parametrize("form", [np.asarray, from_dense])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_beyond_a_limit_are_found(form, dtype):
    x = np.array([[3, 0], [-1e17, 1e17], [0, -2], [np.nan, 0], [0, np.inf], [1e30, 0]], dtype=dtype)
    for limit, origin, expected in (
        (1e16, [0, 0], [True, False, True, False, False, False]),
        (1e18, [0, 0], [True, True, True, False, False, False]),
        (1e18, [0, 1.05e18], [False, True, False, False, False, False]),
        (1e16, [-1e17, 1e17], [False, True, False, False, False, False]),
    ):
        found = rows_within(form(x), np.array(origin, dtype=float), limit)
        np.testing.assert_array_equal(found, expected)
        assert rows_within(form(x[np.array(expected)]), np.array(origin, float), limit) is None


def test_which_rows_are_kept_sparse():
    def form(n, d, stored):
        values = np.ones(stored)
        return SparseRows(np.array([0, stored], dtype=np.int32), np.arange(stored), values, d)

    assert sparse.prefers_sparse(form(1, 100, 10))
    assert not sparse.prefers_sparse(form(1, 100, 11))
    assert not sparse.prefers_sparse(form(1, 63, 1))


def test_scipy_rows_keep_their_numbers_and_are_left_alone():
    repeated = sp.csr_array((np.array([1, 2]), np.array([3, 3]), np.array([0, 2])), shape=(1, 4))
    rows = from_csr(repeated)
    assert rows.values.dtype == np.float64 and rows.indices.dtype == rows.indptr.dtype == np.int32
    assert repeated.nnz == 2, "the user's matrix is not changed"
    single = sp.csr_array(np.eye(3, dtype=np.float32))
    assert from_csr(single).values.dtype == np.float32
    assert np.shares_memory(from_csr(single).values, single.data)


def test_rows_below_each_other():
    x = thin(6, 70, seed=3)
    halves = [from_dense(x[:2]), from_dense(x[2:])]
    rows = concatenate(halves)
    np.testing.assert_array_equal(rows.toarray(), x)
    assert rows.indptr.dtype == np.int32
    np.testing.assert_array_equal(concatenate([x[:2], x[2:]]), x)
    assert concatenate(halves[:1]) is halves[0]


@pytest.mark.parametrize("form", [np.asarray, from_dense])
def test_rows_that_are_not_finite_are_found_without_a_word_of_numpy(form):
    x = np.array([[np.inf, 0], [-np.inf, 1], [3e38, 3e38], [np.nan, 0]], dtype=np.float32)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(finite_rows(form(x)), [False, False, True, False])
        assert finite_rows(form(x[2:3])) is None or finite_rows(form(x[2:3])).all()


@pytest.mark.parametrize("form", [np.asarray, from_dense])
@pytest.mark.parametrize("origin", [0.0, 0.5, -3.0])
@pytest.mark.parametrize("at_a_time", [1, 2, 1000])
def test_rows_at_a_limit_are_within_it(monkeypatch, form, origin, at_a_time):
    monkeypatch.setattr("localkmeans_spark.kernel.sparse_rows.rows_made_dense", lambda _: at_a_time)
    x = np.array([[2.0, 0], [0, -2.0], [0, 0], [2.5, 0], [0, -5.0], [1e200, 1], [1.0, 1.0]])
    origins = np.array([origin, 0.0])
    for limit in (0.4, 0.5, 1.0, 2.0, 2.5, 3.0, 5.0, 1e150):
        with np.errstate(all="raise"):
            found = rows_within(form(x), origins, limit)
        expected = (np.abs(x - origins) <= limit).all(axis=1)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == bool
        near = rows_within(form(x[expected]), origins, limit)
        assert near is None


def test_how_many_rows_are_made_dense_at_a_time():
    assert [rows_made_dense(d) for d in (0, 1, 1024, 2_097_152, 2_097_153, 9_000_000)] == [
        2_097_152, 2_097_152, 2048, 1, 1, 1]  # fmt: skip


@pytest.mark.parametrize("columns", [5, 200])
def test_labels_do_not_depend_on_the_size_of_chunks(monkeypatch, columns):
    """Rows that use few of the columns (5 of 200) or most of them; chunks of a few rows."""
    x = np.zeros((60, 200))
    x[:, :columns] = thin(60, columns, seed=6, density=0.4)
    centers = thin(7, 200, seed=7, density=0.3) + 0.0
    expected = ((x[:, None] - centers) ** 2).sum(axis=2)
    rows = from_dense(x)
    for size in (1, 7, 1000):
        monkeypatch.setattr(sparse, "rows_per_chunk", lambda *_, size=size: size)
        monkeypatch.setattr(sparse, "rows_made_dense", lambda _, size=size: size)
        np.testing.assert_array_equal(sparse.nearest(rows, centers), expected.argmin(axis=1))
        labels, sq_distances = sparse.exact_nearest(rows.astype(np.float32), centers)
        np.testing.assert_array_equal(labels, expected.argmin(axis=1))
        np.testing.assert_allclose(sq_distances, expected.min(axis=1), rtol=1e-12)
        assert sq_distances.dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_raw_sparse_rows_are_labelled_in_the_precision_of_the_fit(dtype):
    # 1 + 1e-9 is 1 in float32: a tie there, the second center's in float64.
    x = np.zeros((1, 64))
    x[0, 0] = 1.0 + 1e-9
    centers = np.zeros((2, 64))
    centers[:, 0] = 0.5, 1.5
    for form in (from_dense(x), x):
        labels, sq_distances = assign_rows(form, centers, np.zeros(64), dtype)
        assert labels.tolist() == [int(dtype == "float64")] and sq_distances.shape == (1,)
        none = assign_rows(form, centers, np.zeros(64), dtype, with_distances=False)[1]
        assert form is not x or none.shape == (0,)
