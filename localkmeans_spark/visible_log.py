"""Progress of a fit for those who ask for it (``verbose``)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("localkmeans_spark")


@contextmanager
def visible_log(verbose: bool) -> Iterator[None]:
    """Let the library's progress lines through; to stderr unless the program logs elsewhere."""
    if not verbose:
        yield
        return
    level = logger.level
    handler = None if logger.hasHandlers() else logging.StreamHandler(sys.stderr)
    if handler is not None:
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)
