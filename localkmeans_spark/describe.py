"""What clusters are like, in the words of the table's columns: ``model.describe(df)``."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from localkmeans_spark.data.checks import bad_weights
from localkmeans_spark.data.column_names import ColumnNames, case_matters, quoted
from localkmeans_spark.data.columns import check_batch, check_dataframe
from localkmeans_spark.data.workers import told_plainly
from localkmeans_spark.errors import Fact, InvalidInputError, invalid
from localkmeans_spark.params import NEW_COLUMNS
from localkmeans_spark.real_numbers import check_wholes
from localkmeans_spark.svg import high_and_low, readable

if TYPE_CHECKING:
    from localkmeans_spark.model import LocalKMeansModel

CLUSTER, DISTANCE, _RANK = "localkmeans_cluster", "localkmeans_distance", "localkmeans_rank"
_CENTER = "localkmeans_center"
QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
# Of wider rows those features are described that differ most between the centers.
_MOST_FEATURES = 100
_MOST_VALUES = 5


@dataclass(frozen=True)
class Description:
    """What clusters are like; pandas tables, shown as a page in a notebook.

    Attributes
    ----------
    clusters : pandas.DataFrame
        A row for each cluster: ``cluster``; ``size`` (rows); ``share`` (of all weight);
        ``spread`` (root mean square distance from the center; with cosine distance the mean);
        ``nearest_cluster``, and ``separation``, the distance between the two centers;
        ``summary``, as in "high visits, low age".
    features : pandas.DataFrame
        A row for each cluster and feature: ``mean``, ``std``, ``q05`` to ``q95``, and
        ``difference``: how many standard deviations of all rows the cluster's mean lies above
        the mean of the other clusters' rows. What sets a cluster apart most comes first.
    rows : pandas.DataFrame
        The table's rows nearest each center (``kind`` "nearest": what is typical) and farthest
        from it ("farthest": what fits least), with ``rank`` and ``distance``. Columns of the
        table with one of these names are shown with an underscore at its end.
    profile : pandas.DataFrame
        For every column asked for, each cluster's most frequent values: ``share`` in the
        cluster, and ``lift``, that share over the share in all rows.

    Notes
    -----
    Means, shares and profiles count rows by ``weightCol``; quantiles and sizes count rows.
    """

    clusters: pd.DataFrame
    features: pd.DataFrame
    rows: pd.DataFrame
    profile: pd.DataFrame

    def __repr__(self) -> str:
        lines = [f"cluster {row.cluster}: {row.summary}" for row in self.clusters.itertuples()]
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return all of it as a piece of HTML without scripts."""
        parts = [_table(self.clusters)]
        for row in self.clusters.itertuples():
            parts.append(f"<h3>Cluster {row.cluster}: {html.escape(str(row.summary))}</h3>")
            for table in (self.features, self.profile, self.rows):
                own = table[table["cluster"] == row.cluster].drop(columns="cluster")
                if len(own):
                    parts.append(_table(own.head(12)))
        return "".join(parts)

    def _repr_html_(self) -> str:
        return self.to_html()


def _table(table: pd.DataFrame) -> str:
    shown = table.to_html(index=False, border=0, float_format=readable)
    return f'<div style="overflow-x:auto">{shown}</div>'


def describe(
    model: LocalKMeansModel, dataset: DataFrame, profile: Sequence[str], n_rows: int
) -> Description:
    """Describe the clusters of a model on data; see ``LocalKMeansModel.describe``."""
    owner = "LocalKMeansModel"
    check_dataframe(dataset, owner)
    check_batch(dataset, owner, "Describe a table, or the rows of a foreachBatch.")
    if isinstance(profile, str):  # each letter would be a name
        rule = "a list of column names"
        raise invalid(owner, "argument 'profile'", rule, profile, f"Write [{profile!r}].")
    check_wholes(owner, 0, n=n_rows)
    names = ColumnNames(dataset, owner)
    columns = {name: names.resolve(name, "profile") for name in profile}
    weight = _weight(model, dataset)
    scored = _counted(model, scored_rows(model, dataset), F.col(CLUSTER), weight)
    with told_plainly(owner):
        features, totals = _features(model, dataset, scored, weight)
    if not totals["size"].sum():
        raise no_rows(owner)
    clusters = _clusters(model, features, totals)
    kinds = ("nearest", "farthest") if n_rows else ()
    near = [_extreme(scored, _shown(dataset), n_rows, kind) for kind in kinds]
    profiles = [
        _profile(scored, name, found.column, found.field.dataType, weight)
        for name, found in columns.items()
    ]
    return Description(
        clusters,
        features,
        pd.concat(near, ignore_index=True) if near else pd.DataFrame({"cluster": []}),
        pd.concat(profiles, ignore_index=True) if profiles else pd.DataFrame({"cluster": []}),
    )


def scored_rows(model: LocalKMeansModel, dataset: DataFrame) -> DataFrame:
    """Transform rows; the new columns are :data:`CLUSTER` and :data:`DISTANCE`, free names."""
    own = model.copy()
    own.set(own.getParam("predictionCol"), CLUSTER)
    own.set(own.getParam("distanceCol"), DISTANCE)
    return own.transform(dataset)


def nearest_of(model: LocalKMeansModel, dataset: DataFrame, n: int) -> DataFrame:
    """Return the n rows nearest each center; see ``LocalKMeansModel.nearest``."""
    owner = "LocalKMeansModel"
    check_wholes(owner, n=n)
    check_dataframe(dataset, owner)
    check_batch(dataset, owner, "Take a table, or the rows of a foreachBatch.")
    own = model.copy()
    if own.getDistanceCol() is None:
        own.set(own.getParam("distanceCol"), "distance")
    added = (own.getOrDefault(name) for name in NEW_COLUMNS if own.isDefined(name))
    if "rank" in {str(name).lower() for name in (*dataset.columns, *added)}:
        raise invalid(
            owner, "column 'rank'", "free for what nearest() adds", Fact("another use of the name"),
            "Rename the table's column, or set another predictionCol or distanceCol.",
        )  # fmt: skip
    label, distance = (quoted(own.getPredictionCol()), quoted(own.getDistanceCol()))
    scored = _counted(model, own.transform(dataset), F.col(label), _weight(model, dataset))
    order = Window.partitionBy(label).orderBy(distance)
    ranked = scored.withColumn("rank", F.row_number().over(order))
    return ranked.where(F.col("rank") <= n).orderBy(label, "rank")


def _counted(
    model: LocalKMeansModel, scored: DataFrame, label: Column, weight: Column
) -> DataFrame:
    """Keep the rows that have a cluster and count: a row of weight 0 is as if it were absent."""
    return scored.where((label < len(model.centers)) & (weight != 0))


def no_rows(owner: str) -> InvalidInputError:
    """Build the error for a table of which no row counts."""
    fix = "Check the filter, or skip batches without rows (df.isEmpty())."
    return invalid(owner, "the data", "at least 1 row with a cluster", Fact("0 rows"), fix)


def _shown(dataset: DataFrame) -> dict[str, bool]:
    """Return the columns with a name of their own, and whether pandas can hold their values."""
    is_exact = case_matters(dataset.sparkSession)
    names = Counter(name if is_exact else name.lower() for name in dataset.columns)
    return {
        field.name: _is_common(field.dataType)
        for field in dataset.schema
        if names[field.name if is_exact else field.name.lower()] == 1
        and field.name not in (CLUSTER, DISTANCE)
    }


def _is_common(kind: DataType) -> bool:
    # Not times: 9999-12-31, a usual "for ever", is none in pandas.
    if isinstance(kind, ArrayType):
        return _is_common(kind.elementType)
    return isinstance(
        kind, NumericType | StringType | BooleanType | BinaryType | DateType | VectorUDT
    )


def _extreme(scored: DataFrame, shown: dict[str, bool], n: int, kind: str) -> pd.DataFrame:
    distance = F.col(DISTANCE)
    order = Window.partitionBy(CLUSTER).orderBy(distance if kind == "nearest" else distance.desc())
    # Spark keeps the n best of each partition and cluster before anything is sent.
    found = scored.withColumn(_RANK, F.row_number().over(order)).where(F.col(_RANK) <= n)
    found = found.orderBy(CLUSTER, _RANK)
    own = {"cluster": CLUSTER, "kind": None, "rank": _RANK, "distance": DISTANCE}
    columns = [(F.col(of) if of else F.lit(kind)).alias(name) for name, of in own.items()]
    # A column of the table that is called as one of these gets a name of its own.
    named = [(name, f"{name}_" if name in own else name) for name in shown]
    for name, other in named:
        column = F.col(quoted(name))
        columns.append((column if shown[name] else column.cast("string")).alias(other))
    return found.select(*columns).toPandas()


def feature_names(dataset: DataFrame, features_col: str, features_cols: Sequence[str]) -> list[str]:
    """Return the features' names: columns, or what a VectorAssembler noted; empty if unknown."""
    if features_cols:
        return list(features_cols)
    field = ColumnNames(dataset, "LocalKMeansModel").resolve(features_col, "featuresCol").field
    try:
        groups = field.metadata.get("ml_attr", {}).get("attrs", {})
        listed = [item for group in groups.values() for item in group if "name" in item]
        return [item["name"] for item in sorted(listed, key=lambda item: item["idx"])]
    except (AttributeError, LookupError, TypeError):  # metadata of somebody else's
        return []


def _weight(model: LocalKMeansModel, dataset: DataFrame) -> Column:
    """Return the weights as a column, which raises where one is none."""
    name = model.getWeightCol()
    if not name:
        return F.lit(1.0)
    weight = ColumnNames(dataset, "LocalKMeansModel").resolve(name, "weightCol").column
    weight = weight.cast("double")
    is_fine = (weight >= 0) & (weight < float("inf"))  # NaN is above infinity in Spark
    error = F.raise_error(str(bad_weights("LocalKMeansModel", f"column {name!r}", "a row")))
    return F.when(is_fine, weight).otherwise(error)


def _feature_columns(
    model: LocalKMeansModel, dataset: DataFrame, chosen: Sequence[int]
) -> dict[str, Column]:
    cols = model.getFeaturesCols() or ()
    d = model.numFeatures
    names = feature_names(dataset, model.getFeaturesCol(), cols)
    if len(names) != d or len(set(names)) != d:
        names = [str(place) for place in range(d)]
    resolve = ColumnNames(dataset, "LocalKMeansModel").resolve
    if cols:
        found = [resolve(cols[place], "featuresCols").column for place in chosen]
    else:
        column = resolve(model.getFeaturesCol(), "featuresCol")
        array = column.column
        if isinstance(column.field.dataType, VectorUDT):
            array = vector_to_array(array)
        found = [array[int(place)] for place in chosen]
    return {
        names[place]: column.cast("double") for place, column in zip(chosen, found, strict=True)
    }


def _features(
    model: LocalKMeansModel, dataset: DataFrame, scored: DataFrame, weight: Column
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table of features, and size, weight and spread of every cluster, in one job."""
    compared = model.frame.centers
    by_size = np.argsort(-compared.var(axis=0), kind="stable")[:_MOST_FEATURES]
    chosen = np.sort(by_size).tolist()
    columns = _feature_columns(model, dataset, chosen)
    centers, distance = model.centers[:, chosen], F.col(DISTANCE)
    # Sums of squares about a row's own center lose no digits, however far clusters lie apart.
    listed = scored.sparkSession.createDataFrame(
        list(enumerate(centers.tolist())), f"{CLUSTER} int, {_CENTER} array<double>"
    )
    scored = scored.join(F.broadcast(listed), CLUSTER)
    sums: list[Column] = [
        F.count(F.lit(1)).alias("size"),
        F.sum(weight).alias("weight"),
        F.sum(weight * (distance if model.frame.is_cosine else distance**2)).alias("cost"),
    ]
    for place, column in enumerate(columns.values()):
        apart = column - F.col(_CENTER)[place]
        sums += [
            F.sum(weight * apart).alias(f"s{place}"),
            F.sum(weight * apart * apart).alias(f"q{place}"),
            F.percentile_approx(column, list(QUANTILES.values()), 10_000).alias(f"p{place}"),
        ]
    summed = scored.groupBy(CLUSTER).agg(*sums)
    # Not toPandas, which adds lines of its own to an error.
    found = pd.DataFrame([tuple(row) for row in summed.collect()], columns=summed.columns)
    found = found.set_index(CLUSTER).reindex(range(len(model.centers)))
    totals = found[["size", "weight", "cost"]].astype(float).fillna(0.0)
    weights, tables = totals["weight"].to_numpy(float), []
    for place, name in enumerate(columns):
        first, second = (found[f"{kind}{place}"].to_numpy(float) for kind in "sq")
        first, second = np.nan_to_num(first), np.nan_to_num(second)
        own = centers[:, place]
        tables.append(_of_feature(name, own, weights, first, second, found[f"p{place}"]))
    table = pd.concat(tables, ignore_index=True)
    table["size_of_difference"] = -table["difference"].abs()
    order = ["cluster", "size_of_difference"]
    table = table.sort_values(order, kind="stable", ignore_index=True)
    return table.drop(columns="size_of_difference"), totals


def _of_feature(
    name: str,
    centers: np.ndarray,
    weights: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    quantiles: pd.Series,
) -> pd.DataFrame:
    """Return a feature's rows of the table, from each cluster's sums about its center."""
    total, middle = weights.sum(), centers.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = first / weights
        mean = centers - middle + shift
        variance = np.maximum(second / weights - shift**2, 0.0)
        sums = np.nan_to_num(weights * mean)
        rest = (sums.sum() - sums) / (total - weights)
        scatter = np.nan_to_num(weights * (variance + (mean - sums.sum() / total) ** 2))
        deviation = np.sqrt(scatter.sum() / total)
        difference = (mean - rest) / deviation if deviation > 0 else mean - rest
    told = [each if isinstance(each, list | np.ndarray) else [np.nan] * 5 for each in quantiles]
    return pd.DataFrame(
        {
            "cluster": range(len(weights)),
            "feature": name,
            "mean": mean + middle,
            "std": np.sqrt(variance),
            **dict(zip(QUANTILES, np.array(told, dtype=float).T, strict=True)),
            "difference": difference,
        }
    )


def _clusters(
    model: LocalKMeansModel, features: pd.DataFrame, totals: pd.DataFrame
) -> pd.DataFrame:
    from scipy.spatial.distance import cdist  # slow to import

    centers = model.frame.centers
    apart = cdist(centers, centers)
    apart = 0.5 * apart**2 if model.frame.is_cosine else apart
    np.fill_diagonal(apart, np.inf)
    weights = totals["weight"].to_numpy(float)
    mean_cost = totals["cost"].to_numpy(float) / np.where(weights > 0, weights, np.nan)
    k = len(centers)
    return pd.DataFrame(
        {
            "cluster": range(k),
            "size": totals["size"].astype(int).to_numpy(),
            "share": weights / weights.sum(),
            "spread": mean_cost if model.frame.is_cosine else np.sqrt(mean_cost),
            "nearest_cluster": apart.argmin(axis=1) if k > 1 else -1,
            "separation": apart.min(axis=1) if k > 1 else np.nan,
            "summary": [
                high_and_low(own["difference"].to_numpy(), own["feature"].to_numpy())
                or "no feature far from the rest"
                for _, own in features.groupby("cluster")
            ],
        }
    )


def _profile(
    scored: DataFrame, name: str, column: Column, kind: Any, weight: Column
) -> pd.DataFrame:
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        column = F.date_format(column, "yyyy-MM")  # single days say little
    value = column.cast("string").alias("value")
    counted = scored.groupBy(F.col(CLUSTER).alias("cluster"), value).agg(F.sum(weight).alias("n"))
    of_value, of_cluster = Window.partitionBy("value"), Window.partitionBy("cluster")
    ranked = counted.select(
        "cluster", "value", "n",
        F.sum("n").over(of_value).alias("everywhere"),
        F.sum("n").over(of_cluster).alias("in_cluster"),
        F.row_number().over(of_cluster.orderBy(F.col("n").desc(), "value")).alias("rank"),
    ).where(F.col("rank") <= _MOST_VALUES)  # fmt: skip
    total = scored.agg(F.sum(weight)).head()
    found: Any = ranked.orderBy("cluster", "rank").toPandas()
    share = found["n"] / found["in_cluster"]
    return pd.DataFrame(
        {
            "cluster": found["cluster"],
            "column": name,
            "value": found["value"],
            "share": share,
            "lift": share / (found["everywhere"] / (total[0] if total else np.nan)),
        }
    )
