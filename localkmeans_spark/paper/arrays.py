"""The paper's experiments on data that is at hand: rows dealt to machines at random."""

from __future__ import annotations

import numpy as np
from pyspark import SparkContext

from localkmeans_spark.paper.mixture import balanced_sizes, generator
from localkmeans_spark.paper.runs import Run
from localkmeans_spark.paper.settings import Method, Outcome
from localkmeans_spark.paper.trials import Trials, array_trials

_TRACE_BYTES = 256 << 20


def run_arrays(
    context: SparkContext,
    x: np.ndarray,
    labels: np.ndarray,
    *,
    k: int,
    m: int,
    methods: tuple[Method, ...],
    n_steps: int,
    trials: int,
    seed: int,
) -> list[Outcome]:
    """Run every method from the same LocalKMeans++ centers, ``trials`` times.

    The rows are dealt once to m machines in equal parts; trials differ in their initial centers.

    Returns
    -------
    list of Outcome
        With ``objective_common`` too: at t = T, all rows around the run's virtual iterate.
    """
    rng = generator(seed)
    machine_of_row = rng.permutation(np.repeat(np.arange(m), balanced_sizes(len(x), m)))
    # Trials go in groups: traces hold 2 sets of centers a step for every run.
    group = max(1, _TRACE_BYTES // (16 * n_steps * k * x.shape[1] * len(methods)))
    parts: list[list[Outcome]] = []
    with array_trials(context, x, labels, machine_of_row) as cached:
        for first in range(0, trials, group):
            size = min(group, trials - first)
            parts.append(_group(cached, k, methods, n_steps, size, seed + first))
    return [_joined([part[i] for part in parts]) for i in range(len(methods))]


def _group(
    cached: Trials, k: int, methods: tuple[Method, ...], n_steps: int, size: int, seed: int
) -> list[Outcome]:
    starts = cached.seed([0] * size, k, seed)
    runs = [
        Run(0, start, method.steps_of(n_steps), method.by_size)
        for method in methods
        for start in starts
    ]
    traces = cached.trace(runs, n_steps)
    costs = cached.objectives({0: {i: trace.centers[-1] for i, trace in enumerate(traces)}})
    outcomes = []
    for i, method in enumerate(methods):
        mine = range(i * size, (i + 1) * size)
        outcome = Outcome.of(method, [traces[j] for j in mine])
        common = np.full((size, n_steps), np.nan)
        common[:, -1] = [costs[j] for j in mine]
        outcome.values["objective_common"] = common
        outcomes.append(outcome)
    return outcomes


def _joined(parts: list[Outcome]) -> Outcome:
    first = parts[0]
    return Outcome(
        first.method,
        {name: np.concatenate([part.values[name] for part in parts]) for name in first.values},
        np.concatenate([part.lost for part in parts]),
        first.exchanges,
    )
