"""One BLAS thread for the products of the driver: split among threads they round differently."""

from __future__ import annotations

import threading
from typing import Any

from threadpoolctl import threadpool_limits


class _OneBlasThread:
    """A context that fits in several threads may enter: the last one out lifts the limit.

    The limit is the process's: each of them putting back what it found would keep it for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = threadpool_limits(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.__exit__(*error)


one_blas_thread = _OneBlasThread()
