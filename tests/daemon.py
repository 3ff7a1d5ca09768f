"""Spark's daemon of Python workers, for the tests' sessions: workers start and end tasks sooner.

Spark's own collects garbage after every task, and each time looks at all that pandas, SciPy and
the library have made: 25 ms and more, half of what most tests took. Here what is left after a task
is not looked at again. And each of its workers compiles PySpark anew, from a zip archive: 0.5 s.
Here all take what the daemon imported. Measure speed without.
"""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

if __name__ == "__main__":
    # Then the installed one is found, which is compiled.
    sys.path[:] = [place for place in sys.path if not place.endswith("pyspark.zip")]

    import pyspark.worker  # noqa: F401
    from pyspark import daemon

    import localkmeans_spark.model  # noqa: F401

    daemon.gc = SimpleNamespace(collect=lambda: (gc.collect(), gc.freeze()))
    daemon.manager()
