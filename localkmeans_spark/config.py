"""What one fit is asked to do: plain, checked values, filled in by the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from localkmeans_spark.params import PARAMETERS
from localkmeans_spark.records import RoundRecord


@dataclass(frozen=True)
class DataConfig:
    """Where the rows come from and how they are kept.

    Attributes
    ----------
    features_col : str
        Name of a vector or numeric array column; ignored when ``features_cols`` is given.
    features_cols : tuple of str
        Numeric columns that together are the features; empty for ``features_col``.
    weight_col : str or None
    num_partitions : int or None
        None keeps the DataFrame's own partitions.
    dtype : str
        ``"float32"`` or ``"float64"``.
    handle_invalid : str
        ``"error"``, ``"skip"`` or ``"keep"`` for rows with null, NaN or infinite features
        (``"keep"`` leaves them out of the fit; predictions give them cluster k).
    distance_measure : str
        ``"euclidean"``, or ``"cosine"``: rows are scaled to length 1, and rows of zeros, which
        have no direction, fall under ``handle_invalid``.
    standardize : bool
        Divide features by their standard deviations.
    """

    features_col: str = PARAMETERS["featuresCol"].default
    features_cols: tuple[str, ...] = ()
    weight_col: str | None = None
    num_partitions: int | None = None
    dtype: str = PARAMETERS["dtype"].default
    handle_invalid: str = PARAMETERS["handleInvalid"].default
    distance_measure: str = PARAMETERS["distanceMeasure"].default
    standardize: bool = PARAMETERS["standardize"].default


@dataclass(frozen=True)
class FitConfig:
    """What one fit does with the rows.

    Attributes
    ----------
    k : int
    init_mode : str
        ``"k-means++"``, ``"local-k-means++"``, ``"k-means||"``, ``"random"``, or ``"given"`` with
        ``initial_centers``.
    init_steps : int
        Steps of ``k-means||``.
    initial_centers : ndarray of shape (k, n_features), float64, or None
    local_steps : int or "auto"
        L, Lloyd steps between two exchanges; "auto" chooses it by what rounds cost.
    max_iter : int
        T, Lloyd iterations.
    tol : float
        Converged when every center moved at most this far (Euclidean).
    safeguard : bool
    canonical_order : bool
        Number the clusters by size, largest first; equal sizes by coordinates, smallest first.
    seed : int
    seed_given : bool
        False when the user left the seed open; a checkpoint may then bring its own.
    n_init : int
        Restarts, of which the best is returned.
    empty_clusters : str
        ``"keep"`` the center of a cluster without a row, or ``"reseed"`` it.
    checkpoint_dir : str or None
        Where to keep the state of the fit after each round.
    owner : str
        Class name shown in error messages.
    on_round : callable or None
        Called with each finished :class:`RoundRecord` (progress).
    """

    k: int = PARAMETERS["k"].default
    init_mode: str = PARAMETERS["initMode"].default
    init_steps: int = PARAMETERS["initSteps"].default
    initial_centers: np.ndarray | None = None
    local_steps: int | str = PARAMETERS["localSteps"].default
    max_iter: int = PARAMETERS["maxIter"].default
    tol: float = PARAMETERS["tol"].default
    safeguard: bool = PARAMETERS["safeguard"].default
    canonical_order: bool = PARAMETERS["canonicalOrder"].default
    seed: int = 0
    seed_given: bool = True
    n_init: int = PARAMETERS["nInit"].default
    empty_clusters: str = PARAMETERS["emptyClusters"].default
    checkpoint_dir: str | None = None
    owner: str = "LocalKMeans"
    on_round: Callable[[RoundRecord], None] | None = None
    data: DataConfig = field(default_factory=DataConfig)
