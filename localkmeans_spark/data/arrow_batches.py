"""How many rows Spark sends to Python at once, for one query and no other."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"  # Spark 4 and newer
# A batch need not be much larger than a block.
_BATCH_BYTES = 8 << 20
# Spark 3.5 counts rows alone. Those of arrays have any width; and wide vectors are mostly sparse:
# batches of a few of them would cost more than their rows.
_ROWS_OF_ANY_WIDTH = 256


def in_small_batches(rows: DataFrame, kind: str, n_features: int | None) -> Any:
    """Return the JVM's Dataset of rows that come from a Python function, fed batches of 8 MB.

    Parameters
    ----------
    rows : DataFrame
        The result of ``mapInArrow``.
    kind, n_features
        Of the features sent; see ``columns.IngestColumns``.

    Notes
    -----
    The sizes are settings of a session, and other threads make their queries in the user's. So
    the query moves to a copy of it, which has the same settings, catalog and cache, and which the
    JVM frees with the query. Private calls of PySpark (``_jsparkSession``, ``_jdf``, ``_jvm``).

    A row larger than a batch is sent alone. With Spark 3.5 a batch may be larger: 256 rows, of
    vectors and of arrays.
    """
    session = rows.sparkSession
    own = session._jsparkSession.cloneSession()
    if kind == "columns":
        _limit_rows(own, max(1, _BATCH_BYTES // (8 * max(1, n_features or 1))))
    elif session.conf.isModifiable(_BYTES):
        own.conf().set(_BYTES, str(_BATCH_BYTES))
    else:
        _limit_rows(
            own, max(_ROWS_OF_ANY_WIDTH, _BATCH_BYTES // (8 * (n_features or _BATCH_BYTES)))
        )
    dataset_class: Any = session.sparkContext._jvm
    for part in rows._jdf.getClass().getName().split("."):  # Spark 4 moved the class
        dataset_class = getattr(dataset_class, part)
    return dataset_class.ofRows(own, rows._jdf.logicalPlan())


def _limit_rows(jsession: Any, limit: int) -> None:
    """Set the rows of a batch, unless the user's own limit is smaller."""
    configured = int(jsession.conf().get(_ROWS))
    if not 0 < configured <= limit:
        jsession.conf().set(_ROWS, str(limit))
