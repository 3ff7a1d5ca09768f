"""Say whether a table's partitions suit local steps: ``localkmeans diagnose``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark.ml.functions import array_to_vector
from pyspark.ml.stat import Summarizer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from localkmeans_spark import diagnosis
from localkmeans_spark.cli.csv_files import column
from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.inputs import Table, find_source, read_table
from localkmeans_spark.cli.messages import json_line, printable, say
from localkmeans_spark.cli.predict import features_array, labelled, model_source, read_for_model
from localkmeans_spark.cli.session import command_session
from localkmeans_spark.diagnosis import Diagnosis
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.metrics import MAX_LABELS
from localkmeans_spark.model import LocalKMeansModel
from localkmeans_spark.spark_private import is_connect

OWNER = "diagnose"


def diagnose(options: Options) -> None:
    """Count, and print what the counts mean."""
    source = model_source(options) if options.model else find_source(OWNER, options)
    with command_session(options) as spark:
        if options.model is not None:
            result = by_model(*read_for_model(spark, source, options))
        else:
            table = read_table(OWNER, spark, source, options)
            result = by_label(table, options.handle_invalid or "error")
    print(result.text())
    print(json_line(result.to_dict()), flush=True)


def by_model(model: LocalKMeansModel, table: Table) -> Diagnosis:
    """Diagnose with the clusters of a model: one pass."""
    own = model.copy()
    table.tell(own)
    k, d = own.centers.shape
    distance = column("distance")
    # Of unit vectors, for cosine: |a - b|^2 = 2 (1 - cos).
    squared = 2.0 * distance if own.getDistanceMeasure() == "cosine" else distance**2
    rows = labelled(own, replace(table, label_col=None))
    counted: Any = (
        rows.select(
            F.spark_partition_id().alias("partition"),
            column("prediction").alias("cluster"),
            squared.alias("sq"),
        )
        .where((column("cluster") >= 0) & (column("cluster") < k))
        .groupBy("partition", "cluster")
        .agg(F.count(F.lit(1)).alias("n"), F.sum("sq").alias("sq"))
        .toPandas()
    )
    counts = np.zeros((_n_partitions(rows, counted["partition"]), k), dtype=np.int64)
    counts[counted["partition"].to_numpy(int), counted["cluster"].to_numpy(int)] = counted["n"]
    variance = float(counted["sq"].sum()) / max(1, int(counts.sum()) * d)
    # Distances are in the units of these centers, standardised or not.
    centers, names = own.frame.centers, [f"cluster {i}" for i in range(k)]
    return _checked(centers, counts, math.sqrt(variance), names)


def _n_partitions(rows: DataFrame, seen: Any) -> int:
    if is_connect(rows.sparkSession):  # which does not tell of empty ones at the end
        return int(max(seen, default=-1)) + 1
    return rows.rdd.getNumPartitions()


def by_label(table: Table, handle_invalid: str = "error") -> Diagnosis:
    """Diagnose with known classes: a pass to check the rows, one for means, one for counts.

    Parameters
    ----------
    table : Table
        With a label column; rows whose label is null or NaN are left out.
    handle_invalid : {"error", "skip", "keep"}
        What to do with rows that have null, NaN or infinity among their features: raise, or leave
        them out ("keep" as well: no class is theirs).
    """
    assert table.label_col is not None
    if is_connect(table.frame.sparkSession):  # Spark's Summarizer, for one, is not there
        rule, fix = "left out in a session of Spark Connect", "Give --model, or a classic --master."
        raise invalid(OWNER, "--label-col", rule, table.label_col, fix)
    label = column(table.label_col)
    known = label.isNotNull()
    if isinstance(table.frame.select(label).schema[0].dataType, FloatType | DoubleType):
        known = known & ~F.isnan(label)
    row = features_array(table)
    # NaN is above infinity in Spark.
    unusable = row.isNull() | F.exists(row, lambda x: x.isNull() | ~(F.abs(x) < math.inf))
    _check_features(table.frame.select(row.alias("x"), unusable.alias("bad")), handle_invalid)
    rows = table.frame.where(known & ~unusable).select(
        F.spark_partition_id().alias("partition"),
        label.alias("cluster"),
        array_to_vector(row).alias("x"),
    )
    found = (
        rows.groupBy("cluster")
        .agg(Summarizer.metrics("mean", "variance", "count").summary(column("x")).alias("s"))
        .select("cluster", "s.mean", "s.variance", "s.count")
        .limit(MAX_LABELS + 1)
        .collect()
    )
    if len(found) > MAX_LABELS:
        rule = f"a label with at most {MAX_LABELS:,} values"
        fix = "Name the column that holds the known classes."
        raise invalid(OWNER, f"column {table.label_col!r}", rule, Fact("more"), fix)
    found = sorted(found, key=lambda row: row["cluster"])
    place = {row["cluster"]: i for i, row in enumerate(found)}
    counts = np.zeros((rows.rdd.getNumPartitions(), len(found)), dtype=np.int64)
    for each in rows.groupBy("partition", "cluster").count().collect():
        counts[each["partition"], place[each["cluster"]]] = each["count"]
    centers = np.array([row["mean"].toArray() for row in found])
    scatter = sum(row["variance"].toArray().sum() * (row["count"] - 1) for row in found)
    sigma = math.sqrt(scatter / max(1, counts.sum() * (centers.shape[1] if found else 1)))
    names = [printable(f"class {row['cluster']}") for row in found]
    return _checked(centers, counts, sigma, names)


def _check_features(rows: Any, handle_invalid: str) -> None:
    """Raise if rows have no finite numbers, unless they may be left out, or several widths."""
    size = F.when(~column("bad"), F.size("x"))
    found = rows.agg(F.count_if("bad").alias("bad"), F.min(size), F.max(size)).first()
    bad, least, most = found
    if bad and handle_invalid == "error":
        fact = Fact(f"{count_of(bad, 'row')} with null, NaN or infinite values")
        fix = "Give --handle-invalid skip, or filter or fill these rows."
        raise invalid(OWNER, "the features", "finite numbers in every row", fact, fix)
    if bad:
        say(OWNER, f"{count_of(bad, 'row')} with null, NaN or infinite values left out")
    if least != most:
        fact = Fact(f"rows of {least} and of {most} features")
        fix = "Make every row as long as the others."
        raise invalid(OWNER, "the features", "of one length in all rows", fact, fix)


def _checked(centers: np.ndarray, counts: np.ndarray, sigma: float, names: list[str]) -> Diagnosis:
    filled = counts.sum(axis=0) > 0
    if filled.sum() < 2:
        rule, found = "one with rows in at least 2 clusters", Fact(f"{int(filled.sum())}")
        raise invalid(OWNER, "the table", rule, found, "Check --label-col or --model.")
    names = [name for name, has_rows in zip(names, filled, strict=True) if has_rows]
    return diagnosis.diagnose(centers[filled], counts[:, filled], sigma, names)
