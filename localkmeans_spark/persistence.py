"""Estimators and models on disk: one JSON line and one Parquet table, on any Hadoop file system.

::

    path/metadata/   one line of JSON: class, parameters, format number, record of the fit
    path/data/       Parquet (name, row, values): centers, origin, or initial centers

The metadata is written last: a directory without it is a save that did not finish.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.ml.param import Params
from pyspark.ml.util import MLReader, MLWriter
from pyspark.sql import SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.engine.record import FitRecord
from localkmeans_spark.errors import Fact, invalid

# Raise it when older versions of the library could not read what is written.
FORMAT = 1
_ARRAYS = "name string, row int, values array<double>"
_PACKAGE = __name__.split(".", maxsplit=1)[0]


class _Writer(MLWriter):
    """Checks the path, as Spark would meet one that is none with a Java stack trace."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self._instance = instance

    def save(self, path: str) -> None:
        """Write to a path on any file system that Spark can write to."""
        super().save(checked_path(path, type(self._instance).__name__))


class ModelWriter(_Writer):
    """Writes a :class:`LocalKMeansModel`."""

    def saveImpl(self, path: str) -> None:
        """Write to a path that does not exist yet."""
        model = self._instance
        refuse_existing(self.sparkSession, path, type(model).__name__)
        arrays = {"centers": model.centers, "origin": model.frame.origin[None]}
        _write_arrays(self.sparkSession, path, arrays)
        extra: dict[str, Any] = {
            "numClusters": len(model.centers),
            "numFeatures": model.numFeatures,
            "frameDtype": model.frame.dtype,
        }
        if model.hasSummary:
            summary = model.summary
            extra["summary"] = {
                "featuresCol": summary.featuresCol,
                "predictionCol": summary.predictionCol,
                "record": summary.record.to_dict(),
            }
        _write_metadata(self.sparkSession, path, model, _set_values(model), extra)


class ModelReader(MLReader):
    """Reads a :class:`LocalKMeansModel`."""

    def __init__(self, cls: type) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        """Return the model saved at ``path``."""
        metadata = read_metadata(self.sparkSession, path, self._cls.__name__)
        arrays = _read_arrays(self.sparkSession, path)
        measure = metadata["paramMap"].get("distanceMeasure", "euclidean")
        model = self._cls(arrays["centers"], arrays["origin"][0], metadata["frameDtype"], measure)
        _restore(model, metadata)
        if "summary" in metadata:
            saved = metadata["summary"]
            record = FitRecord.from_dict(saved["record"])
            model._set_summary(record, saved["featuresCol"], saved["predictionCol"])
        return model


class EstimatorWriter(_Writer):
    """Writes a :class:`LocalKMeans`."""

    def saveImpl(self, path: str) -> None:
        """Write to a path that does not exist yet."""
        estimator = self._instance
        refuse_existing(self.sparkSession, path, type(estimator).__name__)
        values = _set_values(estimator)
        centers = values.pop("initialCenters", None)
        extra = {"hasInitialCenters": centers is not None}
        if centers is not None:
            _write_arrays(self.sparkSession, path, {"initialCenters": np.array(centers)})
        _write_metadata(self.sparkSession, path, estimator, values, extra)


class EstimatorReader(MLReader):
    """Reads a :class:`LocalKMeans`."""

    def __init__(self, cls: type) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        """Return the estimator saved at ``path``."""
        metadata = read_metadata(self.sparkSession, path, self._cls.__name__)
        estimator = self._cls()
        _restore(estimator, metadata)
        if metadata["hasInitialCenters"]:
            arrays = _read_arrays(self.sparkSession, path)
            estimator._set(initialCenters=arrays["initialCenters"])
        return estimator


def checked_path(path: Any, owner: str) -> str:
    """Return the path as text; raise if it is none."""
    text = str(path) if isinstance(path, str | os.PathLike) else ""
    if not text:
        raise invalid(owner, "the path", "text or a pathlib.Path", path, "Name a directory.")
    return text


def refuse_existing(session: SparkSession, path: str, owner: str) -> None:
    """Raise if something is at the path (``overwrite()`` has removed it by now)."""
    context: Any = session.sparkContext
    place = context._jvm.org.apache.hadoop.fs.Path(path)
    if place.getFileSystem(context._jsc.hadoopConfiguration()).exists(place):
        raise invalid(
            owner,
            "path",
            "a place where nothing is yet",
            path,
            "Use write().overwrite().save(path) to replace what is there.",
        )


def read_metadata(session: SparkSession, path: str, class_name: str) -> dict[str, Any]:
    """Read and check the metadata.

    Raises
    ------
    InvalidInputError
        If there is none, or it is another class's or a later format's.
    """
    path = checked_path(path, class_name)
    subject, rule = f"path '{path}'", f"a saved {class_name}"
    try:
        lines = session.read.text(f"{path}/metadata").collect()
        metadata: dict[str, Any] = json.loads(lines[0][0])
        saved_class = metadata["class"].rsplit(".", 1)
    except (AnalysisException, Py4JJavaError, IndexError, KeyError, ValueError):
        found = Fact("nothing that Spark saved")
        raise invalid(class_name, subject, rule, found, "Check the path.") from None
    if saved_class != [_PACKAGE, class_name]:
        fix = f"Load it with {saved_class[-1]}."
        if metadata["class"] == "org.apache.spark.ml.clustering.KMeansModel":
            fix = "Load it with pyspark.ml.clustering.KMeansModel and use fromMLlib."
        raise invalid(class_name, subject, rule, Fact(metadata["class"]), fix)
    if metadata["formatVersion"] > FORMAT:
        raise invalid(
            class_name,
            subject,
            f"saved in format {FORMAT} or earlier",
            Fact(f"format {metadata['formatVersion']}, of version {metadata['libraryVersion']}"),
            f"Update {_PACKAGE} (this is {__version__}).",
        )
    return metadata


def _set_values(instance: Params) -> dict[str, Any]:
    return {param.name: value for param, value in instance._paramMap.items()}


def _write_metadata(
    session: SparkSession,
    path: str,
    instance: Params,
    values: dict[str, Any],
    extra: dict[str, Any],
) -> None:
    defaults = {param.name: value for param, value in instance._defaultParamMap.items()}
    # The first six keys are what pyspark.ml itself reads, inside pipelines for example.
    metadata = {
        "class": f"{_PACKAGE}.{type(instance).__name__}",
        "timestamp": int(time.time() * 1000),
        "sparkVersion": session.version,
        "uid": instance.uid,
        "paramMap": values,
        "defaultParamMap": defaults,
        "formatVersion": FORMAT,
        "libraryVersion": __version__,
        **extra,
    }
    line = json.dumps(metadata)
    session.createDataFrame([(line,)], "value string").coalesce(1).write.text(f"{path}/metadata")


def _restore(instance: Any, metadata: dict[str, Any]) -> None:
    instance._resetUid(metadata["uid"])
    instance._setDefault(**metadata["defaultParamMap"])
    instance._set(**metadata["paramMap"])


def _write_arrays(session: SparkSession, path: str, arrays: dict[str, np.ndarray]) -> None:
    rows = [
        (name, index, row.tolist())
        for name, array in arrays.items()
        for index, row in enumerate(array)
    ]
    session.createDataFrame(rows, _ARRAYS).coalesce(1).write.parquet(f"{path}/data")


def _read_arrays(session: SparkSession, path: str) -> dict[str, np.ndarray]:
    found: dict[str, dict[int, list[float]]] = {}
    for name, index, values in session.read.schema(_ARRAYS).parquet(f"{path}/data").collect():
        found.setdefault(name, {})[index] = values
    return {
        name: np.array([rows[index] for index in sorted(rows)], dtype=np.float64)
        for name, rows in found.items()
    }
