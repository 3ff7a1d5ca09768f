"""NumPy ``.npz`` files as DataFrames: arrays travel as files, workers map them into memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from jobs.temporary import temporary_directory
from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid

ID, FEATURES, LABEL = "id", "features", "label"
_BATCH_BYTES = 4 << 20


@dataclass(frozen=True)
class Arrays:
    """What an ``.npz`` file holds, checked.

    Attributes
    ----------
    x : ndarray of shape (n, d)
        In the file's own dtype.
    y : ndarray of shape (n,), int64 or str, or None
    scale : float
        The rows are ``x * scale``.
    """

    x: np.ndarray
    y: np.ndarray | None
    scale: float

    @property
    def element(self) -> type[np.floating[Any]]:
        """The float type of the features: float32 when it holds every value of ``x`` exactly."""
        return np.float32 if np.can_cast(self.x.dtype, np.float32) else np.float64


def read_arrays(owner: str, path: str) -> Arrays:
    """Read and check the arrays ``X``, optional ``y`` and optional ``scale``; others are ignored.

    Raises
    ------
    InvalidInputError
        When the file cannot be read, has no usable ``X``, or ``y`` does not fit to it.
    """

    def wrong(subject: str, rule: str, fact: str, fix: str) -> InvalidInputError:
        return invalid(owner, f"{path}: {subject}", rule, Fact(fact), fix)

    try:
        # Opened here, because np.load leaves a broken file open.
        with Path(path).open("rb") as raw:
            # What is no zip archive, np.load would take for a pickle.
            if raw.read(4) not in (b"PK\3\4", b"PK\5\6"):
                raise wrong("the file", "an .npz archive", "something else", "Use np.savez.")
            raw.seek(0)
            file = np.load(raw, allow_pickle=False)
            if "X" not in file.files:
                names = ", ".join(file.files) or "none"
                raise wrong("the archive", "one with an array X", names, "Save with X=rows.")
            x = file["X"]
            y, scale = file.get("y"), file.get("scale")
    except InvalidInputError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # NumPy's advice on pickles, which run code when they are loaded, is not for us to pass on.
        told = "Python objects" if "pickle" in str(error) else str(error)
        fix = "Save it with np.savez, no objects."
        raise wrong("the file", "arrays of numbers or text", told, fix) from None
    if x.ndim != 2 or x.shape[1] == 0:
        raise wrong("X", "of shape (rows, columns)", f"shape {x.shape}", "Reshape it.")
    if x.dtype.kind not in "buif":
        raise wrong("X", "real numbers", f"dtype {x.dtype}", "Convert it with X.astype.")
    if scale is not None and not (scale.size == 1 and np.isfinite(scale).all()):
        raise wrong("scale", "one finite number", f"{scale!r}", "The rows are X * scale.")
    if y is not None:
        y = _labels(y, len(x), wrong)
    return Arrays(x, y, 1.0 if scale is None else float(scale.reshape(())))


def _labels(y: np.ndarray, n: int, wrong: Any) -> np.ndarray:
    if y.shape != (n,):
        rule = f"one label for each of {count_of(n, 'row')}"
        raise wrong("y", rule, f"shape {y.shape}", "Mend y.")
    if y.dtype.kind == "U":
        return y
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.floor(y))).all():
        raise wrong("y", "whole numbers or text", "fractions", "y is for known classes.")
    if y.dtype.kind not in "buif":
        raise wrong("y", "whole numbers or text", f"dtype {y.dtype}", "y is for known classes.")
    return y.astype(np.int64)


def arrays_frame(spark: SparkSession, arrays: Arrays, n_partitions: int | None) -> DataFrame:
    """Return the arrays as a DataFrame.

    The columns are ``id`` (bigint, the row's number from 0), ``features`` (array of float or
    double) and, with ``y``, ``label``. Partitions are contiguous runs of rows of equal length.

    Parameters
    ----------
    spark : SparkSession
    arrays : Arrays
    n_partitions : int or None
        None for the session's default parallelism.

    Notes
    -----
    The arrays go to every executor once, as ``.npy`` files through ``SparkContext.addFile``, in
    their own dtype: nothing is pickled, and each task reads only its own rows. The files stay
    until this process ends, because Spark hands them out for as long as it runs.
    """
    context = spark.sparkContext
    folder = temporary_directory("npz")
    names: dict[str, str] = {}
    for name, array in (("x", arrays.x), ("y", arrays.y)):
        if array is not None:
            # addFile refuses another file of the same name, so the folder's is part of it.
            names[name] = f"{folder.name}-{name}.npy"
            np.save(folder / names[name], array)
            context.addFile(str(folder / names[name]))
    element = "float" if arrays.element is np.float32 else "double"
    schema = f"{ID} bigint, {FEATURES} array<{element}>"
    if arrays.y is not None:
        schema += f", {LABEL} " + ("string" if arrays.y.dtype.kind == "U" else "bigint")
    reader = _Reader(names["x"], names.get("y"), arrays.scale, arrays.element)
    parts = n_partitions or context.defaultParallelism
    return spark.range(0, len(arrays.x), 1, parts).mapInArrow(reader, schema)


@dataclass(frozen=True)
class _Reader:
    """Turns row numbers into rows; runs on executors."""

    x_name: str
    y_name: str | None
    scale: float
    element: type[np.floating[Any]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        x = np.load(SparkFiles.get(self.x_name), mmap_mode="r")
        y = np.load(SparkFiles.get(self.y_name), mmap_mode="r") if self.y_name else None
        for batch in batches:
            yield from rows_of(batch.column(0), x, y, self.scale, self.element)


def rows_of(
    ids: pa.Array,
    x: np.ndarray,
    y: np.ndarray | None,
    scale: float,
    element: type[np.floating[Any]],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with the given numbers, in batches of about 4 MB.

    Parameters
    ----------
    ids : pyarrow.Array of int64
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,) or None
    scale : float
    element : float32 or float64
        Type of the features that come out.
    """
    d = x.shape[1]
    step = max(1, _BATCH_BYTES // (d * np.dtype(element).itemsize))
    for start in range(0, len(ids), step):
        part = ids.slice(start, step)
        where = part.to_numpy()
        rows = x[where].astype(element)
        if scale != 1.0:
            rows *= element(scale)
        offsets = pa.array(np.arange(0, rows.size + 1, d, dtype=np.int32))
        columns = [part, pa.ListArray.from_arrays(offsets, pa.array(rows.reshape(-1)))]
        if y is not None:
            columns.append(pa.array(y[where]))
        names = [ID, FEATURES, LABEL][: len(columns)]
        yield pa.RecordBatch.from_arrays(columns, names=names)
