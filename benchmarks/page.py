"""Write ``docs/BENCHMARKS.md`` and its pictures from ``benchmarks/results/*.json``.

Example: ``python -m benchmarks.page``
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import page_compare, page_growth, page_quality, page_targets

RESULTS = Path("benchmarks/results")
PAGE = Path("docs/BENCHMARKS.md")
PICTURES = "benchmarks"
Row = dict[str, Any]

_HEAD = """# Benchmarks

Written by `python -m benchmarks.page` from `benchmarks/results/*.json`: change those, not this.

Seconds belong to the machine they were measured on; ratios travel better. Every table names the
commit it was measured at. How to measure again is said at each.
"""


def load(folder: Path, pattern: str) -> list[Row]:
    """Read the JSON objects, one a line, of all files of that name, in the order of their names."""
    return [
        json.loads(line)
        for path in sorted(folder.glob(pattern))
        for line in path.read_text().splitlines()
        if line.strip()
    ]


def latest(rows: Iterable[Row]) -> list[Row]:
    """Keep the rows of the last commit measured (the one of the last line)."""
    rows = list(rows)
    return [row for row in rows if row["commit"] == rows[-1]["commit"]] if rows else []


def page(folder: Path) -> str:
    """Return the text of the page."""
    compared = load(folder, "compare-*.json")
    phases = load(folder, "phases.json")
    growth = load(folder, "growth.json")
    models = folder / "model.json"
    model = json.loads(models.read_text()) if models.exists() else None
    cached, seeding = load(folder, "cached-*.json"), latest(load(folder, "seeding.json"))
    steps = latest(load(folder, "local-steps.json"))
    transforms = load(folder, "transform.json")
    results = page_targets.Results(
        compared, cached, latest(phases), transforms, seeding, steps, model
    )
    parts = [
        _HEAD,
        page_compare.machine(compared or growth),
        page_targets.targets(results),
        page_compare.peers(compared),
        page_quality.cached(cached),
        page_quality.seeding(seeding),
        page_compare.where(phases),
        page_growth.growth(latest(row for row in growth if row["kind"] == "time")),
        page_growth.many_rows(latest(row for row in growth if row["kind"] == "rows")),
        page_growth.memory(latest(row for row in growth if row["kind"] == "memory")),
        page_growth.cost_model(model),
        page_growth.clusters(model),
        page_compare.local_steps(steps),
        page_compare.versions(compared, load(folder, "quick.json")),
    ]
    return "\n".join(part for part in parts if part)


def pictures(folder: Path, target: Path) -> None:
    """Draw the pictures that the page shows."""
    from benchmarks import page_pictures

    target.mkdir(parents=True, exist_ok=True)
    growth = load(folder, "growth.json")
    page_pictures.compare(load(folder, "compare-*.json"), target / "compare.png")
    page_pictures.growth(
        latest(row for row in growth if row["kind"] == "time"), target / "growth.png"
    )
    page_pictures.memory(
        latest(row for row in growth if row["kind"] == "memory"), target / "memory.png"
    )
    models = folder / "model.json"
    if models.exists():
        page_pictures.clusters(json.loads(models.read_text()), target / "clusters.png")


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="(default: %(default)s)")
    parser.add_argument("--page", type=Path, default=PAGE, help="(default: %(default)s)")
    options = parser.parse_args()
    options.page.write_text(page(options.results), encoding="utf-8")
    pictures(options.results, options.page.parent / PICTURES)


if __name__ == "__main__":
    main()
