"""The tree that merges summaries: as deep as the driver needs, and as Spark builds it."""

from __future__ import annotations

import pytest

from localkmeans_spark.data.rdd_jobs import DIRECT_BYTES, tree_depth


@pytest.mark.parametrize(
    ("n_tasks", "summary_bytes", "depth"),
    [
        (12_000, 1_000, 1),
        (32, DIRECT_BYTES // 32, 1),
        (33, DIRECT_BYTES // 32, 2),
        (12_000, 1 << 20, 2),  # 110 MB reach the driver
        (12_000, 20 << 20, 4),  # 210 MB
        (12_000, 200 << 20, 5),
    ],
)
def test_the_tree_is_as_deep_as_the_driver_needs(n_tasks, summary_bytes, depth):
    assert tree_depth(n_tasks, summary_bytes) == depth


@pytest.mark.parametrize(("n_tasks", "depth"), [(6, 2), (30, 2), (30, 3), (30, 5), (7, 1)])
def test_spark_leaves_about_the_root(spark, n_tasks, depth):
    numbers = spark.sparkContext.parallelize(range(n_tasks), n_tasks)
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup(f"tree-{n_tasks}-{depth}", "")
    numbers.treeAggregate(0, lambda a, b: a + b, lambda a, b: a + b, depth=depth)
    (job,) = tracker.getJobIdsForGroup(f"tree-{n_tasks}-{depth}")
    stages = [tracker.getStageInfo(stage) for stage in tracker.getJobInfo(job).stageIds]
    assert min(stage.numTasks for stage in stages) <= n_tasks ** (1 / depth) + 2
