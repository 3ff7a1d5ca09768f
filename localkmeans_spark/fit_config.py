"""The estimator's parameters, read once and held against each other, as the engine's plain data."""

from __future__ import annotations

import secrets

import numpy as np

from localkmeans_spark.engine.config import DataConfig, FitConfig
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.fit_params import FitParams
from localkmeans_spark.params import check_directions


def fit_config(params: FitParams) -> FitConfig:
    """Read every parameter once; raise if two of them contradict each other."""
    params._check_features()
    k, centers = _clusters(params)
    seed = params.getSeed()
    # Short enough to type again. The generators want seeds >= 0; MLlib takes negative ones.
    drawn = secrets.randbits(32) if seed is None else seed % 2**64
    return FitConfig(
        k=k,
        init_mode=params.getInitMode() if centers is None else "given",
        init_steps=params.getInitSteps(),
        initial_centers=centers,
        local_steps=params.getLocalSteps(),
        max_iter=params.getMaxIter(),
        tol=params.getTol(),
        safeguard=params.getSafeguard(),
        canonical_order=params.getCanonicalOrder(),
        seed=drawn,
        seed_given=seed is not None,
        n_init=params.getNInit(),
        empty_clusters=params.getEmptyClusters(),
        checkpoint_dir=params.getCheckpointDir(),
        owner="LocalKMeans",
        data=DataConfig(
            features_col=params.getFeaturesCol(),
            features_cols=tuple(params.getFeaturesCols() or ()),
            weight_col=params.getWeightCol() or None,
            num_partitions=params.getNumPartitions(),
            dtype=params.getDtype(),
            handle_invalid=params.getHandleInvalid(),
            distance_measure=params.getDistanceMeasure(),
        ),
    )


def _clusters(params: FitParams) -> tuple[int, np.ndarray | None]:
    """Return k and the given initial centers, if any."""
    centers = params.getInitialCenters()
    k = params.getK()
    if centers is None:
        return k, None
    if not params.isSet(params.k):
        k = len(centers)
    if k != len(centers):
        raise invalid(
            "LocalKMeans",
            "parameter 'initialCenters'",
            f"an array of k={count_of(k, 'row')}",
            Fact(f"an array of shape {centers.shape}"),
            "Give one row for each cluster, or leave k unset.",
        )
    if params.getNInit() > 1:
        raise invalid(
            "LocalKMeans",
            "parameter 'nInit'",
            "1 with 'initialCenters': every restart would begin at them",
            params.getNInit(),
            "Leave one of the two unset.",
        )
    if params.getDistanceMeasure() == "cosine":
        check_directions("LocalKMeans", "parameter 'initialCenters'", centers)
    return k, centers
