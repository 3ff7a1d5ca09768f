"""Apply a saved model: ``spark-submit jobs/predict.py ...`` or ``python jobs/predict.py ...``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pyspark.sql import SparkSession

from jobs.arguments import parse_predict
from jobs.column_kinds import column
from jobs.columns import Table
from jobs.estimator_flags import in_words_of_flags, set_by_flag
from jobs.inputs import Source, find_source, read_table
from jobs.interruptions import interruptible
from jobs.labelling import LABEL, SETTINGS, check_written, labelled
from jobs.options import PredictOptions
from jobs.outputs import Draft
from jobs.places import local_path
from jobs.progress import say
from jobs.session import open_session, user_errors
from jobs.tables import json_line, sizes_table
from localkmeans_spark import LocalKMeans, LocalKMeansModel
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.saved_files import literal

OWNER = "predict"
MARKER = "_SUCCESS"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the job; leave by ``SystemExit`` with status 2 when the user is to mend something."""
    with user_errors(OWNER), interruptible(OWNER) as catch_signals:
        run(parse_predict(argv), catch_signals)


def run(options: PredictOptions, session_opened: Callable[[], None]) -> None:
    """Label every row and put the Parquet files in place at once."""
    began = time.perf_counter()
    _check_options(options)
    source = find_source(OWNER, options)
    reads = tuple(path for path in (options.input, options.model) if path)
    with (
        Draft(OWNER, options.output or "", options.overwrite, MARKER, keep=reads) as draft,
        open_session("localkmeans predict", options.master, SETTINGS, options.debug) as spark,
    ):
        session_opened()
        model = LocalKMeansModel.load(str(options.model))
        if options.handle_invalid is not None:
            model.setHandleInvalid(options.handle_invalid)
        asked = with_features(model, options)
        table = read_table(OWNER, spark, source, asked, model.numFeatures)
        for note in table.notes:
            say(OWNER, note)
        if table.features_col is not None:
            model.setFeaturesCol(table.features_col)
        else:
            model.setFeaturesCols(list(table.feature_cols))
        _check_width(model, table, source)
        folder = draft.begin(spark)
        say(OWNER, f"labelling {options.input}")
        with in_words_of_flags(OWNER):
            # The directory is there already, empty: it showed early that it can be written.
            labelled(model, table).drop(LABEL).write.mode("append").parquet(folder.uri)
        sizes = _sizes(spark, folder.uri)
        if not str(spark.sparkContext.master).startswith("local"):
            check_written(OWNER, folder, sum(sizes.values()))
        draft.publish()
    print(sizes_table(sizes))
    metrics = {
        "k": len(model.centers),
        "n": sum(sizes.values()),
        "d": model.numFeatures,
        "seconds": round(time.perf_counter() - began, 3),
        "model": options.model,
        "output": draft.final(),
    }
    print(json_line(metrics), flush=True)


def with_features(model: LocalKMeansModel, options: PredictOptions) -> PredictOptions:
    """Return the options with the model's own feature columns where none are named."""
    if options.features_col or options.feature_cols:
        return options
    names = model.getFeaturesCols()
    if names:
        return replace(options, feature_cols=tuple(names))
    return replace(options, features_col=model.getFeaturesCol())


def _check_options(options: PredictOptions) -> None:
    """Check before Spark starts what can be checked then."""
    if options.handle_invalid is not None:
        set_by_flag(OWNER, LocalKMeans(), "handle_invalid", options.handle_invalid)
    place = local_path(str(options.model))
    if place is not None and not (place / "metadata").is_dir():
        raise invalid(
            OWNER, "--model", "a saved model", str(options.model), "It is DIR/model of jobs/fit.py."
        )


def _check_width(model: LocalKMeansModel, table: Table, source: Source) -> None:
    """Hold the width of the first row against the model's before all rows are read.

    Rows that are wider or narrower later on are told by ``transform``, but Spark then ends its
    Python workers in the middle of their work, and they complain about that on stderr.
    """
    name = table.features_col
    if name is None:  # so many columns: transform checks them before it starts
        return
    if source.arrays is not None:
        width = source.arrays.x.shape[1]
    else:
        row = table.frame.select(column(name)).where(column(name).isNotNull()).first()
        if row is None:
            return
        width = row[0].size if hasattr(row[0], "size") else len(row[0])
    if width != model.numFeatures:
        raise invalid(
            OWNER, f"column '{name}'",
            f"{model.numFeatures} numbers wide, as the model's centers are", Fact(width),
            "Give it the columns that the model was fitted on.",
        )  # fmt: skip


def _sizes(spark: SparkSession, path: str) -> dict[int, int]:
    counts = spark.read.parquet(literal(path)).groupBy("prediction").count().collect()
    return {row["prediction"]: row["count"] for row in counts}


if __name__ == "__main__":
    main()
