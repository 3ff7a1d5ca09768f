"""DataFrames with a known layout over partitions."""

import numpy as np


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
    rdd = spark.sparkContext.parallelize(rows, len(rows)).flatMap(lambda part: part)
    return spark.createDataFrame(rdd, schema)


def split(x, m):
    """Cut rows into m consecutive partitions."""
    return np.array_split(np.asarray(x, dtype=float), m)
