"""``transform`` and ``evaluate`` of the model."""

from __future__ import annotations

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from localkmeans_spark.accessors import LocalKMeansParams, with_parameters
from localkmeans_spark.engine.columns import check_batch, check_dataframe, ingest_columns
from localkmeans_spark.engine.config import DataConfig
from localkmeans_spark.errors import count_of, invalid
from localkmeans_spark.evaluation import LocalKMeansEvaluation, evaluate_scores
from localkmeans_spark.predict import (
    FrameSender,
    allow_vector_columns,
    or_raise,
    raises_cleanly,
    scores,
)
from localkmeans_spark.scoring import Frame, RowRule, invalid_rows, wrong_width


@with_parameters("rows both", set_by="rows")
class LabelsRows(LocalKMeansParams):
    """What a model does with DataFrames. The model itself holds centers and frame."""

    centers: np.ndarray
    frame: Frame
    _sender: FrameSender

    def _transform(self, dataset: DataFrame) -> DataFrame:
        check_dataframe(dataset, "LocalKMeansModel")
        self._check_new_columns(dataset)
        handling, distance_col = self.getHandleInvalid(), self.getDistanceCol()
        scored = f"{self.uid}_scored"
        raises = raises_cleanly(dataset.sparkSession)
        on_invalid = {"error": "count" if raises else "raise"}.get(handling, "null")
        rule = self._row_rule(on_invalid, tells_width=raises)
        column = self._scores(dataset, rule, distance_col is not None, handling != "skip")
        result = dataset.withColumn(scored, column)
        found = F.col(scored if distance_col is None else f"{scored}.label")
        label, n_labels = found, len(self.centers)
        if handling == "skip":
            result = result.where(found.isNotNull())
        elif handling == "keep":
            label, n_labels = F.coalesce(found, F.lit(n_labels)), n_labels + 1

        def checked(value: Column) -> Column:
            # On every new column: Spark computes only those that are asked for.
            return or_raise(value, found, rule, self.frame) if raises else value

        # Metadata as MLlib writes it: an encoder after this stage knows the number of labels.
        nominal = {"ml_attr": {"type": "nominal", "num_vals": n_labels}}
        added = {self.getPredictionCol(): checked(label).alias("label", metadata=nominal)}
        if distance_col is not None:
            cost = F.col(f"{scored}.cost")
            distance = cost if self.frame.is_cosine else F.sqrt(cost)
            # What comes through pandas (PySpark before 4.1) has null for NaN.
            added[distance_col] = checked(F.coalesce(distance, F.lit(float("nan"))))
        return result.withColumns(added).drop(scored)

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
        return RowRule("LocalKMeansModel", subject, on_invalid, tells_width)

    def _scores(
        self, dataset: DataFrame, rule: RowRule, with_costs: bool, deterministic: bool
    ) -> Column:
        """Check the features and return the column of labels, or of labels and costs."""
        self._check_features()
        if (self.getDistanceMeasure() == "cosine") != self.frame.is_cosine:
            raise invalid(
                rule.owner,
                "parameter 'distanceMeasure'",
                "the one the model was made with",
                self.getDistanceMeasure(),
                "Make LocalKMeansModel(centers, distanceMeasure=...) for another one.",
            )
        columns = ingest_columns(dataset, self._data_config(), rule.owner)
        known = columns.n_features
        if known is not None and known != self.centers.shape[1]:
            raise wrong_width(rule.owner, rule.subject, self.centers.shape[1], known)
        allow_vector_columns(dataset)
        frame = self._sender.on_workers(dataset.sparkSession)
        features = columns.as_features()
        return scores(features, columns.kind, frame, rule, with_costs, deterministic)
