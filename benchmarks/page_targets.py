"""The section of the page that holds targets against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.model import TOLERANCE
from benchmarks.page_compare import by_size, from_parquet, plain, table, title_of
from benchmarks.page_quality import SAME
from benchmarks.page_reasons import (
    DEAR_PRODUCT,
    LARGE_BYTES,
    OUTSIDE_SHARE,
    REASONS,
    Results,
    auto_by_best,
)

Row = dict[str, Any]

_BIG = (2_000_000, 64, 100)


class Target(NamedTuple):
    """One line of the table; ``kind`` finds the reason when it is missed."""

    kind: str
    what: str
    wanted: float
    found: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        """Whether what was found is what was wanted."""
        return self.found >= self.wanted if self.at_least else self.found <= self.wanted


def targets(results: Results) -> str:
    """Say which targets are met, and of those missed, where the time goes."""
    found = [
        *_against_peers(results.compared), *_transform(results.transforms),
        *_parts(results.phases), *_centers(results.seeding), *_auto(results.steps),
        *_model(results.model),
    ]  # fmt: skip
    if not found:
        return ""
    lines = [
        [item.what, f"{'≥' if item.at_least else '≤'} {item.wanted:g}", item.found,
         "met" if item.met else "**missed**"]
        for item in found
    ]  # fmt: skip
    missed = dict.fromkeys(item.kind for item in found if not item.met)
    reasons = [text for kind in missed if (text := REASONS[kind](results))]
    return (
        "## Targets\n\n"
        + table(["target", "wanted", "measured", ""], lines)
        + ("\nWhere the time goes, of those missed:\n\n" if reasons else "")
        + "".join(f"- {text}\n" for text in reasons)
    )


def _against_peers(rows: Sequence[Row]) -> Iterator[Target]:
    for size, found in by_size(plain(rows)).items():
        ours = from_parquet(next(row for row in found if row["system"] == "ours"))
        fitted = [row for row in found if "skipped" not in row]
        mllib = [from_parquet(row) for row in fitted if row["system"] == "mllib"]
        if mllib:
            what = f"MLlib's best / ours, Parquet to model, {title_of(size)}"
            yield Target("mllib", what, 20.0 if size == _BIG else 10.0, min(mllib) / ours)
        if size == _BIG:
            for row in fitted:
                if row["system"] == "sklearn":
                    what = f"scikit-learn / ours, Parquet to model, {title_of(size)}"
                    yield Target("sklearn", what, 2.0, from_parquet(row) / ours)
    for size, found in by_size(row for row in rows if row.get("given_centers")).items():
        for row in found:
            if row["system"] == "sklearn" and size == _BIG and "skipped" not in row:
                what = f"scikit-learn / ours, iterations from given centers, {title_of(size)}"
                yield Target("sklearn", what, 1.0, row["ratio_iterate"])


def _transform(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows[-1:]:
        best = {name: min(taken) for name, taken in row["seconds"].items()}
        size = title_of((row["rows"], row["d"], row["k"]))
        for name in ("ours, vectors", "ours, arrays"):
            what = f"MLlib's transform / ours, {size} ({name[6:]})"
            yield Target("transform", what, 10.0, best["mllib, vectors"] / best[name])


def _parts(rows: Sequence[Row]) -> Iterator[Target]:
    for row in rows:
        title, parts = title_of((row["n"], row["d"], row["k"])), row["parts"]
        is_large = 4 * row["n"] * row["d"] >= LARGE_BYTES
        if is_large:
            what = f"share of a round outside the kernel, L = 5, {title}"
            yield Target("round", what, OUTSIDE_SHARE, row["outside_share"], at_least=False)
        if row["k"] * row["d"] >= DEAR_PRODUCT:
            what = f"first local step / bare product, {title}"
            yield Target("step", what, 1.4, row["step_by_product"], at_least=False)
        if is_large and parts.get("its toArrow()"):
            ratio = parts["ingest of a cached DataFrame"] / parts["its toArrow()"]
            what = f"ingest / toArrow() of a cached DataFrame, {title}"
            yield Target("ingest", what, 2.0, ratio, at_least=False)


def _centers(rows: Sequence[Row]) -> Iterator[Target]:
    if not rows:
        return
    medians = [np.median(row["ratios"]["k-means++"]) for row in rows]
    what = f"data sets of {len(rows)}: cost ≤ scikit-learn's, median of the seeds"
    yield Target("seeding", what, len(rows), sum(m <= SAME for m in medians))
    best = [
        np.median(row["ratios"]["nInit=3"]) / min(row["ratios"]["scikit-learn"]) for row in rows
    ]
    what = f"data sets of {len(rows)}: nInit=3 ≤ scikit-learn's best of ten"
    yield Target("restarts", what, len(rows), sum(b <= SAME for b in best))


def _auto(rows: Sequence[Row]) -> Iterator[Target]:
    ratios = auto_by_best(rows)
    if ratios:
        what = "localSteps=auto / the best fixed L, time to 0.1 % (worst of the sizes)"
        yield Target("auto", what, 1.1, max(ratios), at_least=False)


def _model(model: Row | None) -> Iterator[Target]:
    if model is not None:
        errors = [abs(row["error"]) for row in model["held_out"]]
        what = f"cost model: fits it was not made from, of {len(errors)}, within {TOLERANCE:.0%}"
        yield Target("model", what, len(errors), sum(error <= TOLERANCE for error in errors))
