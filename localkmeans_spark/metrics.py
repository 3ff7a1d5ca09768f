"""How well a clustering agrees with known labels: confusion counts and misclustering."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from scipy.optimize import linear_sum_assignment

from localkmeans_spark.errors import Fact, invalid

MAX_LABELS = 10_000
"""More distinct labels than this are taken for a mistake (an id column, a measurement)."""


@dataclass(frozen=True)
class Confusion:
    """Rows counted by known label and cluster.

    Attributes
    ----------
    labels : list
        The distinct labels, sorted; row i of ``counts`` belongs to ``labels[i]``.
    counts : ndarray of shape (n_labels, k), int64
        ``counts[i, j]`` rows have label ``labels[i]`` and are in cluster ``j``.
    n_unlabelled : int
        Rows whose label is null or NaN; they are not counted above.
    """

    labels: list[Any]
    counts: np.ndarray
    n_unlabelled: int = 0


def confusion(frame: DataFrame, label_col: str, prediction_col: str, k: int) -> Confusion:
    """Count rows by known label and cluster, in one Spark job.

    Parameters
    ----------
    frame : DataFrame
        Holds a label column (any type that can be grouped: integers, strings, ...) and an
        integer prediction column.
    label_col, prediction_col : str
    k : int
        Number of clusters. Rows with a prediction outside 0..k-1 (``handleInvalid="keep"``
        gives rows that cannot be clustered cluster k) are left out.

    Returns
    -------
    Confusion

    Raises
    ------
    InvalidInputError
        When the label column has more than ``MAX_LABELS`` distinct values.
    """
    label, cluster = F.col(_quoted(label_col)), F.col(_quoted(prediction_col))
    counted = frame.where((cluster >= 0) & (cluster < k)).groupBy(
        label.alias("label"), cluster.cast("int").alias("cluster")
    )
    # Null and one label too many may come on top: enough to tell, never more on the driver.
    rows = counted.count().limit((MAX_LABELS + 2) * k).collect()
    known = [row for row in rows if _is_known(row["label"])]
    labels = sorted({row["label"] for row in known})
    if len(labels) > MAX_LABELS:
        raise invalid(
            "misclustering",
            f"column {label_col!r}",
            f"a label with at most {MAX_LABELS:,} distinct values",
            Fact(f"at least {len(labels):,}"),
            "Name the column that holds the known classes.",
        )
    place = {value: i for i, value in enumerate(labels)}
    counts = np.zeros((len(labels), k), dtype=np.int64)
    for row in known:
        counts[place[row["label"]], row["cluster"]] += row["count"]
    n_all = sum(row["count"] for row in rows)
    return Confusion(labels, counts, n_unlabelled=n_all - int(counts.sum()))


def best_matching(counts: np.ndarray) -> dict[int, int]:
    """Pair clusters with labels, one to one, so that most rows agree.

    Parameters
    ----------
    counts : ndarray of shape (n_labels, k), int
        Confusion counts. The matrix need not be square: the surplus labels or clusters stay
        without a partner.

    Returns
    -------
    dict of int to int
        Row (label) of ``counts`` by column (cluster), for the min(n_labels, k) pairs.
    """
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return {int(column): int(row) for row, column in zip(rows, columns, strict=True)}


def misclustering(counts: np.ndarray) -> float:
    """Return the share of rows whose cluster differs from their label.

    Clusters are matched with labels by the best one-to-one assignment (Hungarian method), as
    in the paper: labels are only defined up to a permutation. Rows in a cluster without a
    partner, or with a label without one, count as misclustered.

    Parameters
    ----------
    counts : ndarray of shape (n_labels, k), int
        Confusion counts over all rows.

    Returns
    -------
    float
        Between 0 and 1; NaN when there are no rows.

    Examples
    --------
    >>> import numpy as np
    >>> misclustering(np.array([[0, 50], [45, 5]]))
    0.05
    """
    n_all = int(counts.sum())
    if n_all == 0:
        return float("nan")
    n_agree = sum(int(counts[row, column]) for column, row in best_matching(counts).items())
    return (n_all - n_agree) / n_all


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _is_known(label: Any) -> bool:
    return label is not None and not (isinstance(label, float) and math.isnan(label))
