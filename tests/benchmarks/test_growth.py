"""Slopes, lines and the cost model, on numbers whose answer is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks import clusters, model
from benchmarks.growth import SWEEPS, Point, log_slope, points, straight_line
from benchmarks.memory_bounds import FORMULAS, bounds


def test_slope_of_a_power_law():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    slope = log_slope(x, 3.0 * x**1.5)
    assert slope.slope == pytest.approx(1.5)
    assert slope.low == pytest.approx(1.5) and slope.high == pytest.approx(1.5)
    noisy = log_slope(x, 3.0 * x**1.5 * np.array([1.0, 1.2, 0.9, 1.1]))
    assert noisy.low < 1.5 < noisy.high


def test_straight_line_finds_the_fixed_cost():
    x = np.array([1.0, 10.0, 100.0])
    line = straight_line(x, 2.0 + 0.5 * x)
    assert (line.fixed, line.rate, line.r_squared) == pytest.approx((2.0, 0.5, 1.0))


def test_points_differ_from_the_base_in_one_quantity_or_are_mixed():
    base = Point()
    found = points(base, [*SWEEPS, "mixed"], largest=800_000)
    assert found[base] == "base"
    for point, sweep in found.items():
        differs = [name for name in Point._fields if getattr(point, name) != getattr(base, name)]
        if sweep not in ("base", "mixed"):
            assert differs == [sweep]
    assert "mixed" in found.values()
    assert max(point.n for point in points(base, ["n"], largest=100_000)) == base.n


def _rows():
    """Fits whose seconds follow the model exactly."""
    rates = {phase: {} for phase in model._TERMS}
    rates["ingest"] = {"job": 0.2, "number read": 1e-7}
    rates["outside"] = {"job": 0.1, "number moved": 1e-9}
    rates["first"] = {"product": 1e-10, "row": 1e-8}
    rates["later"] = {"product": 2e-11, "row": 1e-8}
    for n, d, k, m in itertools.product((1e4, 1e5, 1e6), (8, 64), (8, 128), (2, 8)):
        row = {"n": n, "d": d, "k": k, "m": m, "machines": m, "local_steps": 5, "cores": 2}
        row |= {"seeding_passes": 1, "sweep": "base", "rounds": []}
        for steps in (5, 1):
            size = model.size_of({**row, "rounds": [{"steps": steps}]})
            parts = {
                phase: sum(rate * model._TERMS[phase](size)[name] for name, rate in own.items())
                for phase, own in rates.items()
            }
            of_round = {phase: parts[phase] for phase in model._OF_ROUNDS}
            row["rounds"].append({"steps": steps, "seconds": sum(of_round.values()), **of_round})
        seconds = {phase: 0.05 + parts[phase] for phase in ("ingest", "seed", "final")}
        seconds["iterate"] = sum(each["seconds"] for each in row["rounds"])
        yield {**row, "seconds": seconds}


def test_model_recovers_what_made_the_figures():
    rows = list(_rows())
    checked = model.check(model.fit_rates(rows[::2]), rows[1::2])
    assert max(abs(row["error"]) for row in checked) < 0.02


def test_ends_of_a_sweep_are_never_held_out():
    rows = [{"sweep": "n", "n": n} for n in (1, 2, 3, 4, 5)] + [{"sweep": "mixed", "n": 9}]
    known, held_out = model.split(rows)
    assert {row["n"] for row in held_out} == {2, 9}
    assert {1, 5} <= {row["n"] for row in known}


def test_tree_is_taken_when_sums_are_many_and_spares_the_driver():
    cluster = clusters.Cluster(executors=100)
    assert clusters.tree(12, 1e3, cluster)[1] == [12]
    seconds, counts = clusters.tree(1200, 1e6, cluster)
    assert counts[0] == 1200 and counts[-1] < 40
    assert seconds < 1200 * 1e6 * (1 / cluster.network + 1 / cluster.merge)


def test_limit_is_where_most_of_a_round_is_not_on_the_executors():
    step = {"product": 1e-11, "comparison": 1e-10, "number": 0.0, "row": 1e-8}
    rates = {"outside": {"job": 0.1, "number moved": 1e-10}, "first": step, "later": step}
    load = clusters.Load(1e8, 16, 100)
    found = clusters.limit(rates, load)
    assert found["share_at_driver"] > 0.5
    fewer = clusters.round_seconds(rates, load, clusters.Cluster(int(found["executors"] / 1.2)))
    assert fewer["share_at_driver"] <= 0.5


def test_memory_of_the_driver_does_not_grow_with_rows():
    size = {"d": 8, "k": 8, "machines": 8, "heap_bytes": 1}
    small, large = ({"n": n, **size} for n in (10_000, 10_000_000))
    assert bounds(small)["driver"] == bounds(large)["driver"]
    assert bounds(small)["worker"] < bounds(large)["worker"]
    assert set(FORMULAS) == set(bounds(small))
