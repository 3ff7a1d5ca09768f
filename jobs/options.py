"""What a job is asked, as plain data."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class InputOptions:
    """Where rows come from and which column is what; None means "not said"."""

    input: str | None = None
    format: str | None = None
    features_col: str | None = None
    feature_cols: tuple[str, ...] = ()
    weight_col: str | None = None
    label_col: str | None = None
    id_cols: tuple[str, ...] = ()
    output: str | None = None
    overwrite: bool = False
    handle_invalid: str | None = None
    master: str | None = None
    debug: bool = False


@dataclass(frozen=True)
class FitOptions(InputOptions):
    """What ``jobs/fit.py`` is asked; None leaves the choice to the estimator's own default."""

    k: int | None = None
    local_steps: int | str | None = None
    max_iter: int | None = None
    tol: float | None = None
    seed: int | None = None
    init: str | None = None
    distance_measure: str | None = None
    partitions: int | None = None
    dtype: str | None = None
    n_init: int | None = None
    empty_clusters: str | None = None
    checkpoint_dir: str | None = None
    safeguard: bool = True
    report: bool = True
    config: str | None = None


@dataclass(frozen=True)
class PredictOptions(InputOptions):
    """What ``jobs/predict.py`` is asked."""

    model: str | None = None


def command_line(options: FitOptions, seed: int) -> str:
    """Return the command that repeats a run, its seed included."""
    words = ["python", "jobs/fit.py"]
    for item in fields(FitOptions):
        value = seed if item.name == "seed" else getattr(options, item.name)
        if value == item.default or item.name == "config":
            continue
        flag = item.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", join_names(value) if isinstance(value, tuple) else str(value)]
    return shlex.join(words)


def join_names(names: Iterable[str]) -> str:
    """Write names as a flag takes them: by the rules of CSV, so that they may hold commas."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
