"""What a user sees about training."""

from __future__ import annotations

import html
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import DataFrame

from localkmeans_spark.data.column_names import quoted
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.records import FitRecord, RestartRecord, RoundRecord
from localkmeans_spark.svg import as_svg, draw_costs, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from localkmeans_spark.model import LocalKMeansModel


class LocalKMeansSummary:
    """What is known about a fit: MLlib's fields and more.

    It is saved, loaded and pickled with the model; only :attr:`predictions` and :attr:`cluster`
    need the training DataFrame itself and are gone after a load, also in a pickled or deep copy.

    Attributes
    ----------
    record : FitRecord
        Everything that was measured, as plain data.
    featuresCol, predictionCol : str
        Columns in :attr:`predictions`, as they were named when the model was fitted.
    """

    def __init__(
        self,
        record: FitRecord,
        featuresCol: str,
        predictionCol: str,
        training: tuple[LocalKMeansModel, DataFrame] | None = None,
    ) -> None:
        self.record = record
        self.featuresCol = featuresCol
        self.predictionCol = predictionCol
        self._training = training

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the training DataFrame: it cannot leave this driver, as in a saved model."""
        return {**self.__dict__, "_training": None}

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        n_init = len(self.record.restarts)
        restarts = f", best of {n_init} restarts" if n_init > 1 else ""
        return (
            f"LocalKMeansSummary: k={self.k}, trainingCost={self.trainingCost:.6g}, "
            f"numIter={self.numIter}, numRounds={self.numRounds}, {state}{restarts}"
        )

    def _repr_html_(self) -> str:
        """Show the fit in a notebook: a sentence and the picture of :meth:`plot`."""
        told = html.escape(repr(self).removeprefix("LocalKMeansSummary: "))
        try:
            figure = new_figure(7.2, 3.0)
        except ImportError:  # no matplotlib: the sentence alone
            return f"<p>{told}</p>"
        self.plot(figure.subplots())
        picture = as_svg(figure, "summary", "Cost at the start of each round")
        return f'<div style="max-width:46rem"><p>{told}</p>{picture}</div>'

    @property
    def k(self) -> int:
        """Number of clusters found (fewer than asked for when the data have too few rows)."""
        return self.record.k

    @property
    def clusterSizes(self) -> list[int]:
        """Rows in each cluster; those of weight 0 are not counted."""
        return list(self.record.cluster_sizes)

    @property
    def trainingCost(self) -> float:
        """Sum of weight times squared distance to the nearest center, exact for the centers.

        With cosine distance, of weight times 1 - cos, as in MLlib.
        """
        return self.record.inertia

    @property
    def numIter(self) -> int:
        """Lloyd iterations behind the centers."""
        return self.record.n_iter

    @property
    def numRounds(self) -> int:
        """Rounds run: each ends with one exchange of centers."""
        return self.record.n_rounds

    @property
    def reverts(self) -> int:
        """Rounds that were taken back: the cost had risen, or the partitions disagreed."""
        return self.record.reverts

    @property
    def converged(self) -> bool:
        """Whether the fit stopped because no center moved farther than ``tol``."""
        return self.record.converged

    @property
    def seed(self) -> int:
        """The seed used; giving it to another fit of the same data repeats the run."""
        return self.record.seed

    @property
    def bytesExchanged(self) -> int:
        """Bytes of centers and sums that all rounds sent, in both directions."""
        return self.record.bytes_exchanged

    @property
    def history(self) -> pd.DataFrame:
        """One row for each round (see ``RoundRecord`` for the columns)."""
        columns = [column.name for column in fields(RoundRecord)]
        return pd.DataFrame([asdict(row) for row in self.record.rounds], columns=columns)

    @property
    def restarts(self) -> pd.DataFrame:
        """One row for each restart (see ``RestartRecord`` for the columns)."""
        columns = [column.name for column in fields(RestartRecord)]
        table = pd.DataFrame([asdict(row) for row in self.record.restarts], columns=columns)
        return table.astype({"dropped": "Int64"})  # whole numbers, though some are missing

    @property
    def predictions(self) -> DataFrame:
        """The training data as the model transforms it."""
        if self._training is None:
            raise invalid(
                "LocalKMeansSummary",
                "predictions",
                "read from the model that fit returned",
                Fact("the summary of a loaded or pickled model"),
                "Call transform on the model with the training data.",
            )
        model, dataset = self._training
        if model.getWeightCol() and model.getHandleInvalid() == "error":
            # Unusable rows can only be ones of weight 0: the fit has seen the others.
            model = model.copy()
            model.setHandleInvalid("skip")
        return model.transform(dataset)

    @property
    def cluster(self) -> DataFrame:
        """The cluster number of each row of the training data, as a one-column DataFrame."""
        return self.predictions.select(quoted(self.predictionCol))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cost at the start of each round; rounds taken back are marked.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when missing.

        Returns
        -------
        Axes
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plot() draws with matplotlib: pip install matplotlib") from error
        if ax is None:
            _, ax = plt.subplots()
        draw_costs(ax, self.record)
        if self.reverts:
            ax.legend()
        ax.set_xlabel("round")
        ax.set_ylabel("cost at the start of the round")
        ax.set_title(f"LocalKMeans, k = {self.k}: cost {self.trainingCost:.6g}")
        ax.grid(alpha=0.3)
        return ax
