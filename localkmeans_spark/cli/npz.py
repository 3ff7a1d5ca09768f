"""NumPy ``.npz`` files as DataFrames. The file may come from anywhere: nothing in it is trusted."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid

ID, FEATURES, LABEL = "id", "features", "label"
_BATCH_BYTES = 4 << 20
# A compressed file may unpack to this many times its size (the KDD Cup 1999 table: 34 times); more
# is taken for an attempt to fill the memory, unless it is small all the same.
_MOST_UNPACKING, _SMALL = 200, 64 << 20

_Wrong = Callable[[str, str, str, str], InvalidInputError]


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

    Notes
    -----
    Sizes are checked by the archive's and the arrays' own headers before anything is unpacked, so
    that no file takes more memory than 200 times its size (or 64 MB). Pickles are never loaded.
    """

    def wrong(subject: str, rule: str, fact: str, fix: str) -> InvalidInputError:
        return invalid(owner, f"{path}: {subject}", rule, Fact(fact), fix)

    try:
        with Path(path).open("rb") as raw, zipfile.ZipFile(raw) as archive, _no_warnings():
            names = archive.namelist()
            if "X.npy" not in names:
                held = ", ".join(name.removesuffix(".npy") for name in names[:20]) or "none"
                raise wrong("the archive", "one with an array X", held, "Save with X=rows.")
            size = Path(path).stat().st_size
            found = {
                name: _read_array(archive, name, size, wrong)
                for name in ("X", "y", "scale")
                if f"{name}.npy" in names
            }
    except InvalidInputError:
        raise
    except Exception as error:  # a file made to break readers raises errors of any class
        if isinstance(error, OSError) and error.filename is not None:
            raise  # the file cannot be opened
        told = " ".join(str(error).split())[:200] or type(error).__name__
        fix = "Save it with np.savez."
        raise wrong("the file", "an .npz archive of whole arrays", told, fix) from None
    x, y, scale = found["X"], found.get("y"), found.get("scale")
    if x.ndim != 2 or x.shape[1] == 0:
        raise wrong("X", "of shape (rows, columns)", f"shape {x.shape}", "Reshape it.")
    if x.dtype.kind not in "buif":
        raise wrong("X", "real numbers", f"dtype {x.dtype}", "Convert it with X.astype.")
    if scale is not None and not (
        scale.size == 1 and scale.dtype.kind in "buif" and np.isfinite(scale).all()
    ):
        numeric = scale.size == 1 and scale.dtype.kind in "buif"
        told = f"{scale.item()!r}" if numeric else f"shape {scale.shape}, dtype {scale.dtype}"
        raise wrong("scale", "one finite number", told, "The rows are X * scale.")
    if y is not None:
        y = _labels(y, len(x), wrong)
    return Arrays(x, y, 1.0 if scale is None else float(scale.reshape(())))


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Keep Python's remarks on odd array headers off the user's screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _read_array(archive: zipfile.ZipFile, name: str, file_size: int, wrong: _Wrong) -> np.ndarray:
    """Return one array of the archive, after its sizes have been found to be true."""
    if archive.namelist().count(f"{name}.npy") > 1:
        raise wrong("the archive", f"one with one {name}", "several", "Save it with np.savez.")
    info = archive.getinfo(f"{name}.npy")
    unpacked = info.file_size
    if info.compress_size > file_size or unpacked > max(_SMALL, _MOST_UNPACKING * file_size):
        raise wrong(
            name, f"unpacked at most {_MOST_UNPACKING} times as large as the file",
            f"{unpacked:,} bytes from a file of {file_size:,}", "Save it with np.savez.",
        )  # fmt: skip
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        told = f"compression method {info.compress_type}"
        raise wrong(name, "stored or deflated", told, "Save it with np.savez.")
    with archive.open(info) as stream:
        shape, dtype, header = _header(stream)
    if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
        told = "Python objects" if dtype.hasobject else f"dtype {str(dtype)[:80]}"
        raise wrong(name, "an array of numbers or text", told, "Convert it with astype.")
    needed = math.prod(shape) * dtype.itemsize
    if dtype.itemsize == 0 or min(shape, default=0) < 0 or header + needed != unpacked:
        told = f"shape {shape}, that is {needed:,} bytes, where there are {unpacked - header:,}"
        raise wrong(name, "whole", told, "Save it again with np.savez.")
    with archive.open(info) as stream:
        array: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read(1)  # the end, where zipfile compares the checksum
    return array


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return shape and dtype as an ``.npy`` header gives them, and the header's length."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"an array of format version {version}")
    shape, _, dtype = read(stream)
    return shape, dtype, stream.tell()


def _labels(y: np.ndarray, n: int, wrong: _Wrong) -> np.ndarray:
    if y.shape != (n,):
        rule = f"one label for each of {count_of(n, 'row')}"
        raise wrong("y", rule, f"shape {y.shape}", "Save one label a row.")
    told = ""
    if y.dtype.kind == "U":
        y = np.ascontiguousarray(y, dtype=y.dtype.newbyteorder("="))
        codes = y.view(np.uint32)
        if not ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            return y
        told = "text that is not Unicode"
    elif y.dtype.kind not in "buif":
        told = f"dtype {y.dtype}"
    elif y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.floor(y))).all():
        told = "fractions or missing values"
    elif (y >= 2.0**63).any() or (y < -(2.0**63)).any():
        told = "numbers of more than 64 bits"
    if told:
        raise wrong("y", "whole numbers or text", told, "y is for known classes.")
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
    Each partition's rows travel as one broadcast of their own, in their own dtype, and only the
    task that needs them loads them.
    """
    context = spark.sparkContext
    n = len(arrays.x)
    parts = n_partitions or context.defaultParallelism
    bounds = [n * i // parts for i in range(parts + 1)]
    sent = [
        context.broadcast(
            (start, np.ascontiguousarray(arrays.x[start:end]), _part(arrays.y, start, end))
        )
        for start, end in pairwise(bounds)
    ]
    element = "float" if arrays.element is np.float32 else "double"
    schema = f"{ID} bigint, {FEATURES} array<{element}>"
    if arrays.y is not None:
        schema += f", {LABEL} " + ("string" if arrays.y.dtype.kind == "U" else "bigint")
    reader = _Reader(sent, arrays.scale, arrays.element)
    return spark.range(0, parts, 1, parts).mapInArrow(reader, schema)


def _part(y: np.ndarray | None, start: int, end: int) -> np.ndarray | None:
    return None if y is None else y[start:end]


@dataclass(frozen=True)
class _Reader:
    """Turns a partition's number into its rows; runs on executors."""

    sent: list[Broadcast[tuple[int, np.ndarray, np.ndarray | None]]]
    scale: float
    element: type[np.floating[Any]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                start, x, y = self.sent[number].value
                yield from rows_of(start, x, y, self.scale, self.element)


def rows_of(
    start: int,
    x: np.ndarray,
    y: np.ndarray | None,
    scale: float,
    element: type[np.floating[Any]],
) -> Iterator[pa.RecordBatch]:
    """Yield rows numbered from ``start``, in batches of about 4 MB.

    Parameters
    ----------
    start : int
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,) or None
    scale : float
    element : float32 or float64
        Type of the features that come out.
    """
    n, d = x.shape
    step = max(1, _BATCH_BYTES // (d * np.dtype(element).itemsize))
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
