"""Few rows for many clusters: any k, any n, in memory of the data's size."""

import numpy as np
import pytest

from benchmarks.in_process import InProcessPartitions, result_of
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit import held_rows, seeding
from localkmeans_spark.fit.driver import fit

from .frames import frame_of, split

MODES = ["k-means++", "local-k-means++", "k-means||", "random"]
RNG = np.random.default_rng(5)
DISTINCT = np.round(np.stack([RNG.normal(44, 3, 337), RNG.normal(4200, 60, 337)], axis=1), 4)
ROWS = np.concatenate([DISTINCT, DISTINCT[:5]])


def seeded(x, k, mode, weights=None, parts=4, dtype="float64"):
    """Centers, absolute, and the most rows that a pass brought."""
    cut = [None] * parts if weights is None else np.array_split(weights, parts)
    kept = [(rows, w) for rows, w in zip(np.array_split(x, parts), cut, strict=True) if len(rows)]
    of_parts = None if weights is None else [w for _, w in kept]
    partitions = InProcessPartitions([rows for rows, _ in kept], of_parts, [3], dtype)
    most, run = 0, partitions.run

    def watched(asked):
        nonlocal most
        found = run(asked)
        for item, _ in found:
            for part in item if isinstance(item, list) else [item]:
                most = max(most, len(getattr(part, "times", ())))
        return found

    partitions.run = watched
    asking = seeding.seed_centers(partitions.data, k, mode, 2, 3)
    centers = result_of(asking, partitions).centers
    return centers + partitions.data.frame.mean, most


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [336, 337, 342, 1000, 100_000])
def test_clusters_for_all_distinct_rows(mode, k):
    centers, most = seeded(ROWS, k, mode)
    assert len(centers) == min(k, 337)
    assert len(np.unique(centers.round(6), axis=0)) == len(centers)
    assert most <= 10 * len(ROWS)  # k-means|| asks for 8 k


@pytest.mark.parametrize("mode", MODES)
def test_all_rows_travel_once(mode):
    partitions, asked = InProcessPartitions(np.array_split(DISTINCT, 4), None, [3]), []
    run = partitions.run
    partitions.run = lambda requests: (asked.extend(requests), run(requests))[1]
    found = result_of(seeding.seed_centers(partitions.data, 300, mode, 2, 3), partitions)
    assert len(found.centers) == 300
    titles = [request.description for request in asked]
    assert titles.count("all rows to the driver") == (mode != "random")
    assert found.passes == len(titles)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 9), (2, 5), (2, 2), (5, 4), (40, 39)])
def test_as_many_clusters_as_rows(mode, n, k):
    centers, _ = seeded(ROWS[:n], k, mode)
    assert len(centers) == min(n, k)


@pytest.mark.parametrize("mode", MODES)
def test_few_kinds_of_many_rows(mode):
    # A pass that finds no row left brings none of the copies either.
    x = np.repeat(DISTINCT[:5], 4000, axis=0)
    centers, most = seeded(x, 8, mode)
    assert len(centers) == 5
    assert most <= 2000


@pytest.mark.parametrize("mode", ["k-means++", "local-k-means++"])
def test_values_of_every_size(mode):
    # Each pass sees the few largest that are left; after some passes the driver takes all rows.
    x = np.ldexp(1.0, RNG.permutation(np.arange(-200, 200)))[:, None] * np.ones((1, 2))
    partitions = InProcessPartitions(split(x, 4), None, [1], "float64")
    found = result_of(seeding.seed_centers(partitions.data, 100, mode, 2, 1), partitions)
    assert len(found.centers) == 100
    assert found.passes <= held_rows._PATIENCE + 1


def test_draws_of_held_rows_follow_weight_times_squared_distance():
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    weights = np.array([5.0, 2.0, 1.0, 0.5])
    mass = weights * np.array([0.0, 1.0, 4.0, 10.0])
    counts = np.zeros(4)
    for seed in range(2000):
        found = held_rows.draw_held(x, weights, x[:1], 1000, np.random.default_rng(seed))
        assert found.potential == mass.sum()
        assert len(found.times) == 8 * len(x)
        counts += (found.rows[:, None] == x).all(axis=2).sum(axis=0)
    np.testing.assert_allclose(counts / counts.sum(), mass / mass.sum(), atol=0.01)
    rng = np.random.default_rng(0)
    assert len(held_rows.draw_held(x, weights, x, 10, rng).times) == 0


def test_clocks_that_stop_early_keep_the_law():
    # An order that hopes for a potential 1000 times too low: the arrivals kept are still draws.
    from localkmeans_spark.kernel.draws import draw_arrivals
    from localkmeans_spark.kernel.lloyd import Block

    x = np.array([[1.0], [2.0], [0.0], [3.0], [0.5]])
    blocks, mass = [Block(x[:2], None), Block(x[2:], None)], x[:, 0] ** 2
    counts, n = np.zeros(5), 0
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        found = draw_arrivals(blocks, np.zeros((1, 1)), 1000.0, rng, most=20)
        assert found.until == pytest.approx(20 / mass.sum())
        assert found.times.max() <= found.until
        n += len(found.times)
        counts += (found.rows == x[:, 0]).sum(axis=0)
    assert n / 3000 == pytest.approx(20, rel=0.03)
    np.testing.assert_allclose(counts / n, mass / mass.sum(), atol=0.01)


def test_copies_cost_no_memory():
    from localkmeans_spark.kernel.seeding import distinct_rows

    rows = np.concatenate([np.zeros((30_000, 2)), [[1.0, 0.0], [0.0, 3.0]], np.zeros((5, 2))])
    found = distinct_rows(rows, np.array([1e-3, 0.0]))
    assert found.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]]
    near = RNG.normal(scale=1e-5, size=(8000, 2)) + 0.5  # many cells meet there
    assert len(distinct_rows(near, np.full(2, 0.25))) <= 4


@pytest.mark.parametrize(
    "options",
    [
        {"k": 342}, {"k": 1000, "n_init": 3}, {"k": 342, "init_mode": "k-means||"},
        {"k": 1000, "init_mode": "random"}, {"k": 342, "empty_clusters": "reseed"},
        {"k": 342, "data": DataConfig(dtype="float64")},
    ],
    ids=str,
)  # fmt: skip
def test_a_fit_of_hardly_more_rows_than_clusters(spark, options):
    found = fit(frame_of(spark, split(ROWS, 3)), FitConfig(seed=1, **options)).record
    assert found.k == 337
    assert sorted(found.cluster_sizes)[-6:] == [1, 2, 2, 2, 2, 2]
    (told,) = found.warnings
    assert f"k={options['k']}" in told and "337 distinct rows" in told
    assert found.inertia < 1e-3


def test_whole_numbers_near_two_to_the_sixty_are_told_apart(spark):
    values = [(2**60 + step,) for step in (0, 1, 1000, 1001)]  # two numbers as doubles
    frame = spark.createDataFrame(values, "a long")
    for dtype in ("float32", "float64"):
        data = DataConfig(features_cols=("a",), dtype=dtype)
        result = fit(frame, FitConfig(k=2, seed=1, data=data))
        assert sorted(result.centers[:, 0]) == [2.0**60, 2.0**60 + 1024]
        assert result.record.inertia == 0.0
        assert "float64 keeps as multiples of 256" in "".join(result.record.warnings)


def test_long_work_of_the_driver_is_told(monkeypatch, caplog):
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    with caplog.at_level("INFO", "localkmeans_spark"):
        seeded(rows, 9, "k-means++")
        assert not caplog.messages
        monkeypatch.setattr(seeding, "_LONG_WORK", 1000)
        seeded(rows, 9, "k-means++")
    assert "the driver chooses up to 8 centers among" in caplog.messages[0]
