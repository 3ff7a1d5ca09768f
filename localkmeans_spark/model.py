"""The fitted model: labels, distances, cost, and ways in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.ml.base import Model
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import DataFrame

from localkmeans_spark import interop
from localkmeans_spark.accessors import LocalKMeansParams
from localkmeans_spark.engine.checks import VALUE_RANGE
from localkmeans_spark.engine.ingest import origin_of
from localkmeans_spark.engine.record import FitRecord, FitResult
from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid
from localkmeans_spark.kernel.spherical import unit_centers
from localkmeans_spark.labelling import LabelsRows
from localkmeans_spark.params import check_directions, checked
from localkmeans_spark.persistence import ModelReader, ModelWriter
from localkmeans_spark.predict import FrameSender, row_matrix
from localkmeans_spark.real_numbers import real_array
from localkmeans_spark.scoring import Frame, label_rows, wrong_width
from localkmeans_spark.summary import LocalKMeansSummary

if TYPE_CHECKING:
    from pyspark.ml.clustering import KMeansModel
    from sklearn.cluster import KMeans as SklearnKMeans

_LARGEST = VALUE_RANGE["float64"][1]


class LocalKMeansModel(LabelsRows, Model, MLWritable, MLReadable["LocalKMeansModel"]):
    """Cluster centers, and what they say about rows.

    :meth:`LocalKMeans.fit` makes it; :meth:`load`, :meth:`fromMLlib` and :meth:`fromSklearn` do
    too, and so does the constructor from any array of centers.

    Parameters
    ----------
    centers : array of shape (k, n_features)
    origin : array of shape (n_features,), optional
    dtype : str, optional
        Frame and precision in which the fit kept its rows, so that they get the labels they had
        in the fit. Without an origin, rows are compared in float64.
    distanceMeasure : str, optional
        ``"euclidean"`` or ``"cosine"``.

    Notes
    -----
    ``transform`` takes batch and streaming DataFrames. Only the features reach the Python workers,
    in batches of ``spark.sql.execution.arrow.maxRecordsPerBatch`` rows; sparse vectors stay sparse.
    Lower it from 10,000 for dense rows of more than some 10,000 features.

    With cosine distance the labels are those of the Euclidean distance between directions, the
    distance is 1 - cos, and rows of zeros fall under ``handleInvalid``.

    Examples
    --------
    >>> from localkmeans_spark import LocalKMeansModel
    >>> model = LocalKMeansModel([[0.0, 0.0], [9.0, 8.0]])
    >>> model.predict([8.0, 8.0])
    1
    >>> df = spark.createDataFrame([([1.0, 0.0],), ([9.0, 9.0],)], ["features"])
    >>> model.setDistanceCol("distance").transform(df).show()
    +----------+----------+--------+
    |  features|prediction|distance|
    +----------+----------+--------+
    |[1.0, 0.0]|         0|     1.0|
    |[9.0, 9.0]|         1|     1.0|
    +----------+----------+--------+
    >>> model.evaluate(df).inertia
    2.0
    """

    def __init__(
        self,
        centers: Any,
        origin: np.ndarray | None = None,
        dtype: str = "float64",
        distanceMeasure: str = "euclidean",
    ) -> None:
        super().__init__()
        self.centers = _numbers("centers", centers, "a (k, n_features) array of finite numbers")
        self._set(k=len(self.centers), distanceMeasure=distanceMeasure)
        known = origin is not None
        checked(type(self).__name__, "dtype", dtype)
        frame_dtype = dtype if known else "float64"
        if distanceMeasure == "cosine":
            check_directions(type(self).__name__, "centers", self.centers)
            origin = np.zeros(self.centers.shape[1])
            self.frame = Frame(unit_centers(self.centers), origin, frame_dtype, is_cosine=True)
        else:
            origin = self._checked_origin(origin) if known else origin_of(self.centers)
            self.frame = Frame(self.centers, origin, frame_dtype)
        self._sender = FrameSender(self.frame)
        self._summary: LocalKMeansSummary | None = None

    def _checked_origin(self, origin: Any) -> np.ndarray:
        rule = f"an array of {self.numFeatures} finite numbers, one for each feature"
        return _numbers("origin", origin, rule, (self.numFeatures,))

    def __repr__(self) -> str:
        return (
            f"LocalKMeansModel: uid={self.uid}, k={len(self.centers)}, "
            f"distanceMeasure={self.getDistanceMeasure()}, numFeatures={self.numFeatures}"
        )

    def clusterCenters(self) -> list[np.ndarray]:
        """Return the centers, one array of numbers for each cluster."""
        return list(self.centers.copy())

    @property
    def numFeatures(self) -> int:
        """Number of features of a row."""
        return self.centers.shape[1]

    @property
    def hasSummary(self) -> bool:
        """Whether the model knows how it was fitted (also after a load)."""
        return self._summary is not None

    @property
    def summary(self) -> LocalKMeansSummary:
        """How the fit went: cost, sizes, history."""
        if self._summary is None:
            raise invalid(
                "LocalKMeansModel",
                "the model",
                "made by LocalKMeans.fit to have a summary",
                Fact("one made from given centers"),
                "Use evaluate(df) for its cost and sizes on data.",
            )
        return self._summary

    def predict(self, value: Any) -> int | np.ndarray:
        """Return the cluster of one row, or those of the rows of a matrix.

        Parameters
        ----------
        value : Vector, list, array or scipy matrix of shape (n_features,) or (n, n_features)

        Returns
        -------
        int, or ndarray of shape (n,), int32
        """
        rows, single = row_matrix(value, "LocalKMeansModel")
        if rows.shape[1] != self.numFeatures:
            raise wrong_width("LocalKMeansModel", "value", self.numFeatures, rows.shape[1])
        labels, _, usable = label_rows(rows, self.frame, with_costs=False)
        if usable is not None:
            raise _unusable(self.frame, int((~usable).sum()))
        return int(labels[0]) if single else labels

    def _set_summary(
        self,
        record: FitRecord,
        features_col: str,
        prediction_col: str,
        dataset: DataFrame | None = None,
    ) -> None:
        # The summary keeps a copy: renaming the model's columns later does not change it.
        training = None if dataset is None else (self.copy(), dataset)
        self._summary = LocalKMeansSummary(record, features_col, prediction_col, training)

    def write(self) -> ModelWriter:
        """Return a writer: ``model.write().overwrite().save(path)``."""
        return ModelWriter(self)

    @classmethod
    def read(cls) -> ModelReader:
        """Return a reader: ``LocalKMeansModel.read().load(path)``."""
        return ModelReader(cls)

    def toMLlib(self) -> KMeansModel:
        """Return MLlib's ``KMeansModel`` with the same centers and distance measure.

        Scala can load what it saves.
        """
        names = {"featuresCol": self.getFeaturesCol(), "predictionCol": self.getPredictionCol()}
        return interop.to_mllib(self.centers, names, self.getDistanceMeasure())

    @classmethod
    def fromMLlib(cls, model: KMeansModel) -> LocalKMeansModel:
        """Return a model with the centers, measure and column names of MLlib's ``KMeansModel``."""
        interop.check_mllib(model, cls.__name__)
        centers = np.array(model.clusterCenters(), dtype=np.float64)
        found = cls(centers, distanceMeasure=model.getDistanceMeasure())
        found._set(featuresCol=model.getFeaturesCol(), predictionCol=model.getPredictionCol())
        return found

    def toSklearn(self) -> SklearnKMeans:
        """Return a fitted scikit-learn ``KMeans`` with the same centers, for one machine.

        With cosine distance its centers have length 1, so its labels are ours; its ``inertia_`` is
        that of the rows scaled to length 1, twice the cosine cost.
        """
        centers = self.frame.centers
        if self._summary is None:
            return interop.to_sklearn(centers)
        inertia = self._summary.trainingCost * (2.0 if self.frame.is_cosine else 1.0)
        return interop.to_sklearn(centers, inertia, self._summary.numIter)

    @classmethod
    def fromSklearn(cls, estimator: Any) -> LocalKMeansModel:
        """Return a model with the centers of a fitted scikit-learn ``KMeans``."""
        return cls(interop.centers_of_sklearn(estimator, cls.__name__))


def fitted_model(
    estimator: LocalKMeansParams, result: FitResult, dataset: DataFrame
) -> LocalKMeansModel:
    """Make the model of a fit, with the estimator's name and parameters."""
    measure = result.record.distance_measure
    model = LocalKMeansModel(result.centers, result.origin, result.record.dtype, measure)
    model._resetUid(estimator.uid)
    estimator._copyValues(model)
    model._set(seed=result.record.seed)
    names = estimator.getFeaturesCol(), estimator.getPredictionCol()
    model._set_summary(result.record, *names, dataset)
    return model


def _unusable(frame: Frame, n_rows: int) -> InvalidInputError:
    """Build the error for rows of finite numbers that have no label all the same."""
    rows = count_of(n_rows, "row")
    if not frame.is_cosine:
        return invalid(
            "LocalKMeansModel", "value", f"free of {frame.too_far()}", Fact(f"{rows} with such"),
            "Rescale the features before the fit.",
        )  # fmt: skip
    return invalid(
        "LocalKMeansModel", "value", "different from 0 with distanceMeasure='cosine'",
        Fact(f"{rows} of zeros"), "A row of zeros has no direction.",
    )  # fmt: skip


def _numbers(
    subject: str, value: Any, rule: str, shape: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return a float64 copy of finite numbers of the given shape, or of any (k, n_features)."""
    try:
        numbers = real_array(value).astype(np.float64)
        found = f"an array of shape {numbers.shape}"
        if not np.isfinite(numbers).all():
            found += " with NaN or infinite numbers"
        elif np.abs(numbers).max(initial=0.0) > _LARGEST:
            found += f" with numbers beyond {_LARGEST:g}, whose squares do not fit"
        elif numbers.shape == shape or (shape is None and numbers.ndim == 2 and numbers.size):
            return numbers + 0.0  # -0.0 becomes 0.0
    except (TypeError, ValueError, OverflowError):
        found = f"a value of type {type(value).__name__}"
    fix = "Give one row of numbers for each cluster." if shape is None else "Leave it out."
    raise invalid("LocalKMeansModel", subject, rule, Fact(found), fix)
