"""Cost and sizes of a model on data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from localkmeans_spark.data.worker_errors import told_plainly
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.scoring import WIDTH_CODE, RowRule, wrong_width


@dataclass(frozen=True)
class LocalKMeansEvaluation:
    """Cost and sizes of a model on some data, as :meth:`LocalKMeansModel.evaluate` returns them.

    Attributes
    ----------
    inertia : float
        Sum of weight times squared distance to the nearest center; with cosine distance, times
        that distance.
    clusterSizes : list of int
        Rows per cluster; those of weight 0 are not counted.
    clusterWeights, clusterInertia : list of float
        Weight and inertia per cluster.
    numSkipped : int
        Rows with null, NaN, infinite or too large features (zeros with cosine distance), left out
        of all of these.
    """

    inertia: float
    clusterSizes: list[int]
    clusterWeights: list[float]
    clusterInertia: list[float]
    numSkipped: int


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
    with told_plainly(rule.owner):
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
        raise wrong_width(rule.owner, rule.subject, n_features, min(widths))
    bad_weights = sum(row[4] for row in found)
    if bad_weights:
        raise invalid(
            "LocalKMeansModel",
            weight_subject,
            "finite and >= 0 in every row",
            Fact(f"{count_of(bad_weights, 'row')} with a negative, NaN, infinite or null weight"),
            "Filter or fill these rows; a weight of 0 leaves a row out.",
        )
    per_cluster = [totals.get(label, (label, 0, 0.0, 0.0)) for label in range(k)]
    inertia = [float(row[3]) for row in per_cluster]
    return LocalKMeansEvaluation(
        inertia=float(sum(inertia)),
        clusterSizes=[int(row[1]) for row in per_cluster],
        clusterWeights=[float(row[2]) for row in per_cluster],
        clusterInertia=inertia,
        numSkipped=int(totals[None][1]) if None in totals else 0,
    )
