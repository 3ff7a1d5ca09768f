"""Local steps without memory: every step looks at every row. What sparse blocks use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from localkmeans_spark.kernel.lloyd import Block, lloyd_step
from localkmeans_spark.kernel.sparse_rows import SparseRows


def wants_plain_steps(blocks: Sequence[Block]) -> bool:
    """Whether the blocks are sparse: a row's product is cheap then, and bounds need dense rows."""
    return any(isinstance(block.x, SparseRows) for block in blocks)


class PlainSteps:
    """The cluster sums of a partition's rows, from step to step.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        Those of the last step.
    sums : ndarray of shape (k, n_features), float64
    weights : ndarray of shape (k,), float64
    """

    def __init__(self, blocks: Sequence[Block], centers: np.ndarray) -> None:
        self._blocks = blocks
        self.step(centers)

    def step(self, centers: np.ndarray, steps_left: int = 0) -> None:
        """Assign every row to the nearest of new centers."""
        self.centers = centers
        self.sums, self.weights = lloyd_step(self._blocks, centers)
