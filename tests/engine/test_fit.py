"""The whole engine on Spark: equality with scikit-learn, laws, odd data."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from benchmarks.in_process import InProcessPartitions
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.fit.driver import fit, run_to_the_end
from localkmeans_spark.fit.run import Fit
from localkmeans_spark.fit.warnings import FitWarnings

from .frames import frame_of, split


def given(centers, **changes):
    data = {name: changes.pop(name) for name in list(changes) if hasattr(DataConfig, name)}
    options = {"tol": 0.0, "max_iter": 20, "dtype": "float64"}
    options.update(changes)
    dtype = options.pop("dtype")
    return FitConfig(
        k=len(centers),
        initial_centers=np.asarray(centers, dtype=float),
        data=DataConfig(**{"dtype": dtype, **data}),
        **options,
    )


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.mark.parametrize(("m", "local_steps"), [(1, 1), (1, 6), (5, 1), (13, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_bridges_to_plain_lloyd(spark, digits, m, local_steps, dtype):
    x, _ = digits
    start = x[:10]
    result = fit(frame_of(spark, split(x, m)), given(start, local_steps=local_steps, dtype=dtype))
    reference = KMeans(10, init=start, n_init=1, max_iter=20, tol=0).fit(x)
    assert result.record.inertia == pytest.approx(reference.inertia_, rel=1e-9)
    np.testing.assert_allclose(result.centers, reference.cluster_centers_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(
        result.record.cluster_sizes, np.bincount(reference.labels_, minlength=10)
    )


@pytest.mark.parametrize("name", ["pendigits", "letter", "usps", "sipu_s2", "sipu_birch1"])
def test_real_data_equals_scikit_learn(spark, data_dir, name):
    stored = np.load(data_dir / f"{name}.npz")
    x = stored["X"].astype(np.float64)[:20_000]
    k = {"sipu_s2": 15, "letter": 26, "sipu_birch1": 100}.get(name, 10)
    rng = np.random.default_rng(0)
    start = x[rng.choice(len(x), k, replace=False)]
    # Off the integers: rows as centers make exact ties, which scikit-learn (it subtracts the
    # mean first) breaks by rounding and this library by the lowest index.
    start = start + 1e-3 * x.std(axis=0) * rng.normal(size=start.shape)
    reference = KMeans(k, init=start, n_init=1, max_iter=8, tol=0).fit(x)
    for m, local_steps in ((4, 1), (1, 4)):
        result = fit(
            frame_of(spark, split(x, m)),
            given(start, local_steps=local_steps, max_iter=8, safeguard=False),
        )
        assert result.record.inertia == pytest.approx(reference.inertia_, rel=1e-6)
        np.testing.assert_allclose(
            result.centers, reference.cluster_centers_, rtol=1e-6, atol=1e-9 * np.abs(x).max()
        )
        np.testing.assert_array_equal(
            result.record.cluster_sizes, np.bincount(reference.labels_, minlength=k)
        )


def test_algorithm_1_against_a_literal_transcription(spark):
    rng = np.random.default_rng(4)
    parts = [rng.normal(size=(n, 2)) + shift for n, shift in ((8, 0), (5, 2), (11, -1))]
    start = np.array([[0.0, 0.0], [2.0, 2.0], [-1.0, -1.0], [50.0, 50.0]])
    for local_steps, max_iter in ((2, 6), (3, 7), (7, 7)):
        local = [start.copy() for _ in parts]
        sizes = [np.ones(4) for _ in parts]
        centers = start
        for t in range(max_iter + 1):
            if t % local_steps == 0 or t == max_iter:
                total = sum(sizes)
                mean = sum(s[:, None] * c for s, c in zip(sizes, local, strict=True))
                centers = np.where(
                    total[:, None] > 0, mean / np.maximum(total, 1e-300)[:, None], centers
                )
                local = [centers.copy() for _ in parts]
            if t == max_iter:
                break
            for i, x in enumerate(parts):
                labels = ((x[:, None] - local[i]) ** 2).sum(axis=2).argmin(axis=1)
                sizes[i] = np.bincount(labels, minlength=4).astype(float)
                for k in np.flatnonzero(sizes[i]):
                    local[i][k] = x[labels == k].mean(axis=0)
        result = fit(
            frame_of(spark, parts),
            given(start, local_steps=local_steps, max_iter=max_iter, safeguard=False),
        )
        np.testing.assert_allclose(result.centers, centers, rtol=1e-12, atol=1e-12)
        assert result.record.n_iter <= max_iter


def test_drift_and_deviation_by_hand(spark):
    # Two partitions, one cluster from 0: partition centers 1 (2 rows) and 4 (1 row); mean 2.
    result = fit(
        frame_of(spark, [[[0.0], [2.0]], [[4.0]]]), given([[0.0]], max_iter=1, local_steps=1)
    )
    (row,) = result.record.rounds
    assert (row.inertia, row.center_shift, row.max_local_drift) == (20.0, 2.0, 4.0)
    assert row.rms_deviation == pytest.approx(np.sqrt((2 * 1 + 1 * 4) / 3))
    assert result.record.inertia == 8.0


def test_laws_of_weights(spark, digits):
    x = digits[0][:300]
    start = x[:5]
    weights = np.random.default_rng(0).integers(0, 4, size=300).astype(float)
    plain = given(start, local_steps=1)
    weighted = given(start, local_steps=1, weight_col="weight")
    a = fit(frame_of(spark, split(x, 3), np.array_split(weights, 3)), weighted)
    b = fit(frame_of(spark, split(np.repeat(x, weights.astype(int), axis=0), 3)), plain)
    c = fit(frame_of(spark, split(x, 3), np.array_split(10 * weights, 3)), weighted)
    np.testing.assert_allclose(a.centers, b.centers, rtol=1e-10, atol=1e-10)
    assert a.record.inertia == pytest.approx(b.record.inertia, rel=1e-10)
    assert a.record.n_points == int((weights > 0).sum())
    np.testing.assert_allclose(a.centers, c.centers, rtol=1e-10, atol=1e-10)
    assert c.record.inertia == pytest.approx(10 * a.record.inertia, rel=1e-10)


@pytest.mark.parametrize("mode", ["k-means++", "local-k-means++", "k-means||", "random"])
def test_a_row_of_weight_zero_is_as_if_absent(spark, mode):
    rows = [[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]]
    config = FitConfig(k=2, init_mode=mode, data=DataConfig(weight_col="weight"))
    a = fit(frame_of(spark, [rows[:2], [*rows[2:], [100.0, 100.0]]], [[1, 1], [1, 1, 0]]), config)
    b = fit(frame_of(spark, [rows[:2], rows[2:]], [[1, 1], [1, 1]]), config)
    np.testing.assert_array_equal(a.centers, b.centers)
    assert a.record.n_points == 4


def test_translation_and_permutation(spark, digits):
    x = digits[0][:400]
    a = fit(frame_of(spark, split(x, 4)), given(x[:6], local_steps=3))
    b = fit(frame_of(spark, split(x + 2.0**20, 4)), given(x[:6] + 2.0**20, local_steps=3))
    np.testing.assert_allclose(b.centers - 2.0**20, a.centers, atol=1e-8)
    shuffled = [p[np.random.default_rng(0).permutation(len(p))] for p in split(x, 4)]
    c = fit(frame_of(spark, shuffled), given(x[:6], local_steps=3))
    np.testing.assert_allclose(c.centers, a.centers, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("offset", "dtype"), [(1e6, "float32"), (1e8, "float64"), (1e9, "float64"), (1e9, "float32")]
)
def test_tight_pairs_far_from_zero(spark, offset, dtype):
    rows = offset + np.array([[0.0], [0.25], [4.0], [4.25]])
    for m in (1, 2, 4):
        result = fit(frame_of(spark, split(rows, m)), FitConfig(k=2, data=DataConfig(dtype=dtype)))
        assert result.record.inertia == pytest.approx(4 * 0.125**2, rel=1e-6)
        np.testing.assert_allclose(np.sort(result.centers[:, 0]) - offset, [0.125, 4.125])


@pytest.mark.parametrize("mode", ["k-means++", "local-k-means++", "k-means||", "random"])
@pytest.mark.parametrize(
    ("rows", "k", "expected"),
    [
        ([[0.1, 0.0], [0.1, 0.0], [0.3, 1.0], [0.3, 1.0]], 5, 2),
        ([[0.1], [0.7]], 5, 2),
        ([[0.1], [0.7], [0.9]], 3, 3),
        ([[1e9 + 0.1], [1e9 + 0.1], [1e9 + 0.7]], 3, 2),
        ([[2.0]], 1, 1),
    ],
)
def test_too_few_distinct_rows(mode, rows, k, expected):
    config = FitConfig(k=k, init_mode=mode)
    for m in (1, 3, 8):
        parts = [part for part in split(rows, m) if len(part)]
        partitions = InProcessPartitions(parts, dtype=config.data.dtype)
        item = Fit(config, partitions.data)
        run_to_the_end([item], partitions)
        run, centers, found = item.winner()
        assert len(centers) == len(np.unique(centers, axis=0)) == expected
        assert found.sizes.sum() == len(rows)
        assert found.inertia.sum() == pytest.approx(0.0, abs=1e-9)
        warnings = FitWarnings(partitions.data, config, centers, found).all(run.lloyd)
        told = [*item.few_rows(), *warnings]
        assert len(told) == (1 if expected < k else 0)
        for text in told:
            assert f"k={k}" in text and f"only {expected}" in text


@pytest.mark.parametrize("local_steps", [1, 5, 20])
def test_clusters_wholly_in_their_own_partition(spark, local_steps):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(50, 2)), 20 + rng.normal(size=(50, 2))]
    start = [[1.0, 1.0], [19.0, 19.0]]
    result = fit(frame_of(spark, parts), given(start, local_steps=local_steps))
    expected = np.array([p.mean(axis=0) for p in parts])
    np.testing.assert_allclose(result.centers, expected, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_a_center_far_away_keeps_its_place(spark, offset):
    rng = np.random.default_rng(0)
    x = offset + rng.uniform(size=(60, 2))
    result = fit(frame_of(spark, split(x, 3)), given([x[0], [1e6, 1e6]], local_steps=3))
    np.testing.assert_array_equal(result.centers[1], [1e6, 1e6])
    assert result.record.cluster_sizes == [60, 0]
    np.testing.assert_allclose(result.centers[0], x.mean(axis=0), atol=1e-9)


def test_tol_0_stops_when_labels_stop_changing(spark, digits):
    x = digits[0]
    result = fit(frame_of(spark, split(x, 3)), given(x[:10], local_steps=1, max_iter=500))
    assert result.record.converged and result.record.n_iter < 100
    assert result.record.rounds[-1].center_shift == 0.0


def test_nothing_stays_cached(spark, digits, newly_cached):
    frame = frame_of(spark, split(digits[0], 2)).cache()
    frame.count()
    fit(frame, FitConfig(k=3, max_iter=2))
    callers = newly_cached()
    assert len(callers) == 1, "the caller's cache, and nothing else"
    bad = frame_of(spark, [[[1.0], [float("nan")]]])
    with pytest.raises(InvalidInputError):
        fit(bad, FitConfig(k=1))
    with pytest.raises(InvalidInputError):
        fit(frame, given(np.zeros((3, 5))))
    assert newly_cached() == callers
    frame.unpersist()


def test_the_source_is_read_once(spark):
    rows = spark.sparkContext.accumulator(0)

    def read(i):
        rows.add(1)
        return ([float(i % 7), float(i % 11)],)

    rdd = spark.sparkContext.parallelize(range(500), 5).map(read)
    frame = spark.createDataFrame(rdd, "features array<double>")
    fit(frame, FitConfig(k=4, max_iter=12, local_steps=2))
    assert rows.value == 500
