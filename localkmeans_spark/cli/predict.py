"""Apply a saved model: ``localkmeans predict``, or ``jobs/predict.py`` for spark-submit."""

from __future__ import annotations

import time
from contextlib import nullcontext

from pyspark.sql import DataFrame

from localkmeans_spark.cli.catalog import check_output_table, write_table
from localkmeans_spark.cli.columns import ADDED
from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.outputs import Output
from localkmeans_spark.cli.places import local_path
from localkmeans_spark.cli.printed import sizes_table
from localkmeans_spark.cli.progress import say, tell_invalid
from localkmeans_spark.cli.rows import LABEL, SETTINGS, check_written, labelled
from localkmeans_spark.cli.session import master, open_session
from localkmeans_spark.cli.tables import find_source, read_table
from localkmeans_spark.cli.text import json_line
from localkmeans_spark.errors import invalid
from localkmeans_spark.model import LocalKMeansModel
from localkmeans_spark.saved_files import literal

OWNER = "predict"


def run(options: Options) -> None:
    """Label every row and put the Parquet files in place at once."""
    began = time.perf_counter()
    check_model(OWNER, options.model)
    source = find_source(OWNER, options)
    with (
        nullcontext() if options.output_table else Output(options) as output,
        open_session("localkmeans predict", options.master, SETTINGS, options.debug) as spark,
    ):
        model = load_model(options)
        options = with_features(model, options)
        table = read_table(OWNER, spark, source, options, model.numFeatures)
        for note in table.notes:
            say(OWNER, note)
        if table.features_col is not None:
            model.setFeaturesCol(table.features_col)
        else:
            model.setFeaturesCols(list(table.feature_cols))
        rows = labelled(model, table).drop(LABEL)
        source_name = options.table or options.input
        if output is None:
            check_output_table(OWNER, spark, options.output_table, bool(options.overwrite))
            say(OWNER, f"labelling {source_name}")
            write_table(rows, options.output_table, bool(options.overwrite))
            sizes = _sizes(spark.table(options.output_table))
        else:
            folder = output.begin(spark)
            say(OWNER, f"labelling {source_name}")
            # The directory is there already, empty: it showed early that it can be written.
            rows.write.mode("append").parquet(folder.uri)
            sizes = _sizes(spark.read.parquet(literal(folder.uri)))
            if not master(spark).startswith("local"):
                check_written(OWNER, folder, sum(sizes.values()))
            output.publish("_SUCCESS", b"")
    k = len(model.centers)
    tell_invalid(OWNER, sizes.get(k, 0), k)
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
    """Count the rows of each cluster."""
    counts = rows.groupBy(ADDED[0]).count().collect()
    return {row[ADDED[0]]: row["count"] for row in counts}


def check_model(owner: str, path: str) -> None:
    """Look for the model before Spark starts, as far as that is possible."""
    place = local_path(path)
    if place is not None and not (place / "metadata").is_dir():
        raise invalid(owner, "--model", "a saved model", path, "It is DIR/model of fit.")


def load_model(options: Options) -> LocalKMeansModel:
    """Load the model, with the rule for unusable rows that was asked for."""
    model = LocalKMeansModel.load(options.model)
    if options.handle_invalid is not None:
        model.setHandleInvalid(options.handle_invalid)
    return model


def with_features(model: LocalKMeansModel, options: Options) -> Options:
    """Return the options with the model's own feature columns where none are named."""
    if options.features_col or options.feature_cols:
        return options
    names = model.getFeaturesCols()
    if names:
        return options.but(feature_cols=tuple(names))
    return options.but(features_col=model.getFeaturesCol())
