"""DataFrames with a known layout over partitions."""

import numpy as np
import pyarrow as pa

from localkmeans_spark.spark_private import is_connect


def frame_of(spark, partitions, weights=None, element="double"):
    """Build a DataFrame whose i-th partition holds exactly the rows ``partitions[i]``.

    Columns: ``features`` (array) and, with ``weights``, ``weight``.
    """
    rows = [
        [
            (np.asarray(row, dtype=float).tolist(), *([float(weights[i][j])] if weights else []))
            for j, row in enumerate(part)
        ]
        for i, part in enumerate(partitions)
    ]
    schema = f"features array<{element}>" + (", weight double" if weights else "")
    if is_connect(spark):
        return _from_workers(spark, rows, schema)
    rdd = spark.sparkContext.parallelize(rows, len(rows)).flatMap(lambda part: part)
    return spark.createDataFrame(rdd, schema)


def _from_workers(spark, rows, schema):
    """Make the rows in tasks, one for each partition: sessions of Spark Connect have no RDDs."""
    names = [column.split()[0] for column in schema.split(", ")]

    def make(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                columns = [pa.array(list(column)) for column in zip(*rows[number], strict=True)]
                if columns:
                    yield pa.RecordBatch.from_arrays(columns, names=names)

    doubles = schema.replace("<float>", "<double>")
    frame = spark.range(len(rows), numPartitions=len(rows)).mapInArrow(make, doubles)
    return frame if doubles == schema else frame.selectExpr("cast(features as array<float>)")


def split(x, m):
    """Cut rows into m consecutive partitions."""
    return np.array_split(np.asarray(x, dtype=float), m)
