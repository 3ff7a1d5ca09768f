"""The paper's synthetic experiments as data, and running one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyspark import SparkContext

from localkmeans_spark.paper.curves import clusters_lost, curve_quantities
from localkmeans_spark.paper.mixture import (
    Mixture,
    generator,
    independent_counts,
    orthonormal_centers,
)
from localkmeans_spark.paper.quantities import snr_two
from localkmeans_spark.paper.runs import Run, Trace
from localkmeans_spark.paper.trials import mixture_trials

PLUS_PLUS, PERTURBED = "LocalKMeans++", "perturbed"
HALF = -1
"""Stands for L = T/2 in :class:`Method`."""


@dataclass(frozen=True)
class Method:
    """How machines work together: one curve of a figure.

    Attributes
    ----------
    name : str
    local_steps : int or None
        L; None never exchanges; ``HALF`` is T/2.
    by_size : bool
        False exchanges plain means.
    shown : bool
        Whether the paper's figure has this curve.
    """

    name: str
    local_steps: int | None
    by_size: bool = True
    shown: bool = True

    def steps_of(self, n_steps: int) -> int | None:
        """Return L for T = n_steps."""
        return max(1, n_steps // 2) if self.local_steps == HALF else self.local_steps


ALONE = Method("no aggregation", None)
PAPER_METHODS = (
    Method("L = 1", 1),
    Method("L = 2", 2),
    Method("L = 3", 3),
    Method("L = T/2", HALF),
    ALONE,
)
PLAIN_MEAN = Method("L = 3, plain mean", 3, by_size=False, shown=False)


@dataclass(frozen=True)
class Setting:
    """One mixture and one kind of initialization: a panel, or one line of an appendix panel.

    Attributes
    ----------
    figure : str
        As on the command line: ``"1a"``.
    sigma : float
    k, m, n, d : int
        Clusters, machines, rows a machine, dimensions.
    init : str
        ``PLUS_PLUS`` or ``PERTURBED``.
    perturbation : float
        Standard deviation in every coordinate of perturbed initial centers.
    n_steps : int
        T.
    methods : tuple of Method
    line : str
        What tells this setting from the others of its figure.
    candidates, power : int
        See :meth:`Trials.seed`.
    """

    figure: str
    sigma: float
    k: int = 10
    m: int = 20
    n: int = 200
    d: int = 100
    init: str = PLUS_PLUS
    perturbation: float = 0.1
    n_steps: int = 30
    methods: tuple[Method, ...] = (*PAPER_METHODS, PLAIN_MEAN)
    line: str = ""
    candidates: int = 1
    power: int = 2

    @property
    def r(self) -> float:
        """Signal-to-noise ratio as the paper's experiments define it."""
        return snr_two(1.0, self.sigma, self.d, self.m * self.n)

    def mixture(self, seed: int, trial: int) -> Mixture:
        """Make one trial's mixture; settings that differ in sigma only share all but the scale."""
        rng = generator(seed, trial)
        return Mixture(
            centers=orthonormal_centers(self.k, self.d, rng),
            sigma=self.sigma,
            counts=independent_counts(self.m, self.n, self.k, rng),
            seed=int(rng.integers(2**62)),
        )


@dataclass(frozen=True)
class Outcome:
    """What one method gave in one setting, trial by trial.

    Attributes
    ----------
    method : Method
    values : dict of str to ndarray of shape (trials, T)
        By quantity (:func:`curve_quantities`).
    lost : ndarray of shape (trials,), int
        True clusters lost at the end.
    exchanges : int
        Exchanges a run made, the first (which changes nothing) included.
    """

    method: Method
    values: dict[str, np.ndarray]
    lost: np.ndarray
    exchanges: int

    @classmethod
    def of(
        cls, method: Method, traces: list[Trace], truths: list[np.ndarray] | None = None
    ) -> Outcome:
        """Measure the traces of one method, one a trial."""
        alone = method.local_steps is None
        each = [
            curve_quantities(trace, truths[i] if truths else None, own_matching=alone)
            for i, trace in enumerate(traces)
        ]
        return cls(
            method,
            {name: np.array([one[name] for one in each]) for name in each[0]},
            np.array([clusters_lost(trace.counts[-1].sum(axis=0)) for trace in traces]),
            len(traces[0].exchanges),
        )


def run_setting(
    context: SparkContext, setting: Setting, trials: int, seed: int, restarts: int = 1
) -> list[Outcome]:
    """Run every method of a setting on every trial, all in the same Spark jobs.

    Parameters
    ----------
    context : SparkContext
    setting : Setting
    trials : int
    seed : int
    restarts : int
        Independent initial centers for each trial; outcomes then have trials x restarts rows,
        those of one trial together.
    """
    mixtures = [setting.mixture(seed, trial) for trial in range(trials)]
    with mixture_trials(context, mixtures) as cached:
        states = [trial for trial in range(trials) for _ in range(restarts)]
        if setting.init == PERTURBED:
            noise = [generator(seed, state, 1) for state in range(len(states))]
            shape = (setting.k, setting.d)
            starts = [
                mixtures[trial].centers + rng.normal(0.0, setting.perturbation, size=shape)
                for trial, rng in zip(states, noise, strict=True)
            ]
        else:
            starts = cached.seed(
                states, setting.k, seed, candidates=setting.candidates, power=setting.power
            )
        runs = [
            Run(trial, start, method.steps_of(setting.n_steps), method.by_size)
            for method in setting.methods
            for trial, start in zip(states, starts, strict=True)
        ]
        traces = cached.trace(runs, setting.n_steps)
    truths = [mixtures[trial].centers for trial in states]
    size = len(states)
    return [
        Outcome.of(method, traces[i * size : (i + 1) * size], truths)
        for i, method in enumerate(setting.methods)
    ]
