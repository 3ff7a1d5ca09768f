"""Few rows for many clusters: the driver holds all rows and draws among them without Spark.

A pass over the partitions brings draws with replacement, many for every row where clusters are
nearly as many as rows; the rows themselves are less, and say when no row is left.
"""

from __future__ import annotations

import numpy as np

from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.kernel.assign import exact_nearest
from localkmeans_spark.kernel.draws import Arrivals, weighted_indices

# The driver asks for all rows if there are fewer than so many for each cluster, or after so many
# passes that did not find all centers (values of very different sizes: each pass sees only the
# rows farthest away); and only if they fit into what a pass may bring.
_ROWS_PER_CLUSTER, _PATIENCE = 2, 6
# Memory for one pass's rows on the driver, unless one a missing center needs more.
PASS_BYTES = 64 << 20
# More draws at a time, for each row, would hardly bring others.
_DRAWS_A_ROW = 8


def driver_holds(data: DataSummary, k: int, passes: int) -> bool:
    """Whether the driver is to hold all rows, after so many passes of drawing k centers."""
    is_wanted = data.n_points < _ROWS_PER_CLUSTER * k or passes >= _PATIENCE
    return is_wanted and 8 * data.n_points * data.n_features <= PASS_BYTES


def draw_held(
    rows: np.ndarray,
    weights: np.ndarray,
    centers: np.ndarray,
    count: int,
    rng: np.random.Generator,
) -> Arrivals:
    """Draw rows in proportion to weight times squared distance, with replacement.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features), float64
        In the shared frame.
    weights : ndarray of shape (n,), float64
    centers : ndarray of shape (c, n_features), float64
    count : int
        Rows to draw, at most; none when every row is a center.
    rng : numpy.random.Generator
    """
    _, nearest = exact_nearest(rows, centers)
    rates = nearest * weights
    potential = float(rates.sum())
    count = min(count, _DRAWS_A_ROW * len(rates)) if potential > 0 else 0
    drawn = weighted_indices(rates, count, rng)
    times = np.arange(len(drawn)) / max(potential, 1e-300)
    return Arrivals(times, rows[drawn], nearest[drawn], potential)
