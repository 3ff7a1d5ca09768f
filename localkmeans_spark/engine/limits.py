"""What must fit into memory, checked before long work."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from localkmeans_spark.errors import Fact, invalid

# A task holds the broadcast centers and some seven arrays as large (its own frame, moved centers,
# sums, what it sends); the driver's JVM holds several tasks' sums at once.
_SHARE = 8


def check_centers_fit(session: SparkSession, k: int, n_features: int, owner: str) -> None:
    """Raise if k centers of this width are too large for the session.

    One set of centers takes ``k * n_features * 8`` bytes. It may take an eighth of the smallest
    of: the driver's Java heap (``spark.driver.memory``), ``spark.driver.maxResultSize``, and
    ``spark.executor.pyspark.memory`` where set.

    Raises
    ------
    InvalidInputError
    """
    needed = 8 * k * n_features
    setting, limit = _smallest(session.sparkContext)
    if needed * _SHARE <= limit:
        return
    raise invalid(
        owner,
        f"k * features * 8 bytes, the size of the centers for k={k} and {n_features} features,",
        f"at most {_megabytes(limit // _SHARE)}, an eighth of {setting}",
        Fact(_megabytes(needed)),
        f"Raise {setting} above {_megabytes(needed * _SHARE)}, or take fewer features (hash them "
        "into fewer columns, say) or fewer clusters.",
    )


def _smallest(context: Any) -> tuple[str, int]:
    """Return the tightest setting and its bytes."""
    jvm, conf = context._jvm, context._jsc.sc().conf()
    heap = int(jvm.java.lang.Runtime.getRuntime().maxMemory())
    limits = {"spark.driver.memory": heap}
    result_size = int(conf.getSizeAsBytes("spark.driver.maxResultSize", "1g"))
    if result_size > 0:  # 0 means no limit
        limits["spark.driver.maxResultSize"] = result_size
    if conf.contains("spark.executor.pyspark.memory"):
        # Without a unit it is in MiB.
        worker = int(conf.getSizeAsMb("spark.executor.pyspark.memory")) << 20
        limits["spark.executor.pyspark.memory"] = worker
    setting = min(limits, key=lambda name: limits[name])
    return setting, limits[setting]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
