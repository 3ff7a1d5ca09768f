"""What flags and config files hold, checked: the values of every command's options."""

from __future__ import annotations

import csv
import difflib
import io
import re
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from localkmeans_spark import params
from localkmeans_spark.errors import Fact, InvalidInputError, invalid

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Parameters whose flag is not their name in lower case with dashes.
_NAMES = {"initMode": "init", "numPartitions": "partitions", "featuresCols": "feature_cols"}
EXTENSIONS = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json",
    ".ndjson": "json", ".libsvm": "libsvm", ".svm": "libsvm", ".npz": "npz",
}  # fmt: skip


class Options(SimpleNamespace):
    """What a command is asked: an attribute for each flag, None where it was not given.

    ``owner`` is the command's name and ``params`` holds what is given for parameters of the
    estimator, by their own names.
    """


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


class Value(click.ParamType):
    """Text given on the command line or in a file; raises the library's own error."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value as click wants it."""
        assert param is not None and ctx is not None
        owner, subject = str(ctx.command.name), _subject(param.name, ctx)
        if isinstance(value, str) and re.search("[\0\ud800-\udfff]", value):
            rule = "text in UTF-8 without NUL"
            raise invalid(owner, subject, rule, value, "Name it in another way.")
        return self.clean(value, owner, subject)

    def clean(self, value: Any, owner: str, subject: str) -> Any:
        """Return the value, or raise if it is not text."""
        if not isinstance(value, str) or not value:
            raise invalid(owner, subject, "text", value, "Put a value in quotes.")
        return value


class Names(Value):
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


class Ks(Value):
    """Numbers of clusters: ``2-20``, ``2,5,10``, or both."""

    name = "2-20"

    def clean(self, value: Any, owner: str, subject: str) -> tuple[int, ...]:
        """Return the numbers."""
        parts = value if isinstance(value, list) else str(value).split(",")
        found: list[int] = []
        for part in map(str, parts):
            match = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9}))?\s*", part)
            low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
            if not 1 <= low <= high or high - low >= params.MOST:
                rule = f"numbers of clusters, at most {params.MOST} in a row, as in 2-20 or 2,5,10"
                raise invalid(owner, subject, rule, value, "Write 2-20, for example.")
            found += range(low, high + 1)
        return tuple(found)


class OfParameter(Value):
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


def _subject(name: str, context: click.Context) -> str:
    in_file = context.get_parameter_source(name) == ParameterSource.DEFAULT_MAP
    shown = name.replace("_", "-")
    return f"{context.params.get('config')}: {shown}" if in_file else f"--{shown}"


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
        raise click.UsageError(f"{', '.join(missing)} must be given")
    values["feature_cols"] = values["feature_cols"] or ()
    values["id_cols"] = values["id_cols"] or ()
    given = {name: values.get(flag_of(name)[2:].replace("-", "_")) for name in params.PARAMETERS}
    given = {name: value for name, value in given.items() if value is not None}
    given = {name: value for name, value in given.items() if not name.startswith("featuresCol")}
    return Options(owner=context.command.name, params=given, **values)


def read_config(context: click.Context, flag: click.Parameter, path: str | None) -> str | None:
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
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        fix = f"{error.strerror or error}."
        raise invalid(owner, "--config", "a readable file", path, fix) from None
    # Also text that is not UTF-8, integers of 5,000 digits, brackets too deep in each other.
    except (ValueError, RecursionError) as error:
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
            text = io.StringIO()  # by the rules of CSV: names may hold commas
            csv.writer(text, lineterminator="").writerow(value if isinstance(value, tuple) else ())
            words += [f"--{flag}", text.getvalue() or str(value)]
    return shlex.join(words)
