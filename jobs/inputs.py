"""Tables of any supported format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.columns import Table, assign_roles
from jobs.npz import LABEL, Arrays, arrays_frame, read_arrays
from jobs.options import FitOptions, InputOptions
from jobs.places import find_place, local_path
from localkmeans_spark.errors import invalid

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
        return Source(path, form)
    if local is None:
        local = Path(path)
    if not local.is_file():
        raise invalid(
            owner, "--input", "one file on this machine's disk for the format npz", path,
            "Copy it here, or use Parquet.",
        )  # fmt: skip
    return Source(path, form, read_arrays(owner, str(local)))


def read_table(owner: str, spark: SparkSession, source: Source, options: InputOptions) -> Table:
    """Return the input as a table.

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
    reader = spark.read.format(form)
    if form == "csv":
        reader = reader.option("header", True).option("inferSchema", True)
    return assign_roles(owner, reader.load(source.path), options)


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
    found = [whole] if whole.exists() else sorted(Path("/").glob(str(whole).lstrip("/")))
    if not found:
        raise invalid(owner, "--input", "an existing file or directory", path, "Check the path.")
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
