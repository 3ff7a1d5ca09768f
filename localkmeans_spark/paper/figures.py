"""Which settings make up which figure of the paper, and the open choices measured beside them."""

from __future__ import annotations

from dataclasses import replace

from localkmeans_spark.paper.quantities import sigma_of_snr_two
from localkmeans_spark.paper.settings import (
    ALONE,
    HALF,
    PERTURBED,
    PLAIN_MEAN,
    Method,
    Setting,
)

LOW, HIGH = 0.3, 0.15
"""Noise of Figure 1: r = 3.01 and r = 6.02."""

PAPER_STEPS = 30
"""T of all figures; the paper does not say."""

_THREE = Method("L = 3", 3)


def _appendix(setting: Setting, line: str) -> Setting:
    return replace(setting, methods=(_THREE, PLAIN_MEAN), line=line)


def _by_snr() -> list[Setting]:
    settings = []
    for r in (1.0, 1.5, 2.0, 3.01, 4.5, 6.02):
        sigma = sigma_of_snr_two(r, 1.0, 100, 4000)
        settings.append(_appendix(Setting("4a", sigma), f"r = {r:g}"))
    return settings


def _by_clusters() -> list[Setting]:
    return [_appendix(Setting("4b", LOW, k=k), f"K = {k}") for k in (2, 5, 10, 20, 40)]


def _by_machines() -> list[Setting]:
    return [
        _appendix(Setting("4c", LOW, m=m, n=4000 // m), f"m = {m}")
        for m in (10, 20, 50, 100, 200, 400)
    ]


SYNTHETIC: dict[str, list[Setting]] = {
    "1a": [Setting("1a", LOW)],
    "1b": [Setting("1b", HIGH)],
    "1c": [Setting("1c", LOW, init=PERTURBED)],
    "1d": [Setting("1d", HIGH, init=PERTURBED)],
    "4a": _by_snr(),
    "4b": _by_clusters(),
    "4c": _by_machines(),
}

REAL = {"2": "A", "3": "objective"}
"""Figures on real data and the quantity each shows."""


def choices() -> list[Setting]:
    """Return what the paper leaves open, one setting a variant (figure name ``choices``)."""
    one, half = Method("L = 1", 1), Method("L = T/2", HALF)
    settings = [
        replace(Setting("choices", LOW), n_steps=t, methods=(one, half), line=f"T = {t}")
        for t in (20, 30, 60)
    ]
    settings += [
        replace(
            Setting("choices", LOW, init=PERTURBED, perturbation=p),
            methods=(one, half, ALONE),
            line=f"perturbation {p:g}",
        )
        for p in (0.02, 0.05, 0.1, 0.2, 0.3)
    ]
    settings += [
        replace(Setting("choices", sigma, power=power), methods=(one, _THREE), line=line)
        for sigma, r in ((LOW, "3.01"), (HIGH, "6.02"))
        for power, line in (
            (2, f"squared distance, r = {r}"),
            (1, f"plain distance, r = {r}"),
        )
    ]
    return settings
