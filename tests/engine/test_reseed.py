"""Clusters that are empty everywhere: kept, or put on a row."""

import numpy as np
import pytest

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit.driver import fit

from .frames import frame_of, split


def config_of(centers, rule, **changes):
    options = {"max_iter": 20, "tol": 0.0, "seed": 3, **changes}
    return FitConfig(
        k=len(centers),
        init_mode="given",
        initial_centers=np.asarray(centers, dtype=float),
        empty_clusters=rule,
        data=DataConfig(dtype="float64"),
        **options,
    )


@pytest.mark.parametrize("local_steps", [1, 5])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_a_center_far_away(spark, kind, local_steps):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(90, 2)) if kind == "uniform" else rng.normal(100.0, 1.0, size=(90, 2))
    frame = frame_of(spark, split(x, 3))
    start = [x[0], x[1], [1e6, 1e6]]
    kept = fit(frame, config_of(start, "keep", local_steps=local_steps))
    np.testing.assert_array_equal(kept.centers[2], [1e6, 1e6])
    assert kept.record.cluster_sizes[2] == 0
    moved = fit(frame, config_of(start, "reseed", local_steps=local_steps))
    assert np.isfinite(moved.centers).all()
    assert (moved.centers >= x.min(axis=0)).all() and (moved.centers <= x.max(axis=0)).all()
    assert min(moved.record.cluster_sizes) > 0
    assert moved.record.inertia < kept.record.inertia
    assert sum(row.reseeded for row in moved.record.rounds) >= 1
    again = fit(frame, config_of(start, "reseed", local_steps=local_steps))
    assert again.centers.tobytes() == moved.centers.tobytes()
    other = fit(frame, config_of(start, "reseed", local_steps=local_steps, max_iter=1, seed=4))
    once = fit(frame, config_of(start, "reseed", local_steps=local_steps, max_iter=1))
    assert other.centers.tobytes() != once.centers.tobytes(), "another seed, another row"


def test_the_new_center_is_a_row_drawn_by_distance(spark):
    # After one exchange the only filled center is 0 (rows -1, 1, 0, 0); rows at 0 cannot be drawn.
    frame = frame_of(spark, [[[-1.0], [0.0]], [[1.0], [0.0]]])
    for seed in range(6):
        result = fit(frame, config_of([[0.1], [900.0]], "reseed", max_iter=1, seed=seed))
        assert result.centers[0, 0] == 0.0
        assert abs(result.centers[1, 0]) == 1.0
        assert not result.record.converged


def test_no_row_is_left_for_it(spark):
    frame = frame_of(spark, [[[2.0], [2.0]], [[2.0]]])
    result = fit(frame, config_of([[2.0], [900.0]], "reseed"))
    assert result.centers[:, 0].tolist() == [2.0, 900.0]
    assert result.record.converged
    assert sum(row.reseeded for row in result.record.rounds) == 0


def test_nothing_changes_without_empty_clusters(spark):
    x = np.random.default_rng(1).normal(size=(80, 3))
    frame = frame_of(spark, split(x, 2))
    kept, reseeded = (fit(frame, config_of(x[:4], rule)) for rule in ("keep", "reseed"))
    assert kept.centers.tobytes() == reseeded.centers.tobytes()
