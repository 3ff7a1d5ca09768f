"""Estimators and models on disk: one JSON line and one Parquet table, on any Hadoop file system.

::

    path/metadata/   one line of JSON: class, parameters, format number, record of the fit
    path/data/       Parquet (name, row, values): centers, origin, scales, or initial centers

The metadata is written last: a directory without it is a save that did not finish.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyspark
from pyspark.errors import PySparkException
from pyspark.ml.param import Params
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter
from pyspark.sql import SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.records import FitRecord
from localkmeans_spark.saved_files import (
    ARRAYS,
    FORMAT,
    PACKAGE,
    SavedFiles,
    checked_path,
    is_replaceable,
    is_there,
    spark_cause,
)
from localkmeans_spark.spark_private import HadoopPath, Py4JError, is_connect

if TYPE_CHECKING:
    from localkmeans_spark.model import LocalKMeansModel


class _Writer(DefaultParamsWriter):
    """Checks the path, as Spark would meet one that is none with a Java stack trace."""

    instance: Any

    def save(self, path: str) -> None:
        """Write to a path on any file system that Spark can write to."""
        owner = type(self.instance).__name__
        path = checked_path(path, owner)
        session = self.sparkSession
        exists, is_saved = _what_is_at(session, path, owner)
        if exists and self.shouldOverwrite and not is_saved:
            raise invalid(
                owner,
                f"path '{path}'",
                "empty or a saved model or estimator to be overwritten",
                Fact("something else, or a save that was cut short, which is left alone"),
                "Choose another path, or remove what is there yourself.",
            )
        if exists and not self.shouldOverwrite:
            fix = "Use write().overwrite().save(path) to replace what is there."
            raise invalid(
                owner, "path", "a place where nothing is yet", path,
                fix if is_saved else "Choose another path, or remove what is there yourself.",
            )  # fmt: skip
        try:
            if is_connect(session):
                super().save(path)
            else:  # what was there stays until all is written
                HadoopPath(session, path).replace(self.saveImpl)
            return
        except (PySparkException, Py4JError) as error:
            cause = spark_cause(error)
        except OSError as error:
            cause = str(error)
        rule, fix = "a place that Spark can write to", "Check its space, and your rights there."
        raise invalid(owner, f"path '{path}'", rule, Fact(cause), fix)

    def _handleOverwrite(self, path: str) -> None:
        """Delete what is there; PySpark calls it for ``overwrite()`` on Spark Connect."""
        try:
            from pyspark.ml.connect.readwrite import RemoteMLWriter
        except ImportError:
            owner, fix = type(self.instance).__name__, "Save to a new path."
            found = Fact(f"Spark Connect with PySpark {pyspark.__version__}")
            raise invalid(owner, "overwrite()", "with PySpark >= 4.0", found, fix) from None
        RemoteMLWriter.handleOverwrite(path, True)


class ModelWriter(_Writer):
    """Writes a :class:`LocalKMeansModel`."""

    def saveImpl(self, path: str) -> None:
        """Write to a path that does not exist yet."""
        arrays, metadata = parts_of(self.instance)
        _write_arrays(self.sparkSession, path, arrays)
        _write_metadata(self.sparkSession, path, metadata)


class ModelReader(DefaultParamsReader):
    """Reads a :class:`LocalKMeansModel`."""

    def load(self, path: str) -> Any:
        """Return the model saved at ``path``."""
        files = SavedFiles(self.sparkSession, path, self.cls.__name__)
        metadata = files.metadata()
        is_scaled = bool(metadata.get("hasScales"))
        arrays = files.arrays("centers", "origin", *(["scales"] if is_scaled else []))
        with files.whole():
            return model_of(self.cls, metadata, arrays)


class EstimatorWriter(_Writer):
    """Writes a :class:`LocalKMeans`."""

    def saveImpl(self, path: str) -> None:
        """Write to a path that does not exist yet."""
        estimator = self.instance
        values = _set_values(estimator)
        centers = values.pop("initialCenters", None)
        extra = {"hasInitialCenters": centers is not None}
        if centers is not None:
            _write_arrays(self.sparkSession, path, {"initialCenters": np.array(centers)})
        _write_metadata(self.sparkSession, path, _metadata(estimator, values, extra))


class EstimatorReader(DefaultParamsReader):
    """Reads a :class:`LocalKMeans`."""

    def load(self, path: str) -> Any:
        """Return the estimator saved at ``path``."""
        files = SavedFiles(self.sparkSession, path, self.cls.__name__)
        metadata = files.metadata()
        with files.whole():
            estimator: Any = self.cls()
            _restore(estimator, metadata)
            has_centers = metadata["hasInitialCenters"]
        if has_centers:
            arrays = files.arrays("initialCenters")
            with files.whole():
                estimator._set(initialCenters=arrays["initialCenters"])
        return estimator


def parts_of(model: LocalKMeansModel) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return what is kept of a model: arrays, and metadata that can be written as JSON."""
    arrays = {"centers": model.centers, "origin": model.frame.origin[None]}
    if model.scales is not None:
        arrays["scales"] = model.scales[None]
    extra: dict[str, Any] = {
        "numClusters": len(model.centers),
        "numFeatures": model.numFeatures,
        "frameDtype": model.frame.dtype,
        "hasScales": model.scales is not None,
    }
    if model.hasSummary:
        summary = model.summary
        extra["summary"] = {
            "featuresCol": summary.featuresCol,
            "predictionCol": summary.predictionCol,
            "record": summary.record.to_dict(),
        }
    return arrays, _metadata(model, _set_values(model), extra)


def model_of(cls: Any, metadata: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the model of these parts, or raise an error if they do not fit together."""
    centers, shape = arrays["centers"], (metadata["numClusters"], metadata["numFeatures"])
    if centers.shape != shape:
        raise ValueError(f"centers of shape {centers.shape}, not {shape}")
    measure = metadata["paramMap"].get("distanceMeasure", "euclidean")
    scales = arrays["scales"][0] if metadata.get("hasScales") else None
    model = cls(centers, arrays["origin"][0], metadata["frameDtype"], measure, scales)
    _restore(model, metadata)
    if "summary" in metadata:
        saved = metadata["summary"]
        record = FitRecord.from_dict(saved["record"])
        model._set_summary(record, saved["featuresCol"], saved["predictionCol"])
    return model


def _what_is_at(session: SparkSession, path: str, owner: str) -> tuple[bool, bool]:
    """Whether something is at the path, and may be overwritten; raise if Spark cannot reach it."""
    try:
        exists = is_there(session, path)
        return exists, exists and is_replaceable(session, path)
    except OSError as error:
        rule, found = "on a file system that Spark can reach", Fact(str(error))
    raise invalid(owner, f"path '{path}'", rule, found, "Check the path.")


def _set_values(instance: Params) -> dict[str, Any]:
    return {param.name: value for param, value in instance._paramMap.items()}


def _metadata(instance: Params, values: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    defaults = {param.name: value for param, value in instance._defaultParamMap.items()}
    # The first six keys are what pyspark.ml itself reads, inside pipelines for example.
    return {
        "class": f"{PACKAGE}.{type(instance).__name__}",
        "timestamp": int(time.time() * 1000),
        "sparkVersion": pyspark.__version__,
        "uid": instance.uid,
        "paramMap": values,
        "defaultParamMap": defaults,
        "formatVersion": FORMAT,
        "libraryVersion": __version__,
        **extra,
    }


def _write_metadata(session: SparkSession, path: str, metadata: dict[str, Any]) -> None:
    line = json.dumps({**metadata, "sparkVersion": session.version})
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
    session.createDataFrame(rows, ARRAYS).coalesce(1).write.parquet(f"{path}/data")
