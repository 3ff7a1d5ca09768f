"""The paper's experiments as data; running one, with every quantity of the paper at every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from pyspark import SparkContext

from jobs.paper import mixture as mx
from jobs.paper.machines import Machines, Run, Trace, array_machines, mixture_machines
from localkmeans_spark import metrics

LOW, HIGH = 0.3, 0.15
"""Noise of Figure 1: r = 3.01 and r = 6.02."""
PAPER_STEPS = 30
"""T of all figures; the paper does not say."""
PLUS_PLUS, PERTURBED = "LocalKMeans++", "perturbed"
HALF = -1
"""Stands for L = T/2 in :class:`Method`."""
_TRACE_BYTES = 256 << 20


@dataclass(frozen=True)
class Method:
    """How machines work together: one curve of a figure."""

    name: str
    local_steps: int | None  # L; None never exchanges; HALF is T/2
    by_size: bool = True  # False exchanges plain means, as Section 1.1 has it

    def steps_of(self, n_steps: int) -> int | None:
        """Return L for T = n_steps."""
        return max(1, n_steps // 2) if self.local_steps == HALF else self.local_steps


ONE, THREE = Method("L = 1", 1), Method("L = 3", 3)
TWICE, ALONE = Method("L = T/2", HALF), Method("no aggregation", None)
PAPER_METHODS = (ONE, Method("L = 2", 2), THREE, TWICE, ALONE)
PLAIN_MEAN = Method("L = 3, plain mean", 3, by_size=False)


@dataclass(frozen=True)
class Setting:
    """One mixture and one kind of initialization: a panel, or one line of an appendix panel."""

    figure: str  # as on the command line: "1a"
    sigma: float
    k: int = 10
    m: int = 20
    n: int = 200  # rows a machine
    d: int = 100
    init: str = PLUS_PLUS
    perturbation: float = 0.1  # standard deviation in every coordinate of perturbed centers
    n_steps: int = PAPER_STEPS  # T
    methods: tuple[Method, ...] = (*PAPER_METHODS, PLAIN_MEAN)
    line: str = ""  # what tells this setting from the others of its figure
    candidates: int = 1  # of the seeding, as power
    power: int = 2

    @property
    def r(self) -> float:
        """Signal-to-noise ratio as the paper's experiments define it."""
        return metrics.snr_two(1.0, self.sigma, self.d, self.m * self.n)

    def small(self) -> Setting:
        """Return what a test can afford."""
        return replace(self, m=min(self.m, 4), n=50, d=20, k=min(self.k, 4), n_steps=6)

    def mixture(self, seed: int, trial: int) -> mx.Mixture:
        """Make one trial's mixture; settings that differ in sigma only share all but the scale."""
        rng = mx.generator(seed, trial)
        centers = mx.orthonormal_centers(self.k, self.d, rng)
        counts = mx.independent_counts(self.m, self.n, self.k, rng)
        return mx.Mixture(centers, self.sigma, counts, int(rng.integers(2**62)))


def _appendix(line: str, sigma: float, figure: str, **sizes: int) -> Setting:
    return Setting(figure, sigma, methods=(THREE, PLAIN_MEAN), line=line, **sizes)  # type: ignore[arg-type]


SYNTHETIC: dict[str, list[Setting]] = {
    "1a": [Setting("1a", LOW)],
    "1b": [Setting("1b", HIGH)],
    "1c": [Setting("1c", LOW, init=PERTURBED)],
    "1d": [Setting("1d", HIGH, init=PERTURBED)],
    "4a": [
        _appendix(f"r = {r:g}", metrics.snr_two(1.0, r, 100, 4000), "4a")
        for r in (1.0, 1.5, 2.0, 3.01, 4.5, 6.02)
    ],
    "4b": [_appendix(f"K = {k}", LOW, "4b", k=k) for k in (2, 5, 10, 20, 40)],
    "4c": [
        _appendix(f"m = {m}", LOW, "4c", m=m, n=4000 // m) for m in (10, 20, 50, 100, 200, 400)
    ],
    # What the paper leaves open, one setting a variant.
    "choices": [
        *(Setting("choices", LOW, n_steps=t, methods=(ONE, TWICE), line=f"T = {t}")
          for t in (20, 30, 60)),
        *(Setting("choices", LOW, init=PERTURBED, perturbation=p, methods=(ONE, TWICE, ALONE),
                  line=f"perturbation {p:g}") for p in (0.02, 0.05, 0.1, 0.2, 0.3)),
        *(Setting("choices", sigma, power=power, methods=(ONE, THREE),
                  line=f"{name} distance, r = {r}")
          for sigma, r in ((LOW, "3.01"), (HIGH, "6.02"))
          for power, name in ((2, "squared"), (1, "plain"))),
    ],
}  # fmt: skip


class Outcome(NamedTuple):
    """What one method gave in one setting, trial by trial."""

    method: Method
    values: dict[str, np.ndarray]  # (trials, T) by quantity, see curve_quantities
    lost: np.ndarray  # (trials,): true clusters lost at the end
    exchanges: int  # of a run, the first (which changes nothing) included


def curve_quantities(
    trace: Trace, truth: np.ndarray | None = None, own_matching: bool = False
) -> dict[str, np.ndarray]:
    """Return the paper's quantities of one run at every step, each of shape (T,).

    Clusters are matched with true clusters at every step anew, by the counts of all machines;
    with ``own_matching`` there is ``A_own`` too, where every machine has a matching of its own.
    Lambda (also of the plain mean, and by machine) needs true centers (K, d). The objective is
    that of every machine's rows around the centers that labelled them.
    """
    rows: list[dict[str, float]] = []
    gamma = metrics.separation(truth)[0] if truth is not None else 1.0
    for step, counts in enumerate(trace.counts):
        total = counts.sum(axis=0)
        g = metrics.clusterwise_error(counts)
        row = {
            "A": metrics.misclustering(total),
            "A_i_max": np.nanmax(metrics.partition_misclustering(counts)),
            "G": metrics.clusterwise_error(total),
            "G_i_mean": g.mean(), "G_i_max": g.max(),
        }  # fmt: skip
        if own_matching:
            wrong = [metrics.misclustering(one) * one.sum() for one in counts if one.any()]
            row["A_own"] = sum(wrong) / total.sum()
        if truth is not None:
            matched = metrics.matching(total)
            for name, centers in (("Lambda", trace.centers), ("Lambda_plain", trace.plain_means)):
                sq = metrics.sq_distances_between(centers[step], truth)
                row[name] = metrics.center_error(sq, matched, gamma)
            local = metrics.center_error(trace.sq_to_truth[step], matched, gamma)
            row["Lambda_i_mean"], row["Lambda_i_max"] = local.mean(), local.max()
        rows.append(row)
    values = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    return {**values, "Delta": trace.deviation, "objective": trace.inertia.sum(axis=1)}


def clusters_lost(counts: np.ndarray) -> int:
    """Count true clusters that are the largest part of no cluster; counts (K, K) of all rows."""
    return len(counts) - len(set(counts[:, counts.any(axis=0)].argmax(axis=0).tolist()))


def _outcomes(
    machines: Machines, setting: Setting, datasets: list[int], starts: list[np.ndarray],
    costs: bool = False,
) -> list[Outcome]:  # fmt: skip
    """Run every method from every start, all in the same jobs, and measure them."""
    runs = [
        Run(dataset, start, method.steps_of(setting.n_steps), method.by_size)
        for method in setting.methods
        for dataset, start in zip(datasets, starts, strict=True)
    ]
    traces = machines.trace(runs, setting.n_steps)
    outcomes = []
    for i, method in enumerate(setting.methods):
        mine = traces[i * len(starts) : (i + 1) * len(starts)]
        each = [
            curve_quantities(trace, machines.truth.get(dataset), method.local_steps is None)
            for trace, dataset in zip(mine, datasets, strict=True)
        ]
        values = {name: np.array([one[name] for one in each]) for name in each[0]}
        if costs:
            common = machines.costs(datasets, [trace.centers[-1] for trace in mine])
            values["objective_common"] = np.full(values["A"].shape, np.nan)
            values["objective_common"][:, -1] = common
        lost = np.array([clusters_lost(trace.counts[-1].sum(axis=0)) for trace in mine])
        outcomes.append(Outcome(method, values, lost, len(mine[0].exchanges)))
    return outcomes


def run_setting(
    context: SparkContext, setting: Setting, trials: int, seed: int, restarts: int = 1
) -> list[Outcome]:
    """Run every method of a setting on every trial, all in the same Spark jobs.

    Outcomes have trials x ``restarts`` rows, independent initial centers of a trial together.
    """
    mixtures = [setting.mixture(seed, trial) for trial in range(trials)]
    states = [trial for trial in range(trials) for _ in range(restarts)]
    with mixture_machines(context, mixtures) as machines:
        if setting.init == PERTURBED:
            shape = (setting.k, setting.d)
            starts = [
                mixtures[trial].centers
                + mx.generator(seed, state, 1).normal(0.0, setting.perturbation, size=shape)
                for state, trial in enumerate(states)
            ]
        else:
            starts = machines.seed(states, setting.k, seed, setting.candidates, setting.power)
        return _outcomes(machines, setting, states, starts)


def run_arrays(
    context: SparkContext, x: np.ndarray, labels: np.ndarray, setting: Setting, trials: int,
    seed: int,
) -> list[Outcome]:  # fmt: skip
    """Run the setting's methods from the same LocalKMeans++ centers, ``trials`` times.

    The rows are dealt once to m machines in equal parts; trials differ in their initial centers.
    Outcomes have ``objective_common`` too: at t = T, all rows around the run's virtual iterate.
    """
    k, m, n_steps = setting.k, setting.m, setting.n_steps
    machines_in_order = np.repeat(np.arange(m), mx.balanced_sizes(len(x), m))
    machine_of_row = mx.generator(seed).permutation(machines_in_order)
    # Trials go in groups: traces hold 2 sets of centers a step for every run.
    size = max(1, _TRACE_BYTES // (16 * n_steps * k * x.shape[1] * len(setting.methods)))
    parts: list[list[Outcome]] = []
    with array_machines(context, x, labels, machine_of_row) as machines:
        for first in range(0, trials, size):
            datasets = [0] * min(size, trials - first)
            starts = machines.seed(datasets, k, seed + first)
            parts.append(_outcomes(machines, setting, datasets, starts, costs=True))
    return [
        first._replace(
            values={name: np.concatenate([part.values[name] for part in (first, *others)])
                    for name in first.values},
            lost=np.concatenate([part.lost for part in (first, *others)]),
        )
        for first, *others in zip(*parts, strict=True)
    ]  # fmt: skip
