"""Spark's face of the parameter table: Param objects, getters, checks on every way in."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import numpy as np
from pyspark.ml.param import Param, Params
from pyspark.ml.param.shared import (
    HasDistanceMeasure,
    HasFeaturesCol,
    HasHandleInvalid,
    HasMaxBlockSizeInMB,
    HasMaxIter,
    HasPredictionCol,
    HasSeed,
    HasSolver,
    HasTol,
    HasWeightCol,
)

from localkmeans_spark.errors import invalid
from localkmeans_spark.params import PARAMETERS, CenterRows, checked

Self = TypeVar("Self", bound="LocalKMeansParams")
AnyClass = TypeVar("AnyClass", bound=type)


def _param(name: str) -> Param[Any]:
    convert = partial(checked, "LocalKMeans", name)
    return Param(Params._dummy(), name, PARAMETERS[name].help, typeConverter=convert)


class LocalKMeansParams(
    HasMaxIter,
    HasFeaturesCol,
    HasSeed,
    HasPredictionCol,
    HasTol,
    HasDistanceMeasure,
    HasWeightCol,
    HasSolver,
    HasMaxBlockSizeInMB,
    HasHandleInvalid,
):
    """Parameters that the estimator and its model share.

    A parameter without a value reads as None, and setting None makes it unset again.
    """

    featuresCol: Param[str] = _param("featuresCol")
    featuresCols: Param[list[str]] = _param("featuresCols")
    predictionCol: Param[str] = _param("predictionCol")
    distanceCol: Param[str] = _param("distanceCol")
    weightCol: Param[str] = _param("weightCol")
    k: Param[int] = _param("k")
    maxIter: Param[int] = _param("maxIter")
    tol: Param[float] = _param("tol")
    localSteps: Param[int] = _param("localSteps")
    safeguard: Param[bool] = _param("safeguard")
    seed: Param[int] = _param("seed")
    initMode: Param[str] = _param("initMode")
    initSteps: Param[int] = _param("initSteps")
    distanceMeasure: Param[str] = _param("distanceMeasure")
    solver: Param[str] = _param("solver")
    maxBlockSizeInMB: Param[float] = _param("maxBlockSizeInMB")
    numPartitions: Param[int] = _param("numPartitions")
    dtype: Param[str] = _param("dtype")
    handleInvalid: Param[str] = _param("handleInvalid")
    canonicalOrder: Param[bool] = _param("canonicalOrder")
    verbose: Param[bool] = _param("verbose")

    def __init__(self) -> None:
        super().__init__()
        # MLlib's default seed is a hash of the class name; here unset means a fresh one.
        self._defaultParamMap = {}
        defaults = {name: row.default for name, row in PARAMETERS.items() if self.hasParam(name)}
        self._setDefault(**{name: value for name, value in defaults.items() if value is not None})

    def _set(self: Self, **values: Any) -> Self:
        owner = type(self).__name__
        for name, value in values.items():
            if name not in PARAMETERS or not self.hasParam(name):
                known = ", ".join(sorted(param.name for param in self.params))
                raise invalid(owner, "parameter name", f"one of {known}", name, "Check the name.")
            if value is None and PARAMETERS[name].default is None:
                self.clear(self.getParam(name))
            else:
                super()._set(**{name: checked(owner, name, value)})
        return self

    def set(self, param: Param[Any], value: Any) -> None:
        """Set one parameter, checked like every other way in."""
        self._shouldOwn(param)
        self._set(**{param.name: value})

    def _set_features(self: Self, **value: Any) -> Self:
        """Set one of ``featuresCol`` and ``featuresCols``; the other one gives way."""
        self._set(**value)
        self.clear(self.featuresCols if "featuresCol" in value else self.featuresCol)
        return self

    def _check_features(self) -> None:
        if self.isSet(self.featuresCol) and self.isSet(self.featuresCols):
            raise invalid(
                type(self).__name__,
                "features",
                "in one place",
                {"featuresCol": self.getFeaturesCol(), "featuresCols": self.getFeaturesCols()},
                "Set featuresCol or featuresCols, not both.",
            )

    def _value_or_none(self, param: Param[Any]) -> Any:
        return self.getOrDefault(param) if self.isDefined(param) else None

    def getFeaturesCols(self) -> list[str] | None:
        return self._value_or_none(self.featuresCols)

    def getDistanceCol(self) -> str | None:
        return self._value_or_none(self.distanceCol)

    def getWeightCol(self) -> str | None:  # type: ignore[override]
        return self._value_or_none(self.weightCol)

    def getK(self) -> int:
        return self.getOrDefault(self.k)

    def getLocalSteps(self) -> int:
        return self.getOrDefault(self.localSteps)

    def getSafeguard(self) -> bool:
        return self.getOrDefault(self.safeguard)

    def getSeed(self) -> int | None:  # type: ignore[override]
        return self._value_or_none(self.seed)

    def getInitMode(self) -> str:
        return self.getOrDefault(self.initMode)

    def getInitSteps(self) -> int:
        return self.getOrDefault(self.initSteps)

    def getNumPartitions(self) -> int | None:
        return self._value_or_none(self.numPartitions)

    def getDtype(self) -> str:
        return self.getOrDefault(self.dtype)

    def getCanonicalOrder(self) -> bool:
        return self.getOrDefault(self.canonicalOrder)

    def getVerbose(self) -> bool:
        return self.getOrDefault(self.verbose)

    def setFeaturesCol(self: Self, value: str) -> Self:
        return self._set_features(featuresCol=value)

    def setFeaturesCols(self: Self, value: list[str]) -> Self:
        return self._set_features(featuresCols=value)

    def setPredictionCol(self: Self, value: str) -> Self:
        return self._set(predictionCol=value)

    def setDistanceCol(self: Self, value: str | None) -> Self:
        return self._set(distanceCol=value)

    def setWeightCol(self: Self, value: str | None) -> Self:
        return self._set(weightCol=value)

    def setHandleInvalid(self: Self, value: str) -> Self:
        return self._set(handleInvalid=value)


class FitParams(LocalKMeansParams):
    """What only the estimator has: setters for how to fit, and the initial centers."""

    initialCenters: Param[CenterRows] = _param("initialCenters")
    nInit: Param[int] = _param("nInit")
    emptyClusters: Param[str] = _param("emptyClusters")
    checkpointDir: Param[str] = _param("checkpointDir")

    def getInitialCenters(self) -> np.ndarray | None:
        rows = self._value_or_none(self.initialCenters)
        if rows is None:
            return None
        centers = np.array(rows, dtype=np.float64)
        centers.flags.writeable = False  # a change would change nothing here
        return centers

    def getNInit(self) -> int:
        return self.getOrDefault(self.nInit)

    def setNInit(self: Self, value: int) -> Self:
        return self._set(nInit=value)

    def getEmptyClusters(self) -> str:
        return self.getOrDefault(self.emptyClusters)

    def setEmptyClusters(self: Self, value: str) -> Self:
        return self._set(emptyClusters=value)

    def getCheckpointDir(self) -> str | None:
        return self._value_or_none(self.checkpointDir)

    def setCheckpointDir(self: Self, value: str | None) -> Self:
        return self._set(checkpointDir=value)

    def setK(self: Self, value: int) -> Self:
        return self._set(k=value)

    def setMaxIter(self: Self, value: int) -> Self:
        return self._set(maxIter=value)

    def setTol(self: Self, value: float) -> Self:
        return self._set(tol=value)

    def setLocalSteps(self: Self, value: int) -> Self:
        return self._set(localSteps=value)

    def setSafeguard(self: Self, value: bool) -> Self:
        return self._set(safeguard=value)

    def setSeed(self: Self, value: int | None) -> Self:
        return self._set(seed=value)

    def setInitMode(self: Self, value: str) -> Self:
        return self._set(initMode=value)

    def setInitSteps(self: Self, value: int) -> Self:
        return self._set(initSteps=value)

    def setInitialCenters(self: Self, value: Any) -> Self:
        return self._set(initialCenters=value)

    def setDistanceMeasure(self: Self, value: str) -> Self:
        return self._set(distanceMeasure=value)

    def setSolver(self: Self, value: str) -> Self:
        return self._set(solver=value)

    def setMaxBlockSizeInMB(self: Self, value: float) -> Self:
        return self._set(maxBlockSizeInMB=value)

    def setNumPartitions(self: Self, value: int | None) -> Self:
        return self._set(numPartitions=value)

    def setDtype(self: Self, value: str) -> Self:
        return self._set(dtype=value)

    def setCanonicalOrder(self: Self, value: bool) -> Self:
        return self._set(canonicalOrder=value)

    def setVerbose(self: Self, value: bool) -> Self:
        return self._set(verbose=value)


def documented(cls: AnyClass) -> AnyClass:
    """Class decorator: fill the docstrings of getters and setters from the parameter table."""
    for name, parameter in PARAMETERS.items():
        stem = name[0].upper() + name[1:]
        for verb, action in (("get", "Get"), ("set", "Set")):
            method = vars(cls).get(verb + stem)
            if method is not None and method.__doc__ is None:
                method.__doc__ = f"{action} `{name}`. {parameter.help}"
    return cls


documented(LocalKMeansParams)
documented(FitParams)
