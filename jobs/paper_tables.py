"""Outcomes of the paper's experiments as tidy tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from localkmeans_spark.paper.settings import Outcome

SHOWN_STEPS = (1, 2, 3, 5, 10, 15, 30)
"""Steps kept trial by trial, besides those around T/2 and the last one."""


def curve_table(about: dict[str, Any], outcomes: Sequence[Outcome], n_steps: int) -> pd.DataFrame:
    """Return mean, standard deviation and standard error of every quantity at every step.

    Parameters
    ----------
    about : dict
        First columns: figure, line, settings.
    outcomes : sequence of Outcome
    n_steps : int
        T.
    """
    rows: list[dict[str, Any]] = []
    for outcome in outcomes:
        steps = outcome.method.steps_of(n_steps)
        for name, values in outcome.values.items():
            trials = len(values)
            std = values.std(axis=0, ddof=1) if trials > 1 else np.zeros(values.shape[1])
            rows.extend(
                {
                    **about,
                    "method": outcome.method.name,
                    "L": "none" if steps is None else steps,
                    "quantity": name,
                    "t": t + 1,
                    "mean": mean,
                    "std": std[t],
                    "se": std[t] / np.sqrt(trials),
                    "trials": trials,
                }
                for t, mean in enumerate(values.mean(axis=0))
                if np.isfinite(mean)
            )
    return pd.DataFrame(rows)


def trial_table(about: dict[str, Any], outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return A and the objective of every trial at some steps, and the true clusters lost."""
    rows: list[dict[str, Any]] = []
    for outcome in outcomes:
        errors, costs = outcome.values["A"], outcome.values["objective"]
        last = errors.shape[1]
        steps = sorted({t for t in (*SHOWN_STEPS, last // 2, last // 2 + 1) if t < last} | {last})
        rows.extend(
            {
                "figure": about["figure"],
                "line": about["line"],
                "method": outcome.method.name,
                "trial": trial,
                "lost": outcome.lost[trial],
                "t": t,
                "A": errors[trial, t - 1],
                "objective": costs[trial, t - 1],
            }
            for trial in range(len(errors))
            for t in steps
        )
    return pd.DataFrame(rows)
