"""K-means for Apache Spark that exchanges centers once every few Lloyd iterations.

>>> from localkmeans_spark import LocalKMeans, LocalKMeansModel
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localkmeans_spark._version import __version__
from localkmeans_spark.errors import InvalidInputError

if TYPE_CHECKING:
    from localkmeans_spark.estimator import LocalKMeans
    from localkmeans_spark.model import LocalKMeansModel
    from localkmeans_spark.records import FitRecord, LocalKMeansEvaluation
    from localkmeans_spark.summary import LocalKMeansSummary
    from localkmeans_spark.sweep import Sweep

__all__ = [
    "FitRecord",
    "InvalidInputError",
    "LocalKMeans",
    "LocalKMeansEvaluation",
    "LocalKMeansModel",
    "LocalKMeansSummary",
    "Sweep",
    "__version__",
]

_HOMES = {
    "LocalKMeans": "estimator",
    "LocalKMeansModel": "model",
    "LocalKMeansSummary": "summary",
    "LocalKMeansEvaluation": "records",
    "FitRecord": "records",
    "Sweep": "sweep",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: Python workers need the kernel alone, not all of pyspark.ml.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from localkmeans_spark.libraries import check_libraries

    check_libraries()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
