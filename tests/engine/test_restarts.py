"""Restarts and several fits in the same Spark jobs."""

import uuid

import numpy as np
import pytest
from sklearn.datasets import load_digits

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.fit.driver import fit, fit_many

from .frames import frame_of, split


@pytest.fixture(scope="module")
def digits(spark):
    frame = frame_of(spark, split(load_digits().data, 4)).cache()
    yield frame
    frame.unpersist()


def jobs_of(spark, action):
    """Run an action; return its result and the number of Spark jobs."""
    context = spark.sparkContext
    group = f"counted-{uuid.uuid4()}"  # an address would come again
    context.setJobGroup(group, "counted")
    try:
        found = action()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    return found, len(context.statusTracker().getJobIdsForGroup(group))


@pytest.mark.parametrize("mode", ["k-means++", "local-k-means++", "k-means||", "random"])
def test_the_best_is_returned_and_the_record_tells_of_all(digits, mode):
    config = FitConfig(k=10, seed=3, n_init=4, init_mode=mode)
    result = fit(digits, config)
    restarts = result.record.restarts
    assert len(restarts) == 4 and len({row.seed for row in restarts}) == 4
    (chosen,) = [row for row in restarts if row.chosen]
    assert chosen.dropped is None and chosen.inertia == result.record.inertia
    assert chosen.n_rounds == result.record.n_rounds == len(result.record.rounds)
    assert result.record.inertia == min(r.inertia for r in restarts if r.dropped is None)
    assert sum(row.dropped is not None for row in restarts) >= 2
    for row in restarts:
        assert row.dropped is None or row.n_rounds <= row.dropped  # less if it had converged
    again = fit(digits, config)
    assert again.centers.tobytes() == result.centers.tobytes()
    assert again.record.restarts == restarts


def test_a_restart_can_be_repeated_alone(digits):
    # Rows drawn at random know nothing of the other restarts, so each is the fit of its seed.
    config = FitConfig(k=10, seed=3, n_init=3, init_mode="random")
    result = fit(digits, config)
    (chosen,) = [row for row in result.record.restarts if row.chosen]
    alone = fit(digits, FitConfig(k=10, seed=chosen.seed, init_mode="random"))
    assert alone.centers.tobytes() == result.centers.tobytes()
    assert len(alone.record.restarts) == 1 and alone.record.restarts[0].chosen


def test_restarts_share_their_jobs(spark, digits):
    config = FitConfig(k=10, seed=1, n_init=5)
    result, n_jobs = jobs_of(spark, lambda: fit(digits, config))
    record = result.record
    n_rounds = max(row.n_rounds for row in record.restarts)
    assert n_jobs <= 1 + record.seeding_passes + n_rounds + 1


def test_fits_side_by_side_are_the_fits_alone(spark, digits):
    configs = [
        FitConfig(k=3, seed=1),
        FitConfig(k=10, seed=1, local_steps=1, max_iter=7),
        FitConfig(k=6, seed=2, init_mode="k-means||", safeguard=False),
        FitConfig(k=5, seed=4, n_init=3, canonical_order=True),
        FitConfig(k=2, init_mode="given", initial_centers=load_digits().data[:2]),
        FitConfig(k=4, seed=1, max_iter=0),
    ]
    together, n_jobs = jobs_of(spark, lambda: fit_many(digits, configs))
    for config, result in zip(configs, together, strict=True):
        alone = fit(digits, config)
        assert alone.centers.tobytes() == result.centers.tobytes()
        assert alone.record.inertia == result.record.inertia
        assert alone.record.n_rounds == result.record.n_rounds
        assert [row.inertia for row in alone.record.rounds] == [
            row.inertia for row in result.record.rounds
        ]
    most = max(row.n_rounds for result in together for row in result.record.restarts)
    passes = max(result.record.seeding_passes for result in together)
    assert n_jobs <= 1 + 2 + passes + most + 3, "one job a step, whatever the number of fits"


def test_many_sets_of_centers_are_cut_into_jobs(spark, digits, monkeypatch):
    whole = fit(digits, FitConfig(k=10, seed=1, n_init=4))
    monkeypatch.setattr("localkmeans_spark.fit.partitions.SUMMARY_BYTES", 8 * 10 * 64 * 2)
    cut = fit(digits, FitConfig(k=10, seed=1, n_init=4))
    assert cut.centers.tobytes() == whole.centers.tobytes()


def test_five_restarts_find_all_clusters_of_cifar(spark, data_dir):
    """A tenth of the rows; on all of them, 20 seeds of 20 (README)."""
    x = np.load(data_dir / "cifar10_embeddings_512.npz")["X"][::10].astype(np.float64)
    rows = frame_of(spark, split(x, 4), element="float").cache()
    found = []
    for seed in range(4):
        config = FitConfig(k=10, seed=seed, n_init=5, data=DataConfig())
        found.append(fit(rows, config).record.inertia)
    rows.unpersist()
    assert max(found) < 1.001 * min(found)
    assert min(found) < 26_000, "about a tenth of the 246,700 of all rows"
