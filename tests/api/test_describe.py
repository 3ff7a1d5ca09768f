"""model.describe: its numbers against pandas, its words, names and profiles."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import functions as F

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel

NAMES = ["age", "visits", "noise"]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    group = rng.integers(3, size=240)
    table = pd.DataFrame(rng.normal(size=(240, 3)), columns=NAMES)
    table["age"] += np.array([30.0, 60.0, 30.0])[group]
    table["visits"] += np.array([0.0, 0.0, 40.0])[group]
    table["region"] = np.where(group == 1, "north", np.where(rng.random(240) < 0.5, "east", "west"))
    table["since"] = [datetime.date(2020 + g, 1 + i % 2, 3) for i, g in enumerate(group)]
    table["w"] = 1.0 + group
    return table


@pytest.fixture(scope="module")
def frame(spark, people):
    return spark.createDataFrame(people).repartition(3).cache()


@pytest.fixture(scope="module")
def fitted(frame):
    return LocalKMeans(k=3, seed=1, featuresCols=NAMES, weightCol="w").fit(frame)


def test_spread_of_clusters_far_apart(spark):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=200), 1e10 + 1e8 * rng.normal(size=100)])
    df = spark.createDataFrame(pd.DataFrame({"x": x}))
    model = LocalKMeans(featuresCols=["x"], dtype="float64", initialCenters=[[0.0], [1e10]]).fit(df)
    found = model.describe(df).features.sort_values("cluster")
    np.testing.assert_allclose(found["std"], [x[:200].std(), x[200:].std()], rtol=1e-6)
    difference = (x[200:].mean() - x[:200].mean()) / x.std()
    np.testing.assert_allclose(found["difference"], [-difference, difference], rtol=1e-9)


def test_columns_that_pandas_cannot_hold(fitted, frame):
    odd = frame.select(
        "*",
        F.lit(datetime.datetime(9999, 12, 31)).alias("until"),
        F.expr("interval 3 months").alias("every"),
        F.expr("map(named_struct('a', 1), 2)").alias("pairs"),
        F.lit(1).alias("twice"),
        F.lit(2).alias("twice"),
    )
    rows = fitted.describe(odd, n=1).rows
    assert set(rows["until"]) == {"9999-12-31 00:00:00"}
    assert "twice" not in rows and "pairs" in rows and len(rows) == 6


@pytest.mark.parametrize("weight", [-30.0, None, float("nan"), float("inf")])
def test_weights_that_are_none(fitted, frame, weight):
    bad = frame.withColumn("w", F.when(F.col("age") > 60, F.lit(weight)).otherwise(1.0))
    with pytest.raises(InvalidInputError, match="'w' must be finite and >= 0 in every row"):
        fitted.describe(bad)


def test_weights_of_every_kind_that_a_fit_takes(fitted, frame):
    own = fitted.copy()
    kinds = frame.select("*", F.struct("w").alias("s"), (F.col("w") > 1).alias("b"))
    expected = fitted.describe(frame).clusters["share"]
    np.testing.assert_allclose(own.setWeightCol("s.w").describe(kinds).clusters["share"], expected)
    assert own.setWeightCol("b").describe(kinds).clusters["share"].min() == 0
    assert own.nearest(kinds, np.int64(1)).count() == 2


def test_tables_are_those_of_pandas(fitted, frame):
    found = fitted.describe(frame, profile=["region", "since"], n=2)
    rows = fitted.transform(frame).toPandas()
    features = found.features.set_index(["cluster", "feature"])
    for cluster, own in rows.groupby("prediction"):
        rest = rows[rows["prediction"] != cluster]
        for name in NAMES:
            got = features.loc[(cluster, name)]
            mean = np.average(own[name], weights=own["w"])
            assert got["mean"] == pytest.approx(mean, rel=1e-9)
            std = np.sqrt(np.average((own[name] - mean) ** 2, weights=own["w"]))
            assert got["std"] == pytest.approx(std, rel=1e-9)
            overall = np.average(rows[name], weights=rows["w"])
            spread = np.sqrt(np.average((rows[name] - overall) ** 2, weights=rows["w"]))
            expected = (mean - np.average(rest[name], weights=rest["w"])) / spread
            assert got["difference"] == pytest.approx(expected, rel=1e-9)
            low, high = own[name].quantile([0.49, 0.51])
            assert low - 0.05 <= got["median"] <= high + 0.05
        line = found.clusters.loc[cluster]
        assert line["size"] == len(own)
        assert line["share"] == pytest.approx(own["w"].sum() / rows["w"].sum())
        distance = np.linalg.norm(own[NAMES].to_numpy() - fitted.centers[cluster], axis=1)
        assert line["spread"] == pytest.approx(
            np.sqrt(np.average(distance**2, weights=own["w"])), rel=1e-5
        )
        apart = np.linalg.norm(
            np.delete(fitted.centers, cluster, 0) - fitted.centers[cluster], axis=1
        )
        assert line["separation"] == pytest.approx(apart.min())
        typical = found.rows[found.rows["cluster"] == cluster]
        assert list(typical["kind"]) == ["nearest"] * 2 + ["farthest"] * 2
        ordered = np.sort(distance)
        expected = [ordered[0], ordered[1], ordered[-1], ordered[-2]]
        np.testing.assert_allclose(typical["distance"], expected, rtol=1e-4)
        region = found.profile.query("cluster == @cluster and column == 'region'")
        for value, line in region.set_index("value").iterrows():
            share = own.loc[own["region"] == value, "w"].sum() / own["w"].sum()
            assert line["share"] == pytest.approx(share)
            overall = rows.loc[rows["region"] == value, "w"].sum() / rows["w"].sum()
            assert line["lift"] == pytest.approx(share / overall)
    assert set(found.profile.loc[found.profile["column"] == "since", "value"].str[5:]) == {
        "01",
        "02",
    }
    words = set(found.clusters["summary"])
    assert any(each.startswith("high visits") for each in words), words
    assert any(each.startswith("high age") for each in words), words
    page = found._repr_html_()
    assert "high visits" in page and "<script" not in page


def test_vectors_have_the_names_of_their_assembler(frame):
    assembled = VectorAssembler(inputCols=NAMES, outputCol="features").transform(frame)
    model = LocalKMeans(k=2, seed=1, standardize=True).fit(assembled)
    found = model.describe(assembled, n=0)
    assert set(found.features["feature"]) == set(NAMES)
    assert found.rows.empty and found.profile.empty
    near = model.nearest(assembled, 2).collect()
    assert [(row["prediction"], row["rank"]) for row in near] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert near[0]["distance"] <= near[1]["distance"]


@pytest.mark.parametrize("told", ["x", {"num_attrs": "2", "attrs": "x"}, {"attrs": {"a": [1]}}])
def test_metadata_that_nobody_understands(frame, told):
    assembled = VectorAssembler(inputCols=NAMES, outputCol="features").transform(frame)
    odd = assembled.withMetadata("features", {"ml_attr": told})
    found = LocalKMeans(k=2, seed=1).fit(odd).describe(odd, n=0)
    assert len(set(found.features["feature"])) == len(NAMES)


def test_columns_named_as_those_of_the_tables(fitted, frame):
    same = frame.withColumn("rank", F.lit("captain")).withColumn("cluster", F.lit("far north"))
    found = fitted.describe(same, profile=["rank"], n=1)
    assert set(found.rows["rank"]) == {1} and set(found.rows["rank_"]) == {"captain"}
    assert set(found.rows["cluster"]) == {0, 1, 2} and set(found.rows["cluster_"]) == {"far north"}
    assert "far north" in found.to_html() and "captain" in found.to_html()
    with pytest.raises(InvalidInputError, match=r"column 'rank' must be free .* Rename the table"):
        fitted.nearest(same, 1)
    for name in ("predictionCol", "distanceCol"):
        own = fitted.copy({fitted.getParam(name): "rank"})
        with pytest.raises(InvalidInputError, match="column 'rank' must be free"):
            own.nearest(frame, 1)


def test_rows_of_weight_0_are_as_if_absent(fitted, frame):
    ghosts = frame.withColumn("w", F.lit(0.0)).withColumn("region", F.lit("nowhere"))
    both = frame.union(ghosts)
    found, expected = (fitted.describe(rows, ["region"], n=2) for rows in (both, frame))
    for name in ("clusters", "features", "profile"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(expected, name))
    assert set(found.rows["w"]) <= {1.0, 2.0, 3.0}
    assert fitted.nearest(both, 3).where("w = 0").count() == 0
    assert fitted.nearest(both, 3).count() == 9


def test_a_table_without_rows_is_refused(fitted, frame):
    unweighted = LocalKMeansModel(fitted.centers).setFeaturesCols(NAMES)
    for rows, model in ((frame.limit(0), fitted), (frame.limit(0), unweighted),
                        (frame.withColumn("w", F.lit(0.0)), fitted)):  # fmt: skip
        with pytest.raises(InvalidInputError, match="at least 1 row with a cluster; got 0 rows"):
            model.describe(rows)
        assert model.nearest(rows, 2).count() == 0
    with pytest.raises(InvalidInputError, match="at least 1 row with a cluster; got 0 rows"):
        fitted.drift(frame.limit(0))


def test_what_cannot_be_described_is_refused(fitted, frame):
    with pytest.raises(InvalidInputError, match="'profile' must be a list"):
        fitted.describe(frame, profile="region")
    with pytest.raises(InvalidInputError, match="'profile' must be the name of a column"):
        fitted.describe(frame, profile=["nothing"])
    with pytest.raises(InvalidInputError, match="n must be a whole number >= 0; got -1"):
        fitted.describe(frame, n=-1)
