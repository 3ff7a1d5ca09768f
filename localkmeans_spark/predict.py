"""DataFrame → labels and distances, a batch of rows at a time in the Python workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import UserDefinedType
from threadpoolctl import threadpool_limits

from localkmeans_spark.engine.machine import blas_threads
from localkmeans_spark.errors import Fact, InvalidInputError, invalid
from localkmeans_spark.kernel.assign import assign_rows
from localkmeans_spark.kernel.chunks import slices

_COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
# Raw rows gathered into one matrix at a time: small against a worker's memory, large against
# the cost of a call.
_SLICE_BYTES = 16 << 20
# Larger centers are sent to each executor once, not with each task.
_CLOSURE_BYTES = 1 << 20
SCORES = "label int, sq_distance double"


class Frame(NamedTuple):
    """Centers and the frame in which rows are compared with them (see ``assign_rows``)."""

    centers: np.ndarray
    origin: np.ndarray
    dtype: str


class RowRule(NamedTuple):
    """What to do with rows that cannot be labelled.

    Attributes
    ----------
    owner : str
        Class shown in messages.
    subject : str
        The features as the user knows them, for example ``"column 'features'"``.
    fail : bool
        Raise at the first batch with a null, NaN or infinite feature; otherwise such rows get
        null for a label and a distance.
    """

    owner: str
    subject: str
    fail: bool


class FrameSender:
    """Sends a model's frame to the tasks, and remembers what it has already sent."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._context: Any = None
        self._broadcast: Broadcast[Any] | None = None

    def on_workers(self, session: SparkSession) -> Callable[[], Frame]:
        """Return a function that gives the frame wherever it is called."""
        if self._frame.centers.nbytes <= _CLOSURE_BYTES or is_connect(session):
            return partial(_received, self._frame)
        if self._broadcast is None or self._context is not session.sparkContext:
            self._context = session.sparkContext
            self._broadcast = self._context.broadcast(self._frame)
        return partial(_received, self._broadcast)


def is_connect(session: SparkSession) -> bool:
    """Whether the session is a Spark Connect one, without contexts and broadcasts."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _received(frame: Any) -> Frame:
    return frame.value if isinstance(frame, Broadcast) else frame


def scores(
    features: Column, frame: Callable[[], Frame], rule: RowRule, deterministic: bool = True
) -> Column:
    """Return a struct column (:data:`SCORES`) for an array column of features.

    Parameters
    ----------
    features : Column
        ``array<float>`` or ``array<double>``, as ``engine.columns.features_array`` makes it.
    frame : callable
        Returns the frame on a worker, once for each task.
    rule : RowRule
    deterministic : bool
        False keeps Spark from moving a filter on the result below the function, which would run
        it twice.
    """

    @pandas_udf(SCORES)  # type: ignore[call-overload]
    def score(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        received = frame()
        with threadpool_limits(blas_threads(), user_api="blas"):
            for batch in batches:
                yield score_batch(batch.to_numpy(), received, rule)

    return (score if deterministic else score.asNondeterministic())(features)


def score_batch(rows: np.ndarray, frame: Frame, rule: RowRule) -> pd.DataFrame:
    """Label one batch (runs on: executor).

    Parameters
    ----------
    rows : ndarray of shape (n,), object
        One array of numbers for each row, or None.
    frame : Frame
    rule : RowRule

    Returns
    -------
    DataFrame with columns ``label`` (Int32, null where not labelled) and ``sq_distance``

    Raises
    ------
    InvalidInputError
        If a row has another number of features than the centers, or by ``rule.fail``.
    """
    n_features = frame.centers.shape[1]
    labels = np.zeros(len(rows), dtype=np.int32)
    sq_distances = np.full(len(rows), np.nan)
    usable = ~pd.isna(rows)
    per_slice = max(1, _SLICE_BYTES // (8 * max(1, n_features)))
    for part in slices(len(rows), per_slice):
        present = np.flatnonzero(usable[part]) + part.start
        x = stack(rows[present], n_features, rule)
        finite = np.isfinite(x).all(axis=1)
        usable[present[~finite]] = False
        kept = present if finite.all() else present[finite]
        if len(kept):
            x = x if len(kept) == len(x) else x[finite]
            labels[kept], sq_distances[kept] = assign_rows(x, *frame)
    if rule.fail and not usable.all():
        raise invalid_rows(rule, int((~usable).sum()), len(rows))
    label = pd.arrays.IntegerArray(labels, mask=~usable)
    return pd.DataFrame({"label": label, "sq_distance": sq_distances})


def stack(rows: np.ndarray, n_features: int, rule: RowRule) -> np.ndarray:
    """Join arrays of the expected length into one matrix of shape (n, n_features)."""
    if len(rows) == 0:
        return np.empty((0, n_features))
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    if (lengths != n_features).any():
        found = ", ".join(str(length) for length in np.unique(lengths[lengths != n_features])[:3])
        raise wrong_width(rule.owner, rule.subject, n_features, found)
    return np.concatenate(list(rows)).reshape(len(rows), n_features)


def row_matrix(value: Any, owner: str) -> tuple[np.ndarray, bool]:
    """Return a Vector, list or array as a matrix, and whether it was one row.

    Raises
    ------
    InvalidInputError
        If it is neither a row nor a matrix of finite numbers.
    """
    try:
        rows = np.asarray(value.toArray() if hasattr(value, "toArray") else value)
        rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
    except (TypeError, ValueError):
        rows = np.array(np.nan)
    if rows.ndim not in (1, 2) or not np.isfinite(rows).all():
        raise invalid(
            owner,
            "value",
            "a row or a matrix of finite numbers",
            value,
            "Give a vector, a list or an array.",
        )
    return np.atleast_2d(rows), rows.ndim == 1


def wrong_width(owner: str, subject: str, n_features: int, found: object) -> InvalidInputError:
    """Build the error for rows of another width than the centers."""
    return invalid(
        owner,
        subject,
        f"{n_features} numbers wide, as the model's centers are",
        Fact(found),
        "Give it the columns that the model was fitted on.",
    )


def invalid_rows(rule: RowRule, bad: int, seen: int) -> InvalidInputError:
    """Build the error for rows with null, NaN or infinite features."""
    return invalid(
        rule.owner,
        rule.subject,
        "free of null, NaN and infinite values",
        Fact(f"{bad} such row(s) among {seen} rows of one batch"),
        "Clean them, or set handleInvalid to 'skip' (drop them) or 'keep' (extra cluster k).",
    )


def allow_vector_columns(dataset: DataFrame) -> None:
    """Turn off, for the session, a shortcut of PySpark 4.3 that fails on vector columns.

    With it, a Python function right above a columnar source (Parquet, say) gets all columns as
    they are, and Spark refuses those of user-defined types such as vectors. It is read when the
    query runs, long after ``transform`` has returned, so it cannot be put back.
    """
    if not any(isinstance(field.dataType, UserDefinedType) for field in dataset.schema):
        return
    conf = dataset.sparkSession.conf
    if conf.isModifiable(_COLUMNAR_INPUT):  # only where this PySpark has it
        conf.set(_COLUMNAR_INPUT, "false")
