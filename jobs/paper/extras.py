"""What the paper does not show: the seeding's luck, and machines that hold different rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pyspark import SparkContext
from pyspark.sql import SparkSession

from jobs.paper import mixture as mx
from jobs.paper.experiments import HIGH, LOW, THREE, Setting, run_setting
from jobs.paper.machines import mixture_machines
from jobs.paper.tables import Tables, figure_tables
from localkmeans_spark import LocalKMeans
from localkmeans_spark.summary import FitRecord

RESTARTS = (1, 2, 5, 10)
LOCAL_STEPS: tuple[int, ...] = (1, 2, 3, 5, 10)
PLACEMENTS: dict[str, Callable[[int, int, int, np.random.Generator], np.ndarray]] = {
    "random": mx.independent_counts,
    "Dirichlet(0.1)": lambda m, n, k, rng: mx.dirichlet_counts(m, n, k, 0.1, rng),
    "three clusters a machine": lambda m, n, k, _: mx.few_clusters_counts(m, n, k, 3),
    "sorted by label": lambda m, n, k, _: mx.sorted_counts(mx.balanced_sizes(m * n, k), m),
}


def seeding_tables(context: SparkContext, trials: int, seed: int, quick: bool) -> Tables:
    """Run ten restarts a trial, and greedy seeding, at both noise levels of Figure 1.

    ``luck`` has final A by true clusters lost; ``restarts`` final A of the restart with the
    smallest objective (machines' rows around their own centers).
    """
    tables: dict[str, list[pd.DataFrame]] = {}
    for sigma in (LOW, HIGH):
        setting = Setting("seeding", sigma, methods=(THREE,))
        setting = setting.small() if quick else setting
        greedy = replace(setting, candidates=2 + int(math.log(setting.k)))
        (plain,) = run_setting(context, setting, trials, seed, restarts=RESTARTS[-1])
        (better,) = run_setting(context, greedy, trials, seed)
        r = round(setting.r, 2)
        for name, outcome in (("plain", plain), ("greedy", better)):
            about = {"figure": "seeding", "line": f"{name}, r = {r}", "r": r}
            for table, rows in figure_tables(about, [outcome], setting.n_steps).items():
                tables.setdefault(table, []).append(rows)
        final = plain.values["A"][:, -1]
        of_lost = {lost: final[plain.lost == lost] for lost in sorted(set(plain.lost.tolist()))}
        luck = [{"r": r, "lost": lost, "share": len(mine) / len(final), **_summary(mine)}
                for lost, mine in of_lost.items()]  # fmt: skip
        costs = plain.values["objective"][:, -1].reshape(trials, -1)
        best = [costs[:, :count].argmin(axis=1) for count in RESTARTS]
        ends = {f"best of {count}": final.reshape(trials, -1)[np.arange(trials), chosen]
                for count, chosen in zip(RESTARTS, best, strict=True)}  # fmt: skip
        ends["greedy, once"] = better.values["A"][:, -1]
        restarts = [{"r": r, "seeding": name, **_summary(mine)} for name, mine in ends.items()]
        tables.setdefault("luck", []).append(pd.DataFrame(luck))
        tables.setdefault("restarts", []).append(pd.DataFrame(restarts))
    return {name: pd.concat(parts) for name, parts in tables.items()}


def _summary(values: np.ndarray) -> dict[str, float]:
    n = len(values)
    std = float(values.std(ddof=1)) if n > 1 else 0.0
    return {"mean": float(values.mean()), "std": std, "se": std / math.sqrt(n), "runs": n}


def beyond_tables(context: SparkContext, trials: int, seed: int, quick: bool) -> Tables:
    """Fit every placement with every L, plain and safeguarded, through ``LocalKMeans.fit``.

    All fits of a trial begin with the same centers. ``fits`` has one row a fit; ``placements``
    means over trials; ``reach`` those over the trials that came within 0.1 % of the centralized
    objective: exchanges and bytes it took.
    """
    setting, steps = Setting("beyond", LOW), LOCAL_STEPS
    if quick:
        setting, steps, trials = setting.small(), (1, 3), 1
    rows = []
    for name, place in PLACEMENTS.items():
        for trial in range(trials):
            rng = mx.generator(seed, trial)
            centers = mx.orthonormal_centers(setting.k, setting.d, rng)
            counts = place(setting.m, setting.n, setting.k, rng)
            mixture = mx.Mixture(centers, setting.sigma, counts, int(rng.integers(2**62)))
            about = {"placement": name, "trial": trial}
            fits = _fits(context, mixture, setting, steps, seed + trial)
            rows += [{**about, **row} for row in fits]
    table = pd.DataFrame(rows)
    grouped = table.groupby(["placement", "method", "L"], sort=False)
    placements = grouped.agg(
        relative=("relative", "mean"), relative_se=("relative", "sem"), worst=("relative", "max"),
        exchanges=("exchanges", "mean"), bytes=("bytes", "mean"), trials=("trial", "count"),
    )  # fmt: skip
    reach = grouped.agg(
        reached=("reach_exchanges", "count"), trials=("trial", "count"),
        exchanges=("reach_exchanges", "mean"), exchanges_se=("reach_exchanges", "sem"),
        bytes=("reach_bytes", "mean"),
    )  # fmt: skip
    return {"fits": table, "placements": placements.reset_index(), "reach": reach.reset_index()}


def _fits(
    context: SparkContext, mixture: mx.Mixture, setting: Setting, steps: tuple[int, ...], seed: int
) -> Iterator[dict[str, Any]]:
    with mixture_machines(context, [mixture]) as machines:
        (start,) = machines.seed([0], setting.k, seed)
    estimator = LocalKMeans(
        k=setting.k, maxIter=setting.n_steps, tol=0.0, initialCenters=start.tolist(), seed=seed,
        dtype="float64",
    )  # fmt: skip
    ways = [(False, L) for L in steps] + [(True, L) for L in steps if L > 1]
    maps: list[Any] = [{estimator.safeguard: on, estimator.localSteps: L} for on, L in ways]
    models = estimator.fit(mixture.frame(SparkSession.builder.getOrCreate()), maps)
    records = [model.summary.record for model in models]
    central = records[0].inertia
    for (on, L), record in zip(ways, records, strict=True):
        reach = _first_within(record, 1.001 * central)
        yield {"method": "safeguarded" if on else "plain", "L": L,
               "relative": record.inertia / central, "exchanges": record.n_rounds,
               "bytes": record.bytes_exchanged, "reach_exchanges": reach[0],
               "reach_bytes": reach[1]}  # fmt: skip


def _first_within(record: FitRecord, limit: float) -> tuple[float, float]:
    """Exchanges and bytes until the objective is at most ``limit``; NaN if it never is."""
    spent = 0
    for place, row in enumerate(record.rounds):
        if row.inertia <= limit:
            return place, spent
        spent += row.bytes_down + row.bytes_up
    return (record.n_rounds, spent) if record.inertia <= limit else (math.nan, math.nan)
