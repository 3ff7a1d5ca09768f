"""How deep a tree merges the tasks' summaries, so that the driver can hold what reaches it."""

from __future__ import annotations

import math

# Summaries of all tasks together up to this size go straight to the driver.
DIRECT_BYTES = 32 << 20
# Through a tree, the driver takes this much at once; Spark refuses spark.driver.maxResultSize.
TREE_BYTES = 256 << 20
# Every level is a stage of its own.
_MAX_DEPTH = 5


def levels(n_tasks: int, depth: int) -> list[int]:
    """Return how many tasks hold summaries at each level of ``RDD.treeAggregate``.

    The first is ``n_tasks``, the last is what reaches the driver.
    """
    found, left = [n_tasks], float(n_tasks)
    scale = max(math.ceil(n_tasks ** (1.0 / depth)), 2)
    while left > scale + left / scale:
        left /= scale
        found.append(int(left))
    return found


def tree_depth(n_tasks: int, summary_bytes: int) -> int:
    """Return the least depth whose last level the driver can hold, else the one that leaves least.

    Parameters
    ----------
    n_tasks : int
    summary_bytes : int
        Of one task.
    """
    if n_tasks * summary_bytes <= DIRECT_BYTES:
        return 1
    depths = range(2, _MAX_DEPTH + 1)
    for depth in depths:
        if levels(n_tasks, depth)[-1] * summary_bytes <= TREE_BYTES:
            return depth
    return min(depths, key=lambda depth: levels(n_tasks, depth)[-1])
