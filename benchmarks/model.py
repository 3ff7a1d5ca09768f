"""What a fit costs: a model fitted to measured fits, checked on others, and taken to clusters.

Each phase is a sum of terms with non-negative rates: a fixed cost a job, a cost a task and a
machine, bytes moved, products, comparisons and sums by the row, and sums merged. The rates are
fitted to two thirds of the points that ``benchmarks.growth`` measured (relative errors) and
checked on the rest. ``benchmarks.clusters`` takes the model to clusters of other sizes.

Example: ``python -m benchmarks.model --json benchmarks/results/model.json``
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks.clusters import extrapolate
from localkmeans_spark.engine import blocks

TOLERANCE = 0.2
_SAMPLE_ROWS, _SAMPLE_BYTES = 20_000, 16 << 20
_QUANTITIES = ("n", "d", "k", "m", "local_steps")
PHASES = ("ingest", "seed", "iterate", "final")
Row = dict[str, Any]


class Size(NamedTuple):
    """What decides the cost of a fit."""

    n: float
    d: int
    k: int
    machines: int
    rounds: int
    steps: int
    passes: int
    cores: int

    @property
    def tasks(self) -> int:
        """Tasks of every job after ingest."""
        return min(self.machines, blocks._TASKS_PER_CORE * self.cores)

    @property
    def waves(self) -> float:
        """How often the busiest core's share exceeds an even one: 5 tasks on 2 cores take 3."""
        return math.ceil(self.tasks / self.cores) * self.cores / self.tasks

    @property
    def rows(self) -> float:
        """Rows that the busiest core handles."""
        return self.n / self.cores * self.waves


def _ingest(size: Size) -> dict[str, float]:
    return {
        "job": 1.0,
        "machine": size.machines / size.cores,
        "row": size.n / size.cores,
        "number read": size.n * size.d / size.cores,
    }


def _seed(size: Size) -> dict[str, float]:
    sample = min(_SAMPLE_ROWS, _SAMPLE_BYTES / (4 * size.d))
    trials = 2 * (2 + math.log(size.k))
    return {
        "job": float(size.passes),
        "machine": size.passes * size.machines / size.cores,
        "number moved": size.passes * size.rows * size.d,
        "row": size.passes * size.rows,
        "greedy choice": sample * size.d * trials * size.k,
        "step on the sample": sample * size.d * size.k,
    }


def _outside(size: Size) -> dict[str, float]:
    return {
        "job": float(size.rounds),
        "task": size.rounds * size.tasks / size.cores,
        "machine": size.rounds * size.machines / size.cores,
        "number moved": size.rounds * size.rows * size.d,
        "sum merged": size.rounds * size.machines * size.k * size.d,
    }


def _first(size: Size) -> dict[str, float]:
    return _kernel(size, size.rounds)


def _later(size: Size) -> dict[str, float]:
    return _kernel(size, size.steps - size.rounds)


def _kernel(size: Size, steps: int) -> dict[str, float]:
    rows = size.n / size.cores
    return {
        "machine": steps * size.machines / size.cores,
        "product": steps * rows * size.d * size.k,
        "comparison": steps * rows * size.k,
        "number": steps * rows * size.d,
        "row": steps * rows,
    }


def _final(size: Size) -> dict[str, float]:
    return {
        "job": 1.0,
        "machine": size.machines / size.cores,
        "number moved": size.rows * size.d,
        "product": size.rows * size.d * size.k,
        "comparison": size.rows * size.k,
    }


_TERMS: dict[str, Callable[[Size], dict[str, float]]] = {
    "ingest": _ingest, "seed": _seed, "outside": _outside, "first": _first, "later": _later,
    "final": _final,
}  # fmt: skip
_OF_ROUNDS = ("outside", "first", "later")
Rates = dict[str, dict[str, float]]


def size_of(row: Row) -> Size:
    """Read a measured fit."""
    return Size(
        row["n"], row["d"], row["k"], row["machines"], len(row["rounds"]),
        sum(each["steps"] for each in row["rounds"]), row["seeding_passes"], row["cores"],
    )  # fmt: skip


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return one row a point: the fastest of its repeats, phase by phase and round by round.

    What else a machine does only ever adds time.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in (*_QUANTITIES, "cores"))
        groups.setdefault(key, []).append(row)
    found = []
    for group in groups.values():
        seconds = {phase: min(row["seconds"][phase] for row in group) for phase in PHASES}
        alike = [row["rounds"] for row in group if len(row["rounds"]) == len(group[0]["rounds"])]
        rounds = [min(same, key=lambda each: each["seconds"]) for same in zip(*alike, strict=True)]
        found.append({**group[0], "seconds": seconds, "rounds": rounds})
    return found


def fit_rates(rows: list[Row]) -> Rates:
    """Fit every phase's rates to measured fits."""
    rates: Rates = {}
    for phase, terms in _TERMS.items():
        found, seconds = _observed(rows, phase, terms)
        names = list(found[0])
        design = np.array([[item[name] for name in names] for item in found])
        scale = design.max(axis=0)
        solved, _ = nnls(design / scale / seconds[:, None], np.ones(len(seconds)))
        rates[phase] = dict(zip(names, (solved / scale).tolist(), strict=True))
    return rates


def _observed(
    rows: list[Row], phase: str, terms: Callable[[Size], dict[str, float]]
) -> tuple[list[dict[str, float]], np.ndarray]:
    """Return amounts of work and seconds: of every round, or of another phase as a whole."""
    sizes, seconds = [], []
    for row in rows:
        size = size_of(row)
        if phase not in _OF_ROUNDS:
            sizes.append(size)
            seconds.append(row["seconds"][phase])
            continue
        for each in row["rounds"]:
            if each[phase] > 0:
                sizes.append(size._replace(rounds=1, steps=each["steps"]))
                seconds.append(each[phase])
    return [terms(size) for size in sizes], np.array(seconds)


def predict(rates: Rates, size: Size) -> dict[str, float]:
    """Return the seconds of each phase."""
    return {
        phase: sum(rates[phase][name] * amount for name, amount in terms(size).items())
        for phase, terms in _TERMS.items()
    }


def check(rates: Rates, rows: list[Row]) -> list[Row]:
    """Return predicted and measured seconds of each fit, and the relative error."""
    found = []
    for row in rows:
        predicted, measured = sum(predict(rates, size_of(row)).values()), _total(row)
        point = {name: row[name] for name in _QUANTITIES}
        found.append(
            {**point, "predicted_s": predicted, "measured_s": measured,
             "error": predicted / measured - 1.0}
        )  # fmt: skip
    return found


def _total(row: Row) -> float:
    return float(sum(row["seconds"][phase] for phase in PHASES))


def split(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the points to fit and the points held out.

    Held out are every other of those that differ from the base in all quantities, and every
    third point of a sweep but not its ends: a model is for sizes between those measured.
    """
    held_out = [row for row in rows if row["sweep"] == "mixed"][::2]
    for name in _QUANTITIES:
        sweep = sorted((row for row in rows if row["sweep"] == name), key=lambda row: row[name])
        held_out += sweep[1:-1:3]
    return [row for row in rows if row not in held_out], held_out


def main() -> None:
    """Fit, check, extrapolate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--growth", type=Path, default=Path("benchmarks/results/growth.json"))
    parser.add_argument("--json", type=Path, help="write the model here")
    options = parser.parse_args()
    lines = options.growth.read_text().splitlines()
    rows = merged(row for row in map(json.loads, lines) if row["kind"] == "time")
    known, held_out = split(rows)
    rates = fit_rates(known)
    checked = check(rates, held_out)
    for row in checked:
        print("{n:>9} x {d:>4} k={k:>4} m={m:>4} L={local_steps:>2} predicted {predicted_s:7.2f} s "
              "measured {measured_s:7.2f} s {error:+.0%}".format(**row))  # fmt: skip
    within = sum(abs(row["error"]) <= TOLERANCE for row in checked)
    print(f"{within} of {len(checked)} held-out fits within {TOLERANCE:.0%}")
    if options.json is not None:
        model = {"rates": rates, "held_out": checked, "fitted_to": len(known)}
        model |= {"clusters": extrapolate(rates)}
        options.json.write_text(json.dumps(model, indent=1) + "\n")


if __name__ == "__main__":
    main()
