"""What the safeguard's thresholds do: final cost against plain Lloyd, and exchanges used.

On several data sets, laid out over 10 and 50 machines at random, sorted by label, and unevenly
(Dirichlet(0.5) over machines a label): LocalKMeans with L = 5 and T = 20 from k-means++ seeds,
against L = 1 from the same seeds. Simulated in one process with the engine's own functions.

Example: ``python -m benchmarks.safeguard --data ../shared/data``
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_digits

from benchmarks.about import parser
from benchmarks.in_process import fit_in_process
from localkmeans_spark.config import FitConfig
from localkmeans_spark.fit import lloyd_run

_ROWS = 10_000
# Disagreement at which a round is taken back; what share of the spread is too little to gain.
_SETTINGS: dict[str, tuple[float, float | None]] = {
    "inertia only": (np.inf, 0.0),
    "and disagreement": (0.25, 0.0),
    "and a tenth of the spread": (0.25, 0.1),
    "and half of the spread": (0.25, 0.5),
    "and the spread": (0.25, 1.0),
    "and the bias (the default)": (0.25, None),
}
_CLUSTERS = {"pendigits": 10, "letter": 26, "usps": 10, "sipu_s2": 15, "sipu_unbalance": 8}


def data_sets(folder: Path | None) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Return name → (rows, labels, k), at most 10,000 rows each."""
    rng = np.random.default_rng(0)
    x, y = load_digits(return_X_y=True)
    found = {"digits": (x, y, 10)}
    true = rng.normal(size=(50, 20))
    y = rng.integers(0, 50, size=_ROWS)
    for name, noise in (("blobs apart", 0.2), ("blobs overlapping", 1.0)):
        found[name] = (true[y] + noise * rng.normal(size=(_ROWS, 20)), y, 50)
    for name, k in _CLUSTERS.items():
        if folder is None:
            break
        stored = np.load(folder / f"{name}.npz")
        kept = rng.permutation(len(stored["X"]))[:_ROWS]
        x = stored["X"][kept].astype(np.float64)
        found[name] = (x / x.std(), stored["y"][kept].astype(int), k)
    return found


def layout(kind: str, y: np.ndarray, m: int) -> list[np.ndarray]:
    """Return the row numbers of each machine."""
    rng = np.random.default_rng(0)
    if kind == "sorted":
        return np.array_split(np.argsort(y, kind="stable"), m)
    if kind == "random":
        return np.array_split(rng.permutation(len(y)), m)
    share = rng.dirichlet(np.full(m, 0.5), size=y.max() + 1)
    machine = np.array([rng.choice(m, p=share[label]) for label in y])
    return [rows for i in range(m) if len(rows := np.flatnonzero(machine == i))]


@contextmanager
def settings(disagreement: float, share: float | None) -> Iterator[None]:
    """Let the safeguard go by other thresholds; None stands for its own."""
    bias = lloyd_run._bias if share is None else lambda found: share * found.spread
    with (
        patch.object(lloyd_run, "_DISAGREEMENT", disagreement),
        patch.object(lloyd_run, "_bias", bias),
    ):
        yield


def main() -> None:
    """Run and print."""
    flags = parser(__doc__, seeds=3)
    flags.add_argument("--data", type=Path, help="folder with pendigits.npz and so on")
    options = flags.parse_args()
    rows = []
    for name, (x, y, k) in data_sets(options.data).items():
        for kind in ("random", "sorted", "uneven"):
            for m in (10, 50):
                parts = [x[of_part] for of_part in layout(kind, y, m)]
                for seed in range(options.seeds):
                    centers, _ = kmeans_plusplus(x, k, random_state=seed, n_local_trials=1)
                    config = FitConfig(k=k, initial_centers=centers, local_steps=1, tol=0.0)
                    plain, _ = fit_in_process(parts, config)
                    for label, thresholds in _SETTINGS.items():
                        with settings(*thresholds):
                            cost, run = fit_in_process(parts, replace(config, local_steps=5))
                        rows.append((kind, label, 100 * (cost / plain - 1), run.n_rounds))
        print(f"{name} done", flush=True)
    table = pd.DataFrame(rows, columns=["layout", "setting", "%", "rounds"])
    figures = {"%": ["mean", "median", "max"], "rounds": "mean"}
    told = table.groupby(["layout", "setting"]).agg(figures)
    print("cost above plain Lloyd's", told.to_string(float_format="%.3f"), sep="\n")


if __name__ == "__main__":
    main()
