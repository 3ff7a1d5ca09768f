"""Draw the paper's figures from runs on Spark: ``python jobs/reproduce_paper.py --help``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from pyspark import SparkContext

from jobs.arguments import Parser, whole_number
from jobs.interruptions import interruptible
from jobs.paper_data import OWNER, RealData, read_embeddings, read_posture
from jobs.paper_tables import curve_table, trial_table
from jobs.progress import say
from jobs.session import open_session, user_errors
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.paper.arrays import run_arrays
from localkmeans_spark.paper.figures import PAPER_STEPS, REAL, SYNTHETIC, choices
from localkmeans_spark.paper.settings import PAPER_METHODS, Setting, run_setting

FIGURES = (*SYNTHETIC, *REAL, "seeding", "choices", "beyond")
_MACHINES = 100

Tables = dict[str, pd.DataFrame]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the job; leave by ``SystemExit`` with status 2 when the user is to mend something."""
    with user_errors(OWNER), interruptible(OWNER) as catch_signals:
        run(parse(argv), catch_signals)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(
        prog=OWNER,
        usage="python jobs/reproduce_paper.py --figure NAME --output DIR [options]",
        description="Run the paper's experiments through the library on Spark and write, for each "
        "figure, tidy CSV, PNG and SVG; then one report.html and REPRODUCTION.md from all CSV "
        "files in DIR. Files of the same figure are replaced, others stay: figures can be run one "
        "by one.",
        allow_abbrev=False,
    )
    parser.add_argument("--figure", choices=(*FIGURES, "all"), default="all", metavar="NAME",
                        help=f"{', '.join(FIGURES)} or all, which leaves out 2 and 3 without "
                        "data (default: all)")  # fmt: skip
    parser.add_argument("--trials", type=whole_number, default=20, help="trials (default: 20)")
    parser.add_argument("--output", metavar="DIR", required=True, help="local directory")
    parser.add_argument("--seed", type=whole_number, default=1, help="default: 1")
    parser.add_argument("--quick", action="store_true",
                        help="small data, few steps, at most 3 trials")  # fmt: skip
    parser.add_argument("--mnist", metavar="NPZ", help="embeddings: X, y and perhaps scale")
    parser.add_argument("--cifar10", metavar="NPZ", help="embeddings: X, y and perhaps scale")
    parser.add_argument("--posture", metavar="CSV", help="Postures.csv of the UCI repository")
    parser.add_argument("--master", metavar="URL", help="Spark master (default: local[*])")
    parser.add_argument("--debug", action="store_true", help="show stack traces")
    options = parser.parse_args(argv)
    if options.trials < 1:
        raise invalid(OWNER, "--trials", ">= 1", options.trials, "The paper takes 20.")
    if options.seed < 0:
        raise invalid(OWNER, "--seed", ">= 0", options.seed, "The default is 1.")
    if Path(options.output).exists() and not Path(options.output).is_dir():
        raise invalid(
            OWNER, "--output", "a directory", Fact(f"the file {options.output}"),
            "Name a directory; it is made if need be.",
        )  # fmt: skip
    if options.quick:
        options.trials = min(options.trials, 3)
    for name in ("mnist", "cifar10", "posture"):
        path = getattr(options, name)
        if path is not None and not Path(path).is_file():
            raise invalid(OWNER, f"--{name}", "a file", path, "Check the path.")
    if options.figure in REAL and not (options.mnist or options.cifar10 or options.posture):
        raise invalid(
            OWNER, f"--figure {options.figure}", "given with --mnist, --cifar10 or --posture",
            "none of them", "Name at least one file.",
        )  # fmt: skip
    return options


def run(options: argparse.Namespace, session_opened: Callable[[], None]) -> None:
    """Run the figures asked for, and rebuild the report from everything in the directory."""
    from jobs.paper_output import write_figure, write_report

    wanted = FIGURES if options.figure == "all" else (options.figure,)
    wanted = tuple(name for name in wanted if name not in REAL or _real_paths(options))
    if set(wanted) & set(REAL):
        for path, read in _readers(options):
            read(path)  # slips in the files end the job now, not after the other figures
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", "3g")}
    with open_session("localkmeans paper", options.master, settings, options.debug) as spark:
        session_opened()
        for name in wanted:
            if name == "3" and "2" in wanted:
                continue  # drawn with figure 2, from the same runs
            began = time.monotonic()
            for figure, tables in _figure(spark.sparkContext, name, options).items():
                write_figure(folder, figure, tables)
            say(OWNER, f"figure {name}: {time.monotonic() - began:.0f} s")
    page = write_report(folder, " ".join(sys.argv[1:]))
    print(page, flush=True)


def _figure(context: SparkContext, name: str, options: argparse.Namespace) -> dict[str, Tables]:
    """Return the tables of one figure; of 2 and 3 together, which show the same runs."""
    if name in SYNTHETIC:
        return {name: _synthetic(context, SYNTHETIC[name], options)}
    if name == "choices":
        return {name: _synthetic(context, choices(), options)}
    if name == "seeding":
        from jobs.paper_seeding import seeding_tables

        return {name: seeding_tables(context, options.trials, options.seed, options.quick)}
    if name == "beyond":
        from jobs.paper_beyond import beyond_tables

        return {name: beyond_tables(context, options.trials, options.seed, options.quick)}
    tables = _real(context, options)
    return dict.fromkeys(REAL, tables)


def quick_setting(setting: Setting) -> Setting:
    """Shrink a setting to what a test can afford."""
    return replace(setting, m=min(setting.m, 4), n=50, d=20, k=min(setting.k, 4), n_steps=6)


def _synthetic(
    context: SparkContext, settings: list[Setting], options: argparse.Namespace
) -> Tables:
    curves, trials = [], []
    for setting in settings:
        if options.quick:
            setting = quick_setting(setting)
        say(OWNER, f"figure {setting.figure} {setting.line}: {options.trials} trials")
        outcomes = run_setting(context, setting, options.trials, options.seed)
        about = {
            "figure": setting.figure, "line": setting.line, "init": setting.init,
            "r": round(setting.r, 4), "sigma": round(setting.sigma, 6), "K": setting.k,
            "m": setting.m, "n": setting.n, "d": setting.d, "T": setting.n_steps,
        }  # fmt: skip
        curves.append(curve_table(about, outcomes, setting.n_steps))
        trials.append(trial_table(about, outcomes))
    return {"curves": pd.concat(curves), "trials": pd.concat(trials)}


def _real_paths(options: argparse.Namespace) -> list[str]:
    return [path for path in (options.posture, options.mnist, options.cifar10) if path]


def _readers(options: argparse.Namespace) -> list[tuple[str, Callable[[str], RealData]]]:
    """Return the real data sets asked for: a path and what reads it."""
    readers: list[tuple[str | None, Callable[[str], RealData]]] = [
        (options.posture, read_posture),
        (options.mnist, lambda path: read_embeddings("MNIST embeddings", path)),
        (options.cifar10, lambda path: read_embeddings("CIFAR-10 embeddings", path)),
    ]
    return [(path, read) for path, read in readers if path]


def _real(context: SparkContext, options: argparse.Namespace) -> Tables:
    curves, trials = [], []
    for path, read in _readers(options):
        data = read(path)
        m, n_steps = _MACHINES, PAPER_STEPS
        if options.quick:
            m, n_steps = 4, 6
            data = data._replace(x=data.x[:400], labels=data.labels[:400])
        say(OWNER, f"{data.name}: {len(data.x):,} rows, {m} machines, {options.trials} trials")
        outcomes = run_arrays(
            context, data.x, data.labels, k=data.k, m=m, methods=PAPER_METHODS,
            n_steps=n_steps, trials=options.trials, seed=options.seed,
        )  # fmt: skip
        about = {
            "figure": "2, 3", "line": data.name, "init": "LocalKMeans++", "K": data.k, "m": m,
            "n": len(data.x) // m, "d": data.x.shape[1], "T": n_steps,
        }  # fmt: skip
        curves.append(curve_table(about, outcomes, n_steps))
        trials.append(trial_table(about, outcomes))
        del data
    return {"curves": pd.concat(curves), "trials": pd.concat(trials)}


if __name__ == "__main__":
    main()
