"""One fit, from a DataFrame to centers and the record of how they came about."""

from __future__ import annotations

import logging
import time

import numpy as np
from pyspark.sql import DataFrame

from localkmeans_spark.engine.aggregate import Assignment
from localkmeans_spark.engine.blocks import open_blocks
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.loop import LloydRun
from localkmeans_spark.engine.record import FitRecord, FitResult
from localkmeans_spark.engine.rounds import SparkMachines
from localkmeans_spark.engine.seeding import Seeding, seed_centers
from localkmeans_spark.errors import Fact, invalid

logger = logging.getLogger("localkmeans_spark")


def fit(df: DataFrame, config: FitConfig) -> FitResult:
    """Run LocalKMeans on a DataFrame.

    Parameters
    ----------
    df : DataFrame
    config : FitConfig
        Values in range (the estimator's business); whether they fit the data is checked here.

    Returns
    -------
    FitResult

    Raises
    ------
    InvalidInputError
        If the columns, the rows or the given centers break a rule; nothing stays cached.

    Notes
    -----
    Spark jobs: 1 to read and summarise, the seeding passes, one a round, 1 for the final cost.
    """
    clock = _Clock()
    if df.isStreaming:
        raise invalid(
            config.owner, "the data", "a batch DataFrame", Fact("a streaming DataFrame"),
            "Fit on a batch; transform works on streams.",
        )  # fmt: skip
    with open_blocks(df, config) as blocks:
        clock.stop("ingest")
        machines = SparkMachines(blocks)
        warnings: list[str] = []
        seeding = _initial_centers(machines, config, warnings)
        clock.stop("seed")
        run = LloydRun(
            seeding.centers,
            local_steps=config.local_steps,
            max_iter=config.max_iter,
            tol=config.tol,
            safeguard=config.safeguard,
            sum_sq=blocks.data.sum_sq,
        )
        centers, assignment = _run_to_the_end(run, machines, config, clock)
        if config.canonical_order:
            centers, assignment = _by_size(centers, assignment, machines)
            clock.stop("final")
        record = _record(config, blocks.data, run, assignment, seeding.passes, clock, warnings)
    for text in warnings:
        logger.warning(text)
    return FitResult(centers=centers, origin=blocks.data.origin, record=record)


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


def _initial_centers(machines: SparkMachines, config: FitConfig, warnings: list[str]) -> Seeding:
    data = machines.data
    if config.initial_centers is not None:
        centers = np.asarray(config.initial_centers, dtype=np.float64)
        if centers.shape != (config.k, data.n_features) or not np.isfinite(centers).all():
            raise invalid(
                config.owner, "parameter 'initialCenters'",
                f"a finite array of shape (k={config.k}, {data.n_features} features)",
                Fact(f"shape {centers.shape}, {int((~np.isfinite(centers)).sum())} not finite"),
                "Give one row a cluster, or change k.",
            )  # fmt: skip
        return Seeding(centers - data.frame.mean, 0)
    seeding = seed_centers(machines, config.k, config.init_mode, config.init_steps, config.seed)
    found = len(seeding.centers)
    if found < config.k:
        warnings.append(
            f"{config.owner}: k={config.k} clusters were asked for, but the data has only {found} "
            f"distinct rows; the model has {found} clusters."
        )
    return seeding


def _run_to_the_end(
    run: LloydRun, machines: SparkMachines, config: FitConfig, clock: _Clock
) -> tuple[np.ndarray, Assignment]:
    """Run rounds until the run settles; return absolute centers and their exact assignment."""
    while True:
        while (order := run.next_order()) is not None:
            steps = "1 local step" if order.local_steps == 1 else f"{order.local_steps} local steps"
            number = len(run.rounds) + 1
            (found,), traffic = machines.round([order], f"round {number}, {steps}")
            record = run.absorb(order, found, traffic)
            message = "round %d: %s, inertia %.6g"
            extra = {"round_record": record}  # for programs that show more than a line
            logger.info(message, number, steps, record.inertia, extra=extra)
            if config.on_round is not None:
                config.on_round(record)
        clock.stop("iterate")
        centers = run.centers + machines.data.frame.mean
        assignment = machines.assign(centers)
        clock.stop("final")
        if run.settle(float(assignment.inertia.sum())):
            return centers, assignment


def _by_size(
    centers: np.ndarray, assignment: Assignment, machines: SparkMachines
) -> tuple[np.ndarray, Assignment]:
    """Renumber the clusters by size, largest first; equal sizes by coordinates."""
    order = np.lexsort((*centers.T[::-1], -assignment.sizes))
    if np.array_equal(order, np.arange(len(order))):
        return centers, assignment
    # Rows at the same distance from two centers go to the lower number, so they are asked again.
    return centers[order], machines.assign(centers[order])


def _record(
    config: FitConfig,
    data: DataSummary,
    run: LloydRun,
    assignment: Assignment,
    seeding_passes: int,
    clock: _Clock,
    warnings: list[str],
) -> FitRecord:
    return FitRecord(
        k_requested=config.k,
        k=len(run.centers),
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
        seeding_passes=seeding_passes,
        n_iter=run.n_iter,
        n_rounds=len(run.rounds),
        reverts=run.reverts,
        converged=run.converged,
        inertia=float(assignment.inertia.sum()),
        cluster_sizes=assignment.sizes.tolist(),
        cluster_weights=assignment.weights.sum(axis=0).tolist(),
        cluster_inertia=assignment.inertia.sum(axis=0).tolist(),
        bytes_exchanged=sum(row.bytes_down + row.bytes_up for row in run.rounds),
        seconds=dict(clock.seconds),
        rounds=list(run.rounds),
        warnings=warnings,
        distance_measure=config.data.distance_measure,
    )
