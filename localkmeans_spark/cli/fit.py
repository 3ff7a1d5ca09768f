"""Cluster a table: ``localkmeans fit`` and ``localkmeans sweep``, which tries several k."""

from __future__ import annotations

import json
import platform
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.cli.flags import Options, command_line
from localkmeans_spark.cli.inputs import Source, Table, find_source, read_table
from localkmeans_spark.cli.messages import (
    json_line,
    masked,
    restarts_note,
    rounds_table,
    say,
    tell_invalid,
)
from localkmeans_spark.cli.outputs import (
    ADDED,
    Output,
    Place,
    check_output_table,
    check_written,
    write_table,
)
from localkmeans_spark.cli.predict import KNOWN_CLASS, labelled, sampled
from localkmeans_spark.cli.session import CONNECT, command_session, find_master
from localkmeans_spark.describe import feature_names
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
from localkmeans_spark.progress import followed
from localkmeans_spark.sweep import Sweep

_SHOWN = ["k", "cost", "silhouette", "calinski_harabasz", "davies_bouldin", "agreement"]


def fit(options: Options) -> None:
    """Fit, label, report, and put everything in place at once."""
    estimator = LocalKMeans(predictionCol=ADDED[0], distanceCol=ADDED[1], **options.params)
    with_report, measures = options.report is not False, {}
    for name in ("matplotlib", "jinja2") if with_report else ():
        if find_spec(name) is None:
            fix = "Run: pip install matplotlib jinja2. Or add --no-report."
            fact = Fact(f"no {name}")
            raise invalid(options.owner, "the report's libraries", "installed", fact, fix)
    source = find_source(options.owner, options)
    with Output(options) as output, command_session(options) as spark:
        if options.output_table:
            overwrite = bool(options.overwrite)
            check_output_table(options.owner, spark, options.output_table, overwrite)
        table, rows = _read(spark, source, options, estimator)
        folder = output.begin(spark)
        if with_report:
            swept = _swept(options, estimator, rows, [estimator.getK()])
            model, found = swept.models[estimator.getK()], swept.table.iloc[0]
            measures = {name: float(found[name]) for name in _SHOWN[2:]}
        else:
            with _followed(options, estimator):
                model = estimator.fit(rows)
        metrics = _write(spark, model, table, options, folder, measures)
        metrics |= {"model": f"{output.final()}/model", "output": output.final()}
        output.publish("metrics.json", f"{json_line(metrics)}\n".encode())
    print(rounds_table(model.summary.record))
    print(json_line(metrics), flush=True)


def sweep(options: Options) -> None:
    """Fit, measure, and put table, picture and the best model in place at once."""
    asked = {name: value for name, value in options.params.items() if name != "k"}
    estimator = LocalKMeans(**asked)
    source = find_source(options.owner, options)
    with Output(options) as output, command_session(options) as spark:
        _, rows = _read(spark, source, options, estimator)
        folder = output.begin(spark)
        found = _swept(options, estimator, rows, options.k or range(2, 21))
        found.models[found.best_k].write().save(folder.child("model").uri)
        folder.child("sweep.csv").write(found.table.to_csv(index=False).encode())
        told: dict[str, Any] = {"best_k": found.best_k, "reason": found.reason}
        listed = json.loads(found.table.to_json(orient="records", double_precision=15))
        folder.child("sweep.json").write(json.dumps({**told, "table": listed}, indent=1).encode())
        if find_spec("matplotlib") is None:
            say(options.owner, "no sweep.svg: it needs matplotlib (pip install matplotlib)")
        else:
            folder.child("sweep.svg").write(found.picture("svg"))
        told |= {"model": f"{output.final()}/model", "output": output.final()}
        output.publish("_SUCCESS", b"")
    print(found.table[_SHOWN].to_string(index=False, float_format=lambda value: f"{value:.5g}"))
    print(found.reason)
    print(json_line(told), flush=True)


def _read(
    spark: SparkSession, source: Source, options: Options, estimator: LocalKMeans
) -> tuple[Table, DataFrame]:
    """Read the table, tell the estimator its columns; return also the rows to fit."""
    say(options.owner, f"reading {options.table or options.input}")
    table = read_table(options.owner, spark, source, options)
    if source.arrays is not None:  # it has the partitions that were asked for
        estimator.clear(estimator.getParam("numPartitions"))
    table.tell(estimator)
    rows = table.fitted()
    taken = {name.lower() for name in rows.columns}
    for param, name in zip(("predictionCol", "distanceCol"), ADDED, strict=True):
        if name in taken:  # a feature: the saved model could not label its own rows
            estimator.set(estimator.getParam(param), f"localkmeans_{name}")
    return table, rows


def _swept(options: Options, estimator: LocalKMeans, rows: DataFrame, ks: Any) -> Sweep:
    with _followed(options, estimator):
        return estimator.sweep(rows, ks)


def _followed(options: Options, estimator: LocalKMeans) -> AbstractContextManager[None]:
    if options.progress is False:
        return nullcontext()
    write = partial(say, options.owner)
    return followed(options.owner, estimator.getMaxIter(), write)


def _write(
    spark: SparkSession,
    model: LocalKMeansModel,
    table: Table,
    options: Options,
    folder: Place,
    measures: dict[str, float],
) -> dict[str, Any]:
    """Write model, assignments, history and report into a folder; return the metrics."""
    owner, record = options.owner, model.summary.record
    say(owner, "labelling the rows")
    model.write().save(folder.child("model").uri)
    own = model.copy()
    if model.getHandleInvalid() == "error":
        # The fit has seen all rows that count: what is unusable now can only be a row of weight 0,
        # which is left out as if it were absent.
        own.setHandleInvalid("skip")
    rows = labelled(own, table)
    with ExitStack() as kept:
        if table.label_col is not None and find_master(spark) != CONNECT:
            rows.persist()  # ids, label, cluster and distance only: written, then counted
            kept.callback(rows.unpersist)
        if not options.output_table:
            assignments = folder.child("assignments")
            rows.drop(KNOWN_CLASS).write.parquet(assignments.uri)
            if not find_master(spark).startswith("local"):
                check_written(owner, assignments, record.n_points)
        counted = _confusion(owner, rows, table.label_col, record.k)
        if counted is not None:
            scores = {
                "misclustering": misclustering(counted.counts),
                "adjusted_rand": adjusted_rand(counted.counts),
                "mutual_info": normalized_mutual_info(counted.counts),
            }
            measures = scores | measures
        if model.getHandleInvalid() == "keep":
            tell_invalid(owner, record.n_skipped, record.k)
        folder.child("history.csv").write(model.summary.history.to_csv(index=False).encode())
        if options.report is not False:
            say(owner, "writing the report")
            page = _report(spark, own, table, options, counted, measures)
            folder.child("report.html").write(page.encode())
        if options.output_table:  # last, as it may replace an earlier one
            write_table(rows.drop(KNOWN_CLASS), options.output_table, bool(options.overwrite))
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
    return metrics | measures


def _confusion(owner: str, rows: DataFrame, label_col: str | None, k: int) -> Confusion | None:
    if label_col is None:
        return None
    try:
        return confusion(rows, KNOWN_CLASS, ADDED[0], k)
    except InvalidInputError as error:  # no reason to throw a finished fit away
        say(owner, f"warning: {str(error).replace(KNOWN_CLASS, label_col)}")
        return None


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
    rows, clusters = sampled(model, table, record.n_points + record.n_skipped, record.seed)
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
        "standardize": "off" if model.frame.scales is None else "on",
        "precision": f"{record.dtype} rows, float64 sums",
        "finished": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "software": f"localkmeans_spark {__version__}, PySpark {pyspark.__version__}, "
        f"Python {platform.python_version()}, master {find_master(spark)}",
    }
    return render(
        ReportData(
            title=f"k-means on {path.rstrip('/').rsplit('/', 1)[-1]}, k = {record.k}",
            record=record,
            centers=model.centers,
            feature_names=feature_names(table.frame, str(table.features_col), table.feature_cols),
            sample=rows,
            sample_clusters=clusters,
            confusion=counted,
            run=run,
            command=masked(command_line(options, record.seed)),
            weighted=table.weight_col is not None,
            measures=measures,
            scales=model.frame.scales,
        )
    )
