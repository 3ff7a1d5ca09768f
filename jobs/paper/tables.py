"""Outcomes as tidy tables, and their CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jobs.paper.experiments import Outcome

Tables = dict[str, pd.DataFrame]
"""The tables of a figure by name: ``curves``, ``trials``, ..."""


def figure_tables(about: dict[str, Any], outcomes: Sequence[Outcome], n_steps: int) -> Tables:
    """Return what a figure draws; ``about`` gives the first columns, ``n_steps`` is T.

    ``curves``: mean, standard deviation and standard error of every quantity at every step.
    ``trials``: A and the objective of every trial at every step, and the true clusters lost.
    """
    curves: list[dict[str, Any]] = []
    trials: list[dict[str, Any]] = []
    for outcome in outcomes:
        method, steps = outcome.method.name, outcome.method.steps_of(n_steps)
        for name, values in outcome.values.items():
            n, means = len(values), values.mean(axis=0)
            std = values.std(axis=0, ddof=1) if n > 1 else np.zeros(n_steps)
            curves += [
                {**about, "method": method, "L": "none" if steps is None else steps,
                 "quantity": name, "t": t + 1, "mean": means[t], "std": std[t],
                 "se": std[t] / np.sqrt(n), "trials": n}
                for t in np.flatnonzero(np.isfinite(means)).tolist()
            ]  # fmt: skip
        errors, costs = outcome.values["A"], outcome.values["objective"]
        trials += [
            {"figure": about["figure"], "line": about["line"], "method": method, "trial": trial,
             "lost": outcome.lost[trial], "t": t + 1, "A": errors[trial, t],
             "objective": costs[trial, t]}
            for trial in range(len(errors))
            for t in range(n_steps)
        ]  # fmt: skip
    return {"curves": pd.DataFrame(curves), "trials": pd.DataFrame(trials)}


def csv_bytes(table: pd.DataFrame, digits: int = 6) -> bytes:
    """Return a table as CSV."""
    return table.to_csv(index=False, float_format=f"%.{digits}g").encode()


def write(path: Path, data: bytes) -> None:
    """Replace a file at once."""
    aside = path.with_name(f".{path.name}.partial")
    aside.write_bytes(data)
    aside.replace(path)


def read_tables(folder: Path, figures: Iterable[str]) -> dict[str, Tables]:
    """Read back what was written for any of the figures."""
    names = ("curves", "trials", "luck", "restarts", "fits", "placements", "reach")
    found = {
        figure: {
            name: pd.read_csv(path, dtype={"figure": str, "L": str}).fillna({"line": ""})
            for name in names
            if (path := folder / csv_name(figure, name)).is_file()
        }
        for figure in figures
    }
    return {figure: tables for figure, tables in found.items() if tables}


def csv_name(figure: str, table: str) -> str:
    """Return ``figure-1a.csv`` for the curves of a figure, ``figure-1a-trials.csv``, ..."""
    return f"figure-{figure}.csv" if table == "curves" else f"figure-{figure}-{table}.csv"


def misclustering_table(curves: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return A of every curve at every step, all figures in one small table."""
    table = pd.concat(curves)
    table = table[table["quantity"].isin(["A", "A_own"]) & (table["figure"] != "choices")]
    columns = ["figure", "line", "method", "L", "quantity", "t", "mean", "std", "se", "trials"]
    return table[columns].drop_duplicates()
