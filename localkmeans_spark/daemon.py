"""Spark's daemon of Python workers, which imports what they need before it forks them.

On Linux, the command line has it on one machine. Other sessions set ``spark.python.daemon.module``
to ``localkmeans_spark.daemon`` before they start, where the workers' Python has this package.
Spark's own daemon leaves importing to the workers: each compiles PySpark anew, from a zip archive,
and looks for garbage among all that it imported after every task.
"""

import gc
import sys
from contextlib import suppress
from pathlib import Path


def _import_pyspark_unpacked() -> None:
    """Import PySpark from where it lies beside Spark's archive, if it does, in the same version.

    In Spark's own distribution that is the folder ``python`` above ``python/lib/pyspark.zip``, from
    PyPI the one that holds ``pyspark/python/lib/pyspark.zip``.
    """
    for archive in [place for place in sys.path if place.endswith("python/lib/pyspark.zip")]:
        above = Path(archive).parents
        for folder in (above[1], above[3]):
            if (folder / "pyspark" / "worker.py").is_file():
                sys.path.remove(archive)
                sys.path.insert(0, str(folder))
                import pyspark  # noqa: F401

                sys.path.remove(str(folder))
                return


if __name__ == "__main__":
    _import_pyspark_unpacked()
    import pyspark.worker  # noqa: F401
    from pyspark import daemon

    with suppress(ImportError):  # told by the worker that misses it
        import localkmeans_spark.model  # noqa: F401
    gc.freeze()
    daemon.manager()
