"""Readers of the paper's real data sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from localkmeans_spark.cli.npz import read_arrays
from localkmeans_spark.errors import Fact, count_of, invalid

OWNER = "reproduce_paper"
_POSTURE_HEADER = ["Class", "User", *(f"{axis}{i}" for i in range(12) for axis in "XYZ")]
_ORIGINAL = "It is Postures.csv of the UCI repository."


class RealData(NamedTuple):
    """A data set: name, rows, classes 0..K-1, number of classes."""

    name: str
    x: np.ndarray
    labels: np.ndarray
    k: int


def read_embeddings(name: str, path: str) -> RealData:
    """Read an ``.npz`` with X, y and perhaps scale; the rows are X * scale, as float32."""
    found = read_arrays(OWNER, path)
    if found.y is None:
        rule, fix = "one with an array y", "Save it with np.savez(path, X=rows, y=classes)."
        raise invalid(OWNER, f"{path}: the archive", rule, Fact("none"), fix)
    with np.errstate(over="ignore"):  # too large a number is told below
        x = found.x.astype(np.float32) * np.float32(found.scale)
    bad = int((~np.isfinite(x).all(axis=1)).sum())
    if bad:
        raise invalid(
            OWNER, f"{path}: X", "finite, as float32 and times scale, too",
            Fact(f"{count_of(bad, 'row')} with NaN or infinity"), "Leave them out.",
        )  # fmt: skip
    return _classified(name, path, x, found.y)


def read_posture(path: str) -> RealData:
    """Read the UCI file of hand postures: ``Class,User,X0,Y0,Z0,...,X11,Y11,Z11``.

    A row shows 3 to 12 markers in no fixed order; the others are ``?``. See
    :func:`posture_features` for how they become 38 numbers. The row of class 0 that the file
    begins with is no posture and is left out. A row without any marker is refused: the original
    has none.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig",
                            skipinitialspace=True)  # fmt: skip
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        fact = Fact(str(error).splitlines()[0])
        raise invalid(OWNER, path, "a CSV file in UTF-8", fact, _ORIGINAL) from None
    if list(table.columns) != _POSTURE_HEADER or not isinstance(table.index, pd.RangeIndex):
        raise invalid(OWNER, f"{path}: the header", "Class,User,X0,Y0,Z0,...,Z11",
                      Fact(",".join(table.columns)[:40]), _ORIGINAL)  # fmt: skip
    numbers = table.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    hidden = table.eq("?").to_numpy()
    hidden[:, :2] = False  # class and person are always known
    for row, column in np.argwhere(~np.isfinite(numbers) & ~hidden)[:1]:
        at, cell = f"{path}, row {row + 1}: {_POSTURE_HEADER[column]}", table.iat[row, column]
        raise invalid(OWNER, at, "a finite number or ?", str(cell)[:40], _ORIGINAL)
    numbers = numbers[numbers[:, 0] != 0]
    x, n_seen = posture_features(numbers[:, 2:])
    if not n_seen.all():
        raise invalid(OWNER, f"{path}: every row", "one with at least 1 visible marker",
                      Fact(count_of(int((n_seen == 0).sum()), "row") + " without"),
                      "Leave them out.")  # fmt: skip
    # The name tells whether it is all of the file, which has 78,095 rows.
    return _classified(f"Posture ({len(x):,} rows)", path, x, numbers[:, 0])


def _classified(name: str, path: str, x: np.ndarray, y: np.ndarray) -> RealData:
    """Number the classes from 0."""
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise invalid(
            OWNER, path, "a file with rows of at least 2 classes",
            Fact(f"{len(classes)}"), "Misclustering needs several.",
        )  # fmt: skip
    return RealData(name, x, labels.astype(np.int32), len(classes))


def posture_features(markers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn 12 markers, some of them missing, into 38 numbers a row.

    A missing marker takes the mean of the row's visible ones, which says least about the posture.
    The number of visible markers (times 10, so that one weighs like a centimetre) and their root
    mean square distance from their mean make up for what the filling hides. That gives the paper's
    38 dimensions; two of the file's own 38 columns are the class and the person.

    Parameters
    ----------
    markers : ndarray of shape (n, 36), float64
        NaN where missing.

    Returns
    -------
    x : ndarray of shape (n, 38), float32
    n_seen : ndarray of shape (n,), int
    """
    points = markers.reshape(len(markers), 12, 3)
    seen = ~np.isnan(points).any(axis=2)
    n_seen = seen.sum(axis=1)
    mean = np.where(seen[:, :, None], points, 0.0).sum(axis=1) / np.maximum(n_seen, 1)[:, None]
    filled = np.where(seen[:, :, None], points, mean[:, None, :])
    spread = ((filled - mean[:, None, :]) ** 2).sum(axis=(1, 2)) / np.maximum(n_seen, 1)
    parts = [filled.reshape(len(markers), 36), 10.0 * n_seen[:, None], np.sqrt(spread)[:, None]]
    return np.concatenate(parts, axis=1).astype(np.float32), n_seen
