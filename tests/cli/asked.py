"""Options as the flags make them, and the table they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from localkmeans_spark.cli.flags import Options
from localkmeans_spark.cli.inputs import Table, find_source, read_table

NOT_GIVEN = dict.fromkeys(
    ("input", "table", "format", "header", "sep", "decimal", "null_value", "features_col",
     "weight_col", "label_col", "handle_invalid", "partitions")
)  # fmt: skip


def asked(**values: Any) -> Options:
    return Options(**{"owner": "fit", "feature_cols": (), "id_cols": (), **NOT_GIVEN, **values})


def read(spark: SparkSession, path: Path, **values: Any) -> Table:
    options = asked(input=str(path), **values)
    return read_table("fit", spark, find_source("fit", options), options)
