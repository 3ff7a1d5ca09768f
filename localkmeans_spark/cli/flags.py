"""The commands and their flags, by click; those of the estimator are made from ``PARAMETERS``."""

from __future__ import annotations

import csv
import difflib
import io
import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from localkmeans_spark import params
from localkmeans_spark._version import __version__
from localkmeans_spark.cli import help_texts as texts
from localkmeans_spark.errors import Fact, InvalidInputError, invalid

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMATS = ("parquet", "csv", "json", "libsvm", "npz")
# Parameters whose flag is not their name in lower case with dashes.
_NAMES = {"initMode": "init", "numPartitions": "partitions", "featuresCols": "feature_cols"}
_MOST_KS = 1_000
# Parameters that are no flags of fit, or that every command has and words in its own way.
_OTHERS = {
    "featuresCol", "featuresCols", "handleInvalid", "predictionCol", "distanceCol",
    "distancesCol", "secondCol", "marginCol",
    "initialCenters", "solver", "maxBlockSizeInMB", "verbose",
}  # fmt: skip


class Options(SimpleNamespace):
    """What a command is asked: an attribute for each flag, None where it was not given.

    ``owner`` is the command's name and ``params`` holds what is given for parameters of the
    estimator, by their own names.
    """

    def but(self, **changes: Any) -> Options:
        """Return a copy with other values."""
        return Options(**{**vars(self), **changes})


def flag_of(parameter: str) -> str:
    """Return the flag that sets a parameter of the estimator."""
    name = _NAMES.get(parameter) or re.sub("([A-Z])", r"_\1", parameter).lower()
    return "--" + name.replace("_", "-")


def in_words_of_flags(text: str) -> str:
    """Return text of the library with flags where it names parameters."""
    names = "|".join(sorted(params.PARAMETERS, key=len, reverse=True))
    camel = "|".join(name for name in params.PARAMETERS if not name.islower())
    return re.sub(
        rf"parameter '({names})'|\b({camel})\b|\b({names})(?==['\d])",
        lambda found: flag_of(next(filter(None, found.groups()))),
        text,
    )


class _Value(click.ParamType):
    """Text given on the command line or in a file; raises the library's own error."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        assert param is not None and ctx is not None
        owner, subject = str(ctx.command.name), _subject(param.name, ctx)
        if isinstance(value, str) and ("\0" in value or not _is_unicode(value)):
            rule = "text in UTF-8 without NUL"
            raise invalid(owner, subject, rule, value, "Name it in another way.")
        return self.clean(value, owner, subject)

    def clean(self, value: Any, owner: str, subject: str) -> Any:
        """Return the value, or raise if it is not text."""
        if not isinstance(value, str) or not value:
            raise invalid(owner, subject, "text", value, "Put a value in quotes.")
        return value


class _Names(_Value):
    """Names separated by commas, by the rules of CSV, or a list of them in a file."""

    name = "a,b,c"

    def clean(self, value: Any, owner: str, subject: str) -> tuple[str, ...]:
        """Return the names."""
        names = value if isinstance(value, list | tuple) else []
        if isinstance(value, str):
            names = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not names or not all(isinstance(name, str) and name for name in names):
            raise invalid(
                owner, subject, "names separated by commas", value, "Leave none of them empty."
            )
        if len(set(names)) < len(names):
            raise invalid(owner, subject, "different names", value, "Give each name once.")
        return tuple(names)


class _Ks(_Value):
    """Numbers of clusters: ``2-20``, ``2,5,10``, or both."""

    name = "2-20"

    def clean(self, value: Any, owner: str, subject: str) -> tuple[int, ...]:
        """Return the numbers."""
        parts = value if isinstance(value, list) else str(value).split(",")
        found: list[int] = []
        for part in map(str, parts):
            match = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9}))?\s*", part)
            low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
            if not 1 <= low <= high or high - low > _MOST_KS:
                rule = f"numbers of clusters or at most {_MOST_KS} in a row, as in 2-20 or 2,5,10"
                raise invalid(owner, subject, rule, value, "Write 2-20, for example.")
            found += range(low, high + 1)
        return tuple(found)


class _Parameter(_Value):
    """A value of the parameter behind the flag, checked as the estimator checks it."""

    def __init__(self, parameter: str) -> None:
        self.parameter = parameter

    def clean(self, value: Any, owner: str, subject: str) -> Any:
        """Return the clean value."""
        is_text = params.PARAMETERS[self.parameter].convert is params.as_text
        parsed = _number(value) if isinstance(value, str) and not is_text else value
        try:
            return params.checked(owner, self.parameter, parsed)
        except InvalidInputError as error:
            text = str(error).replace(f"parameter '{self.parameter}'", subject)
            raise InvalidInputError(in_words_of_flags(text)) from None


def _number(text: str) -> Any:
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        return float(text)
    return text


def _is_unicode(text: str) -> bool:
    try:
        return bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def _subject(name: str, context: click.Context) -> str:
    in_file = context.get_parameter_source(name) == ParameterSource.DEFAULT_MAP
    shown = name.replace("_", "-")
    return f"{context.params.get('config')}: {shown}" if in_file else f"--{shown}"


def _flag(name: str, text: str, kind: click.ParamType | None = None, **more: Any) -> click.Option:
    return click.Option([f"--{name}"], help=text, type=kind or _Value(), default=None, **more)


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
    return _flag(flag, text, _Parameter(name))


def _input() -> list[click.Option]:
    return [
        _flag("input", "File, directory or URI (required, or --table)."),
        _flag("table", "Table of Spark's catalog instead: name, schema.name, catalog.schema.name."),
        _flag("format", "parquet, csv, json (a row a line), libsvm, or npz (X, optional y and "
              "scale); default: by the file's extension.", click.Choice(FORMATS)),
        _switch("header", "CSV: the first line holds the columns' names (default: yes, and stop if "
                "they look like numbers)."),
        _flag("sep", "CSV: the sign between two cells, or tab (default: ',')."),
        _flag("decimal", "CSV: the decimal sign; with ',' the default of --sep is ';' "
              "(default: '.').", click.Choice((".", ","))),
        _flag("null-value", "CSV: what stands for a missing number, as NA does, beside empty "
              "cells."),
        _flag("features-col", "A vector or array column (default: features)."),
        _flag("feature-cols", "Numeric columns instead (default, without a column features: all "
              "numeric columns but id, label, weight and --id-cols).", _Names()),
        _flag("id-cols", "Columns copied to the output to tell rows apart (default: all that are "
              "neither feature nor weight; without any, the features themselves).", _Names()),
        _of_parameter("handleInvalid"),
    ]  # fmt: skip


def _running() -> list[click.Option]:
    return [
        _flag("master", "Spark master (default: as spark-submit says, else local[*])."),
        _switch("debug", "Show stack traces and Spark's messages."),
    ]


def _output(what: str, table: str = "") -> list[click.Option]:
    text = f"Table of Spark's catalog to write the labelled rows to, {table}."
    return [
        _flag("output", f"Directory for {what} (required)."),
        *([_flag("output-table", text)] if table else []),
        _switch("overwrite", "Replace the output of an earlier run once the new one is complete."),
    ]


def application() -> click.Group:
    """Return the command ``localkmeans``."""
    label = "Known classes, to count misclustered rows; never used for clustering."
    fit = [
        *_input(),
        _flag("label-col", label),
        *(_of_parameter(name) for name in params.PARAMETERS if name not in _OTHERS),
        *_output(
            "model, assignments, history.csv, report.html, metrics.json", "not to DIR/assignments"
        ),
        _switch("report", "Write report.html; needs matplotlib and jinja2 (default: yes)."),
        _flag("config", "TOML file of flags; see below.", is_eager=True, callback=_read_config),
        *_running(),
    ]
    predict = [
        _flag("model", "A saved model: DIR/model of fit."),
        *_input(),
        *_output("Parquet files: id columns, prediction, distance", "not to --output"),
        *_running(),
    ]
    others = {*_OTHERS, "k", "checkpointDir"}
    sweep = [
        *_input(),
        _flag("k", "Numbers of clusters, as in 2-20 or 2,5,10 (default: 2-20).", _Ks()),
        *(_of_parameter(name) for name in params.PARAMETERS if name not in others),
        *_output("sweep.csv, sweep.json, sweep.svg, model (of the best k)"),
        *_running(),
    ]
    describe = [
        _flag("model", "A saved model: DIR/model of fit."),
        *_input(),
        _flag(
            "profile-cols",
            "Columns that are no features, to be told by their most frequent values.",
            _Names(),
        ),
        *_output("clusters.csv, features.csv, rows.csv, profile.csv, description.html"),
        *_running(),
    ]
    diagnose = [
        *_input(),
        _flag("label-col", "Known classes, taken for the clusters."),
        _flag("model", "A saved model, whose clusters are taken."),
        _flag("partitions", "For .npz: partitions to cut the file into.",
              _Parameter("numPartitions")),
        *_running(),
    ]  # fmt: skip
    group = click.Group(name="localkmeans", help="K-means on Apache Spark; see COMMAND --help.")
    group = click.version_option(__version__, message="%(version)s")(group)
    add, data = group.add_command, "input|table"
    add(_command("fit", texts.FIT_HELP, fit, f"{data} k output", texts.FIT_EPILOG))
    words = f"model {data} output|output_table"
    add(_command("predict", texts.PREDICT_HELP, predict, words, texts.PREDICT_EPILOG))
    add(_command("sweep", texts.SWEEP_HELP, sweep, f"{data} output", texts.SWEEP_EPILOG))
    words = f"model {data} output"
    add(_command("describe", texts.DESCRIBE_HELP, describe, words, texts.DESCRIBE_EPILOG))
    add(_command("diagnose", texts.DIAGNOSE_HELP, diagnose, f"{data} label_col|model"))
    return group


def _command(
    name: str, text: str, flags: list[click.Option], required: str, epilog: str = ""
) -> click.Command:
    @click.pass_context
    def run(context: click.Context, **values: Any) -> None:
        options = options_of(context, required)
        # Only now, as it takes seconds: pyspark and pandas, which a wrong flag can do without.
        import_module(f"localkmeans_spark.cli.{name}").run(options)

    settings = {"max_content_width": 100}
    return click.Command(
        name, callback=run, params=list(flags), help=text, epilog=epilog, context_settings=settings
    )


def options_of(context: click.Context, required: str) -> Options:
    """Return what was given, and complain of what is missing or given twice.

    Parameters
    ----------
    context : click.Context
    required : str
        Names of the flags that must be given, separated by spaces; of ``a|b`` one and no more.
    """
    values, source = dict(context.params), context.get_parameter_source
    # Two ways to name the features: a flag replaces the file's whole choice.
    both = ("features_col", "feature_cols")
    typed = [name for name in both if source(name) == ParameterSource.COMMANDLINE]
    values.update({name: None for name in both if typed and name not in typed})
    if all(values[name] for name in both):
        raise click.UsageError("--features-col and --feature-cols exclude each other")
    missing = []
    for names in (word.split("|") for word in required.split()):
        n_given = sum(values[name] is not None for name in names)
        shown = [f"--{name.replace('_', '-')}" for name in names]
        if n_given > 1:
            raise click.UsageError(f"{' and '.join(shown)} exclude each other")
        if not n_given:
            missing.append(f"{shown[0]} (or {shown[1]})" if len(shown) > 1 else shown[0])
    if missing:
        listed = " and ".join([", ".join(missing[:-1]), missing[-1]][len(missing) == 1 :])
        raise click.UsageError(f"{listed} must be given")
    values["feature_cols"] = values["feature_cols"] or ()
    values["id_cols"] = values["id_cols"] or ()
    given = {name: values.get(flag_of(name)[2:].replace("-", "_")) for name in params.PARAMETERS}
    given = {name: value for name, value in given.items() if value is not None}
    given = {name: value for name, value in given.items() if not name.startswith("featuresCol")}
    return Options(owner=context.command.name, params=given, **values)


def _read_config(context: click.Context, flag: click.Parameter, path: str | None) -> str | None:
    """Make the flags that a TOML file holds the defaults of those not given."""
    if path is None:
        return None
    owner, known = str(context.command.name), {}
    for option in context.command.params:
        if option.name != "config":
            known[option.name] = getattr(option, "is_bool_flag", False)
    context.default_map = {}
    for key, value in _load(owner, path).items():
        name, subject = key.replace("-", "_"), f"{path}: key {key!r}"
        if name not in known:
            close = difflib.get_close_matches(name, map(str, known), n=1)
            fix = f"Did you mean {close[0].replace('_', '-')!r}?" if close else "Remove it."
            rule = "a flag of the command without its dashes"
            raise invalid(owner, subject, rule, Fact("an unknown key"), fix)
        if known[name] and not isinstance(value, bool):
            raise invalid(owner, subject, "true or false", value, "TOML writes them bare.")
        context.default_map[name] = value
    return path


def _load(owner: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        fix = f"{error.strerror or error}."
        raise invalid(owner, "--config", "a readable file", path, fix) from None
    except RecursionError:
        found = Fact("lists or tables too deep in each other")
        raise invalid(owner, f"--config {path}", "a TOML file", found, "Unfold them.") from None
    except ValueError as error:  # also text that is not UTF-8, and integers of 5,000 digits
        fix = "Fix that line."
        raise invalid(owner, f"--config {path}", "a TOML file", Fact(error), fix) from None


def command_line(options: Options, seed: int) -> str:
    """Return the command that repeats a run, its seed included."""
    words = ["localkmeans", options.owner]
    for name, value in {**vars(options), "seed": seed}.items():
        flag = name.replace("_", "-")
        if name in ("owner", "params", "config") or value is None or value == ():
            continue
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
