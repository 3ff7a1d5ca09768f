"""Fits, from a DataFrame to centers and the record of how they came about."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame

from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.columns import check_batch, check_dataframe
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.data.workers import told_plainly
from localkmeans_spark.fit.checkpoint import open_checkpoint
from localkmeans_spark.fit.measures import measure
from localkmeans_spark.fit.partitions import Partitions, open_partitions
from localkmeans_spark.fit.requests import Assignment, Request, assignment
from localkmeans_spark.fit.run import Fit, Run, restart_seeds
from localkmeans_spark.fit.warnings import FitWarnings
from localkmeans_spark.records import FitRecord, FitResult

logger = logging.getLogger("localkmeans_spark")


def fit(df: DataFrame, config: FitConfig) -> FitResult:
    """Run LocalKMeans on a DataFrame; see :func:`fit_many`."""
    return fit_many(df, [config])[0]


def fit_many(
    df: DataFrame, configs: Sequence[FitConfig], with_measures: bool = False
) -> list[FitResult]:
    """Run several fits of the same rows side by side.

    Parameters
    ----------
    df : DataFrame
    configs : sequence of FitConfig
        Values in range (the estimator's business); whether they fit the data is checked here.
        All have the same ``data`` and ``checkpoint_dir``.
    with_measures : bool
        Also say how good each clustering is: two more passes for all of them.

    Returns
    -------
    list of FitResult
        Each the same bits as its fit alone.

    Raises
    ------
    InvalidInputError
        If the columns, the rows or the given centers break a rule; nothing stays cached.

    Notes
    -----
    Spark jobs: 1 to read and summarise, the seeding passes, one a round, 1 for the final cost;
    all fits and their restarts share them.
    """
    clock = _Clock()
    first = configs[0]
    check_dataframe(df, OWNER)
    check_batch(df, OWNER, "Fit on a batch; transform works on streams.")
    checkpoint = open_checkpoint(df.sparkSession, first)
    seeds = {seed: None for item in configs for seed in restart_seeds(item.seed, item.n_init)}
    ks = [item.k for item in configs for _ in range(item.n_init)]
    with told_plainly(OWNER), open_partitions(df, first, list(seeds), ks) as partitions:
        clock.stop("ingest")
        fits = [Fit(config, partitions.data) for config in configs]
        checkpoint.resume(fits, partitions.data)
        run_to_the_end(fits, partitions, checkpoint.save, clock.stop)
        results = [_result(item, partitions, clock) for item in fits]
        if with_measures:
            found = measure(partitions, [item.centers for item in results], first.seed)
            results = [replace(item, measures=of) for item, of in zip(results, found, strict=True)]
        results = [_in_users_units(item, partitions.data) for item in results]
    checkpoint.remove()
    for text in dict.fromkeys(text for result in results for text in result.record.warnings):
        logger.warning(text)
    return results


def run_to_the_end(
    fits: Sequence[Fit],
    partitions: Partitions,
    after_round: Callable[[Sequence[Fit]], None] = lambda fits: None,
    stop_clock: Callable[[str], None] = lambda phase: None,
) -> None:
    """Do what the runs of all fits ask for, in shared jobs, until none asks for more.

    Parameters
    ----------
    fits : sequence of Fit
    partitions : Partitions
    after_round : callable (fits)
        Called after each job that ended a round (checkpoints).
    stop_clock : callable (phase)
        Called after each step with the phase it belonged to.
    """
    while pending := _pending(fits):
        n_rounds = [item.n_rounds for item in fits]
        answers = partitions.run([request for _, request in pending])
        for (run, _), (answer, cost) in zip(pending, answers, strict=True):
            run.take(answer, cost)
        stop_clock(pending[0][1].phase)
        moved = [
            item for item, before in zip(fits, n_rounds, strict=True) if item.n_rounds > before
        ]
        for item in moved:
            item.tell_round(item.prune(), len(fits) > 1)
        if moved:
            after_round(fits)


def _pending(fits: Sequence[Fit]) -> list[tuple[Run, Request]]:
    asked = [(run, run.ask()) for item in fits for run in item.running]
    return [(run, request) for run, request in asked if request is not None]


class _Clock:
    """Wall seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = self._last = time.perf_counter()

    def stop(self, phase: str) -> None:
        """Add what went by since the last stop to a phase."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now
        self.seconds["total"] = now - self._began


def _result(item: Fit, partitions: Partitions, clock: _Clock) -> FitResult:
    run, centers, found = item.winner()
    if item.config.canonical_order:
        centers, found = _by_size(centers, found, partitions)
        clock.stop("final")
    record = _record(item, run, partitions.data, centers, found, clock)
    return FitResult(centers=centers, origin=partitions.data.origin, record=record)


def _in_users_units(result: FitResult, data: DataSummary) -> FitResult:
    if data.factors is None:
        return result
    return replace(result, centers=result.centers / data.factors, scales=data.scales)


def _by_size(
    centers: np.ndarray, found: Assignment, partitions: Partitions
) -> tuple[np.ndarray, Assignment]:
    """Renumber the clusters by size, largest first; equal sizes by coordinates."""
    order = np.lexsort((*centers.T[::-1], -found.sizes))
    if np.array_equal(order, np.arange(len(order))):
        return centers, found
    # Rows at the same distance from two centers go to the lower number, so they are asked again.
    return centers[order], partitions.run([assignment(partitions.data, centers[order])])[0][0]


def _record(
    item: Fit,
    run: Run,
    data: DataSummary,
    centers: np.ndarray,
    found: Assignment,
    clock: _Clock,
) -> FitRecord:
    config, lloyd = item.config, run.lloyd
    assert lloyd is not None
    everyone = [row for other in item.runs if other.lloyd for row in other.lloyd.rounds]
    return FitRecord(
        k_requested=config.k,
        k=len(centers),
        n_points=data.n_points,
        n_features=data.n_features,
        n_partitions=len(data.statistics),
        n_skipped=data.n_skipped,
        sum_weights=data.sum_weights,
        local_steps=config.local_steps,
        max_iter=config.max_iter,
        tol=config.tol,
        safeguard=config.safeguard,
        dtype=config.data.dtype,
        init_mode=config.init_mode,
        seed=config.seed,
        seeding_passes=max(other.seeding_passes for other in item.runs),
        n_iter=lloyd.n_iter,
        n_rounds=len(lloyd.rounds),
        reverts=lloyd.reverts,
        converged=lloyd.converged,
        inertia=float(found.inertia.sum()),
        cluster_sizes=found.sizes.tolist(),
        cluster_weights=found.weights.sum(axis=0).tolist(),
        cluster_inertia=found.inertia.sum(axis=0).tolist(),
        bytes_exchanged=sum(row.bytes_down + row.bytes_up for row in everyone),
        seconds=dict(clock.seconds),
        rounds=list(lloyd.rounds),
        warnings=[
            *item.warnings,
            *item.few_rows(),
            *FitWarnings(data, config, centers, found).all(lloyd),
        ],
        restarts=item.records(run),
        empty_clusters=config.empty_clusters,
        resumed_round=item.resumed_round,
        distance_measure=config.data.distance_measure,
    )
