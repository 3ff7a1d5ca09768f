"""Draw the paper's figures from runs on Spark: ``python jobs/reproduce_paper.py --help``."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
import pandas as pd
from pyspark import SparkContext

from jobs.paper import experiments as ex
from jobs.paper.data import OWNER, RealData, read_embeddings, read_posture
from jobs.paper.tables import Tables, figure_tables
from localkmeans_spark.cli.messages import say, user_errors
from localkmeans_spark.cli.session import open_session

REAL = ("2", "3")
FIGURES = ("1a", "1b", "1c", "1d", "4a", "4b", "4c", *REAL, "seeding", "choices", "beyond")
_NPZ = click.Path(exists=True, dir_okay=False)


@click.command()
@click.option(
    "--figure",
    type=click.Choice([*FIGURES, "all"]),
    default="all",
    show_default=True,
    help="'all' leaves out 2 and 3 without data.",
)
@click.option("--trials", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--output", metavar="DIR", type=click.Path(file_okay=False), required=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--quick", is_flag=True, help="Small data, few steps, at most 3 trials.")
@click.option("--mnist", metavar="NPZ", type=_NPZ, help="Embeddings: X, y and perhaps scale.")
@click.option("--cifar10", metavar="NPZ", type=_NPZ, help="Embeddings: X, y and perhaps scale.")
@click.option("--posture", metavar="CSV", type=_NPZ, help="Postures.csv of the UCI repository.")
@click.option("--master", metavar="URL", help="Spark master (default: local[*]).")
@click.option("--debug", is_flag=True, help="Show stack traces.")
def command(**flags: Any) -> None:
    """Run the paper's experiments on Spark and write tidy CSV, PNG and SVG for each figure.

    claims.csv, misclustering.csv and report.md are then made from all CSV files in DIR. Files of
    the same figure are replaced, others stay: figures can be run one by one.
    """
    options = SimpleNamespace(**flags)
    if options.figure in REAL and not _readers(options):
        raise click.UsageError(
            f"--figure {options.figure} must be given with --mnist, --cifar10 or --posture"
        )
    options.trials = min(options.trials, 3) if options.quick else options.trials
    run(options)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the job; leave by ``SystemExit`` with status 2 when the user is to fix something."""
    with user_errors(OWNER):
        command.main(argv, prog_name="python jobs/reproduce_paper.py", standalone_mode=False)


def run(options: SimpleNamespace) -> None:
    """Run the figures asked for, and rebuild the report from everything in the directory."""
    from jobs.paper.report import write_figure, write_report

    wanted = FIGURES if options.figure == "all" else (options.figure,)
    if set(wanted) & set(REAL):
        for path, read in _readers(options):
            read(path)  # slips in the files end the job now, not after the other figures
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", "3g")}
    with (
        TemporaryDirectory() as code,
        open_session("localkmeans paper", options.master, settings, options.debug) as spark,
    ):
        _send_code(spark.sparkContext, code)
        for name in wanted:
            if name in REAL and (not _readers(options) or (name == "3" and "2" in wanted)):
                continue  # figures 2 and 3 show the same runs
            began = time.monotonic()
            tables = _tables(spark.sparkContext, name, options)
            for figure in REAL if name in REAL else (name,):
                write_figure(folder, figure, tables)
            say(OWNER, f"figure {name}: {time.monotonic() - began:.0f} s")
    print(write_report(folder), flush=True)


def _tables(context: SparkContext, name: str, options: SimpleNamespace) -> Tables:
    """Return the tables of one figure."""
    from jobs.paper.extras import beyond_tables, seeding_tables

    if name not in ex.SYNTHETIC and name not in REAL:
        make = seeding_tables if name == "seeding" else beyond_tables
        return make(context, options.trials, options.seed, options.quick)
    parts = []
    for setting in ex.SYNTHETIC.get(name, []):
        setting = setting.small() if options.quick else setting
        say(OWNER, f"figure {name} {setting.line}: {options.trials} trials")
        outcomes = ex.run_setting(context, setting, options.trials, options.seed)
        noise = {"r": round(setting.r, 4), "sigma": round(setting.sigma, 6)}
        parts.append(_described(setting, noise, outcomes))
    for path, read in _readers(options) if name in REAL else ():
        data = read(path)
        m, n_steps = (4, 6) if options.quick else (100, ex.PAPER_STEPS)
        if options.quick:
            data = data._replace(x=data.x[:400], labels=data.labels[:400])
        n, d = data.x.shape
        setting = ex.Setting("2, 3", math.nan, data.k, m, n // m, d, n_steps=n_steps,
                          methods=ex.PAPER_METHODS, line=data.name)  # fmt: skip
        say(OWNER, f"{data.name}: {n:,} rows, {m} machines, {options.trials} trials")
        outcomes = ex.run_arrays(
            context, data.x, data.labels, setting, options.trials, options.seed
        )
        parts.append(_described(setting, {}, outcomes))
    return {table: pd.concat([part[table] for part in parts]) for table in parts[0]}


def _described(setting: ex.Setting, noise: dict[str, float], outcomes: list[ex.Outcome]) -> Tables:
    about = {
        "figure": setting.figure, "line": setting.line, "init": setting.init, **noise,
        "K": setting.k, "m": setting.m, "n": setting.n, "d": setting.d, "T": setting.n_steps,
    }  # fmt: skip
    return figure_tables(about, outcomes, setting.n_steps)


def _readers(options: SimpleNamespace) -> list[tuple[str, Callable[[str], RealData]]]:
    """Return the real data sets asked for: a path and what reads it."""
    readers: list[tuple[str | None, Callable[[str], RealData]]] = [
        (options.posture, read_posture),
        (options.mnist, lambda path: read_embeddings("MNIST embeddings", path)),
        (options.cifar10, lambda path: read_embeddings("CIFAR-10 embeddings", path)),
    ]
    return [(path, read) for path, read in readers if path]


def _send_code(context: SparkContext, folder: str) -> None:
    """Give workers on other machines these modules; the library has been sent already."""
    if not (context.master or "").startswith("local"):
        archive = shutil.make_archive(f"{folder}/jobs", "zip", Path(__file__).parents[1], "jobs")
        context.addPyFile(archive)


if __name__ == "__main__":
    main()
