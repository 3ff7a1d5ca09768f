"""The fitted model: labels, distances, cost, and ways in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.ml.base import Model
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from localkmeans_spark import interop
from localkmeans_spark.accessors import LocalKMeansParams, with_parameters
from localkmeans_spark.config import DataConfig
from localkmeans_spark.data.columns import check_batch, check_dataframe, ingest_columns
from localkmeans_spark.data.workers import use_drivers_python
from localkmeans_spark.describe import Description, describe, nearest_of, no_rows
from localkmeans_spark.drift import Drift, drift_of
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.kernel.scale import factors_of
from localkmeans_spark.kernel.spherical import unit_centers
from localkmeans_spark.kernel.typical import origin_of
from localkmeans_spark.model_checks import checked_numbers, unusable_rows
from localkmeans_spark.new_columns import with_new_columns
from localkmeans_spark.params import NEW_COLUMNS, check_directions, checked
from localkmeans_spark.persistence import ModelReader, ModelWriter
from localkmeans_spark.predict import (
    FrameSender,
    allow_vector_columns,
    evaluate_scores,
    or_raise,
    raises_cleanly,
    row_matrix,
    scores,
)
from localkmeans_spark.records import FitRecord, FitResult, LocalKMeansEvaluation
from localkmeans_spark.scoring import ModelFrame, RowRule, invalid_rows, label_rows, wrong_width
from localkmeans_spark.spark_private import is_connect
from localkmeans_spark.summary import LocalKMeansSummary

if TYPE_CHECKING:
    from pyspark.ml._typing import ParamMap
    from pyspark.ml.clustering import KMeansModel
    from sklearn.cluster import KMeans as SklearnKMeans


@with_parameters("rows both", set_by="rows")
class LocalKMeansModel(LocalKMeansParams, Model, MLWritable, MLReadable["LocalKMeansModel"]):
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
    scales : array of shape (n_features,), optional
        Standard deviations, > 0, that features are divided by before rows and centers are compared
        (``standardize``); centers are in the rows' own units all the same.

    Attributes
    ----------
    scales : ndarray of shape (n_features,), float64, or None

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
        scales: Any = None,
    ) -> None:
        super().__init__()
        self.centers = checked_numbers(
            "centers", centers, "a (k, n_features) array of finite numbers"
        )
        self._set(k=len(self.centers), distanceMeasure=distanceMeasure)
        known = origin is not None
        checked(type(self).__name__, "dtype", dtype)
        frame_dtype = dtype if known else "float64"
        if distanceMeasure == "cosine":
            check_directions(type(self).__name__, "centers", self.centers)
            origin = np.zeros(self.centers.shape[1])
            self.frame = ModelFrame(unit_centers(self.centers), origin, frame_dtype, is_cosine=True)
        else:
            origin = self._checked_origin(origin) if known else origin_of(self.centers)
            self.frame = ModelFrame(self.centers, origin, frame_dtype)
        self.scales = None if scales is None else self._checked_scales(scales)
        if self.scales is not None:
            self._set(standardize=True)
            factors = factors_of(self.scales, frame_dtype)
            self.frame = self.frame._replace(centers=self.centers * factors, scales=self.scales)
        self._sender = FrameSender(self.frame)
        self._summary: LocalKMeansSummary | None = None

    def _checked_origin(self, origin: Any) -> np.ndarray:
        rule = f"an array of {self.numFeatures} finite numbers, one for each feature"
        return checked_numbers("origin", origin, rule, (self.numFeatures,))

    def _checked_scales(self, scales: Any) -> np.ndarray:
        rule = f"an array of {self.numFeatures} numbers > 0, one for each feature"
        found = checked_numbers("scales", scales, rule, (self.numFeatures,))
        if (found <= 0).any() or self.frame.is_cosine:
            fact = Fact("cosine distance" if self.frame.is_cosine else "numbers <= 0")
            raise invalid("LocalKMeansModel", "scales", rule, fact, "Leave them out.")
        return found

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
            rule, fact = "made by LocalKMeans.fit to have a summary", "one made from given centers"
            fix = "Use evaluate(df) for its cost and sizes on data."
            raise invalid("LocalKMeansModel", "the model", rule, Fact(fact), fix)
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
        rows, single = row_matrix(value)
        if rows.shape[1] != self.numFeatures:
            raise wrong_width("value", self.numFeatures, rows.shape[1])
        labels, _, usable = label_rows(rows, self.frame, with_costs=False)
        if usable is not None:
            raise unusable_rows(self.frame, int((~usable).sum()))
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

    def transform(self, dataset: DataFrame, params: ParamMap | None = None) -> DataFrame:
        """Add each row's cluster, and its distance where ``distanceCol`` is set.

        Raises
        ------
        InvalidInputError
            If ``params`` holds params of another instance or class, which would change nothing.
        """
        self._check_map(params)
        return super().transform(dataset, params)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        check_dataframe(dataset, "LocalKMeansModel")
        self._check_new_columns(dataset)
        handling, raises = self.getHandleInvalid(), raises_cleanly(dataset.sparkSession)
        on_invalid = {"error": "count" if raises else "raise"}.get(handling, "null")
        rule = self._row_rule(on_invalid, tells_width=raises)
        names = {name: self._value(name) for name in NEW_COLUMNS}
        column = self._scores(
            dataset, rule, names["distanceCol"] is not None, handling != "skip",
            with_all=any(names[name] for name in NEW_COLUMNS[2:]),
        )  # fmt: skip

        def checked(value: Column, label: Column) -> Column:
            return or_raise(value, label, rule, self.frame) if raises else value

        scored = (f"{self.uid}_scored", column)
        k, is_cosine = len(self.centers), self.frame.is_cosine
        return with_new_columns(dataset, scored, names, handling, k, is_cosine, checked)

    def describe(self, dataset: DataFrame, profile: Sequence[str] = (), n: int = 3) -> Description:
        """Say what the clusters are like, in the words of the table's columns.

        Parameters
        ----------
        dataset : DataFrame
        profile : sequence of str
            Columns that are no features (region, category, date), to be told by their most
            frequent values; dates by month.
        n : int
            Rows nearest each center, and farthest from it, to be shown.

        Returns
        -------
        Description
            Pandas tables ``clusters``, ``features``, ``rows`` and ``profile``.

        Notes
        -----
        A pass for the features (the 100 that differ most between centers), two for the rows, two
        for each profile: cache rows that are dear to make.
        """
        return describe(self, dataset, profile, n)

    def nearest(self, dataset: DataFrame, n: int) -> DataFrame:
        """Return the ``n`` rows nearest each center, in one pass.

        They come with the columns of ``transform``, ``rank`` from 1, and ``distance`` if
        ``distanceCol`` is unset.
        """
        return nearest_of(self, dataset, n)

    def drift(self, dataset: DataFrame) -> Drift:
        """Compare shares and distances by cluster with those of the fit, in one pass."""
        record, now = self.summary.record, self.evaluate(dataset)
        if not sum(now.clusterSizes):
            raise no_rows("LocalKMeansModel")
        return drift_of(record, now)

    def evaluate(self, dataset: DataFrame) -> LocalKMeansEvaluation:
        """Measure cost and sizes on data, in one pass.

        Rows count by ``weightCol`` if it is set. Rows with unusable features fail the evaluation
        if ``handleInvalid`` is "error"; otherwise they are left out and counted.

        Returns
        -------
        LocalKMeansEvaluation
        """
        check_dataframe(dataset, "LocalKMeansModel")
        fix = "Write the stream to a table first, or evaluate in foreachBatch."
        check_batch(dataset, "LocalKMeansModel", fix)
        weight, subject = F.lit(1.0), ""
        if self.getWeightCol():
            columns = ingest_columns(dataset, self._data_config(weighted=True), "LocalKMeansModel")
            weight, subject = columns.as_weight(), f"column '{self.getWeightCol()}' (weightCol)"
        rule = self._row_rule("null", tells_width=True)
        column = self._scores(dataset, rule, with_costs=True, deterministic=False)
        found = evaluate_scores(dataset, column, weight, rule, self.centers.shape, subject)
        if found.numSkipped and self.getHandleInvalid() == "error":
            seen = found.numSkipped + sum(found.clusterSizes)
            what = f"{found.numSkipped:,} of {count_of(seen, 'row')} that are not"
            raise invalid_rows(rule, self.frame, what)
        return found

    def _data_config(self, weighted: bool = False) -> DataConfig:
        return DataConfig(
            features_col=self.getFeaturesCol(),
            features_cols=tuple(self.getFeaturesCols() or ()),
            weight_col=self.getWeightCol() if weighted else None,
        )

    def _row_rule(self, on_invalid: str, tells_width: bool) -> RowRule:
        config = self._data_config()
        subject = f"column '{config.features_col}'"
        if config.features_cols:
            subject = f"columns {', '.join(config.features_cols)}"
        return RowRule(subject, on_invalid, tells_width)

    def _scores(
        self,
        dataset: DataFrame,
        rule: RowRule,
        with_costs: bool,
        deterministic: bool,
        with_all: bool = False,
    ) -> Column:
        """Check the features and return the column of labels, or of labels and more."""
        self._check_features()
        if (self.getDistanceMeasure() == "cosine") != self.frame.is_cosine:
            raise invalid(
                "LocalKMeansModel", "parameter 'distanceMeasure'",
                "the one the model was made with", self.getDistanceMeasure(),
                "Make LocalKMeansModel(centers, distanceMeasure=...) for another one.",
            )  # fmt: skip
        columns = ingest_columns(dataset, self._data_config(), "LocalKMeansModel")
        known = columns.n_features
        if known is not None and known != self.centers.shape[1]:
            raise wrong_width(rule.subject, self.centers.shape[1], known)
        allow_vector_columns(dataset)
        if not is_connect(dataset.sparkSession):
            use_drivers_python(dataset.sparkSession.sparkContext)
        frame = self._sender.on_workers(dataset.sparkSession)
        features = columns.as_features()
        return scores(features, columns.kind, frame, rule, with_costs, deterministic, with_all)

    def write(self) -> ModelWriter:
        """Return a writer: ``model.write().overwrite().save(path)``."""
        return ModelWriter(self)

    @classmethod
    def read(cls) -> ModelReader:
        """Return a reader: ``LocalKMeansModel.read().load(path)``."""
        return ModelReader(cls)  # type: ignore[arg-type]

    def toMLlib(self) -> KMeansModel:
        """Return MLlib's ``KMeansModel`` with the same centers and distance measure.

        Scala can load what it saves.
        """
        interop.check_unscaled(self.scales, "MLlib")
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
        interop.check_unscaled(self.scales, "scikit-learn")
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
    dtype = result.record.dtype
    model = LocalKMeansModel(result.centers, result.origin, dtype, measure, result.scales)
    model._resetUid(estimator.uid)
    estimator._copyValues(model)
    model._set(seed=result.record.seed)
    names = estimator.getFeaturesCol(), estimator.getPredictionCol()
    model._set_summary(result.record, *names, dataset)
    return model
