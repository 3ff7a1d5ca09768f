"""The summary of a fit."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel, LocalKMeansSummary


@pytest.fixture(scope="module")
def model(blobs) -> LocalKMeansModel:
    return LocalKMeans(k=6, seed=4, localSteps=2, predictionCol="cluster").fit(blobs)


def test_mllib_fields(model, blobs):
    summary = model.summary
    assert isinstance(summary, LocalKMeansSummary)
    assert model.hasSummary
    assert (summary.k, summary.featuresCol, summary.predictionCol) == (6, "features", "cluster")
    assert len(summary.clusterSizes) == 6
    assert sum(summary.clusterSizes) == 600
    assert summary.numIter >= 1
    assert summary.predictions.columns == [*blobs.columns, "cluster"]
    assert summary.cluster.columns == ["cluster"]
    sizes = dict(summary.cluster.groupBy("cluster").count().collect())
    assert [sizes[i] for i in range(6)] == summary.clusterSizes


def test_cost_is_exact_for_the_returned_centers(blobs, blob_rows):
    for steps in (1, 3, 20):
        model = LocalKMeans(k=6, seed=4, maxIter=steps).fit(blobs)
        centers = np.array(model.clusterCenters())
        sq_distances = ((blob_rows[:, None] - centers) ** 2).sum(axis=2)
        exact = sq_distances.min(axis=1).sum()
        assert model.summary.trainingCost == pytest.approx(exact, rel=1e-6)


def test_fields_of_our_own(model):
    summary = model.summary
    history = summary.history
    assert list(history["round"]) == list(range(1, summary.numRounds + 1))
    assert summary.reverts == history["reverted"].sum()
    assert summary.bytesExchanged == history["bytes_down"].sum() + history["bytes_up"].sum()
    assert summary.seed == 4
    assert summary.converged is True
    kept = history.loc[~history["reverted"], "inertia"].to_numpy()
    assert (np.diff(kept) <= 1e-9 * kept[0]).all()
    assert "trainingCost" in repr(summary)


def test_restarts_are_told(blobs):
    summary = LocalKMeans(k=6, seed=4, nInit=4).fit(blobs).summary
    table = summary.restarts
    assert len(table) == 4 and table["chosen"].sum() == 1
    assert table.loc[table["chosen"], "inertia"].item() == summary.trainingCost
    assert table["dropped"].isna().any() and (table["dropped"].dropna() >= 1).all()
    assert "best of 4 restarts" in repr(summary)
    assert summary.seed == table["seed"][0] == 4


def test_renaming_the_models_columns_leaves_the_summary_alone(blobs):
    model = LocalKMeans(k=2, seed=1, maxIter=1).fit(blobs)
    model.setPredictionCol("later")
    assert model.summary.predictions.columns == [*blobs.columns, "prediction"]


def test_a_fit_without_rounds_has_an_empty_history(pairs):
    model = LocalKMeans(initialCenters=[[0.0, 0.0], [9.0, 9.0]], maxIter=0).fit(pairs)
    assert len(model.summary.history) == 0
    assert "inertia" in model.summary.history.columns


def test_a_model_made_from_centers_has_none():
    model = LocalKMeansModel([[0.0], [1.0]])
    assert not model.hasSummary
    with pytest.raises(InvalidInputError, match="Use evaluate"):
        model.summary  # noqa: B018


def test_plot(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = model.summary.plot()
    x, y = ax.lines[0].get_data()
    assert list(zip(x, y, strict=True)) == model.summary.record.costs()
    assert list(y[:-1]) == list(model.summary.history.loc[lambda h: ~h["reverted"], "inertia"])
    assert y[-1] == model.summary.trainingCost
    assert len(x) == model.summary.numRounds - model.summary.reverts + 1
    assert model.summary.plot(ax) is ax


def test_plot_without_matplotlib_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        model.summary.plot()
