"""Confusion counts and misclustering against hand-worked cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pyspark.sql import SparkSession

from localkmeans_spark import metrics
from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.metrics import best_matching, confusion, misclustering


def test_hand_worked() -> None:
    # label 0 is cluster 1, label 1 is cluster 0; 5 of 100 rows are elsewhere
    counts = np.array([[0, 50], [45, 5]])
    assert best_matching(counts) == {0: 1, 1: 0}
    assert misclustering(counts) == 0.05


def test_more_clusters_than_labels() -> None:
    # the third cluster has no partner: its 3 rows count as wrong
    assert misclustering(np.array([[3, 0, 1], [0, 4, 2]])) == 0.3


def test_more_labels_than_clusters() -> None:
    assert misclustering(np.array([[6], [3], [1]])) == 0.4
    assert best_matching(np.array([[6], [3], [1]])) == {0: 0}


def test_greedy_matching_would_be_wrong() -> None:
    # greedy takes 10 and is left with 0; the best pairs are 9 + 8
    assert misclustering(np.array([[10, 9], [8, 0]])) == pytest.approx(10 / 27)


def test_best_of_all_permutations() -> None:
    counts = np.random.default_rng(3).integers(0, 30, (5, 5))
    best = max(
        sum(counts[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(5))
    )
    assert misclustering(counts) == pytest.approx(1 - best / counts.sum())
    shuffled = counts[[2, 0, 4, 1, 3]][:, [1, 4, 0, 3, 2]]
    assert misclustering(shuffled) == misclustering(counts)


def test_no_rows() -> None:
    assert np.isnan(misclustering(np.zeros((0, 3), dtype=int)))


def test_confusion_counts_rows(spark: SparkSession) -> None:
    rows = [("b", 0)] * 3 + [("a", 1)] * 2 + [("a", 0)] + [(None, 1)] * 4 + [("b", 2)] * 5
    found = confusion(spark.createDataFrame(rows, "kind string, p int"), "kind", "p", k=2)
    assert found.labels == ["a", "b"]
    np.testing.assert_array_equal(found.counts, [[1, 2], [3, 0]])
    assert found.n_unlabelled == 4  # cluster 2 of k = 2 is where rows go that cannot be clustered


def test_labels_of_other_types(spark: SparkSession) -> None:
    rows = [(2.0, 0), (float("nan"), 0), (1.0, 1)]
    found = confusion(spark.createDataFrame(rows, "`a.b` double, p int"), "a.b", "p", k=2)
    assert (found.labels, found.n_unlabelled) == ([1.0, 2.0], 1)


def test_an_id_is_no_label(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_LABELS", 20)
    frame = spark.range(100).selectExpr("id AS label", "cast(id % 3 AS int) AS p")
    with pytest.raises(InvalidInputError, match="column 'label' must be a label with at most 20"):
        confusion(frame, "label", "p", k=3)
    few = frame.where("label < 20")
    assert len(confusion(few, "label", "p", k=3).labels) == 20
