"""Hypothesis strategies: tables of every type and oddity, and parameters of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st
from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

VECTORS = ("dense", "sparse", "mixed")
ARRAYS = {
    "array<double>": t.DoubleType(),
    "array<float>": t.FloatType(),
    "array<int>": t.IntegerType(),
    "array<bigint>": t.LongType(),
}
COLUMNS = {
    "double": t.DoubleType(),
    "float": t.FloatType(),
    "int": t.IntegerType(),
    "bigint": t.LongType(),
    "smallint": t.ShortType(),
    "decimal": t.DecimalType(20, 6),
    "boolean": t.BooleanType(),
}
_NAMES = ("features", "my.x", "a`b", "x y", "X", "é", "1", "a.b`c", "select", " lead", "#", "_")
_LIMITS = {"int": 2**31 - 1, "bigint": 2**53, "smallint": 2**15 - 1, "decimal": 1e13}


@dataclass(frozen=True)
class Table:
    """Rows as Spark gets them, and as numbers.

    Attributes
    ----------
    kind : str
        ``"columns"``, a kind of vectors or a type of arrays.
    names : list of str
        The features' column, or columns.
    types : list of DataType
    rows : list of list
        Values for each of ``names``; the weight comes last if there is one.
    x : ndarray of shape (n, d), float64
        What the values are as numbers; NaN for nulls, rows of NaN for null rows.
    weights : list or None
    layout : list of int
        Rows of each partition, in order.
    is_ragged : bool
        Whether a row has another length.
    """

    kind: str
    names: list[str]
    types: list[t.DataType]
    rows: list[list[Any]]
    x: np.ndarray
    weights: list[Any] | None
    layout: list[int]
    is_ragged: bool

    def __repr__(self) -> str:
        return (
            f"Table({self.kind}, {self.names}, {[kind.simpleString() for kind in self.types]}, "
            f"layout={self.layout}, weights={self.weights},\n  x={self.x.tolist()}"
            f"{', ragged' if self.is_ragged else ''})"
        )

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the DataFrame: each partition holds just its rows, numbered in ``_row``."""
        fields = [t.StructField("_row", t.IntegerType())]
        fields += [t.StructField(*pair) for pair in zip(self.names, self.types, strict=True)]
        if self.weights is not None:
            fields.append(t.StructField("weight", t.DoubleType()))
        ends = np.cumsum(self.layout)
        rows = [
            (i, *row) if self.weights is None else (i, *row, self.weights[i])
            for i, row in enumerate(self.rows)
        ]
        parts = [rows[end - size : end] for size, end in zip(self.layout, ends, strict=True)]
        spread = spark.sparkContext.parallelize(parts, len(parts)).flatMap(lambda part: part)
        return spark.createDataFrame(spread, t.StructType(fields), verifySchema=False)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Draw a table: usually harmless, sometimes with what breaks k-means elsewhere."""
    kind = draw(st.sampled_from((*VECTORS, *ARRAYS, "columns", "columns")))
    is_wide = kind in ("sparse", "mixed") and draw(st.booleans())
    n, d = draw(st.integers(0, 40)), draw(st.integers(70, 90) if is_wide else st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = _numbers(draw, rng, n, d)
    if kind == "sparse" or is_wide:
        x[rng.random((n, d)) < 0.93] = 0.0
    cells = st.tuples(st.integers(0, 39), st.integers(0, d - 1), st.sampled_from(_ODD))
    odd = draw(st.one_of(st.just([]), st.just([]), st.lists(cells, max_size=3)))
    names = [draw(st.sampled_from(_NAMES))]
    types: list[t.DataType] = [VectorUDT()]
    if kind == "columns":
        names = draw(st.lists(st.sampled_from(_NAMES), min_size=d, max_size=d, unique_by=str.lower))
        kinds = draw(st.lists(st.sampled_from(tuple(COLUMNS)), min_size=d, max_size=d))
        types = [COLUMNS[name] for name in kinds]
    else:
        kinds = [kind[6:-1] if kind in ARRAYS else "double"] * d
        if kind in ARRAYS:
            types = [t.ArrayType(ARRAYS[kind])]
    values = [[_value(x[i, j], kinds[j]) for j in range(d)] for i in range(n)]
    for i, j, value in odd:
        if i < n and (value is None or kinds[j] in ("double", "float")):
            values[i][j] = math.nan if value is None and kind in VECTORS else value
    x = np.array([[_number(v, kinds[j]) for j, v in enumerate(row)] for row in values])
    x = x.reshape(n, d)
    rows = [row if kind == "columns" else [_packed(row, kind, i)] for i, row in enumerate(values)]
    is_ragged = kind != "columns" and n > 1 and draw(st.integers(0, 40)) == 40
    if is_ragged:
        rows[n // 2] = [_packed([*values[n // 2], 1], kind, 0)]
    elif kind != "columns" and n and draw(st.integers(0, 20)) == 20:
        rows[n // 2], x[n // 2] = [None], np.nan
    weights = _weights(draw, rng, n)
    return Table(kind, names, types, rows, x, weights, _layout(draw, n), is_ragged)


_ODD = (None, math.nan, math.inf, -math.inf, 1e300, -1e300, 1e15, 1e8, 1e-300, -0.0)
_SHAPES = ("blobs", "noise", "grid", "constant", "few")
_SCALES = (1.0,) * 8 + (1e-6, 1e6, 1e-20, 1e14, 1e-100, 1e100)
_OFFSETS = (0.0,) * 8 + (1e3, -1.7e9, 1e6, 1e12)


def _numbers(draw: st.DrawFn, rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    shape = draw(st.sampled_from(_SHAPES))
    if shape == "blobs":
        x = 20.0 * rng.integers(0, 4, (n, 1)) + rng.normal(size=(n, d))
    elif shape == "noise":
        x = rng.normal(size=(n, d))
    elif shape == "grid":
        x = rng.integers(-3, 4, (n, d)).astype(float)
    elif shape == "constant":
        x = np.full((n, d), 3.25)
    else:
        x = rng.normal(size=(3, d))[rng.integers(0, 3, n)]
    x *= draw(st.sampled_from(_SCALES))
    return x + draw(st.sampled_from(_OFFSETS)) * (np.arange(d) % 2 == 0)


def _value(number: float, kind: str) -> Any:
    """Turn a number into what a column of this type may hold."""
    if kind == "double":
        return float(number)
    if kind == "float":
        return float(np.float32(np.clip(number, -3e38, 3e38)))
    if kind == "boolean":
        return bool(number > 0)
    whole = float(np.clip(np.rint(number), -_LIMITS[kind], _LIMITS[kind]))
    if kind == "decimal":
        return Decimal(int(whole)) + Decimal(1) / Decimal(4)
    return int(whole)


def _number(value: Any, kind: str) -> float:
    if value is None:
        return math.nan
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if kind == "float" else float(value)


def _packed(row: list[Any], kind: str, i: int) -> Any:
    if kind == "dense" or (kind == "mixed" and i % 2):
        return DenseVector(row)
    if kind in VECTORS:
        return SparseVector(len(row), {j: v for j, v in enumerate(row) if v != 0})
    return row


def _weights(draw: st.DrawFn, rng: np.random.Generator, n: int) -> list[Any] | None:
    kind = draw(
        st.sampled_from((None,) * 6 + ("any", "any", "whole", "zeros", "all zero", "odd", "wide"))
    )
    if kind is None:
        return None
    scale = draw(st.sampled_from((1.0, 1.0, 1.0, 1e-12, 1e12, 1e-200, 1e200)))
    weights: list[Any] = (scale * rng.uniform(0.1, 3.0, n)).tolist()
    if kind == "whole":
        weights = [float(i % 4) for i in range(n)]
    elif kind == "zeros":
        weights = [w if i % 3 else 0.0 for i, w in enumerate(weights)]
    elif kind == "all zero":
        weights = [0.0] * n
    elif kind == "wide":
        weights = [w * 10.0 ** (i % 12) for i, w in enumerate(weights)]
    elif kind == "odd" and n:
        weights[n // 2] = draw(st.sampled_from((None, math.nan, math.inf, -1.0, -0.0)))
    return weights


def _layout(draw: st.DrawFn, n: int) -> list[int]:
    count = draw(st.integers(1, 5))
    kind = draw(st.sampled_from(("even", "lopsided", "empty")))
    if kind == "even":
        return [len(part) for part in np.array_split(np.arange(n), count)]
    if kind == "lopsided":
        return [n - min(n, count - 1), *[1] * min(n, count - 1)]
    return [0, *[len(part) for part in np.array_split(np.arange(n), count)], 0]


@st.composite
def options(draw: st.DrawFn, n: int) -> dict[str, Any]:
    """Draw the parameters of a fit of ``n`` rows (``from_rows``: given centers, that many)."""
    chosen: dict[str, Any] = {
        "k": draw(st.integers(1, n + 5)),
        "seed": draw(st.integers(0, 99)),
        "initMode": draw(
            st.sampled_from(("k-means++", "k-means++", "local-k-means++", "k-means||", "random"))
        ),
        "localSteps": draw(st.sampled_from((5, 1, 2, 20, "auto"))),
        "maxIter": draw(st.sampled_from((20, 20, 5, 1, 0))),
        "tol": draw(st.sampled_from((1e-4, 0.0))),
        "nInit": draw(st.sampled_from((1, 1, 1, 3))),
        "emptyClusters": draw(st.sampled_from(("keep", "reseed"))),
        "handleInvalid": draw(st.sampled_from(("error", "skip", "keep"))),
        "canonicalOrder": draw(st.booleans()),
        "safeguard": draw(st.sampled_from((True, True, False))),
        "dtype": draw(st.sampled_from(("float32", "float64"))),
        "distanceMeasure": draw(st.sampled_from(("euclidean", "euclidean", "cosine"))),
        "numPartitions": draw(st.sampled_from((None, None, None, 1, 3))),
    }
    if draw(st.integers(0, 5)) == 5:
        chosen["from_rows"] = draw(st.integers(1, 4))
    return chosen
