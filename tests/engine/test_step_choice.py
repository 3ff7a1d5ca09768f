"""localSteps="auto": partitions stop by themselves when a step gains little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.in_process import InProcessPartitions
from localkmeans_spark import LocalKMeans
from localkmeans_spark.config import FitConfig
from localkmeans_spark.fit.driver import run_to_the_end
from localkmeans_spark.fit.exchange import Exchange
from localkmeans_spark.fit.lloyd_run import LloydRun, Traffic
from localkmeans_spark.fit.requests import local_round
from localkmeans_spark.fit.run import Fit

FREE = Traffic(0, 0, 0.0)


def _run(max_iter=100):
    return LloydRun(
        np.zeros((1, 1)), local_steps="auto", max_iter=max_iter, tol=0.0, safeguard=True,
        sum_sq=1.0,
    )  # fmt: skip


def _found(inertia, disagreement=0.0, local_steps=1):
    return Exchange(
        np.full((1, 1), inertia), inertia, 1.0, 0.0, 0.0, disagreement, 0, local_steps=local_steps
    )


def _blobs():
    rng = np.random.default_rng(0)
    return 3 * rng.normal(size=(12, 4))[rng.integers(12, size=3_000)] + rng.normal(size=(3_000, 4))


@pytest.mark.parametrize(
    ("max_iter", "expected"),
    [(1, [1]), (3, [1, 1, 1]), (7, [3, 2, 1, 1]), (20, [5, 7, 4, 2, 1, 1]), (50, [5, 20, 12])],
)
def test_half_of_the_iterations_are_left_for_later_rounds(max_iter, expected):
    run, asked = _run(max_iter), []
    for inertia in range(100, 100 - len(expected), -1):
        order = run.next_order()
        asked.append(order.local_steps)
        assert order.enough > 0
        run.absorb(order, _found(inertia, local_steps=order.local_steps), FREE)
    assert asked == expected
    assert (run.next_order() is None) == (run.n_iter == max_iter)


def test_steps_that_no_partition_did_do_not_count():
    run = _run()
    record = run.absorb(run.next_order(), _found(100.0, local_steps=2), FREE)
    assert record.local_steps == run.n_iter == 2


def test_partitions_stop_when_a_step_gains_little():
    partitions = InProcessPartitions(np.array_split(_blobs(), 4))
    run, steps = _run(), []
    run.centers = _blobs()[:12] - partitions.data.frame.mean
    for enough in (0.1, 0.01, 0.0):
        order = run.next_order()._replace(local_steps=20, enough=enough)
        ((found, _),) = partitions.run([local_round(partitions.data, 1, order)])
        steps.append(found.local_steps)
    assert steps[0] < steps[1] < steps[2]


def test_after_a_rise_half_as_many_steps():
    run = _run()
    for inertia, steps in ((100.0, 9), (120.0, 9)):
        run.absorb(run.next_order(), _found(inertia, local_steps=steps), FREE)
    assert run.reverts == 1 and run.next_order().local_steps == 4


def test_where_partitions_disagree_it_goes_on_with_single_steps():
    run = _run()
    run.absorb(run.next_order(), _found(100.0, disagreement=0.9, local_steps=5), FREE)
    for inertia in (100.0, 90.0):
        order = run.next_order()
        assert order.local_steps == 1
        run.absorb(order, _found(inertia), FREE)


def test_one_cluster_has_converged_when_its_mean_stands_still(spark):
    rows = [(row,) for row in np.random.default_rng(1).normal(size=(600, 2)).tolist()]
    df = spark.createDataFrame(rows, "features array<double>").repartition(3)
    record = LocalKMeans(k=1, seed=1, localSteps="auto", tol=0.0).fit(df).summary.record
    assert record.converged and record.n_iter <= 5


class Reversed:
    """Partitions whose answers arrive the other way round."""

    def __init__(self, partitions):
        self.data, self._partitions = partitions.data, partitions
        partitions.partitions.reverse()

    def run(self, requests):
        return self._partitions.run(requests)


def test_the_same_bits_twice_and_in_any_order_of_the_answers():
    config = FitConfig(k=12, seed=3, max_iter=30, local_steps="auto", init_mode="random")
    bits = set()
    for arranged in (lambda found: found, lambda found: found, Reversed):
        partitions = InProcessPartitions(np.array_split(_blobs(), 5), seeds=[3])
        fit = Fit(replace(config), partitions.data)
        run_to_the_end([fit], arranged(partitions))
        bits.add(fit.winner()[1].tobytes())
    assert len(bits) == 1


def test_the_same_bits_on_spark_as_in_one_process(spark):
    """Whatever the number of cores, and however long a round takes."""
    parts = np.array_split(_blobs(), 5)
    rows = [[(row,) for row in part.tolist()] for part in parts]
    rdd = spark.sparkContext.parallelize(rows, 5).flatMap(lambda part: part)
    df = spark.createDataFrame(rdd, "features array<double>")
    model = LocalKMeans(k=12, seed=3, maxIter=30, localSteps="auto", initMode="random").fit(df)
    config = FitConfig(k=12, seed=3, max_iter=30, local_steps="auto", init_mode="random")
    partitions = InProcessPartitions(parts, seeds=[3], dtype="float32")
    fit = Fit(config, partitions.data)
    run_to_the_end([fit], partitions)
    assert np.array(model.clusterCenters()).tobytes() == fit.winner()[1].tobytes()
    record = model.summary.record
    assert record.local_steps == "auto" and record.rounds[0].local_steps > 1
