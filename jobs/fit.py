"""Cluster a table: ``spark-submit jobs/fit.py ...`` or ``python jobs/fit.py ...`` (see --help)."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyspark
from pyspark.sql import DataFrame, SparkSession

from jobs.arguments import parse_fit
from jobs.columns import ADDED, Table, fitted_columns
from jobs.estimator_flags import in_words_of_flags, make_estimator
from jobs.inputs import find_source, read_table
from jobs.interruptions import interruptible
from jobs.labelling import LABEL, SETTINGS, check_written, feature_names, labelled, sampled
from jobs.options import FitOptions, command_line
from jobs.outputs import Draft
from jobs.places import Place
from jobs.progress import say, told_rounds
from jobs.session import open_session, user_errors
from jobs.tables import json_line, restarts_note, rounds_table
from localkmeans_spark import LocalKMeans, LocalKMeansModel, __version__
from localkmeans_spark.errors import InvalidInputError, invalid
from localkmeans_spark.metrics import Confusion, confusion, misclustering

OWNER = "fit"
MARKER = "metrics.json"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the job; leave by ``SystemExit`` with status 2 when the user is to mend something."""
    with user_errors(OWNER), interruptible(OWNER) as catch_signals:
        run(parse_fit(argv), catch_signals)


def run(options: FitOptions, session_opened: Callable[[], None]) -> None:
    """Fit, label, report, and put everything in place at once."""
    estimator = make_estimator(OWNER, options)
    if options.report:
        _check_report_possible()
    source = find_source(OWNER, options)
    reads = tuple(path for path in (options.input, options.config) if path)
    with (
        Draft(OWNER, options.output or "", options.overwrite, MARKER, keep=reads) as draft,
        open_session("localkmeans fit", options.master, SETTINGS, options.debug) as spark,
    ):
        session_opened()
        say(OWNER, f"reading {options.input}")
        table = read_table(OWNER, spark, source, options)
        for note in table.notes:
            say(OWNER, note)
        folder = draft.begin(spark)
        model = fit_model(estimator, table, source.arrays is not None)
        metrics = write_results(spark, model, table, options, folder, draft.final())
        folder.child(MARKER).write(f"{json_line(metrics)}\n".encode())
        draft.publish()
    print(rounds_table(model.summary.record))
    print(json_line(metrics), flush=True)


def fit_model(estimator: LocalKMeans, table: Table, is_split: bool) -> LocalKMeansModel:
    """Fit the estimator to the table, telling each round on stderr.

    ``is_split`` says that the table already has the partitions that were asked for.
    """
    if table.features_col is not None:
        estimator.setFeaturesCol(table.features_col)
    else:
        estimator.setFeaturesCols(list(table.feature_cols))
    if is_split:
        estimator.clear(estimator.numPartitions)
    rows = fitted_columns(table)
    taken = {name.lower() for name in rows.columns}
    for param, name in zip(("predictionCol", "distanceCol"), ADDED, strict=True):
        if name in taken:  # a feature: the saved model could not label its own rows
            estimator.set(estimator.getParam(param), f"localkmeans_{name}")
    with told_rounds(OWNER, estimator.getMaxIter()), in_words_of_flags(OWNER):
        return estimator.fit(rows)


def write_results(
    spark: SparkSession,
    model: LocalKMeansModel,
    table: Table,
    options: FitOptions,
    folder: Place,
    output: str,
) -> dict[str, Any]:
    """Write model, assignments, history and report into a folder; return the metrics."""
    record = model.summary.record
    say(OWNER, "labelling the rows")
    model.write().save(folder.child("model").uri)
    rows = labelled(_for_training_rows(model), table)
    if table.label_col:
        rows.persist()  # ids, label, cluster and distance only: written, then counted
    assignments = folder.child("assignments")
    rows.drop(LABEL).write.parquet(assignments.uri)
    if not str(spark.sparkContext.master).startswith("local"):
        check_written(OWNER, assignments, record.n_points)
    counted = _confusion(rows, table.label_col, len(model.centers))
    rows.unpersist()
    history = model.summary.history.to_csv(index=False)
    folder.child("history.csv").write(history.encode())
    if options.report:
        say(OWNER, "writing the report")
        page = _report(spark, model, table, options, counted)
        folder.child("report.html").write(page.encode())
    return _metrics(model, table, counted, output)


def _for_training_rows(model: LocalKMeansModel) -> LocalKMeansModel:
    """Return the model as it labels the rows of its fit, which has seen all that count.

    What is unusable now can only be a row of weight 0: it is left out, as if it were absent.
    """
    own = model.copy()
    if model.getHandleInvalid() == "error":
        own.setHandleInvalid("skip")
    return own


def _confusion(rows: DataFrame, label_col: str | None, k: int) -> Confusion | None:
    if label_col is None:
        return None
    try:
        return confusion(rows, LABEL, "prediction", k)
    except InvalidInputError as error:  # no reason to throw a finished fit away
        say(OWNER, f"warning: {str(error).replace(LABEL, label_col)}")
        return None


def _metrics(
    model: LocalKMeansModel, table: Table, counted: Confusion | None, output: str
) -> dict[str, Any]:
    record = model.summary.record
    metrics: dict[str, Any] = {
        "k": record.k,
        "n": record.n_points,
        "d": record.n_features,
        "features": list(table.feature_cols) or [table.features_col],
        "partitions": record.n_partitions,
        "local_steps": record.local_steps,
        "n_iter": record.n_iter,
        "n_rounds": record.n_rounds,
        "reverts": record.reverts,
        "n_init": max(1, len(record.restarts)),
        "resumed_round": record.resumed_round,
        "cost": record.inertia,
        "seconds": round(record.seconds["total"], 3),
        "seed": record.seed,
        "converged": record.converged,
        "n_skipped": record.n_skipped,
        "bytes_exchanged": record.bytes_exchanged,
        "model": f"{output}/model",
        "output": output,
    }
    if counted is not None:
        metrics["misclustering"] = misclustering(counted.counts)
    return metrics


def _check_report_possible() -> None:
    try:
        import jobs.report  # noqa: F401
    except ModuleNotFoundError as error:
        raise invalid(
            OWNER, "the report's libraries", "installed", error.name,
            "Run: pip install matplotlib jinja2. Or add --no-report.",
        ) from None  # fmt: skip


def _report(
    spark: SparkSession,
    model: LocalKMeansModel,
    table: Table,
    options: FitOptions,
    counted: Confusion | None,
) -> str:
    from jobs.report import ReportData, render

    record = model.summary.record
    own = _for_training_rows(model)
    rows, clusters = sampled(own, table, record.n_points + record.n_skipped, record.seed)
    name = (options.input or "").rstrip("/").rsplit("/", 1)[-1]
    features = table.features_col or ", ".join(table.feature_cols)
    run = {
        "input": options.input or "",
        "features": features if len(features) < 300 else f"{len(table.feature_cols)} columns",
        "weights": table.weight_col or "none",
        "k": str(record.k_requested),
        "local steps (L)": str(record.local_steps),
        "most Lloyd steps": str(record.max_iter),
        "tol": f"{record.tol:g}",
        "initial centers": f"{record.init_mode}, {record.seeding_passes} passes",
        "restarts": restarts_note(record) or "1",
        "empty clusters": record.empty_clusters,
        "seed": str(record.seed),
        "safeguard": "on" if record.safeguard else "off",
        "precision": f"{record.dtype} rows, float64 sums",
        "finished": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "software": f"localkmeans_spark {__version__}, PySpark {pyspark.__version__}, "
        f"Python {platform.python_version()}, master {spark.sparkContext.master}",
    }
    return render(
        ReportData(
            title=f"k-means on {name}, k = {record.k}",
            record=record,
            centers=model.centers,
            feature_names=feature_names(table),
            sample=rows,
            sample_clusters=clusters,
            confusion=counted,
            run=run,
            command=command_line(options, record.seed),
            weighted=table.weight_col is not None,
        )
    )


if __name__ == "__main__":
    main()
