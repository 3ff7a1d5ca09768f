"""The estimator's parameters, read once and held against each other, as plain data for the fit."""

from __future__ import annotations

import re
import secrets
from dataclasses import fields

import numpy as np

from localkmeans_spark.accessors import LocalKMeansParams
from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.params import PARAMETERS, check_directions


def fit_config(params: LocalKMeansParams) -> FitConfig:
    """Read every parameter once; raise if two of them contradict each other."""
    params._check_features()
    k, centers = _clusters(params)
    seed: int | None = params.getSeed()
    # Short enough to type again. The generators want seeds >= 0; MLlib takes negative ones.
    drawn = secrets.randbits(32) if seed is None else seed % 2**64
    values = {_snake(name): params._value(name) for name in PARAMETERS}
    values |= {"k": k, "initial_centers": centers, "seed": drawn}
    data = {item.name: values[item.name] for item in fields(DataConfig)}
    data["features_cols"] = tuple(data["features_cols"] or ())
    data["weight_col"] = data["weight_col"] or None
    if centers is not None:
        values["init_mode"] = "given"
    own = {item.name: values[item.name] for item in fields(FitConfig) if item.name in values}
    return FitConfig(**own, seed_given=seed is not None, data=DataConfig(**data))


def _snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def _clusters(params: LocalKMeansParams) -> tuple[int, np.ndarray | None]:
    """Return k and the given initial centers, if any."""
    centers: np.ndarray | None = params.getInitialCenters()
    k = params.getK()
    if centers is None:
        return k, None
    if not params.isSet("k"):
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
