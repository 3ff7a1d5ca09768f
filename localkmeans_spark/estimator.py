"""The estimator: parameters in, fitted model out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pyspark.ml.base import Estimator
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import DataFrame

from localkmeans_spark.accessors import LocalKMeansParams, fit_config, with_parameters
from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.columns import check_dataframe
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.fit.driver import fit_many
from localkmeans_spark.fit_multiple import check_maps, shared_fits
from localkmeans_spark.model import LocalKMeansModel, fitted_model
from localkmeans_spark.params import parameter_docs, signature
from localkmeans_spark.persistence import EstimatorReader, EstimatorWriter
from localkmeans_spark.progress import followed, is_listened_to, logged
from localkmeans_spark.records import FitResult
from localkmeans_spark.sweep import Sweep, checked_ks

if TYPE_CHECKING:
    from pyspark.ml._typing import ParamMap


@with_parameters("rows both fit", set_by="rows both fit")
class LocalKMeans(
    Estimator[LocalKMeansModel], LocalKMeansParams, MLWritable, MLReadable["LocalKMeans"]
):
    """K-means that exchanges centers once every few Lloyd iterations.

    It takes the parameters of :class:`pyspark.ml.clustering.KMeans` and runs where that runs: in
    pipelines, cross-validation and parameter maps. Each partition does ``localSteps`` Lloyd steps
    on its own rows, then all partitions exchange cluster sums. That needs about ``maxIter`` /
    ``localSteps`` passes of communication instead of ``maxIter``. Rows that partitions share
    unevenly do no harm: a round that makes the cost worse is taken back (``safeguard``), and once
    rounds gain little the fit goes on with plain Lloyd steps, so that with enough iterations the
    result is a fixed point as MLlib's is.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    uid : str
        Name of this estimator; its models carry it too.

    See Also
    --------
    LocalKMeansModel : Labels rows, measures cost, goes to MLlib and scikit-learn and back.

    Notes
    -----
    Every parameter has a setter and a getter (``setK``, ``getK``) and is checked when it is set,
    before any job runs.

    A fit reads its DataFrame once and keeps one copy in memory as blocks of numbers. The copy is
    released at the end. A DataFrame that you have cached stays cached.

    The same data in the same partitions with the same ``seed`` gives the same centers, bit for
    bit, on any number of cores. Without a ``seed`` every fit draws a fresh one
    (``model.getSeed()`` tells which), where MLlib uses one fixed for the Python process.

    ``localSteps=1`` is exactly the algorithm of MLlib and scikit-learn.

    With ``nInit`` > 1 the first restart is the fit of ``nInit=1``. After each round, from the
    eighth iteration on, the better half of the restarts stays; ``summary.restarts`` tells which
    were dropped, and when.

    With ``checkpointDir`` a fit that was cut short goes on after its last complete round when it is
    run again with the same parameters on the same rows in the same partitions, to the same bits. A
    checkpoint of another fit is left alone, and a warning says so.

    References
    ----------
    Vardhan, Zhu, Ghosh, Mazumdar: LocalKMeans, Algorithms 1 and 2.

    Examples
    --------
    Fit four points, look at the centers, label the points:

    >>> from pyspark.ml.linalg import Vectors
    >>> from localkmeans_spark import LocalKMeans, LocalKMeansModel
    >>> points = [[0.0, 0.0], [1.0, 1.0], [9.0, 8.0], [8.0, 9.0]]
    >>> df = spark.createDataFrame([(Vectors.dense(p),) for p in points], ["features"])
    >>> model = LocalKMeans(k=2, seed=1, canonicalOrder=True).fit(df)
    >>> model.clusterCenters()
    [array([0.5, 0.5]), array([8.5, 8.5])]
    >>> model.transform(df).show()
    +---------+----------+
    | features|prediction|
    +---------+----------+
    |[0.0,0.0]|         0|
    |[1.0,1.0]|         0|
    |[9.0,8.0]|         1|
    |[8.0,9.0]|         1|
    +---------+----------+

    The summary tells how the fit went:

    >>> summary = model.summary
    >>> summary.trainingCost, summary.clusterSizes, summary.converged
    (2.0, [2, 2], True)
    >>> list(summary.history.columns)[:4]
    ['round', 'iteration', 'local_steps', 'inertia']

    Numeric columns need no assembler, and the distance can be had along with the label:

    >>> people = spark.createDataFrame([(20, 1.0), (22, 2.0), (60, 9.0)], ["age", "visits"])
    >>> kmeans = LocalKMeans(k=2, featuresCols=["age", "visits"], distanceCol="distance", seed=1)
    >>> kmeans.fit(people).transform(people).columns
    ['age', 'visits', 'prediction', 'distance']

    Start from centers of your own, and weigh the rows:

    >>> weighted = spark.createDataFrame([([0.0], 3.0), ([4.0], 1.0), ([9.0], 1.0)], ["x", "w"])
    >>> kmeans = LocalKMeans(featuresCol="x", weightCol="w", initialCenters=[[0.0], [9.0]])
    >>> kmeans.fit(weighted).clusterCenters()
    [array([1.]), array([9.])]

    Several restarts, and several values of ``k``, in the same passes over the rows:

    >>> kmeans = LocalKMeans(nInit=3, seed=1)
    >>> models = kmeans.fit(df, [{kmeans.k: 1}, {kmeans.k: 2}])
    >>> [found.summary.trainingCost for found in models]
    [130.0, 2.0]
    >>> len(models[1].summary.restarts)
    3

    Save and load, on any file system Spark can write to:

    >>> path = temp_path + "/model"
    >>> model.write().overwrite().save(path)
    >>> loaded = LocalKMeansModel.load(path)
    >>> loaded.predict(Vectors.dense([8.0, 8.0])), loaded.summary.trainingCost
    (1, 2.0)

    Hand it to MLlib, or take one from there:

    >>> loaded.toMLlib().predict(Vectors.dense([8.0, 8.0]))
    1

    A value out of range is refused when it is set, with a word on what to do:

    >>> LocalKMeans(localSteps=0)
    Traceback (most recent call last):
        ...
    localkmeans_spark.errors.InvalidInputError: LocalKMeans: parameter 'localSteps' must be an \
integer >= 1, or "auto"; got 0. Use 1 for plain distributed Lloyd.
    """

    def __init__(self, **params: Any) -> None:
        signature().bind(self, **params)  # a TypeError for unknown names, as in any function
        super().__init__()
        self._set(**params)

    def setParams(self, **params: Any) -> LocalKMeans:
        """Set several parameters at once, named as in the constructor."""
        return self._set(**params)

    if not TYPE_CHECKING:  # the types are those of Estimator.fit

        def fit(self, dataset, params=None):
            """Fit a model, or one for each of several parameter maps.

            Parameters
            ----------
            dataset : DataFrame
            params : dict, or list or tuple of dict, optional
                Values that override this estimator's, by params of this instance (``kmeans.k``) or
                of the class (``LocalKMeans.k``).

            Returns
            -------
            LocalKMeansModel or list of LocalKMeansModel

            Raises
            ------
            InvalidInputError
                If a map holds params of another instance or class, which would change nothing.
            """
            self._check_map(params)
            return super().fit(dataset, params)

    def _fit(self, dataset: DataFrame) -> LocalKMeansModel:
        return _fit_together(_prepared([self], dataset), dataset)[0][0]

    def fitMultiple(
        self, dataset: DataFrame, paramMaps: Sequence[ParamMap]
    ) -> Iterator[tuple[int, LocalKMeansModel]]:
        """Fit a model for each of several parameter maps.

        Maps that differ only in what is done with the rows (``k``, ``seed``, ``initMode``,
        ``localSteps`` and the like) share one cached copy of the rows and advance side by side in
        the same Spark jobs; the models are those of single fits, bit for bit. Maps that ask for
        other rows (``featuresCol``, ``weightCol``, ``dtype`` and the like) are fitted apart.

        Parameters
        ----------
        dataset : DataFrame
        paramMaps : sequence of dict
            As ``ParamGridBuilder`` makes them; values override this estimator's.

        Returns
        -------
        iterator of (int, LocalKMeansModel)
            Each with the place of its map. It may be shared by threads, and abandoned.
        """
        check_maps(paramMaps, "LocalKMeans")
        for paramMap in paramMaps:
            self._check_map(paramMap)
        prepared = _prepared([self.copy(paramMap) for paramMap in paramMaps], dataset)

        def fit_group(members: list[int]) -> list[LocalKMeansModel]:
            return _fit_together([prepared[i] for i in members], dataset)[0]

        return shared_fits([(item.data, item.checkpoint_dir) for _, item in prepared], fit_group)

    def sweep(self, dataset: DataFrame, ks: Iterable[int] = range(2, 21)) -> Sweep:
        """Fit every k, measure each clustering, and say which k to take.

        All fits share one cached copy of the rows and the same Spark jobs; the models are those
        of single fits, bit for bit. The measures take two more passes for all k together.

        Parameters
        ----------
        dataset : DataFrame
        ks : iterable of int, default 2 to 20
            Numbers of clusters, each >= 1.

        Returns
        -------
        Sweep
            ``table`` with cost, silhouette, Calinski-Harabasz, Davies-Bouldin and agreement of
            each k; ``best_k`` and ``reason``; ``models``; ``plot()``.

        Raises
        ------
        InvalidInputError
            If ``ks`` holds no number, or ``initialCenters`` fixes k.

        Examples
        --------
        >>> from localkmeans_spark import LocalKMeans
        >>> rows = [([x + i / 10, y],) for x in (0.0, 9.0) for y in (0.0, 9.0) for i in range(5)]
        >>> df = spark.createDataFrame(rows, "features array<double>")
        >>> sweep = LocalKMeans(seed=1).sweep(df, ks=range(2, 6))
        >>> sweep.best_k
        4
        >>> best = sweep.table.set_index("k").loc[sweep.best_k]
        >>> print(f"{best.cost:.1f} {best.silhouette:.3f} {best.agreement:.1f}")
        0.4 0.999 1.0
        """
        sizes = checked_ks(ks)
        if self.getInitialCenters() is not None:
            raise invalid(
                "LocalKMeans", "parameter 'initialCenters'", "unset for a sweep, where k varies",
                Fact(f"{len(self.getInitialCenters())} centers"), "Call clear on it.",
            )  # fmt: skip
        # One seed for all, also where none was given.
        first = self.copy({self.getParam("seed"): fit_config(self).seed}) if sizes[1:] else self
        prepared = _prepared([first.copy({self.getParam("k"): k}) for k in sizes], dataset)
        models, results = _fit_together(prepared, dataset, with_measures=True)
        return Sweep(dict(zip(sizes, models, strict=True)), results)

    def write(self) -> EstimatorWriter:
        """Return a writer: ``kmeans.write().overwrite().save(path)``."""
        return EstimatorWriter(self)

    @classmethod
    def read(cls) -> EstimatorReader:
        """Return a reader: ``LocalKMeans.read().load(path)``."""
        return EstimatorReader(cls)  # type: ignore[arg-type]


def _prepared(
    estimators: Sequence[LocalKMeans], dataset: DataFrame
) -> list[tuple[LocalKMeans, FitConfig]]:
    """Return estimators with what they ask for; raise, before any job, where it cannot be done."""
    configs = [fit_config(estimator) for estimator in estimators]
    check_dataframe(dataset, "LocalKMeans")
    for estimator in estimators:
        estimator._check_new_columns(dataset)
    return list(zip(estimators, configs, strict=True))


def _fit_together(
    prepared: Sequence[tuple[LocalKMeans, FitConfig]],
    dataset: DataFrame,
    with_measures: bool = False,
) -> tuple[list[LocalKMeansModel], list[FitResult]]:
    """Fit, side by side, estimators that share their blocks."""
    verbose = any(estimator.getVerbose() for estimator, _ in prepared)
    with _told(verbose, max(config.max_iter for _, config in prepared)):
        results = fit_many(dataset, [config for _, config in prepared], with_measures)
    models = [
        fitted_model(estimator, result, dataset)
        for (estimator, _), result in zip(prepared, results, strict=True)
    ]
    return models, results


def _told(verbose: bool, max_iter: int) -> AbstractContextManager[None]:
    """Show how the fit gets on; on stderr unless the program has set up logging."""
    if not verbose:
        return nullcontext()
    if is_listened_to():
        return logged()
    return followed(
        "LocalKMeans", max_iter, lambda line: sys.stderr.write(f"LocalKMeans: {line}\n")
    )


LocalKMeans.__doc__ = (LocalKMeans.__doc__ or "").replace("{parameters}", parameter_docs())
LocalKMeans.__init__.__signature__ = signature()  # type: ignore[attr-defined]
