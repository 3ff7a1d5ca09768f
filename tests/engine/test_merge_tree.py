"""The tree that merges summaries: as deep as the driver needs, and as Spark builds it."""

from __future__ import annotations

import pytest

from localkmeans_spark.data.rdd_jobs import DIRECT_BYTES, TREE_BYTES, levels, tree_depth


def test_small_sums_go_straight_to_the_driver():
    assert tree_depth(12_000, 1_000) == 1
    assert levels(12_000, 1) == [12_000]


@pytest.mark.parametrize(("n_tasks", "summary_bytes"), [(12_000, 1 << 20), (12_000, 20 << 20)])
def test_driver_can_hold_what_reaches_it(n_tasks, summary_bytes):
    depth = tree_depth(n_tasks, summary_bytes)
    assert n_tasks * summary_bytes > DIRECT_BYTES
    assert levels(n_tasks, depth)[-1] * summary_bytes <= TREE_BYTES
    assert depth == 2 or levels(n_tasks, depth - 1)[-1] * summary_bytes > TREE_BYTES


def test_few_tasks_with_large_sums_take_the_tree_that_leaves_least():
    # Six tasks: depth 2 merges in threes; deeper trees leave three summaries, not two.
    assert levels(6, 2) == [6, 2]
    assert levels(6, 3) == [6, 3]
    assert tree_depth(6, 200 << 20) == 2


@pytest.mark.parametrize(("n_tasks", "depth"), [(6, 2), (30, 2), (30, 3), (7, 1)])
def test_levels_are_those_of_spark(spark, n_tasks, depth):
    # Each merge of lists keeps count of the summaries that the last stage had to merge.
    numbers = spark.sparkContext.parallelize(range(n_tasks), n_tasks)
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup(f"tree-{n_tasks}-{depth}", "")
    numbers.treeAggregate(0, lambda a, b: a + b, lambda a, b: a + b, depth=depth)
    (job,) = tracker.getJobIdsForGroup(f"tree-{n_tasks}-{depth}")
    stages = [tracker.getStageInfo(stage) for stage in tracker.getJobInfo(job).stageIds]
    assert sorted((s.numTasks for s in stages), reverse=True) == levels(n_tasks, depth)
