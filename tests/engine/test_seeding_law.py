"""The law of Algorithm 2: exact probabilities against many draws.

Drawing through Spark 10,000 times would take hours, so the partitions' own functions run here in
one process, under the same driver code; ``test_spark_draws_the_same_bits`` ties the two together.
Seeds are fixed, so the tests do not flake; the level says how unlikely a failure would have been
had they been drawn.
"""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from benchmarks.in_process import InProcessPartitions, result_of
from localkmeans_spark.config import FitConfig
from localkmeans_spark.fit import seeding
from localkmeans_spark.fit.partitions import open_partitions

from .frames import frame_of

DRAWS = 10_000
LEVEL = 1e-3
PARTS = [[[0.0, 0.0], [1.0, 0.0]], [[0.0, 2.0]], [[3.0, 1.0], [3.0, 3.0], [0.5, 0.5]]]
WEIGHTS = [[1.0, 2.0], [0.5], [1.0, 3.0, 1.5]]


def exact_law(weights):
    """Probability of every set of 3 rows under Algorithm 2."""
    x = np.concatenate(PARTS)
    w = np.ones(len(x)) if weights is None else np.concatenate(weights)
    law = {}
    for order in permutations(range(len(x)), 3):
        probability, nearest = 1.0, np.ones(len(x))
        for i, chosen in enumerate(order):
            mass = w * nearest
            probability *= mass[chosen] / mass.sum()
            sq = ((x - x[chosen]) ** 2).sum(axis=1)
            nearest = sq if i == 0 else np.minimum(nearest, sq)
        law[frozenset(order)] = law.get(frozenset(order), 0.0) + probability
    assert sum(law.values()) == pytest.approx(1.0)
    return law


@cache
def observed(draw, is_weighted):
    weights = WEIGHTS if is_weighted else None
    x = np.concatenate(PARTS)
    counts = {}
    passes = []
    partitions = InProcessPartitions(PARTS, weights, list(range(DRAWS)))
    for seed in range(DRAWS):
        found = draw(partitions, seed)
        rows = found.centers + partitions.data.frame.mean
        chosen = frozenset(((rows[:, None] - x) ** 2).sum(axis=2).argmin(axis=1).tolist())
        counts[chosen] = counts.get(chosen, 0) + 1
        passes.append(found.passes)
    return counts, passes


def follows(counts, law):
    subsets = list(law)
    assert set(counts) <= set(subsets)
    return chisquare([counts.get(s, 0) for s in subsets], [law[s] * DRAWS for s in subsets]).pvalue


def in_few_passes(partitions, seed):
    return result_of(
        seeding.seed_centers(partitions.data, 3, "local-k-means++", 2, seed), partitions
    )


@pytest.mark.parametrize("is_weighted", [False, True], ids=["plain", "weighted"])
def test_the_law_of_algorithm_2(is_weighted):
    counts, _ = observed(in_few_passes, is_weighted)
    assert follows(counts, exact_law(WEIGHTS if is_weighted else None)) > LEVEL


def test_the_law_holds_when_passes_run_out_of_candidates(monkeypatch):
    monkeypatch.setattr(seeding, "_LEAST_MISSING", 1)
    monkeypatch.setattr(seeding, "_CANDIDATES", 1)
    monkeypatch.setattr(seeding, "_FRUITLESS_PASSES", 1000)
    counts, passes = observed.__wrapped__(in_few_passes, False)
    assert np.mean(passes) > 2, "the case is too easy: candidates never run out"
    assert follows(counts, exact_law(None)) > LEVEL


def test_the_test_can_fail():
    # Draws by plain instead of squared distance are told apart.
    counts, _ = observed(in_few_passes, False)
    assert follows(counts, exact_law(WEIGHTS)) < 1e-12


def test_spark_draws_the_same_bits(spark):
    for seed in range(3):
        expected = in_few_passes(InProcessPartitions(PARTS, None, [seed]), seed).centers
        with open_partitions(frame_of(spark, PARTS), FitConfig(k=3), [seed], [3]) as partitions:
            found = in_few_passes(partitions, seed)
        np.testing.assert_array_equal(found.centers, expected)


@pytest.mark.parametrize(("k", "most"), [(10, 3), (100, 3), (1000, 4)])
def test_number_of_passes(k, most):
    rng = np.random.default_rng(k)
    true = rng.normal(size=(k, 8))
    x = true[rng.integers(0, k, size=20_000)] + 0.2 * rng.normal(size=(20_000, 8))
    partitions = InProcessPartitions(np.array_split(x, 4))
    found = result_of(seeding.seed_centers(partitions.data, k, "local-k-means++", 2, 0), partitions)
    assert len(np.unique(found.centers, axis=0)) == k
    assert found.passes <= most
