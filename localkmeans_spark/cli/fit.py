"""Cluster a table: ``localkmeans fit``, or ``jobs/fit.py`` for spark-submit."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.util import find_spec
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.cli.catalog import check_output_table, write_table
from localkmeans_spark.cli.columns import ADDED, Table
from localkmeans_spark.cli.flags import Options, command_line
from localkmeans_spark.cli.outputs import Output
from localkmeans_spark.cli.places import Place
from localkmeans_spark.cli.printed import restarts_note, rounds_table
from localkmeans_spark.cli.progress import say, tell_invalid, told_rounds
from localkmeans_spark.cli.rows import (
    LABEL,
    SETTINGS,
    check_written,
    feature_names,
    labelled,
    sampled,
)
from localkmeans_spark.cli.session import CONNECT, master, open_session
from localkmeans_spark.cli.tables import find_source, read_table
from localkmeans_spark.cli.text import json_line, masked
from localkmeans_spark.errors import Fact, InvalidInputError, invalid
from localkmeans_spark.estimator import LocalKMeans
from localkmeans_spark.metrics import (
    Confusion,
    adjusted_rand,
    confusion,
    misclustering,
    normalized_mutual_info,
)
from localkmeans_spark.model import LocalKMeansModel

OWNER = "fit"


def run(options: Options) -> None:
    """Fit, label, report, and put everything in place at once."""
    estimator = LocalKMeans(
        predictionCol=ADDED[0], distanceCol=ADDED[1], verbose=True, **options.params
    )
    if options.report is not False:
        _check_report_possible()
    source = find_source(OWNER, options)
    with (
        Output(options) as output,
        open_session("localkmeans fit", options.master, SETTINGS, options.debug) as spark,
    ):
        if options.output_table:
            check_output_table(OWNER, spark, options.output_table, bool(options.overwrite))
        say(OWNER, f"reading {options.table or options.input}")
        table = read_table(OWNER, spark, source, options)
        for note in table.notes:
            say(OWNER, note)
        folder = output.begin(spark)
        if source.arrays is not None:  # it has the partitions that were asked for
            estimator.clear(estimator.getParam("numPartitions"))
        model, measures = fit_model(estimator, table, options.report is not False)
        metrics = write_results(spark, model, table, options, folder, measures)
        metrics |= {"model": f"{output.final()}/model", "output": output.final()}
        output.publish("metrics.json", f"{json_line(metrics)}\n".encode())
    print(rounds_table(model.summary.record))
    print(json_line(metrics), flush=True)


def fit_model(
    estimator: LocalKMeans, table: Table, with_measures: bool
) -> tuple[LocalKMeansModel, dict[str, float]]:
    """Fit the estimator to the table, telling each round on stderr; measure if asked."""
    rows = for_table(estimator, table)
    with told_rounds(OWNER, estimator.getMaxIter()):
        if not with_measures:
            return estimator.fit(rows), {}
        sweep = estimator.sweep(rows, [estimator.getK()])
    names = ("silhouette", "calinski_harabasz", "davies_bouldin", "agreement")
    measures = {name: float(sweep.table[name].iloc[0]) for name in names}
    return sweep.models[estimator.getK()], measures


def for_table(estimator: LocalKMeans, table: Table) -> DataFrame:
    """Tell the estimator which columns are what; return the rows that it reads."""
    if table.features_col is not None:
        estimator.setFeaturesCol(table.features_col)
    else:
        estimator.setFeaturesCols(list(table.feature_cols))
    rows = table.fitted()
    taken = {name.lower() for name in rows.columns}
    for param, name in zip(("predictionCol", "distanceCol"), ADDED, strict=True):
        if name in taken:  # a feature: the saved model could not label its own rows
            estimator.set(estimator.getParam(param), f"localkmeans_{name}")
    return rows


def write_results(
    spark: SparkSession,
    model: LocalKMeansModel,
    table: Table,
    options: Options,
    folder: Place,
    measures: dict[str, float],
) -> dict[str, Any]:
    """Write model, assignments, history and report into a folder; return the metrics."""
    record = model.summary.record
    say(OWNER, "labelling the rows")
    model.write().save(folder.child("model").uri)
    rows = labelled(_for_training_rows(model), table)
    is_kept = table.label_col is not None and master(spark) != CONNECT
    if is_kept:
        rows.persist()  # ids, label, cluster and distance only: written, then counted
    if options.output_table:
        write_table(rows.drop(LABEL), options.output_table, bool(options.overwrite))
    else:
        assignments = folder.child("assignments")
        rows.drop(LABEL).write.parquet(assignments.uri)
        if not master(spark).startswith("local"):
            check_written(OWNER, assignments, record.n_points)
    counted = _confusion(rows, table.label_col, len(model.centers))
    if is_kept:
        rows.unpersist()
    if model.getHandleInvalid() == "keep":
        tell_invalid(OWNER, record.n_skipped, len(model.centers))
    folder.child("history.csv").write(model.summary.history.to_csv(index=False).encode())
    if options.report is not False:
        say(OWNER, "writing the report")
        page = _report(spark, model, table, options, counted, measures)
        folder.child("report.html").write(page.encode())
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
    }
    if counted is not None:
        metrics["misclustering"] = misclustering(counted.counts)
        metrics["adjusted_rand"] = adjusted_rand(counted.counts)
        metrics["mutual_info"] = normalized_mutual_info(counted.counts)
    metrics |= measures
    return metrics


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
        return confusion(rows, LABEL, ADDED[0], k)
    except InvalidInputError as error:  # no reason to throw a finished fit away
        say(OWNER, f"warning: {str(error).replace(LABEL, label_col)}")
        return None


def _check_report_possible() -> None:
    for name in ("matplotlib", "jinja2"):
        if find_spec(name) is None:
            fix = "Run: pip install matplotlib jinja2. Or add --no-report."
            raise invalid(OWNER, "the report's libraries", "installed", Fact(f"no {name}"), fix)


def _report(
    spark: SparkSession,
    model: LocalKMeansModel,
    table: Table,
    options: Options,
    counted: Confusion | None,
    measures: dict[str, float],
) -> str:
    from localkmeans_spark.cli.report import ReportData, render

    record = model.summary.record
    own = _for_training_rows(model)
    rows, clusters = sampled(own, table, record.n_points + record.n_skipped, record.seed)
    path = masked(str(options.table or options.input))
    features = table.features_col or ", ".join(table.feature_cols)
    run = {
        "input": path,
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
        f"Python {platform.python_version()}, master {master(spark)}",
    }
    return render(
        ReportData(
            title=f"k-means on {path.rstrip('/').rsplit('/', 1)[-1]}, k = {record.k}",
            record=record,
            centers=model.centers,
            feature_names=feature_names(table),
            sample=rows,
            sample_clusters=clusters,
            confusion=counted,
            run=run,
            command=masked(command_line(options, record.seed)),
            weighted=table.weight_col is not None,
            measures=measures,
        )
    )
