"""Readers of the paper's real data sets."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jobs.npz import read_arrays
from localkmeans_spark.errors import Fact, invalid

OWNER = "reproduce_paper"
POSTURE_ROWS, POSTURE_CLASSES = 78_095, 5


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
    x = arrays.x.astype(np.float32)
    if arrays.scale != 1.0:
        x *= np.float32(arrays.scale)
    classes, labels = np.unique(arrays.y, return_inverse=True)
    return RealData(name, x, labels.astype(np.int32), len(classes))


def read_posture(path: str) -> RealData:
    """Read the UCI file of hand postures: ``Class,User,X0,Y0,Z0,...,X11,Y11,Z11``.

    A row shows 3 to 12 markers in no fixed order; the others are ``?``. See
    :func:`posture_features` for how they become 38 numbers. The row of class 0 that the file
    begins with is no posture and is left out.
    """
    classes, markers = [], []
    with Path(path).open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        if len(header) != 38 or header[0] != "Class":
            raise invalid(
                OWNER, f"{path}: the header", "Class,User,X0,Y0,Z0,...,X11,Y11,Z11",
                Fact(f"{len(header)} columns"), "It is Postures.csv of the UCI repository.",
            )  # fmt: skip
        for line in lines:
            if not line or line[0] == "0":
                continue
            classes.append(int(line[0]))
            markers.append([np.nan if value == "?" else float(value) for value in line[2:]])
    if not classes:
        raise invalid(OWNER, path, "a file with rows", Fact("a header only"), "Download it again.")
    names, labels = np.unique(classes, return_inverse=True)
    x = posture_features(np.array(markers, dtype=np.float64))
    if len(x) != POSTURE_ROWS or len(names) != POSTURE_CLASSES:
        shown = f"part of Posture ({len(x):,} rows, {len(names)} classes)"
        return RealData(shown, x, labels.astype(np.int32), len(names))
    return RealData("Posture", x, labels.astype(np.int32), len(names))


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
