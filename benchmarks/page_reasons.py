"""Why targets are missed: where the time goes, in the figures of the same results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.page_compare import by_size, from_parquet, plain, title_of
from benchmarks.page_quality import SAME

Row = dict[str, Any]

# Sizes that targets are about: multiplications a row, bytes of all rows; most that a round may
# spend outside the kernel.
DEAR_PRODUCT, LARGE_BYTES, OUTSIDE_SHARE = 4096, 500e6, 0.15


class Results(NamedTuple):
    """The measurements that targets are about; each may be empty."""

    compared: Sequence[Row] = ()
    cached: Sequence[Row] = ()
    phases: Sequence[Row] = ()
    transforms: Sequence[Row] = ()
    seeding: Sequence[Row] = ()
    steps: Sequence[Row] = ()
    model: Row | None = None


def auto_by_best(rows: Sequence[Row]) -> list[float]:
    """Return, by size and latency, the seconds of "auto" over those of the best fixed L."""
    groups: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        if row["seconds"]:
            key = row["n"], row["d"], row["k"], row["latency"]
            groups.setdefault(key, {})[row["local_steps"]] = row["seconds"]
    return [
        found["auto"] / min(value for step, value in found.items() if step != "auto")
        for found in groups.values()
        if "auto" in found and len(found) > 1
    ]


def three_by_best_of_ten(row: Row) -> float:
    """Return the cost with nInit=3 over the best of scikit-learn's."""
    return float(np.median(row["ratios"]["nInit=3"]) / min(row["ratios"]["scikit-learn"]))


def _why_mllib(results: Results) -> str:
    parts = []
    for size, found in by_size(plain(results.compared)).items():
        ours = next(row for row in found if row["system"] == "ours")
        parts.append(f"{title_of(size)}: {ours['read_s']:.1f} of {from_parquet(ours):.1f} s")
    text = (
        "**MLlib, Parquet to model**: a new Java process loads and compiles what it runs, and new "
        "Python workers import. Of ours' seconds, reading takes "
        f"{'; '.join(parts)}. `spark.read.parquet` alone is 1.5 s there, planning 0.5 s, the first "
        "job 2 s or more (400,000 × 64), which takes 0.4 s in a warm session."
    )
    warm = [
        f"{from_parquet(row) / from_parquet(found[0]):.1f} times ({title_of(size)})"
        for size, found in by_size(r for r in results.compared if r.get("warm_up")).items()
        for row in found
        if row["system"] == "mllib"
    ]
    if warm:
        text += f" The second fit of a session (`--warm-up`) is {', '.join(warm)} faster."
    cached = [
        f"{found['ratio']:.1f} times ({name[6:]}, {title_of((row['n'], row['d'], row['k']))})"
        for row in results.cached
        for name, found in row["fits"].items()
        if name.startswith("ours")
    ]
    if cached:
        text += f" Fits of cached data are {', '.join(cached)} faster than MLlib's."
    return text


def _why_sklearn(results: Results) -> str:
    return (
        "**scikit-learn**: it has the rows in its own memory; ours come from Spark's cache once "
        "a round, and a new session starts Java and workers first."
    )


def _why_transform(results: Results) -> str:
    row = results.transforms[-1]
    best = {name: min(taken) for name, taken in row["seconds"].items()}
    handed = best.get("arrays to Python")
    text = (
        f"**transform**: {row['rows']:,} rows take {best['ours, arrays']:.2f} s from arrays, "
        f"{best['ours, vectors']:.2f} s from vectors, whose struct is taken apart first."
    )
    if handed:
        ratio = best["mllib, vectors"] / handed
        text += (
            f" To send arrays to Python and do nothing takes {handed:.2f} s, {ratio:.1f} times "
            "less than MLlib: Spark writes rows as Arrow, number by number."
        )
    return text


def _why_step(results: Results) -> str:
    shares = []
    for row in results.phases:
        if row["k"] * row["d"] >= DEAR_PRODUCT:
            parts, title = row["parts"], title_of((row["n"], row["d"], row["k"]))
            product, rest = parts["product"], parts["comparison"] + parts["cluster sums"]
            shares.append(f"{title}: product {product:.3f} s, the two others {rest:.3f} s")
    return (
        "**first local step**: NumPy's argmax takes about as long as a third to a half of the "
        "product, and the cluster sums are kept in float64 (a sparse product of widened rows): "
        f"{'; '.join(shares)}. Compiled code could do both while the scores are in registers; "
        "this library has none."
    )


def _why_round(results: Results) -> str:
    shares = [
        f"{title_of((row['n'], row['d'], row['k']))}: scheduling {parts['scheduling']:.3f} s, "
        f"transport {parts['transport']:.3f} s, the whole round {parts['round of 5']:.3f} s"
        for row in results.phases
        if (parts := row["parts"]) and row["outside_share"] > OUTSIDE_SHARE
        and 4 * row["n"] * row["d"] >= LARGE_BYTES
    ]  # fmt: skip
    return (
        "**round outside the kernel**: all rows are taken from the JVM through a socket once a "
        f"round, and with few clusters little is done with them: {'; '.join(shares)}."
    )


def _why_ingest(results: Results) -> str:
    return "**ingest**: rows go to Python as Arrow and come back as blocks."


def _why_seeding(results: Results) -> str:
    above = [
        f"{row['data']} {np.median(row['ratios']['k-means++']):.4f}"
        for row in results.seeding
        if np.median(row["ratios"]["k-means++"]) > SAME
    ]
    return f"**seeding**: above scikit-learn's median: {', '.join(above)}."


def _why_restarts(results: Results) -> str:
    above = [
        f"{row['data']} {ratio:.4f}"
        for row in results.seeding
        if (ratio := np.median(row["ratios"]["nInit=3"]) / min(row["ratios"]["scikit-learn"]))
        > SAME
    ]
    return (
        f"**nInit=3**: above the best of ten of scikit-learn's fits: {', '.join(above)}. Three "
        "seeds against the luckiest of ten."
    )


def _why_auto(results: Results) -> str:
    ratios = sorted(auto_by_best(results.steps))
    return (
        f"**auto**: by size and latency {', '.join(f'{ratio:.2f}' for ratio in ratios)} of the "
        "best fixed L, which is known only afterwards. The machines stop the first round by "
        "themselves, when a step gains little: where one step is enough, the second tells so."
    )


def _why_model(results: Results) -> str:
    assert results.model is not None
    errors = [row["error"] for row in results.model["held_out"]]
    worst = max(errors, key=abs)
    return (
        f"**cost model**: the worst error is {worst:+.0%}; fits of a few tenths of a second vary "
        "by as much from one run to the next."
    )


REASONS = {
    "mllib": _why_mllib, "sklearn": _why_sklearn, "transform": _why_transform,
    "step": _why_step, "round": _why_round, "ingest": _why_ingest, "seeding": _why_seeding,
    "restarts": _why_restarts, "auto": _why_auto, "model": _why_model,
}  # fmt: skip
