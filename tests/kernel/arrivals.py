"""Arrivals of one partition, for tests of what the driver makes of them."""

import numpy as np

from localkmeans_spark.kernel.draws import Arrivals, draw_arrivals
from localkmeans_spark.kernel.lloyd import Block


def arrivals_of(x, centers, count, rng):
    potential = ((x[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()
    found = draw_arrivals([Block(x, None)], centers, count / potential, rng)
    order = np.argsort(found.times)
    rows, sq_distances = found.rows[order], found.sq_distances[order]
    return Arrivals(found.times[order], rows, sq_distances, found.potential)


def cost(x, centers):
    return ((x[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()
