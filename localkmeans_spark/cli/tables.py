"""Inputs of any format as tables."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.cli.columns import Table, assign_roles
from localkmeans_spark.cli.csv_files import check_no_parquet, check_text, look_at_text, read_csv
from localkmeans_spark.cli.npz import LABEL, Arrays, arrays_frame, read_arrays
from localkmeans_spark.cli.places import local_matches, local_path
from localkmeans_spark.errors import Fact, InvalidInputError, invalid

EXTENSIONS = {
    ".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json",
    ".ndjson": "json", ".libsvm": "libsvm", ".svm": "libsvm", ".npz": "npz",
}  # fmt: skip
COMPRESSIONS = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")
_CSV_FLAGS = ("header", "sep", "decimal", "null_value")
_MANY_NAMES = 100
# What Hadoop takes as a pattern in a path.
_PATTERN = re.compile(r"[\[\]{}*?\\]")
# What Spark's reader of Parquet files says of files that are none.
_NOT_PARQUET = re.compile(r"is not a Parquet file|CANNOT_READ_FILE_FOOTER|Could not read footer")
# What Spark's reader of libsvm files says of lines that are none.
_NOT_LIBSVM = re.compile(
    r"NumberFormatException|ArrayIndexOutOfBoundsException|indices should be|requirement failed"
)


@dataclass(frozen=True)
class Source:
    """An input whose format (or "table") is known, or None when only Spark can look."""

    path: str
    format: str | None
    arrays: Arrays | None = None


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def find_source(owner: str, options: Any) -> Source:
    """Look at the input before Spark starts, as far as that is possible.

    Raises
    ------
    InvalidInputError
        When a local input is missing or empty, or no format can be told from its name.
    """
    if getattr(options, "table", None):
        given = [name for name in ("format", *_CSV_FLAGS) if getattr(options, name, None)]
        if given:
            found = Fact(f"the table {options.table}")
            raise invalid(owner, _flag(given[0]), "given for files only", found, "Leave it out.")
        return Source(options.table, "table")
    path = options.input or ""
    local = local_path(path)
    form = options.format or format_of([path])
    if local is not None:
        names = _local_names(owner, path, local)
        form = form or format_of(names)
        if form is None:
            raise _no_format(owner, path)
    given = [name for name in _CSV_FLAGS if getattr(options, name, None) is not None]
    if given and form not in ("csv", None):
        found = Fact(f"an input of the format {form}")
        raise invalid(owner, _flag(given[0]), "given for CSV files only", found, "Leave it out.")
    if form != "npz":
        literal = local is not None and local.exists()
        return Source(_PATTERN.sub(r"\\\g<0>", path) if literal else path, form)
    local = local or Path(path)
    if not local.is_file():
        raise invalid(
            owner, "--input", "one file on this machine's disk for the format npz", path,
            "Copy it here, or use Parquet.",
        )  # fmt: skip
    return Source(path, form, read_arrays(owner, str(local)))


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
        frame = arrays_frame(spark, source.arrays, getattr(options, "partitions", None))
        label = LABEL if source.arrays.y is not None else None
        return assign_roles(owner, frame, options, label)
    form = source.format or format_of(spark.read.text(source.path).inputFiles())
    if form is None:
        raise _no_format(owner, source.path)
    if form == "table":
        return assign_roles(owner, spark.table(source.path), options)
    if form in ("json", "libsvm"):
        first = [row[0] for row in spark.read.text(source.path).head(1)]
        check_no_parquet(owner, source.path, form, first)
    if form == "libsvm":
        return assign_roles(owner, _read_libsvm(owner, spark, source.path, n_features), options)
    if form == "csv":
        frame = read_csv(owner, spark, source.path, options)
    else:
        frame = _read_other(owner, spark, source.path, form)
    if form == "json":
        _check_json(owner, frame, options)
    return assign_roles(owner, frame, options)


def format_of(names: Sequence[str]) -> str | None:
    """Return the format that the first telling extension among file names stands for."""
    for name in names:
        for extension in reversed(Path(name.lower()).suffixes):
            if extension in EXTENSIONS:
                return EXTENSIONS[extension]
            if extension not in COMPRESSIONS:
                break
    return None


def _local_names(owner: str, path: str, local: Path) -> list[str]:
    """Return names of data files at a path, which may hold wildcards; none is an error."""
    found = local_matches(local)
    if not found:
        fix = "Nothing matches: [ ] { } * ? are a pattern." if _PATTERN.search(path) else ""
        raise invalid(
            owner, "--input", "an existing file or directory", path, fix or "Check the path."
        )
    names: list[str] = []
    for place in found:
        if not place.is_dir():
            names.append(place.name)
        for _, folders, files in os.walk(place):
            folders[:] = [name for name in sorted(folders) if not name.startswith((".", "_"))]
            names += [name for name in sorted(files) if not name.startswith((".", "_"))]
            if len(names) >= _MANY_NAMES:
                break
    if not names:
        raise invalid(owner, "--input", "a directory with data files", path, "It holds none.")
    return names


def _no_format(owner: str, path: str) -> InvalidInputError:
    known = ", ".join(EXTENSIONS)
    return invalid(
        owner, "--input", f"a file with one of the extensions {known}", path, "Or give --format."
    )


def _read_other(owner: str, spark: SparkSession, path: str, form: str) -> DataFrame:
    try:
        return spark.read.format(form).load(path)
    except Exception as error:
        if form != "parquet" or _NOT_PARQUET.search(str(error)) is None:
            raise
        named = re.search(r"(?:for file:|FilePath: ?|file) ?(\S+:/\S+?)[.,]?(?:\s|$)", str(error))
        file = named[1] if named else path
    raise invalid(
        owner, f"--input {file}", "a Parquet file", Fact("another kind of file"),
        "If it is text, give --format csv, json or libsvm.",
    )  # fmt: skip


def _read_libsvm(owner: str, spark: SparkSession, path: str, n_features: int | None) -> DataFrame:
    reader = spark.read.format("libsvm")
    try:
        frame = reader.load(path)  # reads the file once, for its width
    except Exception as error:
        told = _NOT_LIBSVM.search(str(error))
        if told is None:
            raise
        line = next(line for line in str(error).splitlines() if told[0] in line)
        raise invalid(
            owner, f"--input {path}",
            "lines of 'label index:value index:value ...', indices ascending from 1",
            Fact(line.rpartition("Exception: ")[2][:200]), "Fix that line.",
        ) from None  # fmt: skip
    width = frame.schema["features"].metadata.get("numFeatures")
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
    check_text(owner, look_at_text(frame.drop(name), options, "."), ".")
