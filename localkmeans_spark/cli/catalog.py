"""Tables of Spark's catalog as outputs."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from localkmeans_spark.errors import invalid


def check_output_table(owner: str, spark: SparkSession, name: str, overwrite: bool) -> None:
    """Refuse an output table that exists and is to stay, before the rows are read."""
    if not overwrite and spark.catalog.tableExists(name):
        raise invalid(
            owner, "--output-table", "a name that no table has", name,
            "Add --overwrite to replace it, or name another one.",
        )  # fmt: skip


def write_table(rows: DataFrame, name: str, overwrite: bool) -> None:
    """Write the rows as a table that Spark manages, in the session's default format."""
    rows.write.mode("overwrite" if overwrite else "errorifexists").saveAsTable(name)
