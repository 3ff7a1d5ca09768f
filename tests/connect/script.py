"""What ``test_connect`` looks at, done in a session of Spark Connect; prints one line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark import InvalidInputError, LocalKMeans
from localkmeans_spark.data import frame_jobs, rdd_jobs
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


def main() -> None:
    """Run everything."""
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    names = [name for name in FITS if name not in NOT_HERE] if "all" in sys.argv else MOST
    found: dict[str, Any] = {"fits": {name: result_of(spark, name) for name in names}}
    limit, direct = frame_jobs._ENCLOSED_BYTES, rdd_jobs.DIRECT_BYTES
    frame_jobs._ENCLOSED_BYTES = 100
    found["payload in a file"] = {name: result_of(spark, name) for name in SOME}
    frame_jobs._ENCLOSED_BYTES = limit
    rdd_jobs.DIRECT_BYTES = 0
    found["answers merged by tasks"] = {name: result_of(spark, name) for name in SOME}
    rdd_jobs.DIRECT_BYTES = direct

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
