"""How much of the end error is the seeding's luck: clusters lost, restarts, greedy draws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
from pyspark import SparkContext

from jobs.paper_tables import curve_table, trial_table
from localkmeans_spark.paper.figures import HIGH, LOW
from localkmeans_spark.paper.settings import Method, Outcome, Setting, run_setting

_RESTARTS = (1, 2, 5, 10)
_METHOD = (Method("L = 3", 3),)


def seeding_tables(
    context: SparkContext, trials: int, seed: int, quick: bool = False
) -> dict[str, pd.DataFrame]:
    """Run ten restarts a trial, and greedy seeding, at both noise levels of Figure 1.

    Returns
    -------
    dict of str to DataFrame
        ``curves`` and ``trials`` as for figures; ``luck``: final A by true clusters lost;
        ``restarts``: final A of the restart with the smallest objective.
    """
    curves, each, luck, restarts = [], [], [], []
    for sigma in (LOW, HIGH):
        setting = Setting("seeding", sigma, methods=_METHOD)
        if quick:
            setting = replace(setting, m=4, n=50, d=20, k=4, n_steps=6)
        r = round(setting.r, 2)
        greedy = replace(setting, candidates=2 + int(math.log(setting.k)))
        (plain,) = run_setting(context, setting, trials, seed, restarts=_RESTARTS[-1])
        (better,) = run_setting(context, greedy, trials, seed)
        for name, outcome in (("plain", plain), ("greedy", better)):
            about = {"figure": "seeding", "line": f"{name}, r = {r}", "r": r}
            curves.append(curve_table(about, [outcome], setting.n_steps))
            each.append(trial_table(about, [outcome]))
        luck.append(_by_lost(plain, r))
        restarts.append(_best_of(plain, better, trials, r))
    return {
        "curves": pd.concat(curves),
        "trials": pd.concat(each),
        "luck": pd.concat(luck),
        "restarts": pd.concat(restarts),
    }


def _by_lost(outcome: Outcome, r: float) -> pd.DataFrame:
    final = outcome.values["A"][:, -1]
    rows = []
    for lost in sorted(set(outcome.lost.tolist())):
        mine = final[outcome.lost == lost]
        rows.append({"r": r, "lost": lost, "share": len(mine) / len(final), **_summary(mine)})
    return pd.DataFrame(rows)


def _best_of(plain: Outcome, greedy: Outcome, trials: int, r: float) -> pd.DataFrame:
    errors = plain.values["A"][:, -1].reshape(trials, -1)
    costs = plain.values["objective"][:, -1].reshape(trials, -1)
    rows = []
    for count in _RESTARTS:
        best = costs[:, :count].argmin(axis=1)
        final = errors[np.arange(trials), best]
        rows.append({"r": r, "seeding": f"best of {count}", **_summary(final)})
    rows.append({"r": r, "seeding": "greedy, once", **_summary(greedy.values["A"][:, -1])})
    return pd.DataFrame(rows)


def _summary(values: np.ndarray) -> dict[str, float]:
    n = len(values)
    std = float(values.std(ddof=1)) if n > 1 else 0.0
    return {"mean": float(values.mean()), "std": std, "se": std / math.sqrt(n), "runs": n}
