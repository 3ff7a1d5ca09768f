"""What every round of a fit cost: arithmetic of the first step, of later ones, and the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localkmeans_spark.engine.rounds import SparkMachines


@contextmanager
def watched_rounds() -> Iterator[list[dict[str, float]]]:
    """Watch the rounds of fits in the block; the list grows by one entry a round.

    Each has ``steps``, ``seconds``, and of these ``outside`` (scheduling, moving data, merging),
    ``first`` and ``later`` (arithmetic of the first and of all later local steps).
    """
    run, seen = SparkMachines.round, []

    def watched(self: SparkMachines, orders: Any, description: str) -> Any:
        found = run(self, orders, description)
        for order, (_, traffic) in zip(orders, found, strict=True):
            seen.append(
                {"steps": order.local_steps, "seconds": traffic.seconds, **traffic.times._asdict()}
            )
        return found

    SparkMachines.round = watched  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        SparkMachines.round = run  # type: ignore[method-assign]
