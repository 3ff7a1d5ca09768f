"""The paper's curves a second time, in plain NumPy without this library, against our CSV files.

Written from the paper alone: data, LocalKMeans++ by its definition (a partition, then a point in
it), Algorithm 1 row by row, the best matching at every step. Trials differ from ours, so means are
held together by their standard errors, for every curve of Figure 1 and of the appendix figure.
A standard error of curves with no error at all (Figure 1d) is 0 and says little.

Example: ``python -m benchmarks.paper_check --csv build/paper --trials 200 --figures 1a,1b``
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

STEPS = (1, 2, 3, 5, 10, 15, 30)
_T, _ALONE = 30, 0  # no local steps: no aggregation
_METHODS = {"L = 1": 1, "L = 2": 2, "L = 3": 3, "L = T/2": 15, "no aggregation": _ALONE}
_APPENDIX = {"L = 3": 3}


class Setting(NamedTuple):
    """One panel's line: K, m, n, d, sigma, where Lloyd begins, and the curves."""

    figure: str
    line: str
    sigma: float
    methods: dict[str, int]
    k: int = 10
    m: int = 20
    n: int = 200
    d: int = 100
    perturbed: bool = False


def settings() -> Iterator[Setting]:
    """Yield Figure 1's panels and the lines of the appendix figure."""
    for figure, sigma, perturbed in (
        ("1a", 0.3, False), ("1b", 0.15, False), ("1c", 0.3, True), ("1d", 0.15, True),
    ):  # fmt: skip
        yield Setting(figure, "", sigma, _METHODS, perturbed=perturbed)
    for r in (1.0, 1.5, 2.0, 3.01, 4.5, 6.02):
        sigma = 1.0 / (r * np.sqrt(1.0 + 9.0 * 100 / 4000))
        yield Setting("4a", f"r = {r:g}", sigma, _APPENDIX)
    for k in (2, 5, 10, 20, 40):
        yield Setting("4b", f"K = {k}", 0.3, _APPENDIX, k=k)
    for m in (10, 20, 50, 100, 200, 400):
        yield Setting("4c", f"m = {m}", 0.3, _APPENDIX, m=m, n=4000 // m)


def seed_centers(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    """LocalKMeans++: x of shape (m, n, d); a machine by its potential, then a row in it."""
    energy = np.ones(x.shape[:2])
    chosen: list[np.ndarray] = []
    while len(chosen) < k:
        own = energy.sum(axis=1)
        i = rng.choice(len(x), p=own / own.sum())
        j = rng.choice(x.shape[1], p=energy[i] / own[i])
        sq = ((x - x[i, j]) ** 2).sum(axis=2)
        energy = sq if not chosen else np.minimum(energy, sq)
        chosen.append(x[i, j])
    return np.array(chosen)


def matched(counts: np.ndarray) -> float:
    """Rows on the best matching of a (K, K) table of true and found clusters."""
    rows, columns = linear_sum_assignment(-counts)
    return float(counts[rows, columns].sum())


def curve(
    x: np.ndarray, z: np.ndarray, first: np.ndarray, local_steps: int, plain_mean: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1: A at every t, with one matching, and with a matching for each machine."""
    m, n, _ = x.shape
    k = len(first)
    server, own = first.copy(), np.repeat(first[None], m, axis=0)
    sizes = np.zeros((m, k))
    one, each = np.empty(_T), np.empty(_T)
    for t in range(_T):
        if local_steps and t and t % local_steps == 0:
            if plain_mean:
                server = own.mean(axis=0)
            else:
                total = sizes.sum(axis=0)[:, None]
                weighed = (sizes[:, :, None] * own).sum(axis=0)
                server = np.where(total > 0, weighed / np.maximum(total, 1.0), server)
            own = np.repeat(server[None], m, axis=0)
        sq = (own**2).sum(axis=2)[:, None, :] - 2.0 * x @ own.transpose(0, 2, 1)
        found = sq.argmin(axis=2)
        flat = (np.arange(m)[:, None] * k + z) * k + found
        counts = np.bincount(flat.ravel(), minlength=m * k * k).reshape(m, k, k)
        one[t] = 1.0 - matched(counts.sum(axis=0)) / (m * n)
        each[t] = 1.0 - sum(map(matched, counts)) / (m * n)
        member = np.eye(k)[found]
        sizes = member.sum(axis=1)
        sums = member.transpose(0, 2, 1) @ x
        filled = sizes[:, :, None] > 0
        own = np.where(filled, sums / np.maximum(sizes, 1.0)[:, :, None], own)
    return one, each


def curves(setting: Setting, trials: int, seed: int) -> dict[tuple[str, str], np.ndarray]:
    """Return (method, quantity) → A of every trial and step, shape (trials, T)."""
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        basis, _ = np.linalg.qr(rng.standard_normal((setting.d, setting.k)))
        truth = basis.T.copy()
        z = rng.integers(setting.k, size=(setting.m, setting.n))
        x = truth[z] + setting.sigma * rng.standard_normal((setting.m, setting.n, setting.d))
        if setting.perturbed:
            first = truth + 0.1 * rng.standard_normal(truth.shape)
        else:
            first = seed_centers(rng, x, setting.k)
        for name, steps in (setting.methods | {"L = 3, plain mean": 3}).items():
            one, each = curve(x, z, first, steps, name.endswith("plain mean"))
            found.setdefault((name, "A"), []).append(one)
            if steps == _ALONE:
                found.setdefault((name, "A_own"), []).append(each)
    return {key: np.array(rows) for key, rows in found.items()}


def compare(setting: Setting, folder: Path, trials: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield one row a curve and step: both means and their distance in standard errors."""
    table = pd.read_csv(folder / f"figure-{setting.figure}.csv").fillna({"line": ""})
    table = table[table["line"] == setting.line]
    for (method, quantity), theirs in curves(setting, trials, seed).items():
        mine = table[(table["method"] == method) & (table["quantity"] == quantity)].set_index("t")
        for t in STEPS:
            ours, se = mine.loc[t, "mean"], mine.loc[t, "se"]
            own_se = theirs[:, t - 1].std(ddof=1) / np.sqrt(trials)
            gap = ours - theirs[:, t - 1].mean()
            errors = gap / np.hypot(se, own_se) if gap else 0.0
            yield {"figure": setting.figure, "line": setting.line, "method": method,
                   "quantity": quantity, "t": t, "ours": ours,
                   "independent": theirs[:, t - 1].mean(), "errors": errors}  # fmt: skip


def main() -> None:
    """Compare and print what lies more than two standard errors apart."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--csv", type=Path, required=True, help="what reproduce_paper.py wrote")
    parser.add_argument("--figures", default="1a,1b,1c,1d,4a,4b,4c", help="(default: all)")
    parser.add_argument("--trials", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="(default: %(default)s)")
    options = parser.parse_args()
    chosen = [each for each in settings() if each.figure in options.figures.split(",")]
    rows = [
        row
        for place, setting in enumerate(chosen)
        for row in compare(setting, options.csv, options.trials, options.seed + place)
    ]
    table = pd.DataFrame(rows)
    far = table[table["errors"].abs() > 2.0]
    print(far.to_string(index=False, float_format="{:.5f}".format))
    for figure, part in table.groupby("figure"):
        beyond = int((part["errors"].abs() > 2.0).sum())
        print(f"figure {figure}: {beyond} of {len(part)} more than 2 standard errors apart, the "
              f"farthest {part['errors'].abs().max():.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
