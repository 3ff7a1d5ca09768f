"""Say whether a table's partitions suit local steps: ``python jobs/diagnose.py --help``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a script: the repository is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from pyspark.ml.functions import array_to_vector
from pyspark.ml.stat import Summarizer
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from jobs.arguments import PARSER_STYLE, Parser, add_input, check_given, whole_number
from jobs.column_kinds import column
from jobs.columns import Table
from jobs.estimator_flags import in_words_of_flags
from jobs.inputs import find_source, read_table
from jobs.interruptions import interruptible
from jobs.labelling import SETTINGS, features_array, labelled
from jobs.options import FitOptions
from jobs.predict import with_features
from jobs.session import open_session, user_errors
from jobs.tables import json_line
from localkmeans_spark import LocalKMeansModel
from localkmeans_spark.diagnosis import Diagnosis, diagnose
from localkmeans_spark.errors import Fact, count_of, invalid

OWNER = "diagnose"
_MOST_LABELS = 1_000
_INF = float("inf")


@dataclass(frozen=True)
class DiagnoseOptions(FitOptions):
    """What the job is asked; see :class:`jobs.options.FitOptions`."""

    model: str | None = None


def main(argv: Sequence[str] | None = None) -> None:
    """Run the job; leave by ``SystemExit`` with status 2 when the user is to mend something."""
    with user_errors(OWNER), interruptible(OWNER) as catch_signals:
        run(parse(argv), catch_signals)


def parse(argv: Sequence[str] | None = None) -> DiagnoseOptions:
    """Read the command line."""
    parser = Parser(
        prog=OWNER,
        usage="python jobs/diagnose.py --input PATH (--label-col NAME | --model DIR) [options]",
        description="Say in plain words whether every partition holds its share of every cluster, "
        "whether the clusters are far enough apart, and how many local steps suit.",
        **PARSER_STYLE,
    )
    group = add_input(parser)
    group.add_argument("--label-col", metavar="NAME", help="known classes, taken for the clusters")
    group.add_argument("--model", metavar="DIR", help="a saved model, whose clusters are taken")
    group.add_argument("--partitions", type=whole_number, metavar="M",
                       help="for .npz: partitions to cut the file into")  # fmt: skip
    group.add_argument("--master", metavar="URL", help="Spark master (default: local[*])")
    group.add_argument("--debug", action="store_true", help="show stack traces")
    options = DiagnoseOptions(**vars(parser.parse_args(argv)))
    check_given(parser, options, ("input",))
    if options.label_col is not None and options.handle_invalid is not None:
        raise invalid(
            OWNER, "--handle-invalid", "given with --model only", options.handle_invalid,
            "Filter or fill unusable rows, or leave the flag out.",
        )  # fmt: skip
    if (options.model is None) == (options.label_col is None):
        raise invalid(
            OWNER, "the clusters", "given by either --label-col or --model",
            Fact("both" if options.model else "neither"), "Give one of them.",
        )  # fmt: skip
    return options


def run(options: DiagnoseOptions, session_opened: Callable[[], None]) -> None:
    """Count, and print what the counts mean."""
    source = find_source(OWNER, options)
    with open_session("localkmeans diagnose", options.master, SETTINGS, options.debug) as spark:
        session_opened()
        if options.model is not None:
            model = LocalKMeansModel.load(options.model)
            if options.handle_invalid is not None:
                model.setHandleInvalid(options.handle_invalid)
            asked = with_model_features(model, options)
            table = read_table(OWNER, spark, source, asked, model.numFeatures)
            with in_words_of_flags(OWNER):
                found = by_model(model, table)
        else:
            table = read_table(OWNER, spark, source, options)
            found = by_label(table)
    print(found.text())
    print(json_line(found.to_dict()), flush=True)


def with_model_features(model: LocalKMeansModel, options: DiagnoseOptions) -> DiagnoseOptions:
    """Return the options with the model's own feature columns where none are named."""
    known = with_features(model, options)  # type: ignore[arg-type]
    return replace(options, features_col=known.features_col, feature_cols=known.feature_cols)


def by_model(model: LocalKMeansModel, table: Table) -> Diagnosis:
    """Diagnose with the clusters of a model: one pass."""
    own = model.copy()
    if table.features_col is not None:
        own.setFeaturesCol(table.features_col)
    else:
        own.setFeaturesCols(list(table.feature_cols))
    k, d = own.centers.shape
    distance = column("distance")
    rows = labelled(own, replace(table, label_col=None))
    counted: Any = (
        rows.select(
            F.spark_partition_id().alias("machine"),
            column("prediction").alias("cluster"),
            # Of unit vectors, for cosine: |a - b|^2 = 2 (1 - cos).
            (2.0 * distance if own.frame.is_cosine else distance**2).alias("sq"),
        )
        .where((column("cluster") >= 0) & (column("cluster") < k))
        .groupBy("machine", "cluster")
        .agg(F.count(F.lit(1)).alias("n"), F.sum("sq").alias("sq"))
        .toPandas()
    )
    names = [f"cluster {i}" for i in range(k)]
    counts = np.zeros((rows.rdd.getNumPartitions(), k), dtype=np.int64)
    counts[counted["machine"].to_numpy(int), counted["cluster"].to_numpy(int)] = counted["n"]
    variance = float(counted["sq"].sum()) / max(1, int(counts.sum()) * d)
    return _checked(own.centers, counts, math.sqrt(variance), names)


def _check_features(table: Table) -> None:
    """Raise if a row has no finite numbers, or another width: one pass."""
    row = features_array(table)
    unusable = row.isNull() | F.exists(row, lambda x: x.isNull() | F.isnan(x) | (F.abs(x) == _INF))
    found: Any = table.frame.agg(
        F.count_if(unusable).alias("bad"), F.min(F.size(row)).alias("least"),
        F.max(F.size(row)).alias("most"),
    ).first()  # fmt: skip
    if found["bad"]:
        raise invalid(
            OWNER, "the features", "finite numbers in every row",
            Fact(f"{count_of(found['bad'], 'row')} with null, NaN or infinite values"),
            "Filter or fill these rows.",
        )  # fmt: skip
    if found["least"] != found["most"]:
        raise invalid(
            OWNER, "the features", "of one length in all rows",
            Fact(f"rows of {found['least']} and of {found['most']} features"),
            "Make every row as long as the others.",
        )  # fmt: skip


def by_label(table: Table) -> Diagnosis:
    """Diagnose with known classes: one pass for means, one for counts."""
    assert table.label_col is not None
    label = column(table.label_col)
    known = label.isNotNull()
    if isinstance(table.frame.select(label).schema[0].dataType, FloatType | DoubleType):
        known = known & ~F.isnan(label)
    _check_features(table)
    rows = table.frame.select(
        F.spark_partition_id().alias("machine"),
        label.alias("cluster"),
        array_to_vector(features_array(table)).alias("x"),
        known.alias("known"),
    ).where("known")
    found = (
        rows.groupBy("cluster")
        .agg(Summarizer.metrics("mean", "variance", "count").summary(column("x")).alias("s"))
        .select("cluster", "s.mean", "s.variance", "s.count")
        .limit(_MOST_LABELS + 1)
        .collect()
    )
    if len(found) > _MOST_LABELS:
        raise invalid(
            OWNER, f"column {table.label_col!r}", f"a label with at most {_MOST_LABELS:,} values",
            Fact("more"), "Name the column that holds the known classes.",
        )  # fmt: skip
    found = sorted(found, key=lambda row: row["cluster"])
    place = {row["cluster"]: i for i, row in enumerate(found)}
    counted: Any = rows.groupBy("machine", "cluster").count().collect()
    counts = np.zeros((rows.rdd.getNumPartitions(), len(found)), dtype=np.int64)
    for row in counted:
        counts[row["machine"], place[row["cluster"]]] = row["count"]
    centers = np.array([row["mean"].toArray() for row in found])
    if not np.isfinite(centers).all():
        raise invalid(
            OWNER, "the features", "finite", Fact("rows with NaN or infinity"), "Leave them out."
        )
    scatter = sum(row["variance"].toArray().sum() * (row["count"] - 1) for row in found)
    sigma = math.sqrt(scatter / max(1, counts.sum() * centers.shape[1]))
    return _checked(centers, counts, sigma, [f"class {row['cluster']}" for row in found])


def _checked(centers: np.ndarray, counts: np.ndarray, sigma: float, names: list[str]) -> Diagnosis:
    filled = counts.sum(axis=0) > 0
    if filled.sum() < 2:
        raise invalid(
            OWNER, "the table", "one with rows in at least 2 clusters",
            Fact(f"{int(filled.sum())}"), "Check --label-col or --model.",
        )  # fmt: skip
    names = [name for name, has_rows in zip(names, filled, strict=True) if has_rows]
    return diagnose(centers[filled], counts[:, filled], sigma, names)


if __name__ == "__main__":
    main()
