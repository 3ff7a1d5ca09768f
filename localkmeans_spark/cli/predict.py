"""Apply a saved model: ``localkmeans predict`` and ``localkmeans describe``."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from localkmeans_spark.cli.csv_files import column
from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.inputs import Source, Table, find_source, read_table
from localkmeans_spark.cli.messages import json_line, printable, say, sizes_table, tell_invalid
from localkmeans_spark.cli.outputs import (
    ADDED,
    Output,
    check_output_table,
    check_written,
    local_path,
    write_table,
)
from localkmeans_spark.cli.session import command_session, find_master
from localkmeans_spark.describe import CLUSTER, DISTANCE, scored_rows
from localkmeans_spark.errors import invalid
from localkmeans_spark.model import LocalKMeansModel
from localkmeans_spark.saved_files import literal

KNOWN_CLASS = "localkmeans_label"
_SAMPLE_ROWS = 5_000
_SAMPLE_NUMBERS = 16_000_000
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Clusters</title><style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: .88rem; margin: .6rem 0; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #8886;
  white-space: nowrap; }
</style></head><body><h1>%s</h1>%s</body></html>
"""


def predict(options: Options) -> None:
    """Label every row and put the Parquet files in place at once."""
    began = time.perf_counter()
    source = model_source(options)
    with (
        nullcontext() if options.output_table else Output(options) as output,
        command_session(options) as spark,
    ):
        model, table = read_for_model(spark, source, options)
        rows = labelled(model, table).drop(KNOWN_CLASS)
        overwrite, what = bool(options.overwrite), f"labelling {options.table or options.input}"
        if output is None:
            check_output_table(options.owner, spark, options.output_table, overwrite)
            say(options.owner, what)
            write_table(rows, options.output_table, overwrite)
            sizes = _sizes(spark.table(options.output_table))
        else:
            folder = output.begin(spark)
            say(options.owner, what)
            # The directory is there already, empty: it showed early that it can be written.
            rows.write.mode("append").parquet(folder.uri)
            sizes = _sizes(spark.read.parquet(literal(folder.uri)))
            if not find_master(spark).startswith("local"):
                check_written(options.owner, folder, sum(sizes.values()))
            output.publish("_SUCCESS", b"")
    k = len(model.centers)
    tell_invalid(options.owner, sizes.get(k, 0), k)
    print(sizes_table(sizes))
    metrics = {
        "k": k,
        "n": sum(sizes.values()),
        "d": model.numFeatures,
        "seconds": round(time.perf_counter() - began, 3),
        "model": options.model,
        "output": options.output_table if output is None else output.final(),
    }
    print(json_line(metrics), flush=True)


def _sizes(rows: DataFrame) -> dict[int, int]:
    counts = rows.groupBy(ADDED[0]).count().collect()
    return {row[ADDED[0]]: row["count"] for row in counts}


def describe(options: Options) -> None:
    """Describe the clusters, and put the tables and the page in place at once."""
    source = model_source(options)
    with Output(options) as output, command_session(options) as spark:
        model, table = read_for_model(spark, source, options)
        folder = output.begin(spark)
        say(options.owner, f"describing {options.table or options.input}")
        found = model.describe(table.frame, list(options.profile_cols or ()))
        for name in ("clusters", "features", "rows", "profile"):
            folder.child(f"{name}.csv").write(getattr(found, name).to_csv(index=False).encode())
        page = _PAGE % (f"{len(model.centers)} clusters", found.to_html())
        folder.child("description.html").write(page.encode())
        output.publish("_SUCCESS", b"")
    print(printable(repr(found).replace("\n", "; ")).replace("; cluster", "\ncluster"))
    told = {"k": len(model.centers), "model": options.model, "output": output.final()}
    print(json_line(told), flush=True)


def model_source(options: Options) -> Source:
    """Look for the model and the input before Spark starts, as far as that is possible."""
    place = local_path(options.model)
    if place is not None and not (place / "metadata").is_dir():
        fix = "It is DIR/model of fit."
        raise invalid(options.owner, "--model", "a saved model", options.model, fix)
    return find_source(options.owner, options)


def read_for_model(
    spark: SparkSession, source: Source, options: Options
) -> tuple[LocalKMeansModel, Table]:
    """Load model and table; the features are the model's own where none are named."""
    model = LocalKMeansModel.load(options.model)
    if options.handle_invalid is not None:
        model.setHandleInvalid(options.handle_invalid)
    own: dict[str, Any] = {}
    if not options.features_col and not options.feature_cols:
        names = model.getFeaturesCols()
        own = {"feature_cols": tuple(names)} if names else {"features_col": model.getFeaturesCol()}
    if options.owner == "describe" and source.format == "csv":  # whose weights may be text
        own["weight_col"] = model.getWeightCol()
    options = Options(**{**vars(options), **own})
    table = read_table(options.owner, spark, source, options, model.numFeatures)
    table.tell(model)
    return model, table


def labelled(model: LocalKMeansModel, table: Table) -> DataFrame:
    """Return id columns, ``prediction``, ``distance`` and, if there is one, :data:`KNOWN_CLASS`."""
    label = [column(table.label_col).alias(KNOWN_CLASS)] if table.label_col else []
    return scored_rows(model, table.frame).select(
        *(column(name) for name in table.id_cols),
        *(column(own).alias(name) for own, name in zip((CLUSTER, DISTANCE), ADDED, strict=True)),
        *label,
    )


def sampled(
    model: LocalKMeansModel, table: Table, n_rows: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows at random, at most 5,000 and fewer when they are very wide.

    Returns
    -------
    rows : ndarray of shape (m, d), float64
        Finite: rows that cannot be clustered are left out.
    clusters : ndarray of shape (m,), int
    """
    k, d = model.centers.shape
    wanted = min(_SAMPLE_ROWS, max(100, _SAMPLE_NUMBERS // d))
    frame = table.frame
    if n_rows > wanted:
        # A little more than wanted, so that the draw seldom falls short; the rest is cut below.
        share: float = (wanted + 4 * math.sqrt(wanted)) / n_rows
        frame = frame.sample(fraction=min(1.0, share), seed=seed % 2**63)
    found: Any = (
        scored_rows(model, frame)
        .where((column(CLUSTER) >= 0) & (column(CLUSTER) < k))
        .select(features_array(table).alias("features"), column(CLUSTER).alias("cluster"))
        .toPandas()
    )
    if len(found) > wanted:
        found = found.sample(wanted, random_state=seed % 2**32)
    rows = np.array(found["features"].to_list(), dtype=float).reshape(-1, d)
    return rows, found["cluster"].to_numpy(int)


def features_array(table: Table) -> Column:
    """Return the features as one array column."""
    if table.features_col is None:
        return F.array(*(column(name).cast("double") for name in table.feature_cols))
    if isinstance(table.frame.schema[table.features_col].dataType, VectorUDT):
        return vector_to_array(column(table.features_col))
    return column(table.features_col)
