"""The committed curves against the paper's algorithms written again in plain NumPy.

Written from the paper alone: data, LocalKMeans++ by its definition (a machine, then a point on it),
Algorithm 1 row by row, the best matching at every step. Trials differ from ours, so means are held
together by their standard errors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment

TABLE = Path(__file__).resolve().parents[2] / "docs" / "paper" / "misclustering.csv"
METHODS = {"L = 1": 1, "L = 3": 3, "L = T/2": 15, "no aggregation": 0, "L = 3, plain mean": 3}
K, D, M, N, T = 10, 100, 20, 200, 30
TRIALS = 5


def _seeded(rng, x):
    energy, chosen = np.ones(x.shape[:2]), []
    while len(chosen) < K:
        own = energy.sum(axis=1)
        i = rng.choice(M, p=own / own.sum())
        j = rng.choice(N, p=energy[i] / own[i])
        sq = ((x - x[i, j]) ** 2).sum(axis=2)
        energy = sq if not chosen else np.minimum(energy, sq)
        chosen.append(x[i, j])
    return np.array(chosen)


def _curve(x, z, first, local_steps, plain_mean):
    server, own, sizes = first.copy(), np.repeat(first[None], M, axis=0), np.zeros((M, K))
    errors = np.empty(T)
    for t in range(T):
        if local_steps and t and t % local_steps == 0:
            if plain_mean:
                server = own.mean(axis=0)
            else:
                total = sizes.sum(axis=0)[:, None]
                weighed = (sizes[:, :, None] * own).sum(axis=0)
                server = np.where(total > 0, weighed / np.maximum(total, 1.0), server)
            own = np.repeat(server[None], M, axis=0)
        found = ((own**2).sum(axis=2)[:, None, :] - 2.0 * x @ own.transpose(0, 2, 1)).argmin(axis=2)
        counts = np.bincount((z * K + found).ravel(), minlength=K * K).reshape(K, K)
        errors[t] = 1.0 - counts[linear_sum_assignment(-counts)].sum() / (M * N)
        member = np.eye(K)[found]
        sizes = member.sum(axis=1)
        means = member.transpose(0, 2, 1) @ x / np.maximum(sizes, 1.0)[:, :, None]
        own = np.where(sizes[:, :, None] > 0, means, own)
    return errors


@pytest.mark.parametrize(
    ("figure", "sigma", "perturbed"), [("1a", 0.3, False), ("1b", 0.15, False), ("1c", 0.3, True)]
)
def test_the_committed_curves_are_those_of_plain_numpy(figure, sigma, perturbed):
    theirs = {name: [] for name in METHODS}
    for trial in range(TRIALS):
        rng = np.random.default_rng([7, trial])
        truth = np.linalg.qr(rng.standard_normal((D, K)))[0].T
        z = rng.integers(K, size=(M, N))
        x = truth[z] + sigma * rng.standard_normal((M, N, D))
        first = truth + 0.1 * rng.standard_normal(truth.shape) if perturbed else _seeded(rng, x)
        for name, steps in METHODS.items():
            theirs[name].append(_curve(x, z, first, steps, name.endswith("plain mean")))
    table = pd.read_csv(TABLE)
    table = table[(table["figure"] == figure) & (table["quantity"] == "A")]
    for name, curves in theirs.items():
        ours = table[table["method"] == name].set_index("t").loc[1:T]
        # Five trials say little about their spread; that of ours is better known.
        se = ours["std"] * np.sqrt(1 / TRIALS + 1 / ours["trials"])
        gap = np.mean(curves, axis=0) - ours["mean"]
        assert (gap.abs() <= 4.0 * se + 1e-9).all(), (name, (gap / se).abs().max())
