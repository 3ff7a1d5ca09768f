"""A network that answers late, simulated: every exchange with the machines takes longer.

For choosing local steps: what a round costs beside its arithmetic decides how many pay. The delay
falls into the jobs themselves, so all that a fit measures of its rounds sees it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localkmeans_spark.engine.blocks import Blocks


@contextmanager
def slow_network(latency: float) -> Iterator[None]:
    """Add ``latency`` seconds to every job after ingest, while the block lasts."""
    run = Blocks.run

    def late(*args: Any, **named: Any) -> Any:
        found = run(*args, **named)
        time.sleep(latency)
        return found

    Blocks.run = late  # type: ignore[method-assign]
    try:
        yield
    finally:
        Blocks.run = run  # type: ignore[method-assign]
