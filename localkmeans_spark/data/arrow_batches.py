"""How many rows Spark sends to Python at once: batches of about 8 MB."""

from __future__ import annotations

from pyspark.sql.conf import RuntimeConfig

_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"  # Spark 4 and newer
# A batch need not be much larger than a block.
_BATCH_BYTES = 8 << 20
# Spark 3.5 counts rows alone. Those of arrays have any width; and wide vectors are mostly sparse:
# batches of a few of them would cost more than their rows.
_ROWS_OF_ANY_WIDTH = 256


def small_batches(conf: RuntimeConfig, kind: str, n_features: int | None) -> dict[str, str]:
    """Return the settings under which Spark feeds a Python function batches of 8 MB.

    Parameters
    ----------
    conf : RuntimeConfig
        The user's settings, which are not changed; a smaller limit of theirs stays.
    kind, n_features
        Of the features sent; see ``columns.IngestColumns``.

    Notes
    -----
    A row larger than a batch is sent alone. With Spark 3.5 a batch may be larger: 256 rows, of
    vectors and of arrays.
    """
    if kind == "columns":
        limit = max(1, _BATCH_BYTES // (8 * max(1, n_features or 1)))
    elif conf.isModifiable(_BYTES):
        return {_BYTES: str(_BATCH_BYTES)}
    else:
        limit = max(_ROWS_OF_ANY_WIDTH, _BATCH_BYTES // (8 * (n_features or _BATCH_BYTES)))
    configured = int(conf.get(_ROWS) or 0)
    return {} if 0 < configured <= limit else {_ROWS: str(limit)}
