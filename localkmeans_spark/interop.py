"""Other libraries' k-means models ↔ centers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.kernel.differences import sq_gaps
from localkmeans_spark.spark_private import mllib_kmeans

if TYPE_CHECKING:
    from pyspark.ml.clustering import KMeansModel
    from sklearn.cluster import KMeans as SklearnKMeans


def to_mllib(
    centers: np.ndarray, columns: dict[str, str], measure: str = "euclidean"
) -> KMeansModel:
    """Build MLlib's model with these centers.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features)
    columns : dict
        Values for ``featuresCol`` and ``predictionCol``.
    measure : str
        ``distanceMeasure``.

    Notes
    -----
    Uses the JVM's own constructors, so nothing is written to disk; needs a classic session.
    """
    model: KMeansModel = mllib_kmeans(centers, measure)
    model._set(k=len(centers), distanceMeasure=measure, **columns)
    return model


def check_unscaled(scales: np.ndarray | None, library: str) -> None:
    """Raise if a model divides features first: other libraries' models have no place for that."""
    if scales is not None:
        raise invalid(
            "LocalKMeansModel", f"the model for {library}", "of a fit without standardize",
            Fact("standardize=True"), "Put a StandardScaler before a fit without standardize.",
        )  # fmt: skip


def check_mllib(model: Any, owner: str) -> None:
    """Raise unless this is MLlib's fitted k-means of the DataFrame interface."""
    from pyspark.ml.clustering import BisectingKMeansModel, KMeansModel

    if isinstance(model, BisectingKMeansModel):
        raise invalid(
            owner, "MLlib's model", "a pyspark.ml.clustering.KMeansModel",
            Fact("a value of type BisectingKMeansModel, whose predict goes down a tree of centers "
                 "and may not end at the nearest"),
            "For labels by the nearest center make LocalKMeansModel(model.clusterCenters()).",
        )  # fmt: skip
    if not isinstance(model, KMeansModel):
        raise invalid(
            owner, "MLlib's model", "a pyspark.ml.clustering.KMeansModel",
            Fact(f"a value of type {type(model).__name__}"),
            "Give what pyspark.ml.clustering.KMeans.fit returns, or make a model from an array of "
            "centers.",
        )  # fmt: skip


def to_sklearn(
    centers: np.ndarray, inertia: float = float("nan"), n_iter: int = 0
) -> SklearnKMeans:
    """Build scikit-learn's fitted KMeans with these centers (it has no ``labels_``).

    Warns of centers so far from 0 that scikit-learn, which takes nothing off, mixes up rows.
    """
    try:
        from sklearn.cluster import KMeans as SklearnKMeans
    except ImportError as error:
        raise ImportError("toSklearn() needs scikit-learn: pip install scikit-learn") from error
    k = len(centers)
    if k > 1:
        sq_norm, sq_gap = np.square(centers).sum(axis=1).max(), sq_gaps(centers).min()
        # Products leave fewer than three digits of the gap.
        if 0 < sq_gap < 1e3 * np.finfo(np.float64).eps * sq_norm:
            warnings.warn(
                f"LocalKMeansModel: centers lie up to {sq_norm**0.5:.2g} from 0 and "
                f"{sq_gap**0.5:.2g} apart: scikit-learn's predict may give rows between them other "
                "labels than transform. Fit rows less their middle to avoid it.",
                stacklevel=3,
            )
    estimator = SklearnKMeans(n_clusters=k, init=centers, n_init=1, max_iter=1)
    with warnings.catch_warnings():
        # Fitting it to its own centers sets everything predict needs; equal centers only warn.
        warnings.simplefilter("ignore")
        estimator.fit(centers)
    estimator.cluster_centers_ = centers.copy()
    del estimator.labels_
    estimator.inertia_, estimator.n_iter_ = inertia, n_iter
    return estimator


def centers_of_sklearn(estimator: Any, owner: str) -> np.ndarray:
    """Return the centers of a fitted scikit-learn KMeans (or MiniBatchKMeans)."""
    centers = getattr(estimator, "cluster_centers_", None)
    if centers is None:
        raise invalid(
            owner,
            "scikit-learn's estimator",
            "a fitted k-means",
            Fact(f"a value of type {type(estimator).__name__} without cluster_centers_"),
            "Call its fit first."
            if callable(getattr(estimator, "predict", None))
            else "Give what sklearn.cluster.KMeans.fit returns.",
        )
    return np.array(centers, dtype=np.float64)
