"""Beyond the paper: machines that hold different rows, and communication for the same quality.

These runs go through ``LocalKMeans.fit`` itself, the paper's plain algorithm against the
library's safeguard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark import SparkContext
from pyspark.sql import SparkSession

from jobs.paper_data import OWNER
from jobs.progress import say
from localkmeans_spark import LocalKMeans
from localkmeans_spark.paper.figures import LOW
from localkmeans_spark.paper.mixture import (
    Mixture,
    balanced_sizes,
    dirichlet_counts,
    few_clusters_counts,
    generator,
    independent_counts,
    mixture_frame,
    orthonormal_centers,
    sorted_counts,
)
from localkmeans_spark.paper.trials import mixture_trials
from localkmeans_spark.summary import FitRecord

LOCAL_STEPS = (1, 2, 3, 5, 10)
WITHIN = 1.001
"""Near enough to the centralized objective: 0.1 %."""

Placement = Callable[[int, int, int, np.random.Generator], np.ndarray]

PLACEMENTS: dict[str, Placement] = {
    "random": independent_counts,
    "Dirichlet(0.1)": lambda m, n, k, rng: dirichlet_counts(m, n, k, 0.1, rng),
    "three clusters a machine": lambda m, n, k, _: few_clusters_counts(m, n, k, 3),
    "sorted by label": lambda m, n, k, _: sorted_counts(balanced_sizes(m * n, k), m),
}


@dataclass(frozen=True)
class _Sizes:
    k: int = 10
    m: int = 20
    n: int = 200
    d: int = 100
    n_steps: int = 30
    local_steps: tuple[int, ...] = LOCAL_STEPS


def beyond_tables(
    context: SparkContext, trials: int, seed: int, quick: bool = False
) -> dict[str, pd.DataFrame]:
    """Fit every placement with every L, plain and safeguarded, from the same initial centers.

    Returns
    -------
    dict of str to DataFrame
        ``fits``: one row a fit; ``placements`` and ``reach``: means over trials.
    """
    sizes = _Sizes()
    if quick:
        sizes, trials = _Sizes(k=4, m=4, n=50, d=20, n_steps=6, local_steps=(1, 3)), 1
    rows = []
    for name, place in PLACEMENTS.items():
        say(OWNER, f"beyond, {name}: {trials} trials")
        for trial in range(trials):
            rng = generator(seed, trial)
            mixture = Mixture(
                orthonormal_centers(sizes.k, sizes.d, rng), LOW,
                place(sizes.m, sizes.n, sizes.k, rng), seed=int(rng.integers(2**62)),
            )  # fmt: skip
            about = {"placement": name, "trial": trial}
            rows += [{**about, **row} for row in _fits(context, mixture, sizes, seed + trial)]
    fits = pd.DataFrame(rows)
    return {"fits": fits, "placements": _placements(fits), "reach": _reach(fits)}


def _fits(
    context: SparkContext, mixture: Mixture, sizes: _Sizes, seed: int
) -> Iterator[dict[str, Any]]:
    """Fit a mixture in every way from the same initial centers, all in the same passes."""
    with mixture_trials(context, [mixture]) as cached:
        (start,) = cached.seed([0], sizes.k, seed)
    spark = SparkSession.getActiveSession()
    assert spark is not None
    estimator = LocalKMeans(
        k=sizes.k, maxIter=sizes.n_steps, tol=0.0, initialCenters=start.tolist(), seed=seed,
        dtype="float64",
    )  # fmt: skip
    ways = [(False, steps) for steps in sizes.local_steps]
    ways += [(True, steps) for steps in sizes.local_steps if steps > 1]  # L = 1 needs no guard
    maps: list[Any] = [
        {estimator.safeguard: safeguard, estimator.localSteps: steps} for safeguard, steps in ways
    ]
    models = estimator.fit(mixture_frame(spark, mixture), maps)
    records = [model.summary.record for model in models]
    centralized = records[0].inertia
    for (safeguard, steps), record in zip(ways, records, strict=True):
        yield {
            "method": "safeguarded" if safeguard else "plain",
            "L": steps,
            "relative": record.inertia / centralized,
            "exchanges": record.n_rounds,
            "bytes": record.bytes_exchanged,
            **_first_within(record, WITHIN * centralized),
        }


def _first_within(record: FitRecord, limit: float) -> dict[str, float]:
    """Exchanges and bytes until the objective is at most ``limit``; NaN if it never is."""
    spent = 0
    for place, row in enumerate(record.rounds):
        if row.inertia <= limit:
            return {"reach_exchanges": place, "reach_bytes": spent}
        spent += row.bytes_down + row.bytes_up
    if record.inertia <= limit:
        return {"reach_exchanges": record.n_rounds, "reach_bytes": spent}
    return {"reach_exchanges": np.nan, "reach_bytes": np.nan}


def _placements(fits: pd.DataFrame) -> pd.DataFrame:
    grouped = fits.groupby(["placement", "method", "L"], sort=False)
    return grouped.agg(
        relative=("relative", "mean"),
        relative_se=("relative", "sem"),
        worst=("relative", "max"),
        exchanges=("exchanges", "mean"),
        bytes=("bytes", "mean"),
        trials=("trial", "count"),
    ).reset_index()


def _reach(fits: pd.DataFrame) -> pd.DataFrame:
    """Means over the trials that came within 0.1 % of the centralized objective."""
    grouped = fits.groupby(["placement", "method", "L"], sort=False)
    return grouped.agg(
        reached=("reach_exchanges", "count"),
        trials=("trial", "count"),
        exchanges=("reach_exchanges", "mean"),
        exchanges_se=("reach_exchanges", "sem"),
        bytes=("reach_bytes", "mean"),
    ).reset_index()
