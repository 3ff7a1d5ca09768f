"""Readers of the paper's real data sets."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jobs.npz import read_arrays
from localkmeans_spark.errors import Fact, count_of, invalid

OWNER = "reproduce_paper"
POSTURE_ROWS, POSTURE_CLASSES = 78_095, 5
_POSTURE_HEADER = ("Class", "User", *(f"{axis}{i}" for i in range(12) for axis in "XYZ"))
_ORIGINAL = "It is Postures.csv of the UCI repository."


class RealData(NamedTuple):
    """A data set: name, rows, classes 0..K-1, number of classes."""

    name: str
    x: np.ndarray
    labels: np.ndarray
    k: int


def read_embeddings(name: str, path: str) -> RealData:
    """Read an ``.npz`` with X, y and perhaps scale."""
    arrays = read_arrays(OWNER, path)
    if arrays.y is None:
        raise invalid(
            OWNER, f"{path}: the archive", "one with an array y of classes", Fact("X only"),
            "Misclustering needs the classes.",
        )  # fmt: skip
    with np.errstate(over="ignore"):  # told below
        x = arrays.x.astype(np.float32)
        if arrays.scale != 1.0:
            x *= np.float32(arrays.scale)
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        raise invalid(
            OWNER, f"{path}: X", "finite, as float32 and times scale, too",
            Fact(f"{count_of(int(bad.sum()), 'row')} with NaN or infinity"), "Leave them out.",
        )  # fmt: skip
    return _classified(name, path, x, arrays.y)


def read_posture(path: str) -> RealData:
    """Read the UCI file of hand postures: ``Class,User,X0,Y0,Z0,...,X11,Y11,Z11``.

    A row shows 3 to 12 markers in no fixed order; the others are ``?``. See
    :func:`posture_features` for how they become 38 numbers. The row of class 0 that the file
    begins with is no posture and is left out. A row without any marker is refused: the original
    has none.

    Raises
    ------
    InvalidInputError
        Names the file, and the line of the first cell that is neither a number nor ``?``.
    """
    classes, markers = [], []
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        try:
            _check_header(path, next(lines, []))
            for line in lines:
                if line:
                    posture, values = _posture_row(f"{path}, line {lines.line_num}", line)
                    if posture != 0:
                        classes.append(posture)
                        markers.append(values)
        except (UnicodeDecodeError, csv.Error):
            at = f"{path}, line {lines.line_num + 1}"
            raise invalid(OWNER, at, "text in UTF-8", Fact("something else"), _ORIGINAL) from None
    if not classes:
        raise invalid(OWNER, path, "a file with rows", Fact("a header only"), "Download it again.")
    x = posture_features(np.array(markers, dtype=np.float64))
    data = _classified("Posture", path, x, np.array(classes))
    if len(x) != POSTURE_ROWS or data.k != POSTURE_CLASSES:
        return data._replace(name=f"part of Posture ({len(x):,} rows, {data.k} classes)")
    return data


def _classified(name: str, path: str, x: np.ndarray, y: np.ndarray) -> RealData:
    """Number the classes from 0."""
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise invalid(
            OWNER, path, "a file with rows of at least 2 classes",
            Fact(f"{len(classes)}"), "Misclustering needs several.",
        )  # fmt: skip
    return RealData(name, x, labels.astype(np.int32), len(classes))


def _check_header(path: str, header: list[str]) -> None:
    for place, name in enumerate(_POSTURE_HEADER):
        found = header[place].strip() if place < len(header) else "nothing"
        if found != name:
            raise invalid(
                OWNER, f"{path}, line 1: column {place + 1} of the header", name, found[:40],
                _ORIGINAL,
            )  # fmt: skip
    if len(header) > len(_POSTURE_HEADER):
        raise invalid(
            OWNER, f"{path}, line 1: the header", f"{len(_POSTURE_HEADER)} columns",
            Fact(str(len(header))), _ORIGINAL,
        )  # fmt: skip


def _posture_row(at: str, line: list[str]) -> tuple[int, list[float]]:
    """Return the class and the 36 numbers of a line, NaN for ``?``."""
    if len(line) != len(_POSTURE_HEADER):
        raise invalid(
            OWNER, at, f"{len(_POSTURE_HEADER)} cells", Fact(str(len(line))), _ORIGINAL
        )  # fmt: skip
    try:
        posture = int(line[0])
    except ValueError:
        raise invalid(
            OWNER, f"{at}: the class", "a whole number", line[0][:40], _ORIGINAL
        ) from None
    values = []
    for name, cell in zip(_POSTURE_HEADER[2:], line[2:], strict=True):
        if cell.strip() == "?":
            values.append(math.nan)
            continue
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise invalid(OWNER, f"{at}: {name}", "a finite number or ?", cell[:40], _ORIGINAL)
        values.append(value)
    if np.isnan(values).reshape(12, 3).any(axis=1).all():
        raise invalid(
            OWNER, at, "a row with at least 1 visible marker", Fact("none"), "Leave the row out."
        )
    return posture, values


def posture_features(markers: np.ndarray) -> np.ndarray:
    """Turn 12 markers, some of them missing, into 38 numbers a row.

    A missing marker takes the mean of the row's visible ones: the place that says least about
    the posture, and the one that leaves the row's mean marker as it was. Zeros would do neither:
    they lie tens of millimetres from every hand. The number of visible markers (times 10, so that
    one marker weighs like a centimetre) and their root mean square distance from their mean make
    up for what the filling hides. That gives 38 numbers, the dimension in the paper's table; the
    file's own 38 columns cannot be meant, since two of them are the class and the person.

    Parameters
    ----------
    markers : ndarray of shape (n, 36), float64
        NaN where missing.

    Returns
    -------
    ndarray of shape (n, 38), float32
    """
    points = markers.reshape(len(markers), 12, 3)
    seen = ~np.isnan(points).any(axis=2)
    n_seen = seen.sum(axis=1)
    filled = np.where(seen[:, :, None], points, 0.0)
    mean = filled.sum(axis=1) / np.maximum(n_seen, 1)[:, None]
    filled = np.where(seen[:, :, None], points, mean[:, None, :])
    spread = ((filled - mean[:, None, :]) ** 2).sum(axis=(1, 2)) / np.maximum(n_seen, 1)
    parts = [filled.reshape(len(markers), 36), 10.0 * n_seen[:, None], np.sqrt(spread)[:, None]]
    return np.concatenate(parts, axis=1).astype(np.float32)
