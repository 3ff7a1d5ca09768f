"""The simulated network delays what the fit measures, and only while it is asked to."""

from __future__ import annotations

import numpy as np

from benchmarks.local_steps import seconds_to
from benchmarks.slow_network import slow_network
from localkmeans_spark import LocalKMeans
from localkmeans_spark.engine.blocks import Blocks


def test_every_exchange_is_late(spark):
    rows = np.random.default_rng(0).normal(size=(200, 2)).tolist()
    frame = spark.createDataFrame([(row,) for row in rows], "features array<double>")
    before = Blocks.run
    estimator = LocalKMeans(k=3, maxIter=3, localSteps=1, tol=0.0, seed=0)
    with slow_network(0.4):
        late = estimator.fit(frame)
    assert Blocks.run is before
    assert all(row.seconds >= 0.4 for row in late.summary.record.rounds)
    soon = estimator.fit(frame)
    assert np.array_equal(late.clusterCenters(), soon.clusterCenters())


class _Round:
    def __init__(self, inertia: float, seconds: float) -> None:
        self.inertia, self.seconds = inertia, seconds


class _Record:
    rounds = [_Round(10.0, 1.0), _Round(6.0, 2.0), _Round(5.0, 4.0)]
    inertia = 4.9


def test_seconds_to_a_goal_count_the_rounds_that_led_there():
    # A round tells the inertia of the centers it began with: those that rounds before it made.
    assert seconds_to(_Record, 6.5) == 1.0
    assert seconds_to(_Record, 5.0) == 3.0
    assert seconds_to(_Record, 4.95) == 7.0
    assert seconds_to(_Record, 4.0) is None
