"""What one fit is asked to do: plain, checked values, filled in by the estimator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from localkmeans_spark.params import PARAMETERS

# Shown in front of messages about a fit.
OWNER = "LocalKMeans"


@dataclass(frozen=True)
class DataConfig:
    """Where the rows come from and how they are kept: parameters of the same names, set.

    Attributes
    ----------
    features_cols : tuple of str
        Empty for the one column ``features_col``.
    num_partitions : int or None
        None keeps the DataFrame's own partitions.
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
    """What one fit does with the rows: parameters of the same names, set, and a few more.

    Attributes
    ----------
    init_mode : str
        Or ``"given"``, with ``initial_centers``.
    initial_centers : ndarray of shape (k, n_features), float64, or None
    seed_given : bool
        False when the user left the seed open; a checkpoint may then bring its own.
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
    data: DataConfig = field(default_factory=DataConfig)
