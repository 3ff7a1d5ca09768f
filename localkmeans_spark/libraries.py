"""The libraries that are needed, and one line at import when they are missing or too old.

``pip`` sees to the others, but PySpark comes from elsewhere on many computes, and a zip of this
library knows no dependencies at all.
"""

from __future__ import annotations

import re
from importlib import import_module

OLDEST = {
    "pyspark": "3.5",
    "numpy": "1.23.5",
    "scipy": "1.11.1",
    "pyarrow": "14.0.1",
    "pandas": "1.5.3",
    "threadpoolctl": "2.2",
}
_SPARK = "pip install 'localkmeans_spark[spark]'"


def check_libraries() -> None:
    """Raise unless all are there and new enough."""
    for name, oldest in OLDEST.items():
        fix = f"pip install '{name}>={oldest}'"
        if name == "pyspark":
            fix = f"{_SPARK} (Databricks has it; for Spark Connect alone pyspark-client does)"
        try:
            found = str(import_module(name).__version__)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            found = "none"
        if found == "none" or _numbers(found) < _numbers(oldest):
            raise ImportError(
                f"localkmeans_spark needs {name} {oldest} or newer; found {found}. Run: {fix}"
            ) from None


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
