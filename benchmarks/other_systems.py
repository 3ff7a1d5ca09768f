"""Systems without Spark: scikit-learn, dask-ml, faiss; all cores, float32 rows in memory.

Each from its own k-means++ (dask-ml: k-means||, its default), or from given centers.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.data import read_rows

Found = dict[str, Any]


class Laps:
    """Seconds from one call to the next, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def stop(self, name: str) -> None:
        """Note the seconds since the call before."""
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


def sklearn(options: argparse.Namespace) -> Found:
    """Run scikit-learn's Lloyd iterations after its greedy k-means++."""
    laps = Laps()
    from sklearn.cluster import KMeans, kmeans_plusplus

    laps.stop("start_s")
    x = read_rows(options.input)
    laps.stop("read_s")
    if options.initial is None:
        initial, _ = kmeans_plusplus(x, options.k, random_state=options.seed)
    else:
        initial = np.load(options.initial).astype(x.dtype)
    laps.stop("seed_s")
    fit = KMeans(options.k, init=initial, n_init=1, max_iter=options.iterations, tol=0.0).fit(x)
    laps.stop("iterate_s")
    return {"centers": fit.cluster_centers_, "iterations": int(fit.n_iter_), **laps.seconds}


def dask_ml(options: argparse.Namespace) -> Found:
    """Run dask-ml's KMeans on an array in memory, one chunk a Parquet file, threads."""
    laps = Laps()
    import dask
    import dask.array as da
    from dask_ml.cluster import KMeans
    from dask_ml.cluster.k_means import k_init

    laps.stop("start_s")
    with dask.config.set(scheduler="threads", num_workers=options.cores):
        x = da.concatenate([
            da.from_array(read_rows(path), chunks=-1)
            for path in sorted(options.input.glob("*.parquet"))
        ]).persist()  # fmt: skip
        laps.stop("read_s")
        if options.initial is None:
            initial = np.asarray(k_init(x, options.k, random_state=options.seed))
        else:
            initial = np.load(options.initial).astype(x.dtype)
        laps.stop("seed_s")
        fit = KMeans(options.k, init=initial, max_iter=options.iterations, tol=0.0).fit(x)
        laps.stop("iterate_s")
    return {"centers": fit.cluster_centers_, "iterations": int(fit.n_iter_), **laps.seconds}


def faiss(options: argparse.Namespace) -> Found:
    """Run faiss's Kmeans on all rows (by itself it takes 256 a cluster) after its k-means++."""
    laps = Laps()
    import faiss as library

    library.omp_set_num_threads(options.cores)
    laps.stop("start_s")
    x = read_rows(options.input)
    n, d = x.shape
    laps.stop("read_s")
    if options.initial is None:
        initial = np.empty((options.k, d), dtype=np.float32)
        seeding: Any = vars(library)["ClusteringInitialization"](d, options.k)
        seeding.method = library.ClusteringInitMethod_KMEANS_PLUS_PLUS
        seeding.seed = options.seed
        seeding.init_centroids(n, library.swig_ptr(x), library.swig_ptr(initial), 0, None)
    else:
        initial = np.load(options.initial).astype(np.float32)
    laps.stop("seed_s")
    fit = library.Kmeans(
        d, options.k, niter=options.iterations, seed=options.seed,
        max_points_per_centroid=n, min_points_per_centroid=1,
    )  # fmt: skip
    fit.train(x, init_centroids=initial)
    laps.stop("iterate_s")
    return {"centers": fit.centroids, "iterations": options.iterations, **laps.seconds}
