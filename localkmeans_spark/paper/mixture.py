"""The paper's mixture model: data that every machine makes for itself from its own seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.paper.checks import (
    center_rows,
    check_positive,
    check_whole,
    check_wholes,
    share_numbers,
    whole_numbers,
)
from localkmeans_spark.paper.drawing import draw_rows

NOISES = ("gaussian", "uniform")
_CHUNK_BYTES = 4 << 20


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of one place in an experiment (a trial, a machine, a pass)."""
    check_whole("generator", "seed", seed, least=0)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


@dataclass(frozen=True)
class Mixture:
    """x = center of its cluster + noise, on m machines.

    Attributes
    ----------
    centers : ndarray of shape (K, d), float64
    sigma : float
        Standard deviation of the noise in every coordinate.
    counts : ndarray of shape (m, K), int64
        Rows of each cluster on each machine; all that the driver needs to know of the rows.
    seed : int
    noise : str
        ``"gaussian"``, or ``"uniform"`` on ``[-sqrt(3) sigma, sqrt(3) sigma]``: bounded, of
        variance sigma**2, and sub-Gaussian with that parameter.
    """

    centers: np.ndarray
    sigma: float
    counts: np.ndarray
    seed: int
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        # The class is frozen; lists become arrays here.
        object.__setattr__(self, "centers", center_rows("Mixture", "centers", self.centers))
        object.__setattr__(self, "counts", whole_numbers("Mixture", "counts", self.counts, 2))
        check_positive("Mixture", "sigma", self.sigma, or_zero=True)
        check_whole("Mixture", "seed", self.seed, least=0)
        k = len(self.centers)
        if self.counts.shape[1] != k:
            raise invalid(
                "Mixture", "counts", f"whole numbers >= 0 of shape (machines, {k})",
                Fact(f"shape {self.counts.shape}"), "See random_counts.",
            )  # fmt: skip
        if self.noise not in NOISES:
            raise invalid("Mixture", "noise", f"one of {NOISES}", self.noise, "Name one of them.")

    @property
    def n_machines(self) -> int:
        """Number of machines, m."""
        return len(self.counts)

    def chunks(
        self, machine: int, n_rows: int | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows and labels of one machine, some at a time, in random order.

        Parameters
        ----------
        machine : int
        n_rows : int or None
            Rows a chunk; None for about 4 MB. The rows depend on it, so keep to one value.
        """
        if n_rows is not None:
            check_whole("Mixture", "n_rows", n_rows)
        rng = generator(self.seed, machine)
        left = np.asarray(self.counts[machine], dtype=np.int64)
        k, d = self.centers.shape
        step = n_rows or max(1, _CHUNK_BYTES // (8 * d))
        while left.any():
            size = min(step, int(left.sum()))
            # A random chunk of what is left: the same as cutting up one shuffled list of labels.
            part = draw_rows(left, size, rng)
            left = left - part
            labels = rng.permutation(np.repeat(np.arange(k, dtype=np.int32), part))
            if self.noise == "gaussian":
                x = rng.normal(0.0, self.sigma, size=(size, d))
            else:
                x = rng.uniform(-1.0, 1.0, size=(size, d)) * (np.sqrt(3.0) * self.sigma)
            x += self.centers[labels]
            yield x, labels

    def rows(self, machine: int) -> tuple[np.ndarray, np.ndarray]:
        """Return all rows and labels of one machine."""
        parts = list(self.chunks(machine))
        if not parts:
            return np.empty((0, self.centers.shape[1])), np.empty(0, dtype=np.int32)
        return np.concatenate([x for x, _ in parts]), np.concatenate([z for _, z in parts])


def mixture_frame(spark: SparkSession, mixture: Mixture) -> DataFrame:
    """Return the mixture as a DataFrame, one partition a machine.

    The rows are made on the executors, some megabytes at a time; the driver holds the table of
    counts only.

    Returns
    -------
    DataFrame
        Columns ``machine`` (bigint), ``label`` (int) and ``features`` (array of double).
    """
    schema = "machine bigint, label int, features array<double>"
    machines = spark.range(0, mixture.n_machines, 1, mixture.n_machines)
    return machines.mapInArrow(_ArrowRows(mixture), schema)


@dataclass(frozen=True)
class _ArrowRows:
    """Turns machine numbers into their rows; runs on executors."""

    mixture: Mixture

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        d = self.mixture.centers.shape[1]
        for batch in batches:
            for machine in batch.column(0).to_pylist():
                for x, labels in self.mixture.chunks(machine):
                    offsets = pa.array(np.arange(0, x.size + 1, d, dtype=np.int32))
                    features = pa.ListArray.from_arrays(offsets, pa.array(x.reshape(-1)))
                    numbers = pa.array(np.full(len(x), machine, dtype=np.int64))
                    yield pa.RecordBatch.from_arrays(
                        [numbers, pa.array(labels), features],
                        names=["machine", "label", "features"],
                    )


def orthonormal_centers(k: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return k orthonormal rows of d coordinates in a random direction; needs k <= d."""
    check_wholes("orthonormal_centers", k=k, d=d)
    if k > d:
        raise invalid(
            "Mixture", "the number of orthonormal centers", f"<= the {d} dimensions", k,
            "Raise d, or give centers of your own.",
        )  # fmt: skip
    q, r = np.linalg.qr(rng.normal(size=(d, k)))
    return np.ascontiguousarray((q * np.sign(np.diag(r))).T)


def symmetric_centers(theta: np.ndarray) -> np.ndarray:
    """Return the two centers theta and -theta."""
    (row,) = center_rows("symmetric_centers", "theta", [theta])
    return np.stack([row, -row])


def balanced_sizes(n_rows: int, k: int) -> np.ndarray:
    """Share rows among k clusters as evenly as whole numbers allow."""
    check_wholes("balanced_sizes", n_rows=n_rows, k=k)
    return np.full(k, n_rows // k, dtype=np.int64) + (np.arange(k) < n_rows % k)


def random_counts(sizes: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Deal shuffled rows of the given cluster sizes to m machines in equal parts.

    Returns
    -------
    ndarray of shape (m, K), int64
    """
    left = _sizes("random_counts", sizes, m)
    counts = np.zeros((m, len(left)), dtype=np.int64)
    for machine, n in enumerate(balanced_sizes(int(left.sum()), m)):
        counts[machine] = draw_rows(left, n, rng)
        left = left - counts[machine]
    return counts


def independent_counts(
    m: int, n: int, k: int, rng: np.random.Generator, shares: np.ndarray | None = None
) -> np.ndarray:
    """Give every row of every machine a cluster at random, independently (n rows a machine)."""
    check_wholes("independent_counts", m=m, n=n, k=k)
    if shares is None:
        shares = np.full(k, 1.0 / k)
    else:
        shares = share_numbers("independent_counts", "shares", shares, k)
    return rng.multinomial(n, shares, size=m)


def sorted_counts(sizes: np.ndarray, m: int) -> np.ndarray:
    """Cut a table sorted by cluster into m equal runs."""
    ends = np.concatenate([[0], np.cumsum(_sizes("sorted_counts", sizes, m))])
    cuts = np.concatenate([[0], np.cumsum(balanced_sizes(int(ends[-1]), m))])
    low = np.maximum(ends[None, :-1], cuts[:-1, None])
    high = np.minimum(ends[None, 1:], cuts[1:, None])
    return np.maximum(high - low, 0)


def dirichlet_counts(m: int, n: int, k: int, a: float, rng: np.random.Generator) -> np.ndarray:
    """Give machine i n rows whose clusters are drawn from shares p_i ~ Dirichlet(a, ..., a)."""
    check_wholes("dirichlet_counts", m=m, n=n, k=k)
    check_positive("dirichlet_counts", "a", a)
    return rng.multinomial(n, rng.dirichlet(np.full(k, a), size=m))


def few_clusters_counts(m: int, n: int, k: int, per_machine: int) -> np.ndarray:
    """Give machine i equal parts of clusters i, i + 1, ..., i + per_machine - 1 (modulo k)."""
    owner = "few_clusters_counts"
    check_wholes(owner, m=m, n=n, k=k, per_machine=per_machine)
    if per_machine > k:
        raise invalid(owner, "per_machine", f"<= the {k} clusters", per_machine, "Raise k.")
    counts = np.zeros((m, k), dtype=np.int64)
    for machine in range(m):
        clusters = (machine + np.arange(per_machine)) % k
        counts[machine, clusters] = balanced_sizes(n, per_machine)
    return counts


def _sizes(owner: str, sizes: np.ndarray, m: int) -> np.ndarray:
    """Return checked sizes of clusters that m machines are to share."""
    check_wholes(owner, m=m)
    array = whole_numbers(owner, "sizes", sizes, 1)
    if not array.any():
        raise invalid(owner, "sizes", "those of at least 1 row", array.tolist(), "Give more rows.")
    return array
