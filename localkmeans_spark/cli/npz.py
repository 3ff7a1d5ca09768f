"""NumPy ``.npz`` files as DataFrames. Pickles are never loaded."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid

ID, FEATURES, LABEL = "id", "features", "label"
_NUMBERS = "buif"  # kinds of dtypes


@dataclass(frozen=True)
class Arrays:
    """What an ``.npz`` file holds: rows ``x * scale`` in the file's own dtype, and labels.

    Attributes
    ----------
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,), int64 or str, or None
    scale : float
    """

    x: np.ndarray
    y: np.ndarray | None
    scale: float


def read_arrays(owner: str, path: str) -> Arrays:
    """Read and check the arrays ``X``, optional ``y`` and optional ``scale``; others are ignored.

    Raises
    ------
    InvalidInputError
        When the file cannot be read, has no usable ``X``, or ``y`` does not fit to it.
    """

    def wrong(subject: str, rule: str, fact: object, fix: str) -> InvalidInputError:
        return invalid(owner, f"{path}: {subject}", rule, Fact(fact), fix)

    found: dict[str, np.ndarray] = {}
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("something else")
        with warnings.catch_warnings(), np.load(path, allow_pickle=False) as archive:
            warnings.simplefilter("ignore")  # remarks on odd headers
            for name in {"X", "y", "scale"}.intersection(archive.files):
                found[name] = archive[name]
                if not isinstance(found[name], np.ndarray):
                    raise ValueError(f"{name} that is none")
            held = ", ".join(archive.files[:20]) or "none"
    except Exception as error:  # a damaged file raises errors of any class
        told = " ".join(str(error).split())[:200] or type(error).__name__
        told = "Python objects" if "allow_pickle" in told else told
        rule = "an .npz archive of whole arrays of numbers or text"
        raise wrong("the file", rule, told, "Save it with np.savez.") from None
    if "X" not in found:
        raise wrong("the archive", "one with an array X", held, "Save with X=rows.")
    x, y, scale = found["X"], found.get("y"), found.get("scale", np.ones(1))
    if x.ndim != 2 or x.shape[1] == 0:
        raise wrong("X", "of shape (rows, columns)", f"shape {x.shape}", "Reshape it.")
    if x.dtype.kind not in _NUMBERS:
        raise wrong("X", "real numbers", f"dtype {x.dtype}", "Convert it with X.astype.")
    if scale.size != 1 or scale.dtype.kind not in _NUMBERS or not np.isfinite(scale).all():
        told = f"{scale.ravel()[:3]}, dtype {scale.dtype}"
        raise wrong("scale", "one finite number", told[:80], "The rows are X * scale.")
    if y is not None and y.shape != (len(x),):
        rule = f"one label for each of {count_of(len(x), 'row')}"
        raise wrong("y", rule, f"shape {y.shape}", "Save one label a row.")
    try:
        return Arrays(x, y if y is None else _labels(y), float(scale.reshape(())))
    except ValueError as error:
        fix = "y is for known classes."
        raise wrong("y", "whole numbers or text", error, fix) from None


def _labels(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "U":
        try:
            "".join(y.tolist()).encode()
        except (ValueError, SystemError):  # SystemError: no such character
            raise ValueError("text that is not Unicode") from None
        return y.astype(y.dtype.newbyteorder("="))
    if y.dtype.kind not in _NUMBERS:
        raise ValueError(f"dtype {y.dtype}")
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.floor(y))).all():
        raise ValueError("fractions or missing values")
    if (y >= 2.0**63).any() or (y < -(2.0**63)).any():
        raise ValueError("numbers of more than 64 bits")
    return y.astype(np.int64)


def arrays_frame(spark: SparkSession, arrays: Arrays, n_partitions: int | None) -> DataFrame:
    """Return the arrays as a DataFrame.

    The columns are ``id`` (bigint, the row's number from 0), ``features`` (array of float if that
    holds every value of ``x`` exactly, else of double) and, with ``y``, ``label``. Partitions are
    contiguous runs of rows of equal length, by default as many as the session's parallelism.

    Notes
    -----
    Each partition's rows travel as one broadcast of their own, in their own dtype, and only the
    task that needs them loads them.
    """
    context = spark.sparkContext
    x, y, scale = arrays.x, arrays.y, arrays.scale
    element = np.float32 if np.can_cast(x.dtype, np.float32) else np.float64
    parts = n_partitions or context.defaultParallelism
    bounds = [len(x) * i // parts for i in range(parts + 1)]
    sent: list[Broadcast[Any]] = [
        context.broadcast((start, x[start:end].copy(), None if y is None else y[start:end]))
        for start, end in pairwise(bounds)
    ]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                start, own, labels = sent[number].value
                yield from rows_of(start, own, labels, scale, element)

    schema = f"{ID} bigint, {FEATURES} array<{'float' if element is np.float32 else 'double'}>"
    if y is not None:
        schema += f", {LABEL} {'string' if y.dtype.kind == 'U' else 'bigint'}"
    return spark.range(0, parts, 1, parts).mapInArrow(read, schema)


def rows_of(
    start: int, x: np.ndarray, y: np.ndarray | None, scale: float, element: Any
) -> Iterator[pa.RecordBatch]:
    """Yield the rows ``x * scale``, numbered from ``start``, in batches of about 4 MB."""
    n, d = x.shape
    step = max(1, (4 << 20) // (d * np.dtype(element).itemsize))
    for first in range(0, n, step):
        rows = x[first : first + step].astype(element)
        if scale != 1.0:
            rows *= element(scale)
        offsets = pa.array(np.arange(0, rows.size + 1, d, dtype=np.int32))
        ids = pa.array(np.arange(start + first, start + first + len(rows)))
        columns = [ids, pa.ListArray.from_arrays(offsets, pa.array(rows.reshape(-1)))]
        if y is not None:
            columns.append(pa.array(y[first : first + step]))
        yield pa.RecordBatch.from_arrays(columns, names=[ID, FEATURES, LABEL][: len(columns)])
