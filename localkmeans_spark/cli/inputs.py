"""Inputs of any format as tables, and which column of a table is what."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegralType, NumericType

from localkmeans_spark.cli.csv_files import check_cells, column, read_csv
from localkmeans_spark.cli.flags import EXTENSIONS
from localkmeans_spark.cli.messages import say
from localkmeans_spark.cli.npz import LABEL, Arrays, arrays_frame, read_arrays
from localkmeans_spark.cli.outputs import ADDED, check_name, local_matches, local_path
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.saved_files import literal, spark_cause
from localkmeans_spark.spark_private import Py4JError, is_connect

COMPRESSIONS = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")
_ID_NAME = re.compile(r"(^|[\W_])([iI][dD]|uuid|zip|postcode)$|[a-z]I[dD]$")


@dataclass(frozen=True)
class Source:
    """An input whose format (or "table") is known, or None when only Spark can look."""

    path: str
    format: str | None
    arrays: Arrays | None = None


@dataclass(frozen=True)
class Table:
    """A DataFrame and the parts its columns play.

    Attributes
    ----------
    frame : DataFrame
    features_col : str or None
        The vector or array column, or None with ``feature_cols``.
    feature_cols : tuple of str
    weight_col, label_col : str or None
    id_cols : tuple of str
        What tells rows apart in the output.
    """

    frame: DataFrame
    features_col: str | None
    feature_cols: tuple[str, ...]
    weight_col: str | None
    label_col: str | None
    id_cols: tuple[str, ...]

    def fitted(self) -> DataFrame:
        """Return the columns that a fit reads.

        The others are left out, because a fit refuses a table with columns named like those that
        the model adds.
        """
        features = self.feature_cols or (self.features_col,)
        used = dict.fromkeys(name for name in (*features, self.weight_col) if name is not None)
        return self.frame.select(*map(column, used))

    def tell(self, stage: Any) -> None:
        """Tell an estimator or a model which columns are the features."""
        if self.features_col is not None:
            stage.setFeaturesCol(self.features_col)
        else:
            stage.setFeaturesCols(list(self.feature_cols))


def find_source(owner: str, options: Any) -> Source:
    """Look at the input before Spark starts, as far as that is possible.

    Raises
    ------
    InvalidInputError
        When a local input is missing, or an ``.npz`` file is not what it should be.
    """
    if options.table:
        _check_flags(owner, options, "table")
        return Source(options.table, "table")
    path = options.input or ""
    local = local_path(path)
    if local is not None and not local_matches(local):
        rule, fix = "an existing file or directory", "Check the path; [ ] { } * ? are a pattern."
        raise invalid(owner, "--input", rule, path, fix)
    form = options.format or format_of([path])
    _check_flags(owner, options, form)
    if form != "npz":
        if local is not None:
            _check_local(owner, local)
        return Source(literal(path) if local and os.path.lexists(local) else path, form)
    local = local or Path(path)
    if not local.is_file():
        raise invalid(
            owner, "--input", "one file on this machine's disk for the format npz", path,
            "Copy it here, or use Parquet.",
        )  # fmt: skip
    return Source(path, form, read_arrays(owner, str(local)))


def _check_local(owner: str, path: Path) -> None:
    """Refuse what Spark would pass over in silence, or cannot read."""
    check_name(owner, "--input", path)
    for found in local_matches(path):
        if found.name.startswith(("_", ".")) and found.is_file():
            rule = "a name that does not begin with _ or ."
            raise invalid(owner, "--input", rule, str(found), "Rename it: Spark passes over it.")
        below = (each.name for each in found.iterdir()) if found.is_dir() else ()
        inner = [x for x in below if "=" not in x and x[0] not in "_." and (found / x).is_dir()]
        if inner:
            raise invalid(
                owner, "--input", "a directory without others in it, but for NAME=VALUE",
                Fact(f"{found}, which holds {min(inner)}"),
                "Name what to read, for example by a pattern: Spark does not look into others.",
            )  # fmt: skip


def read_table(
    owner: str, spark: SparkSession, source: Source, options: Any, n_features: int | None = None
) -> Table:
    """Return the input as a table.

    Parameters
    ----------
    owner : str
        The command.
    spark : SparkSession
    source : Source
    options : Options
    n_features : int or None
        Width to give the rows of a libsvm file where its highest index is below: a file need not
        name a feature that is 0 in all its rows.

    Raises
    ------
    InvalidInputError
        When the file's layout is not what it should be, a named column is missing (the message
        lists those present) or nothing can serve as features.
    """
    if source.arrays is not None:
        if is_connect(spark):
            rule = "a file of another format in a session of Spark Connect"
            raise invalid(owner, "--input", rule, source.path, "Write its rows as Parquet first.")
        frame = arrays_frame(spark, source.arrays, getattr(options, "partitions", None))
        label = LABEL if source.arrays.y is not None else None
        return assign_roles(owner, frame, options, label)
    form = source.format or format_of(spark.read.text(source.path).inputFiles())
    _check_flags(owner, options, form)
    if form is None:
        rule = f"a file with one of the extensions {', '.join(EXTENSIONS)}"
        raise invalid(owner, "--input", rule, source.path, "Or give --format.")
    if form == "table":
        frame = spark.table(source.path)
    elif form == "csv":
        frame = read_csv(owner, spark, source.path, options)
    else:
        frame = _read_other(owner, spark, source.path, form, n_features)
    if form == "json":
        _check_json(owner, frame, options)
    return assign_roles(owner, frame, options)


def _check_flags(owner: str, options: Any, form: str | None) -> None:
    """Refuse flags that an input of this format would not heed."""
    useless = {"format": "A table has its own."} if form == "table" else {}
    if form not in (None, "csv"):
        for_csv = ("header", "sep", "decimal", "null_value")
        useless |= dict.fromkeys(for_csv, "It tells how to read CSV files.")
    for flag, fix in useless.items():
        if (value := getattr(options, flag)) is not None:
            rule = "left out with " + ("--table" if form == "table" else f"a {form} input")
            raise invalid(owner, f"--{flag.replace('_', '-')}", rule, value, fix)


def format_of(names: Sequence[str]) -> str | None:
    """Return the format that the first telling extension among file names stands for."""
    for name in names:
        for extension in reversed(Path(name.lower()).suffixes):
            if extension in EXTENSIONS:
                return EXTENSIONS[extension]
            if extension not in COMPRESSIONS:
                break
    return None


def _read_other(
    owner: str, spark: SparkSession, path: str, form: str, n_features: int | None
) -> DataFrame:
    reader = spark.read.format(form)
    try:
        frame = reader.load(path)  # libsvm: reads the file once, for its width
    except (PySparkException, Py4JError) as error:
        rule, fix = f"readable as {form}", "Check the file, or name another --format."
        raise invalid(owner, f"--input {path}", rule, Fact(spark_cause(error)), fix) from None
    width = frame.schema["features"].metadata.get("numFeatures") if form == "libsvm" else None
    if n_features is not None and width is not None and width < n_features:
        frame = reader.option("numFeatures", str(n_features)).load(path)
    return frame


def _check_json(owner: str, frame: DataFrame, options: Any) -> None:
    """Refuse what is not JSON, a row a line; ``--handle-invalid skip`` lets single lines pass."""
    name = str(frame.sparkSession.conf.get("spark.sql.columnNameOfCorruptRecord"))
    tolerant = options.handle_invalid in ("skip", "keep") and len(frame.columns) > 1
    if name in frame.columns and not tolerant:
        raise invalid(
            owner, "--input", "JSON lines: one object on every line", Fact("lines that are none"),
            "Write each row on a line of its own, without [ ] around them and commas between.",
        )  # fmt: skip
    check_cells(owner, frame.drop(name), options)


def assign_roles(
    owner: str, frame: DataFrame, options: Any, label_default: str | None = None
) -> Table:
    """Decide which column is what, and say what was chosen for the user.

    Features are what the options name; else the column ``features`` if it can hold them; else
    all numeric columns but the label, the weight, the id columns and one called ``id``.

    Id columns are what the options name, else all that are neither features nor weight. When that
    leaves none, or only a label, every input column is kept: a row's own values are then the only
    thing that identifies it. (A row number would not: Spark promises no order of rows, so a number
    made up here could not be matched with the input again.)
    """
    label = getattr(options, "label_col", None) or label_default
    weight = getattr(options, "weight_col", None)
    for flag in ("features_col", "feature_cols", "weight_col", "label_col", "id_cols"):
        given = getattr(options, flag, None) or ()
        for name in (given,) if isinstance(given, str) else given:
            if name not in frame.columns:
                shown = f"--{flag.replace('_', '-')}"
                fix = f"It has: {', '.join(frame.columns)}."
                raise invalid(owner, shown, "a column of the input", name, fix)
    features_col, feature_cols = options.features_col, tuple(options.feature_cols)
    if features_col is None and not feature_cols:
        if dict(frame.dtypes).get("features", "").startswith(("vector", "array")):
            features_col = "features"
        else:
            taken = {label, weight, *options.id_cols}
            feature_cols = _numeric_columns(owner, frame, taken)
    features = {*feature_cols, features_col, weight}
    ids = options.id_cols or tuple(name for name in frame.columns if name not in features)
    if not options.id_cols and all(n.lower() in (*ADDED, "label") or n == label for n in ids):
        ids = tuple(frame.columns)
        say(owner, "no id columns: all columns of the input are copied to the output")
    for name in filter(lambda name: name.lower() in ADDED, ids):  # Spark ignores case
        say(owner, f"column {name} of the input is not copied: the output has its own")
    ids = tuple(name for name in ids if name.lower() not in ADDED)
    return Table(frame, features_col, feature_cols, weight, label, ids)


def _numeric_columns(owner: str, frame: DataFrame, taken: set[str | None]) -> tuple[str, ...]:
    free = [f for f in frame.schema if f.name not in taken and f.name.lower() != "id"]
    chosen = [field.name for field in free if isinstance(field.dataType, NumericType)]
    left = [field.name for field in free if field.name not in chosen]
    if not chosen:
        types = ", ".join(f"{name} ({kind})" for name, kind in frame.dtypes) or "none"
        raise invalid(
            owner, "the input", "a table with numeric columns or a column features (vector, array)",
            Fact(types), "Name them with --feature-cols or --features-col.",
        )  # fmt: skip
    say(owner, f"features: {', '.join(chosen)}")
    whole = [field.name for field in free if isinstance(field.dataType, IntegralType)]
    doubtful = list(filter(_ID_NAME.search, whole))
    if doubtful:
        told = f"{', '.join(doubtful)}: an identifier is no feature"
        say(owner, f"{told}; to leave it out, name the others with --feature-cols")
    if left:
        say(owner, f"not numeric, so not features: {', '.join(left)}")
    return tuple(chosen)
