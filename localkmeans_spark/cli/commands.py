"""The commands, their flags and their help; the estimator's flags are made from ``PARAMETERS``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from localkmeans_spark import params
from localkmeans_spark._version import __version__
from localkmeans_spark.cli.flags import (
    EXTENSIONS,
    Ks,
    Names,
    OfParameter,
    Value,
    flag_of,
    in_words_of_flags,
    options_of,
    read_config,
)

_FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))
# Parameters that are no flags of fit, or that every command has and words in its own way.
_OTHERS = {
    *params.NEW_COLUMNS, "featuresCol", "featuresCols", "handleInvalid", "initialCenters",
    "solver", "maxBlockSizeInMB", "verbose",
}  # fmt: skip


def _flag(name: str, text: str, kind: click.ParamType | None = None, **more: Any) -> click.Option:
    return click.Option([f"--{name}"], help=text, type=kind or Value(), default=None, **more)


def _switch(name: str, text: str) -> click.Option:
    return click.Option([f"--{name}/--no-{name}"], help=text, default=None)


def _of_parameter(name: str) -> click.Option:
    """Return the flag that a row of PARAMETERS describes."""
    parameter, flag = params.PARAMETERS[name], flag_of(name).removeprefix("--")
    default = "" if parameter.default is None else f" (default: {parameter.default})"
    default = " (required)" if name == "k" else default
    text = in_words_of_flags(parameter.help) + default
    if parameter.convert is params.as_flag:
        return _switch(flag, text)
    return _flag(flag, text, OfParameter(name))


def _input() -> list[click.Option]:
    return [
        _flag("input", "File, directory or URI (required, or --table)."),
        _flag("table", "Table of Spark's catalog instead: name, schema.name, catalog.schema.name."),
        _flag("format", "parquet, csv, json (a row a line), libsvm, or npz (X, optional y and "
              "scale); default: by the file's extension.", click.Choice(_FORMATS)),
        _switch("header", "CSV: the first line holds the columns' names (default: yes, and stop if "
                "they look like numbers)."),
        _flag("sep", "CSV: the sign between two cells, or tab (default: ',')."),
        _flag("decimal", "CSV: the decimal sign; with ',' the default of --sep is ';' "
              "(default: '.').", click.Choice((".", ","))),
        _flag("null-value", "CSV: what stands for a missing number, as NA does, beside empty "
              "cells."),
        _flag("features-col", "A vector or array column (default: features)."),
        _flag("feature-cols", "Numeric columns instead (default, without a column features: all "
              "numeric columns but id, label, weight and --id-cols).", Names()),
        _flag("id-cols", "Columns copied to the output to tell rows apart (default: all that are "
              "neither feature nor weight; without any, the features themselves).", Names()),
        _of_parameter("handleInvalid"),
    ]  # fmt: skip


def _output(what: str, table: str = "") -> list[click.Option]:
    text = f"Table of Spark's catalog to write the labelled rows to, {table}."
    return [
        _flag("output", f"Directory for {what} (required)."),
        *([_flag("output-table", text)] if table else []),
        _switch("overwrite", "Replace the output of an earlier run once the new one is complete."),
    ]


def application() -> click.Group:
    """Return the command ``localkmeans``."""
    progress = _switch("progress", "Show rounds, cost and time left (default: yes).")
    model = _flag("model", "A saved model: DIR/model of fit.")
    group = click.Group(name="localkmeans", help="K-means on Apache Spark; see COMMAND --help.")
    group = click.version_option(__version__, message="%(version)s")(group)
    _add(
        group, "fit", "input|table k output", *_input(),
        _flag("label-col",
              "Known classes, to count misclustered rows; never used for clustering."),
        *(_of_parameter(name) for name in params.PARAMETERS if name not in _OTHERS),
        *_output("model, assignments, history.csv, report.html, metrics.json",
                 "not to DIR/assignments"),
        progress,
        _switch("report", "Write report.html; needs matplotlib and jinja2 (default: yes)."),
        _flag("config", "TOML file of flags; see below.", is_eager=True, callback=read_config),
        text="""Cluster the rows of a table into k clusters and write the model, every row's
cluster, the rounds and a report into a new directory.""",
        epilog="""\b
example, on a laptop:
  localkmeans fit --input customers.csv --k 8 --id-cols customer_id --output out/customers
example, on a cluster:
  spark-submit --master spark://host:7077 --py-files dist/localkmeans_spark.zip jobs/fit.py \\
      --input hdfs:///data/customers.parquet --k 8 --output hdfs:///out/customers
the same from a file (flags win over it):
  localkmeans fit --config conf/fit.toml --k 12

\b
A file given with --config holds the flags without their dashes, one a line:
  input = "customers.csv"
  k = 8
  feature-cols = ["age", "income"]
  safeguard = false""",
    )  # fmt: skip
    _add(
        group, "predict", "model input|table output|output_table", model, *_input(),
        *_output("Parquet files: id columns, prediction, distance", "not to --output"),
        text="Give every row of a table the cluster of its nearest center in a saved model.",
        epilog="""\b
example:
  localkmeans predict --model out/customers/model --input new.csv --output out/new""",
    )  # fmt: skip
    _add(
        group, "sweep", "input|table output", *_input(),
        _flag("k", "Numbers of clusters, as in 2-20 or 2,5,10 (default: 2-20).", Ks()),
        *(_of_parameter(name) for name in params.PARAMETERS
          if name not in {*_OTHERS, "k", "checkpointDir"}),
        *_output("sweep.csv, sweep.json, sweep.svg, model (of the best k)"), progress,
        text="""Fit several k over one copy of the rows, measure each, and say which to take: a
table, a picture, and the model of the best k, in a new directory.""",
        epilog="""\b
example:
  localkmeans sweep --input customers.csv --k 2-20 --output out/sweep""",
    )  # fmt: skip
    _add(
        group, "describe", "model input|table output", model, *_input(),
        _flag("profile-cols",
              "Columns that are no features, to be told by their most frequent values.", Names()),
        *_output("clusters.csv, features.csv, rows.csv, profile.csv, description.html"),
        text="""Say what the clusters of a saved model are like on a table: sizes, what sets each
apart, typical and odd rows, as CSV tables and a page.""",
        epilog="""\b
example:
  localkmeans describe --model out/customers/model --input customers.csv --profile-cols region \\
      --output out/described""",
    )  # fmt: skip
    _add(
        group, "diagnose", "input|table label_col|model", *_input(),
        _flag("label-col", "Known classes, taken for the clusters."),
        _flag("model", "A saved model, whose clusters are taken."),
        _flag("partitions", "For .npz: partitions to cut the file into.",
              OfParameter("numPartitions")),
        text="""Say in plain words whether every partition holds its share of every cluster,
whether the clusters are far enough apart, and how many local steps suit.""",
    )  # fmt: skip
    return group


def _add(
    group: click.Group, name: str, required: str, *flags: click.Option, text: str, epilog: str = ""
) -> None:
    @click.pass_context
    def run(context: click.Context, **values: Any) -> None:
        options = options_of(context, required)
        # Only now, as it takes seconds: pyspark and pandas, which a wrong flag can do without.
        room = {"sweep": "fit", "describe": "predict"}.get(name, name)
        getattr(import_module(f"localkmeans_spark.cli.{room}"), name)(options)

    running = [
        _flag(
            "master",
            "Spark master, or sc://HOST of a Spark Connect server (default: as spark-submit says, "
            "else local[*]).",
        ),
        _switch("debug", "Show stack traces and Spark's messages."),
    ]
    settings = {"max_content_width": 100}
    group.add_command(
        click.Command(
            name, callback=run, params=[*flags, *running], help=text, epilog=epilog,
            context_settings=settings,
        )
    )  # fmt: skip
