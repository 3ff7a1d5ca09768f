"""Fits, from a DataFrame to centers and the record of how they came about."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame

from localkmeans_spark.engine.aggregate import Assignment
from localkmeans_spark.engine.blocks import open_blocks
from localkmeans_spark.engine.checkpoint import open_checkpoint
from localkmeans_spark.engine.columns import check_batch, check_dataframe
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.contest import Contest, restart_seeds
from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.questions import AskAssignment
from localkmeans_spark.engine.record import FitRecord, FitResult
from localkmeans_spark.engine.rounding import rounding_warnings
from localkmeans_spark.engine.rounds import SparkMachines
from localkmeans_spark.engine.together import run_to_the_end, seed_all
from localkmeans_spark.engine.worker_errors import told_plainly

logger = logging.getLogger("localkmeans_spark")


def fit(df: DataFrame, config: FitConfig) -> FitResult:
    """Run LocalKMeans on a DataFrame; see :func:`fit_many`."""
    return fit_many(df, [config])[0]


def fit_many(df: DataFrame, configs: Sequence[FitConfig]) -> list[FitResult]:
    """Run several fits of the same rows side by side.

    Parameters
    ----------
    df : DataFrame
    configs : sequence of FitConfig
        Values in range (the estimator's business); whether they fit the data is checked here.
        All have the same ``data`` and ``checkpoint_dir``.

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
    check_dataframe(df, first.owner)
    check_batch(df, first.owner, "Fit on a batch; transform works on streams.")
    checkpoint = open_checkpoint(df.sparkSession, first)
    seeds = {seed: None for item in configs for seed in restart_seeds(item.seed, item.n_init)}
    ks = [item.k for item in configs for _ in range(item.n_init)]
    with told_plainly(first.owner), open_blocks(df, first, list(seeds), ks) as blocks:
        clock.stop("ingest")
        machines = SparkMachines(blocks)
        contests = checkpoint.resume(configs, blocks.data)
        if contests is None:
            contests = [Contest(config, blocks.data) for config in configs]
            seed_all(contests, machines)
        clock.stop("seed")
        run_to_the_end(contests, machines, lambda: checkpoint.save(contests), clock.stop)
        results = [_result(contest, machines, clock) for contest in contests]
    checkpoint.remove()
    for text in dict.fromkeys(text for result in results for text in result.record.warnings):
        logger.warning(text)
    return results


class _Clock:
    """Wall seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = self._last = time.perf_counter()

    def stop(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now
        self.seconds["total"] = now - self._began


def _result(contest: Contest, machines: SparkMachines, clock: _Clock) -> FitResult:
    _, centers, assignment = contest.winner()
    if contest.config.canonical_order:
        centers, assignment = _by_size(centers, assignment, machines)
        clock.stop("final")
    record = _record(contest, machines.data, assignment, clock)
    return FitResult(centers=centers, origin=machines.data.origin, record=record)


def _by_size(
    centers: np.ndarray, assignment: Assignment, machines: SparkMachines
) -> tuple[np.ndarray, Assignment]:
    """Renumber the clusters by size, largest first; equal sizes by coordinates."""
    order = np.lexsort((*centers.T[::-1], -assignment.sizes))
    if np.array_equal(order, np.arange(len(order))):
        return centers, assignment
    # Rows at the same distance from two centers go to the lower number, so they are asked again.
    return centers[order], machines.answer([AskAssignment(centers[order])])[0]


def _record(
    contest: Contest, data: DataSummary, assignment: Assignment, clock: _Clock
) -> FitRecord:
    config = contest.config
    winner, centers, _ = contest.winner()
    run = winner.run
    everyone = [row for restart in contest.restarts for row in restart.run.rounds]
    inertia = float(assignment.inertia.sum())
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
        init_mode="given" if config.initial_centers is not None else config.init_mode,
        seed=config.seed,
        seeding_passes=contest.seeding_passes,
        n_iter=run.n_iter,
        n_rounds=len(run.rounds),
        reverts=run.reverts,
        converged=run.converged,
        inertia=inertia,
        cluster_sizes=assignment.sizes.tolist(),
        cluster_weights=assignment.weights.sum(axis=0).tolist(),
        cluster_inertia=assignment.inertia.sum(axis=0).tolist(),
        bytes_exchanged=sum(row.bytes_down + row.bytes_up for row in everyone),
        seconds=dict(clock.seconds),
        rounds=list(run.rounds),
        warnings=[*contest.warnings, *rounding_warnings(data, config, centers, assignment)],
        restarts=contest.records(winner),
        empty_clusters=config.empty_clusters,
        resumed_round=contest.resumed_round,
        distance_measure=config.data.distance_measure,
    )
