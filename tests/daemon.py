"""Spark's daemon of Python workers, for the tests' session: garbage is collected in less time.

Spark collects after every task, and each time looks at all that pandas, SciPy and the library
have made: 25 ms and more, half of what most tests took. Here what is left after a task is not
looked at again. Measure speed without.
"""

from __future__ import annotations

import gc
from types import SimpleNamespace

from pyspark import daemon

if __name__ == "__main__":
    daemon.gc = SimpleNamespace(collect=lambda: (gc.collect(), gc.freeze()))
    daemon.manager()
