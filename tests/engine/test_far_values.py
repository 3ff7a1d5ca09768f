"""A few values far from all others: the other rows are clustered as without them, and it is told.

The partitions' own functions run here in one process, under the same driver code; two fits through
Spark tie them together.
"""

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors

from benchmarks.in_process import InProcessPartitions
from localkmeans_spark import LocalKMeans
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.data import summary
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.fit.driver import fit, run_to_the_end
from localkmeans_spark.fit.run import Fit
from localkmeans_spark.fit.warnings import FitWarnings
from localkmeans_spark.kernel.lloyd import Block
from localkmeans_spark.kernel.sample import Sample, improve_on_sample
from localkmeans_spark.kernel.typical import origin_of, typical

from .frames import frame_of, split

RNG = np.random.default_rng(0)
MIDDLES = 10.0 * RNG.normal(size=(9, 2))
X = MIDDLES[RNG.integers(9, size=2000)] + 1.4 * RNG.normal(size=(2000, 2))
WEIGHTS = RNG.integers(1, 9, size=2000) / 4.0
SIZES = {"float64": [1e3, 1e9, 1e12, 1e14, 1e16, 1e19, 1e40, 1e100, 1e139],
         "float32": [1e3, 1e9, 1e10, 1e12, 1e14, 9e15]}  # fmt: skip
CASES = [(dtype, size) for dtype, sizes in SIZES.items() for size in sizes]


def run(x, k, dtype, weights=None):
    """Fit in process; return absolute centers, total cost and warnings."""
    cut = None if weights is None else np.array_split(weights, 4)
    partitions = InProcessPartitions(split(x, 4), cut, [1], dtype)
    config = FitConfig(k=k, seed=1, max_iter=30, data=DataConfig(dtype=dtype))
    found = Fit(config, partitions.data)
    run_to_the_end([found], partitions)
    best, centers, assignment = found.winner()
    assert all(record.inertia >= 0 for record in best.lloyd.rounds)
    told = FitWarnings(partitions.data, config, centers, assignment).rounding()
    return centers, float(assignment.inertia.sum()), told


def cost(x, centers, weights):
    return float(((x[:, None] - centers) ** 2).sum(axis=2).min(axis=1) @ weights)


@pytest.mark.parametrize(("dtype", "size"), CASES)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_other_rows_are_clustered_as_without_it(dtype, size, offset):
    x = X + offset
    _, expected, told = run(x, 9, dtype)
    assert told == []
    x[700, 1] = size
    centers, total, told = run(x, 10, dtype)
    others = np.delete(x, 700, axis=0)
    assert cost(others, centers, np.ones(1999)) <= 1.001 * expected
    assert total == pytest.approx(expected, rel=2e-3)
    if size >= 1e9 and not offset:
        (text,) = told
        assert f"feature 1 (counted from 0), has values up to {size:.2g} from the middle" in text
        assert text.endswith("they take clusters of their own. Drop or clip such values.")


@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e19), ("float32", 1e14)])
@pytest.mark.parametrize("n_far", [1, 20])
def test_weights_and_several_far_rows(dtype, size, n_far):
    usual, _, _ = run(X, 9, dtype, WEIGHTS)
    x = X.copy()
    far = np.arange(n_far) * 97 + 7
    x[far, 0] = size
    # Their second columns differ: one more cluster for all of them.
    centers, _, told = run(x, 10, dtype, WEIGHTS)
    others, weights = np.delete(x, far, axis=0), np.delete(WEIGHTS, far)
    assert cost(others, centers, weights) <= 1.001 * cost(others, usual, weights)
    assert len(told) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_columns_of_zeros_are_no_far_values(dtype):
    x = np.zeros((40, 5))
    x[:, 1] = np.random.default_rng(3).normal(size=40)
    for k in (1, 3, 20):
        assert run(x, k, dtype)[2] == []


def test_sums_that_lost_their_digits_are_told(monkeypatch):
    monkeypatch.setattr(summary, "_MOST_PARTS", 1)
    x = X.copy()
    x[700, 1] = 1e30
    _, total, told = run(x, 10, "float64")
    assert total > 1e10
    assert any("centers and cost lost digits beside them" in text for text in told)


def test_through_spark(spark):
    x = X.copy()
    x[700, 1] = 1e15
    for dtype in ("float64", "float32"):
        config = FitConfig(k=10, seed=1, max_iter=30, data=DataConfig(dtype=dtype))
        found = fit(frame_of(spark, split(x, 4)), config)
        centers, total, told = run(x, 10, dtype)
        np.testing.assert_array_equal(found.centers, centers)
        assert found.record.warnings == told and found.record.inertia == total


def test_far_initial_centers(spark):
    frame = frame_of(spark, split(X, 2))
    for dtype, size in (("float64", 1e120), ("float32", 1e15)):
        start = np.concatenate([MIDDLES, [[size, 0.0]]])
        config = FitConfig(k=10, initial_centers=start, data=DataConfig(dtype=dtype))
        found = fit(frame, config)
        assert found.record.cluster_sizes[-1] == 0
        assert found.record.inertia == pytest.approx(cost(X, found.centers, np.ones(2000)), 1e-4)
        start[-1, 0] = 1e150
        with pytest.raises(InvalidInputError, match=r"initialCenters.*; got numbers up to 1e\+150"):
            fit(frame, config)


def test_what_most_rows_are_like():
    rng = np.random.default_rng(1)
    x = 5.0 + rng.normal(size=(5000, 3))
    x[::10] = 1e30
    found = typical([Block(x[:3000], None), Block(x[3000:], None)])
    assert (np.abs(found.middle - 5.0) < 0.5).all()
    assert 1.0 < found.scale < 3.0
    assert (found.usual < 3.0).all()
    assert typical([Block(np.ones((40, 2)), None)]).scale == 0.0
    assert typical([Block(np.ones((40, 0)), None)]).scale == 0.0


@pytest.mark.parametrize("is_sparse", [True, False])
def test_rows_beyond_the_dtype_are_told_in_one_line(spark, is_sparse):
    rows = [[0.0] * 70 + [size, -size] for size in (1e101, 3e101, 7e101)]
    if is_sparse:
        rows = [Vectors.sparse(72, {70: row[70], 71: row[71]}) for row in rows]
    df = spark.createDataFrame([(row,) for row in rows], ["features"])
    with pytest.raises(InvalidInputError, match="values too large for float32"):
        LocalKMeans(k=1).fit(df)


def test_the_origin_leaves_far_values_out():
    x = 1e6 + np.random.default_rng(2).normal(size=(1000, 2))
    usual = origin_of(x)
    x[5, 0] = 1e13
    assert abs(origin_of(x)[0] - 1e6) < 256 and origin_of(x)[1] == usual[1]


def test_exchanges_leave_far_centers():
    x = np.concatenate([X, [[1e30, 0.0]]])
    sample = Sample(x, np.ones(2001), "float64")
    assert len(sample.x) == 2000
    start = np.concatenate([np.repeat(MIDDLES[:1], 9, axis=0) + X[:9] / 10, [[1e30, 0.0]]])
    made = improve_on_sample(start, sample, np.random.default_rng(0), rounds=3, steps=3)
    assert made[-1].tolist() == [1e30, 0.0]
    assert sample.cost(made) < sample.cost(start)
