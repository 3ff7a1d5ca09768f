"""The anchored rounds that docs/LOCAL_STEPS.md has figures of: the laws they are made for."""

import numpy as np
import pytest

from benchmarks.anchored import AnchoredRun, anchored_round, anchored_steps
from benchmarks.exchanges import run
from benchmarks.in_process import InProcessPartitions
from localkmeans_spark.fit.lloyd_run import Order
from localkmeans_spark.fit.requests import local_round

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 3)) + 2 * RNG.normal(size=(7, 3))[RNG.integers(7, size=900)]
LAYOUTS = {
    "random": np.array_split(X, 9),
    "sorted": np.array_split(X[np.argsort(X[:, 0])], 9),
    "uneven": [X[:1], X[1:4], X[4:400], X[400:]],
}


def exact(partitions, centers):
    order = Order(centers, 1)
    ((found, _),) = partitions.run([local_round(partitions.data, 1, order)])
    return found


def test_by_hand():
    # m0 = 1 and 10, G = 2 and 9; then the row at 5.4 is on the first center's side
    partitions = InProcessPartitions([np.array([[0.0], [2.0], [5.4], [14.6]])])
    anchor, centers = np.array([[1.0], [9.0]]), np.array([[2.0], [9.0]])
    frame = partitions.data.frame._replace(mean=np.zeros(1))
    moves, weights, inertia = anchored_steps(partitions.partitions[0], frame, anchor, centers, 1)
    np.testing.assert_array_equal(weights, [3, 1])
    # first: m = 7.4 / 3 and w0 / w = 2 / 3; second: m = 14.6 and w0 / w > 1
    expected = [[7.4 / 3 + 2 / 3 * (2 - 1)], [14.6 + (9 - 10)]]
    np.testing.assert_allclose(centers + moves / weights[:, None], expected)
    assert inertia == pytest.approx(2**2 + 0 + 3.4**2 + 5.6**2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fixed_point_of_lloyds_algorithm_does_not_move(layout):
    partitions = InProcessPartitions(LAYOUTS[layout])
    centers = X[:8] - partitions.data.frame.mean
    while (found := exact(partitions, centers)).center_shift > 0:
        centers = found.centers
    after = anchored_round(partitions, centers, centers, 5)
    assert after.centers.tobytes() == centers.tobytes()
    assert after.inertia == pytest.approx(found.inertia)


@pytest.mark.parametrize("groups", [[X], [X[:300] - 500, X[300:500], X[500:] + 500]])
def test_clusters_of_one_partition_move_as_on_one_machine(groups):
    partitions = InProcessPartitions(groups)
    anchor = np.concatenate([group[:3] for group in groups]) - partitions.data.frame.mean
    centers = expected = exact(partitions, anchor).centers
    for _ in range(4):
        expected = exact(partitions, expected).centers
    found = anchored_round(partitions, anchor, centers, 4)
    np.testing.assert_allclose(found.centers, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_best_cost_at_exchanges_falls_to_lloyds(layout):
    partitions = InProcessPartitions(LAYOUTS[layout])
    costs, state = run(partitions, X[:12], "anchored", 5, 100)
    assert isinstance(state, AnchoredRun) and "sAs" in state.kinds
    anchors = [cost for cost, after in zip(costs, state.kinds[1:], strict=False) if after == "A"]
    assert anchors == sorted(anchors, reverse=True)
    assert costs[-1] <= 1.05 * run(partitions, X[:12], "single", 1, 200)[0][-1]


def test_anchored_steps_that_raised_the_cost_are_taken_back():
    partitions = InProcessPartitions(np.array_split(X[np.argsort(X[:, 0])], 30))
    start = X[np.random.default_rng(3).choice(len(X), 12, replace=False)]
    costs, state = run(partitions, start, "anchored", 20, 150)
    pairs = zip(state.kinds, state.rounds[1:], strict=False)
    assert any(kind == "A" and after.reverted for kind, after in pairs), "the case is too easy"
    assert costs[-1] <= costs.min() * (1 + 1e-9)
