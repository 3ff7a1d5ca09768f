"""The paper's mixture model: rows that every machine (a partition) makes from its own seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.errors import invalid


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of one place in an experiment (a trial, a machine, a pass)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


class Mixture(NamedTuple):
    """x = center of its cluster + Gaussian noise, on m machines.

    Attributes
    ----------
    centers : ndarray of shape (K, d), float64
    sigma : float
        Standard deviation of the noise in every coordinate.
    counts : ndarray of shape (m, K), int64
        Rows of each cluster on each machine; all that the driver needs to know of the rows.
    seed : int
    """

    centers: np.ndarray
    sigma: float
    counts: np.ndarray
    seed: int

    def rows(self, machine: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of one machine, in random order, and their true clusters."""
        rng = generator(self.seed, machine)
        clusters = np.arange(len(self.centers), dtype=np.int32)
        labels = rng.permutation(np.repeat(clusters, self.counts[machine]))
        noise = rng.normal(0.0, self.sigma, size=(len(labels), self.centers.shape[1]))
        return noise + self.centers[labels], labels

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame, one partition a machine, made on the executors.

        Columns ``machine`` (bigint), ``label`` (int) and ``features`` (array of double).
        """
        m = len(self.counts)
        schema = "machine bigint, label int, features array<double>"
        return spark.range(0, m, 1, m).mapInPandas(self._frames, schema)

    def _frames(self, numbers: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for machine in (machine for frame in numbers for machine in frame["id"]):
            x, labels = self.rows(machine)
            if len(x):
                yield pd.DataFrame({"machine": machine, "label": labels, "features": list(x)})


def orthonormal_centers(k: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return k orthonormal rows of d coordinates in a random direction; needs k <= d."""
    if k > d:
        raise invalid("Mixture", "the number of orthonormal centers", f"<= d = {d}", k, "Raise d.")
    q, r = np.linalg.qr(rng.normal(size=(d, k)))
    return np.ascontiguousarray((q * np.sign(np.diag(r))).T)


def balanced_sizes(n_rows: int, k: int) -> np.ndarray:
    """Share rows among k clusters as evenly as whole numbers allow."""
    return np.full(k, n_rows // k, dtype=np.int64) + (np.arange(k) < n_rows % k)


def independent_counts(m: int, n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Give each of the n rows of every machine a cluster at random; shape (m, K)."""
    return rng.multinomial(n, np.full(k, 1.0 / k), size=m)


def dirichlet_counts(m: int, n: int, k: int, a: float, rng: np.random.Generator) -> np.ndarray:
    """Give machine i n rows whose clusters are drawn from shares p_i ~ Dirichlet(a, ..., a)."""
    return rng.multinomial(n, rng.dirichlet(np.full(k, a), size=m))


def few_clusters_counts(m: int, n: int, k: int, per_machine: int) -> np.ndarray:
    """Give machine i equal parts of clusters i, i + 1, ..., i + per_machine - 1 (modulo k)."""
    counts = np.zeros((m, k), dtype=np.int64)
    for machine in range(m):
        counts[machine, (machine + np.arange(per_machine)) % k] = balanced_sizes(n, per_machine)
    return counts


def sorted_counts(sizes: np.ndarray, m: int) -> np.ndarray:
    """Cut a table sorted by cluster into m equal runs; sizes of the clusters."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    cuts = np.concatenate([[0], np.cumsum(balanced_sizes(int(ends[-1]), m))])
    low = np.maximum(ends[None, :-1], cuts[:-1, None])
    high = np.minimum(ends[None, 1:], cuts[1:, None])
    return np.maximum(high - low, 0)
