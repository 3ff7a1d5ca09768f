"""Command lines of the jobs, read into plain data."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NoReturn

from jobs.config_file import read_as_flags
from jobs.options import FitOptions, InputOptions, PredictOptions
from localkmeans_spark import LocalKMeans
from localkmeans_spark.errors import InvalidInputError

FORMATS = ("parquet", "csv", "json", "libsvm", "npz")
YES_OR_NO = argparse.BooleanOptionalAction

FIT_EPILOG = """\
example, on a laptop:
  python jobs/fit.py --input customers.csv --k 8 --id-cols customer_id --output out/customers
example, on a cluster:
  spark-submit --master spark://host:7077 --py-files dist/localkmeans_spark.zip jobs/fit.py \\
      --input hdfs:///data/customers.parquet --k 8 --output hdfs:///out/customers
the same from a file (flags win over it):
  python jobs/fit.py --config conf/fit.toml --k 12

A file given with --config holds the flags without their dashes, one a line:
  input = "customers.csv"
  k = 8
  feature-cols = ["age", "income"]
  safeguard = false
"""

PREDICT_EPILOG = """\
example:
  python jobs/predict.py --model out/customers/model --input new.csv --output out/new
"""


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are the library's: one line, raised, no usage text."""

    source = ""

    def error(self, message: str) -> NoReturn:
        where = f"{self.source}: " if self.source else ""
        # argparse says "argument --k: must be ..."; the library says "--k must be ...".
        text = re.sub(r"^argument (\S+): (?=must )", r"\1 ", message).removeprefix("argument ")
        raise InvalidInputError(f"{self.prog}: {where}{text}. See --help.")


def parse_fit(argv: Sequence[str] | None = None) -> FitOptions:
    """Read the command line of ``jobs/fit.py``.

    Parameters
    ----------
    argv : sequence of str or None
        Words after the program's name; None takes them from ``sys.argv``.

    Raises
    ------
    InvalidInputError
        For anything unreadable, unknown or missing, in the flags or in the ``--config`` file.
    """
    parser = _Parser(
        prog="fit",
        usage="python jobs/fit.py --input PATH --k K --output DIR [options]",
        description="Cluster the rows of a table into k clusters and write the model, every "
        "row's cluster, the rounds and a report into a new directory.",
        epilog=FIT_EPILOG,
        **_PARSER_STYLE,
    )
    group = _add_input(parser)
    group.add_argument("--weight-col", metavar="NAME", help="a weight for every row (default: 1)")
    group.add_argument(
        "--label-col",
        metavar="NAME",
        help="known classes, to count misclustered rows; never used for clustering",
    )
    _add_clustering(parser)
    group = _add_output(
        parser, "DIR for model, assignments, history.csv, report.html, metrics.json"
    )
    group.add_argument(
        "--report",
        action=YES_OR_NO,
        help="write report.html; needs matplotlib and jinja2 (default: yes)",
    )
    group.add_argument(
        "--checkpoint-dir",
        metavar="DIR",
        help="keep the state of the fit here after each round: the same command run again goes "
        "on from there; removed after the fit",
    )
    group.add_argument("--config", metavar="FILE", help="TOML file of flags; see below")
    flags = vars(parser.parse_args(argv))
    values = {**_from_file(parser, flags), **flags}
    options = FitOptions(**values)
    _check(parser, options, ("input", "k", "output"))
    return options


def parse_predict(argv: Sequence[str] | None = None) -> PredictOptions:
    """Read the command line of ``jobs/predict.py``; see :func:`parse_fit`."""
    parser = _Parser(
        prog="predict",
        usage="python jobs/predict.py --model DIR --input PATH --output DIR [options]",
        description="Give every row of a table the cluster of its nearest center in a saved model.",
        epilog=PREDICT_EPILOG,
        **_PARSER_STYLE,
    )
    parser.add_argument("--model", metavar="DIR", help="a saved model: DIR/model of jobs/fit.py")
    _add_input(parser)
    _add_output(parser, "DIR for Parquet files: id columns, prediction, distance")
    options = PredictOptions(**vars(parser.parse_args(argv)))
    _check(parser, options, ("model", "input", "output"))
    return options


_PARSER_STYLE: dict[str, Any] = {
    "argument_default": argparse.SUPPRESS,
    "allow_abbrev": False,
    "formatter_class": lambda prog: argparse.RawDescriptionHelpFormatter(
        prog, max_help_position=30, width=100
    ),
}


def _add_clustering(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("clustering")
    group.add_argument("--k", type=_whole, help="number of clusters (required)")
    group.add_argument(
        "--local-steps",
        type=_steps,
        metavar="L",
        help="Lloyd steps every partition does alone between two exchanges of centers; "
        f"auto chooses by what rounds cost, 1 is plain Lloyd ({_default('localSteps')})",
    )
    group.add_argument(
        "--max-iter", type=_whole, metavar="T", help=f"most Lloyd steps ({_default('maxIter')})"
    )
    group.add_argument(
        "--tol", type=_number, help=f"stop when no center moves farther ({_default('tol')})"
    )
    group.add_argument("--seed", type=_whole, help="for the same result again (default: a new one)")
    group.add_argument(
        "--init",
        metavar="MODE",
        help=f"k-means++ (greedy), local-k-means++, k-means|| or random ({_default('initMode')})",
    )
    group.add_argument(
        "--n-init",
        type=_whole,
        metavar="N",
        help=f"restarts, side by side in the same passes; the best is kept ({_default('nInit')})",
    )
    group.add_argument(
        "--empty-clusters",
        metavar="RULE",
        help=f"clusters without a row: keep or reseed ({_default('emptyClusters')})",
    )
    group.add_argument(
        "--distance-measure",
        metavar="NAME",
        help=f"euclidean, or cosine for clusters by direction ({_default('distanceMeasure')})",
    )
    group.add_argument(
        "--partitions",
        type=_whole,
        metavar="M",
        help="split the rows over M partitions first (default: as the input is split)",
    )
    group.add_argument(
        "--dtype", help=f"float32 or float64, precision of the cached rows ({_default('dtype')})"
    )
    group.add_argument(
        "--safeguard",
        action=YES_OR_NO,
        help="take back a round that made things worse (default: yes)",
    )


def _add_input(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("input")
    group.add_argument("--input", metavar="PATH", help="file, directory or URI (required)")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="parquet, csv (with header), json (a row a line), libsvm, or npz (X, optional y and "
        "scale); default: by the file's extension",
    )
    group.add_argument(
        "--features-col", metavar="NAME", help="a vector or array column (default: features)"
    )
    group.add_argument(
        "--feature-cols",
        type=_names,
        metavar="A,B,C",
        help="numeric columns instead (default, without a column features: all numeric columns "
        "but id, label, weight and --id-cols)",
    )
    group.add_argument(
        "--id-cols",
        type=_names,
        metavar="A,B",
        help="columns copied to the output to tell rows apart (default: all that are neither "
        "feature nor weight; without any, the features themselves)",
    )
    group.add_argument(
        "--handle-invalid",
        metavar="RULE",
        help="rows with null, NaN or infinity: error, skip, or keep (cluster number k) "
        f"({_default('handleInvalid')})",
    )
    return group


def _add_output(parser: argparse.ArgumentParser, what: str) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("output and running")
    group.add_argument("--output", metavar="DIR", help=f"{what} (required)")
    group.add_argument(
        "--overwrite",
        action=YES_OR_NO,
        help="replace the output of an earlier run once the new one is complete",
    )
    group.add_argument(
        "--master",
        metavar="URL",
        help="Spark master (default: as spark-submit says, else local[*])",
    )
    group.add_argument(
        "--debug",
        action=YES_OR_NO,
        help="show stack traces and Spark's warnings",
    )
    return group


def _from_file(parser: _Parser, flags: dict[str, Any]) -> dict[str, Any]:
    """Return what the ``--config`` file says, checked as if it had been typed."""
    if "config" not in flags:
        return {}
    path = flags["config"]
    words = read_as_flags(parser.prog, path, known=_fit_flags())
    parser.source = path
    values = vars(parser.parse_args(words))
    parser.source = ""
    # The two ways to name features exclude each other: a flag replaces the file's whole choice.
    if {"features_col", "feature_cols"} & flags.keys():
        values.pop("features_col", None)
        values.pop("feature_cols", None)
    return values


def _check(parser: _Parser, options: InputOptions, required: Sequence[str]) -> None:
    missing = [f"--{name}" for name in required if getattr(options, name) is None]
    if missing:
        parser.error(f"{' and '.join(missing)} must be given")
    if options.features_col and options.feature_cols:
        parser.error("--features-col and --feature-cols exclude each other; give one of them")


def _names(text: str) -> tuple[str, ...]:
    """Split ``a,b,"c,d"`` as CSV does, so that a name may hold a comma."""
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not names or not all(names):
        raise argparse.ArgumentTypeError(f"must be names separated by commas; got {text!r}")
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"must not repeat a name; got {text!r}")
    return names


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number; got {text!r}") from None


def _steps(text: str) -> int | str:
    return text if text == "auto" else _whole(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number; got {text!r}") from None


def _fit_flags() -> dict[str, bool]:
    """Return the flags of ``jobs/fit.py`` by name, and whether each is a yes or no."""
    return {
        item.name: isinstance(item.default, bool)
        for item in fields(FitOptions)
        if item.name != "config"
    }


def _default(param: str) -> str:
    """Say the estimator's own default: it is the one home of these values."""
    return f"default: {LocalKMeans().getOrDefault(param)}"


# What the parsers of other jobs are made from.
Parser, PARSER_STYLE, whole_number = _Parser, _PARSER_STYLE, _whole
add_input, check_given = _add_input, _check
