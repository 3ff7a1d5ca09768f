"""DataFrame → labels and costs, or their sums, a batch of rows at a time in the Python workers.

PySpark 4.1 and later hand Arrow arrays to the function as they are; earlier ones go through
pandas. Only the features travel, so the column works in streams and Catalyst prunes the others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from threadpoolctl import threadpool_limits

from localkmeans_spark.data.checks import bad_weights
from localkmeans_spark.data.partition import blas_threads
from localkmeans_spark.data.workers import told_plainly
from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid
from localkmeans_spark.kernel.sparse_rows import SparseRows, from_csr
from localkmeans_spark.real_numbers import check_real, real_array
from localkmeans_spark.records import LocalKMeansEvaluation
from localkmeans_spark.scoring import (
    WIDTH_CODE,
    ModelFrame,
    RowRule,
    as_arrow,
    invalid_rows,
    score_column,
    wrong_width,
)
from localkmeans_spark.spark_private import is_connect

if TYPE_CHECKING:
    from pyspark import Broadcast

_COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
# Larger centers are sent to each executor once, not with each task.
_CLOSURE_BYTES = 1 << 20
_LABEL, _SCORES = "int", "label int, cost double"
_ALL = f"{_SCORES}, distances array<double>, second int, margin double"


class FrameSender:
    """Sends a model's frame to the tasks, and remembers what it has already sent."""

    def __init__(self, frame: ModelFrame) -> None:
        self._frame = frame
        self._context: Any = None
        self._broadcast: Broadcast[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only this driver has: a pickled copy sends the frame anew."""
        return {**self.__dict__, "_context": None, "_broadcast": None}

    def on_workers(self, session: SparkSession) -> Callable[[], ModelFrame]:
        """Return a function that gives the frame wherever it is called."""
        if self._frame.centers.nbytes <= _CLOSURE_BYTES or is_connect(session):
            return partial(_received, self._frame)
        if self._broadcast is None or self._context is not session.sparkContext:
            self._context = session.sparkContext
            self._broadcast = self._context.broadcast(self._frame)
        return partial(_received, self._broadcast)


def _received(frame: Any) -> ModelFrame:
    return frame if isinstance(frame, ModelFrame) else frame.value


def raises_cleanly(session: SparkSession) -> bool:
    """Whether an error raised by a column shows its message alone (PySpark 4; 3.5 shows Java's)."""
    return int(session.version.split(".")[0]) >= 4


def scores(
    features: Column,
    kind: str,
    frame: Callable[[], ModelFrame],
    rule: RowRule,
    with_costs: bool,
    deterministic: bool = True,
    with_all: bool = False,
) -> Column:
    """Return the label (int) of each row, or a struct of label and cost.

    Parameters
    ----------
    features : Column
    kind : str
        As ``data.columns.ingest_columns`` gives them.
    frame : callable
        Returns the frame on a worker, once for each task.
    rule : RowRule
    with_costs : bool
        A struct with the cost, too (see ``scoring.Scored``).
    deterministic : bool
        False keeps Spark from moving a filter on the result below the function, which would run
        it twice.
    with_all : bool
        A struct with cost, distances to all centers, second nearest center and margin.
    """
    with_costs = with_costs or with_all

    def score(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        received = frame()
        with threadpool_limits(blas_threads(), user_api="blas"):
            for batch in batches:
                yield as_arrow(score_column(batch, kind, received, rule, with_costs, with_all))

    def score_series(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for found in score(from_pandas(batch, kind) for batch in batches):
            yield _to_pandas(found)

    # A struct arrives and leaves as a pandas DataFrame, and PySpark wants to be told.
    takes: Any = pd.Series if kind == "array" else pd.DataFrame
    gives: Any = pd.DataFrame if with_costs else pd.Series
    score_series.__annotations__.update({"batches": Iterator[takes], "return": Iterator[gives]})
    returns = _ALL if with_all else _SCORES if with_costs else _LABEL
    if hasattr(F, "arrow_udf"):
        udf = F.arrow_udf(score, returns)  # type: ignore[call-overload]
    else:
        udf = F.pandas_udf(score_series, returns)  # type: ignore[call-overload]
    return (udf if deterministic else udf.asNondeterministic())(features)


def or_raise(value: Column, label: Column, rule: RowRule, frame: ModelFrame) -> Column:
    """Return ``value``, as a column that raises where the label is a code (``RowRule``)."""
    mark = "<found>"
    n_features = frame.centers.shape[1]
    counted = invalid_rows(rule, frame, f"{mark} such row(s) in one batch of rows")
    width = wrong_width(rule.subject, n_features, mark)
    message = F.when(label > WIDTH_CODE, _told(counted, mark, -label)).otherwise(
        _told(width, mark, F.lit(WIDTH_CODE) - label)
    )
    return F.when(label < 0, F.raise_error(message)).otherwise(value)


def _told(error: InvalidInputError, mark: str, number: Column) -> Column:
    before, _, after = str(error).rpartition(mark)
    return F.concat(F.lit(before), number.cast("string"), F.lit(after))


def evaluate_scores(
    dataset: DataFrame,
    scores: Column,
    weight: Column,
    rule: RowRule,
    shape: tuple[int, int],
    weight_subject: str,
) -> LocalKMeansEvaluation:
    """Add up distances and weights by cluster, in one pass.

    Parameters
    ----------
    dataset : DataFrame
    scores : Column
        As ``predict.scores`` makes it; a null label is a row left out.
    weight : Column
        Double; rows of weight 0 count for nothing.
    rule : RowRule
        By which ``scores`` was made; it tells widths.
    shape : (int, int)
        Of the centers.
    weight_subject : str
        The weights as the user knows them.

    Raises
    ------
    InvalidInputError
        If rows have another width than the centers, or a weight is negative, NaN, infinite or null.
    """
    # Before the scores: a row of weight 0 may have another width, too.
    counted = dataset.where(weight.isNull() | (weight != 0))
    rows = counted.select(scores.alias("s"), weight.alias("w"))
    usable = (F.col("w") >= 0) & (F.col("w") < float("inf"))
    with told_plainly("LocalKMeansModel"):
        found = (
            rows.groupBy(F.col("s.label"))
            .agg(
                F.count("*"),
                F.sum("w"),
                F.sum(F.col("w") * F.col("s.cost")),
                F.sum(F.when(usable, 0).otherwise(1)),
            )
            .collect()
        )
    totals: dict[int | None, Any] = {row[0]: row for row in found}
    k, n_features = shape
    widths = [WIDTH_CODE - label for label in totals if label is not None and label < 0]
    if widths:
        raise wrong_width(rule.subject, n_features, min(widths))
    n_bad = sum(row[4] for row in found)
    if n_bad:
        raise bad_weights("LocalKMeansModel", weight_subject, count_of(n_bad, "row"))
    per_cluster = [totals.get(label, (label, 0, 0.0, 0.0)) for label in range(k)]
    inertia = [float(row[3]) for row in per_cluster]
    return LocalKMeansEvaluation(
        inertia=float(sum(inertia)),
        clusterSizes=[int(row[1]) for row in per_cluster],
        clusterWeights=[float(row[2]) for row in per_cluster],
        clusterInertia=inertia,
        numSkipped=int(totals[None][1]) if None in totals else 0,
    )


def from_pandas(rows: Any, kind: str) -> pa.Array:
    """Return a features column that arrived as pandas objects as an Arrow array."""
    if kind == "columns":
        return pa.StructArray.from_arrays(
            [pa.array(rows[name].to_numpy()) for name in rows.columns], names=list(rows.columns)
        )
    numbers = pa.list_(pa.float64())
    if kind == "array":
        return pa.array(rows, type=numbers)
    is_null = rows["type"].isna().to_numpy()
    kinds = {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32()),
             "values": numbers}  # fmt: skip
    return pa.StructArray.from_arrays(
        [pa.array(rows[name], type=kind, from_pandas=True) for name, kind in kinds.items()],
        names=list(kinds),
        mask=pa.array(is_null) if is_null.any() else None,
    )


def _to_pandas(found: pa.Array) -> Any:
    if isinstance(found, pa.StructArray):
        return pd.DataFrame(
            {field.name: _to_pandas(found.field(field.name)) for field in found.type}
        )
    # Whole numbers stay whole beside nulls.
    return found.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype()}.get)


def row_matrix(value: Any) -> tuple[Any, bool]:
    """Return a Vector, list, array or scipy matrix as rows, and whether it was one row.

    Raises
    ------
    InvalidInputError
        If it is neither a row nor a matrix of finite numbers.
    """
    shown = value
    if (shape := getattr(value, "shape", None)) is not None:  # its repr takes many lines
        shown = Fact(f"a value of type {type(value).__name__} and shape {tuple(shape)}")
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        rows, numbers, single = _rows(value)
        if numbers.ndim in (1, 2):
            n_bad = int((~np.isfinite(numbers)).sum())
            if not n_bad:
                return rows, single
            shown = Fact(count_of(n_bad, "NaN or infinite number"))
    raise invalid(
        "LocalKMeansModel", "value", "a row or a matrix of finite numbers", shown,
        "Give a vector, a list or an array, without null, NaN or infinity.",
    )  # fmt: skip


def _rows(value: Any) -> tuple[Any, np.ndarray, bool]:
    """Return rows, the numbers stored in them, and whether it was one row."""
    if hasattr(value, "indices") and hasattr(value, "size") and hasattr(value, "toArray"):
        places = np.asarray(value.indices, dtype=np.int32)  # a SparseVector, of MLlib's kinds
        ends = np.array([0, len(places)], dtype=np.int32)
        numbers = np.asarray(value.values)
        return SparseRows(ends, places, numbers, int(value.size)), numbers, True
    if hasattr(value, "tocsr"):
        check_real(value.dtype)
        n_axes = getattr(value, "ndim", 2)
        rows = from_csr(value.tocsr() if n_axes == 2 else value.reshape(1, -1))
        return rows, rows.values, n_axes == 1
    numbers = real_array(value.toArray() if hasattr(value, "toArray") else value)
    return np.atleast_2d(numbers), numbers, numbers.ndim == 1


def allow_vector_columns(dataset: DataFrame) -> None:
    """Turn off, for the session, a shortcut of PySpark 4.3 that fails on vector columns.

    With it, a Python function right above a columnar source (Parquet, say) gets all columns as
    they are, and Spark refuses those of user-defined types such as vectors. It is read when the
    query runs, long after ``transform`` has returned, so it cannot be put back.
    """
    if '"type":"udt"' not in dataset.schema.json():
        return
    conf = dataset.sparkSession.conf
    if conf.isModifiable(_COLUMNAR_INPUT):  # only where this PySpark has it
        conf.set(_COLUMNAR_INPUT, "false")
