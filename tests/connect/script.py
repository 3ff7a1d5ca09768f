"""What ``test_connect`` looks at, done in a session of Spark Connect; prints one line of JSON."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyspark
from pyspark.errors import PySparkException
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import ClusteringEvaluator
from pyspark.ml.functions import array_to_vector
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark import InvalidInputError, LocalKMeans
from localkmeans_spark.cli.main import main as run_command
from localkmeans_spark.config import FitConfig
from localkmeans_spark.data import frame_jobs
from localkmeans_spark.data.block_frame import BYTES_PER_BATCH
from localkmeans_spark.data.partition import nothing
from localkmeans_spark.fit.partitions import open_partitions
from tests.frozen.fits import FITS, result_of

# Those of sparse rows come from RDDs. ``python -m tests.connect.script FOLDER all`` does the rest.
NOT_HERE = ("sparse", "sparse restarts", "sparse cosine")
MOST = ("dense", "weighted restarts", "sorted", "columns", "far", "empty partitions", "cosine",
        "dense k-means||", "empty clusters reseeded", "floats")  # fmt: skip
SOME = ("dense", "weighted restarts")


def _refused(self: DataFrame, *_: Any) -> DataFrame:
    raise PySparkException("[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported")


def _error(action: Callable[[], Any]) -> str:
    try:
        action()
    except InvalidInputError as error:
        return str(error)
    return ""


def _answers(rows: DataFrame) -> list[str]:
    """Ask for everything that is told of rows and clusters."""
    sweep = LocalKMeans(seed=1, maxIter=3, standardize=True).sweep(rows, [2, 3])
    model = sweep.models[2]
    description = model.describe(rows, profile=["first"], n=1)
    nearest = model.nearest(rows, 1).drop("features").toPandas()
    wide = model.copy().setDistancesCol("distances").setSecondCol("second").setMarginCol("margin")
    labelled = wide.transform(rows).drop("features").toPandas().sort_values("first")
    tables = [sweep.table, *vars(description).values(), nearest, model.drift(rows).table, labelled]
    return [table.to_csv() for table in tables if isinstance(table, pd.DataFrame)]


def _in_pipelines(rows: DataFrame, folder: str) -> dict[str, Any]:
    """Fit in pipelines and tuning of ``pyspark.ml``, which Connect has from PySpark 4.0 on."""
    kmeans = LocalKMeans(seed=1, maxIter=3)
    rows = rows.select(array_to_vector("features").alias("features"))
    pipeline = Pipeline(stages=[kmeans.copy({kmeans.k: 3})])
    model = pipeline.fit(rows)
    model.write().overwrite().save(folder)
    loaded = PipelineModel.load(folder)
    validator = CrossValidator(
        estimator=kmeans,
        estimatorParamMaps=ParamGridBuilder().addGrid(kmeans.k, [2, 3]).build(),
        evaluator=ClusteringEvaluator(),
        numFolds=2,
        seed=1,
    )
    labels = [
        [row.prediction for row in each.transform(rows).collect()] for each in (model, loaded)
    ]
    return {"labels": labels, "metrics": list(map(float, validator.fit(rows).avgMetrics))}


def _commands(spark: SparkSession, rows: DataFrame, folder: str) -> dict[str, Any]:
    """Run the command line: in this session, and from another process on this session's server."""
    table, path = "connect_rows", f"{folder}/rows"
    rows.write.parquet(path)
    rows.drop("first").write.mode("overwrite").saveAsTable(table)
    np.savez(f"{folder}/rows.npz", X=np.eye(3))
    flags = {
        "fit": ["--input", path, "--features-col", "features", "--k", "3", "--seed", "1"],
        "table": ["--table", table, "--k", "3", "--output-table", f"{table}_labelled"],
        "npz": ["--input", f"{folder}/rows.npz", "--k", "3"],
        "describe": ["--input", path, "--model", f"{folder}/fit/model"],
        "diagnose": ["--input", path, "--model", f"{folder}/fit/model"],
        "label": ["--input", path, "--label-col", "first"],
    }
    command = {"table": "fit", "npz": "fit", "label": "diagnose"}
    found = {}
    for name, words in flags.items():
        doing = command.get(name, name)
        out = [] if doing == "diagnose" else ["--output", f"{folder}/{name}"]
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            try:
                run_command([doing, *words, *out])
                status = 0
            except SystemExit as error:
                status = error.code
        found[name] = [status, told.getvalue()]
    found["labelled"] = spark.table(f"{table}_labelled").count()
    words = [
        "--master",
        f"sc://{spark.client._builder.endpoint}",
        "--output",
        f"{folder}/far",
        *flags["fit"],
    ]
    far = subprocess.run(
        [sys.executable, "-m", "localkmeans_spark.cli.main", "fit", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found["far"] = [far.returncode, far.stderr + far.stdout]
    return found


def _n_answers(spark: SparkSession) -> int:
    """Count the answers that come to the client from rows in six partitions."""
    rows = spark.range(600, numPartitions=6).selectExpr("array(id, 1) as features")
    with open_partitions(rows, FitConfig(k=2), [0], [2]) as partitions:
        assert partitions.jobs.n_partitions == 6
        return partitions.jobs.run(nothing, None, nothing, "", summary_bytes=1)[1]


def _batch_bytes(spark: SparkSession) -> list[str]:
    """Return a setting of the session before, during and after two fits that overlap."""
    rows = spark.range(9).selectExpr("array(id, 1) as features")
    config = FitConfig(k=2)
    found = [spark.conf.get(BYTES_PER_BATCH)]
    with open_partitions(rows, config, [0], [2]):
        with open_partitions(rows, config, [0], [2]):
            found.append(spark.conf.get(BYTES_PER_BATCH))
        found.append(spark.conf.get(BYTES_PER_BATCH))
    return [*found, spark.conf.get(BYTES_PER_BATCH)]


def main() -> None:
    """Run everything."""
    builder = SparkSession.builder.remote("local[2]")
    builder = builder.config("spark.python.daemon.module", "localkmeans_spark.daemon")
    # Where tables go: tables of a run that was killed would stand in the way.
    spark = builder.config("spark.sql.warehouse.dir", f"{sys.argv[1]}/warehouse").getOrCreate()
    names = [name for name in FITS if name not in NOT_HERE] if "all" in sys.argv else MOST
    found: dict[str, Any] = {"fits": {name: result_of(spark, name) for name in names}}
    limit, direct = frame_jobs._ENCLOSED_BYTES, frame_jobs.SUMMARY_BYTES
    frame_jobs._ENCLOSED_BYTES = 100
    found["payload in a file"] = {name: result_of(spark, name) for name in SOME}
    frame_jobs._ENCLOSED_BYTES = limit
    found["tasks"] = [_n_answers(spark)]
    frame_jobs.SUMMARY_BYTES = 0
    found["tasks"].append(_n_answers(spark))
    found["answers merged by tasks"] = {name: result_of(spark, name) for name in SOME}
    frame_jobs.SUMMARY_BYTES = direct

    frame = FITS["dense"][0](spark)
    rows = frame.selectExpr("features", "features[0] as first")
    found["answers"] = [_answers(rows)]
    frame_class: Any = type(spark.range(1))
    # As serverless computes refuse it.
    kept = {name: getattr(frame_class, name) for name in ("persist", "cache", "checkpoint")}
    for name in kept:
        setattr(frame_class, name, _refused)
    found["nothing kept"] = {name: result_of(spark, name) for name in SOME}
    found["answers"].append(_answers(rows))
    for name, method in kept.items():
        setattr(frame_class, name, method)

    path = f"{sys.argv[1]}/model"
    model = LocalKMeans(k=3, seed=1).fit(rows)
    model.save(path)
    model.write().overwrite().save(path)
    loaded = type(model).load(path)
    found["labels"] = [
        [row.prediction for row in each.transform(rows).collect()] for each in (model, loaded)
    ]
    found["commands"] = _commands(spark, rows, sys.argv[1])
    if pyspark.__version__ >= "4":
        found["batch bytes"] = _batch_bytes(spark)
        found["pipelines"] = _in_pipelines(rows, f"{sys.argv[1]}/pipeline")
    found["cost"] = [model.summary.trainingCost, model.evaluate(rows).inertia]
    LocalKMeans(k=4).save(f"{sys.argv[1]}/estimator")
    found["k"] = LocalKMeans.load(f"{sys.argv[1]}/estimator").getK()
    found["errors"] = {
        "exists": _error(lambda: model.save(path)),
        "null": _error(
            lambda: LocalKMeans(k=2).fit(rows.selectExpr("if(first > 0, null, features) features"))
        ),
        "checkpoint": _error(lambda: LocalKMeans(k=2, checkpointDir=sys.argv[1]).fit(rows)),
        "mllib": _error(model.toMLlib),
        "too large": _error(lambda: LocalKMeans(k=10_000_000).fit(rows)),
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
