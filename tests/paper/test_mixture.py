"""The mixture generator: placement tables, noise, and rows that depend on the seed alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom

from localkmeans_spark.errors import InvalidInputError
from localkmeans_spark.paper import drawing
from localkmeans_spark.paper import mixture as mx


def test_a_frame_holds_the_table_and_its_rows(spark):
    rng = mx.generator(3)
    counts = np.array([[5, 0, 7], [0, 0, 0], [2, 2, 2]])
    mixture = mx.Mixture(mx.orthonormal_centers(3, 4, rng), 0.01, counts, seed=9)
    rows = mx.mixture_frame(spark, mixture).collect()
    found = np.zeros_like(counts)
    for row in rows:
        found[row["machine"], row["label"]] += 1
        distance = np.linalg.norm(np.array(row["features"]) - mixture.centers[row["label"]])
        assert distance < 0.1
    assert (found == counts).all()
    x, labels = mixture.rows(2)
    mine = [row for row in rows if row["machine"] == 2]
    assert [row["label"] for row in mine] == labels.tolist()
    assert np.array_equal([row["features"] for row in mine], x)


def test_rows_come_in_chunks_of_shuffled_clusters():
    mixture = mx.Mixture(np.eye(2), 0.0, np.array([[300, 100]]), seed=1)
    chunks = list(mixture.chunks(0, n_rows=100))
    assert [len(x) for x, _ in chunks] == [100] * 4
    assert sum(int(z.sum()) for _, z in chunks) == 100
    assert all(0 < z.sum() < 60 for _, z in chunks)
    assert all(np.array_equal(x, np.eye(2)[z]) for x, z in chunks)


@pytest.mark.parametrize("noise", mx.NOISES)
def test_noise_has_the_deviation_asked_for(noise):
    x, _ = mx.Mixture(np.zeros((1, 50)), 0.3, np.array([[4000]]), seed=2, noise=noise).rows(0)
    assert x.std() == pytest.approx(0.3, rel=0.01)
    assert abs(x.mean()) < 0.005
    assert (np.abs(x).max() <= 0.3 * np.sqrt(3)) == (noise == "uniform")


def test_orthonormal_and_symmetric_centers():
    centers = mx.orthonormal_centers(4, 9, mx.generator(1))
    np.testing.assert_allclose(centers @ centers.T, np.eye(4), atol=1e-12)
    assert mx.symmetric_centers(np.array([1.0, 2.0])).tolist() == [[1, 2], [-1, -2]]
    with pytest.raises(InvalidInputError, match="orthonormal"):
        mx.orthonormal_centers(5, 4, mx.generator(1))


def test_placements_by_hand():
    assert mx.balanced_sizes(11, 3).tolist() == [4, 4, 3]
    assert mx.sorted_counts(np.array([3, 5]), 4).tolist() == [[2, 0], [1, 1], [0, 2], [0, 2]]
    assert mx.few_clusters_counts(2, 6, 4, 3).tolist() == [[2, 2, 2, 0], [0, 2, 2, 2]]


def test_random_placements_keep_their_totals():
    rng = mx.generator(5)
    dealt = mx.random_counts(np.array([30, 50, 20]), 7, rng)
    assert dealt.sum(axis=0).tolist() == [30, 50, 20]
    assert sorted(dealt.sum(axis=1).tolist()) == [14] * 5 + [15] * 2
    assert (mx.independent_counts(5, 40, 3, rng).sum(axis=1) == 40).all()
    uneven = mx.dirichlet_counts(50, 200, 10, 0.1, rng)
    assert (uneven.sum(axis=1) == 200).all()
    # Dirichlet(0.1): most machines have one or two clusters in the main.
    assert np.median(uneven.max(axis=1)) > 80


def test_a_table_that_does_not_fit_is_refused():
    with pytest.raises(InvalidInputError, match="counts"):
        mx.Mixture(np.eye(3), 0.1, np.ones((2, 2), dtype=int), seed=1)
    with pytest.raises(InvalidInputError, match="noise"):
        mx.Mixture(np.eye(2), 0.1, np.ones((2, 2), dtype=int), seed=1, noise="none")


def test_a_billion_rows_are_dealt_and_made():
    sizes = mx.balanced_sizes(10**9, 10)
    counts = mx.random_counts(sizes, 100, mx.generator(1))
    assert counts.sum(axis=0).tolist() == sizes.tolist()
    assert (counts.sum(axis=1) == 10**7).all()
    deviation = np.sqrt(10**7 * 0.1 * 0.9 * (1 - 0.01))
    assert counts.std() == pytest.approx(deviation, rel=0.1)
    mixture = mx.Mixture(np.eye(2), 0.1, np.array([[10**9, 3 * 10**9]]), seed=1)
    x, labels = next(mixture.chunks(0, n_rows=10_000))
    assert len(x) == 10_000
    assert labels.mean() == pytest.approx(0.75, abs=0.02)


def test_large_and_small_populations_are_drawn_by_the_same_law(monkeypatch):
    monkeypatch.setattr(drawing, "_NUMPY_LIMIT", 0)
    rng = mx.generator(4)
    sizes = np.array([5, 3, 2])
    for n in (1, 4, 9, 10):
        drawn = np.array([drawing.draw_rows(sizes, n, rng) for _ in range(3000)])
        assert (drawn.sum(axis=1) == n).all() and (drawn >= 0).all() and (drawn <= sizes).all()
        for cluster, size in enumerate(sizes):
            expected = 3000 * hypergeom(10, size, n).pmf(np.arange(size + 1))
            found = np.bincount(drawn[:, cluster], minlength=size + 1)
            assert (found[expected == 0] == 0).all()
            if (expected > 0).sum() > 1:
                usual = expected > 0
                assert chisquare(found[usual], expected[usual]).pvalue > 1e-4


def test_below_the_limit_the_draws_are_those_of_numpy():
    sizes = np.array([300, 500, 200])
    known = mx.generator(2).multivariate_hypergeometric(sizes, 100, method="marginals")
    assert mx.random_counts(sizes, 10, mx.generator(2))[0].tolist() == known.tolist()
