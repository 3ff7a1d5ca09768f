"""Tables of any supported format."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jobs.columns import Table, assign_roles
from jobs.libsvm import read_libsvm
from jobs.npz import LABEL, Arrays, arrays_frame, read_arrays
from jobs.options import FitOptions, InputOptions
from jobs.places import find_place, local_path
from localkmeans_spark.errors import Fact, invalid

EXTENSIONS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".npz": "npz",
}
COMPRESSIONS = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")
_MANY_NAMES = 100
# What Hadoop takes as a pattern in a path.
_PATTERN = re.compile(r"[\[\]{}*?\\]")


@dataclass(frozen=True)
class Source:
    """An input whose format is known, or None when only Spark can look."""

    path: str
    format: str | None
    arrays: Arrays | None = None


def find_source(owner: str, options: InputOptions) -> Source:
    """Look at the input before Spark starts, as far as that is possible.

    Raises
    ------
    InvalidInputError
        When a local input is missing or empty, or no format can be told from its name.
    """
    path = options.input or ""
    local = local_path(path)
    form = options.format or format_of([path])
    if local is not None:
        names = _local_names(owner, path, local)
        form = form or format_of(names)
        if form is None:
            raise _no_format(owner, path)
    if form != "npz":
        literal = local is not None and local.exists()
        return Source(_PATTERN.sub(r"\\\g<0>", path) if literal else path, form)
    if local is None:
        local = Path(path)
    if not local.is_file():
        raise invalid(
            owner, "--input", "one file on this machine's disk for the format npz", path,
            "Copy it here, or use Parquet.",
        )  # fmt: skip
    return Source(path, form, read_arrays(owner, str(local)))


def read_table(
    owner: str,
    spark: SparkSession,
    source: Source,
    options: InputOptions,
    n_features: int | None = None,
) -> Table:
    """Return the input as a table; ``n_features`` is for :func:`jobs.libsvm.read_libsvm`.

    Raises
    ------
    InvalidInputError
        When a named column is missing (the message lists those present) or nothing can serve as
        features.
    """
    if source.arrays is not None:
        parts = options.partitions if isinstance(options, FitOptions) else None
        label = LABEL if source.arrays.y is not None else None
        frame = arrays_frame(spark, source.arrays, parts)
        return assign_roles(owner, frame, options, label_default=label)
    form = source.format or _remote_format(owner, spark, source.path)
    if form == "libsvm":
        return assign_roles(owner, read_libsvm(owner, spark, source.path, n_features), options)
    reader = spark.read.format(form)
    if form == "csv":
        reader = reader.option("header", True).option("inferSchema", True)
    frame = reader.load(source.path)
    if form == "json":
        _check_json(owner, frame, options)
    return assign_roles(owner, frame, options)


def _check_json(owner: str, frame: DataFrame, options: InputOptions) -> None:
    """Refuse what is not JSON, a row a line; ``--handle-invalid skip`` lets single lines pass."""
    name = frame.sparkSession.conf.get("spark.sql.columnNameOfCorruptRecord")
    tolerant = options.handle_invalid in ("skip", "keep") and len(frame.columns) > 1
    if name in frame.columns and not tolerant:
        raise invalid(
            owner, "--input", "JSON lines: one object on every line", Fact("lines that are none"),
            "Write each row on a line of its own, without [ ] around them and commas between.",
        )  # fmt: skip


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
    whole = local.absolute()
    # Hadoop also knows {a,b}, which Python does not: more names than asked for do no harm here.
    pattern = re.sub(r"\{[^{}]*\}", "*", str(whole).lstrip("/"))
    found = [whole] if whole.exists() else sorted(Path("/").glob(pattern))
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


def _remote_format(owner: str, spark: SparkSession, path: str) -> str:
    place = find_place(spark, path)
    form = format_of(place.names()) if place.is_directory() else None
    if form is None:
        raise _no_format(owner, path)
    return form


def _no_format(owner: str, path: str) -> Exception:
    known = ", ".join(EXTENSIONS)
    return invalid(
        owner, "--input", f"a file with one of the extensions {known}", path, "Or give --format."
    )
