"""Spark's face of the parameter table: Param objects, getters, checks on every way in."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

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
from pyspark.sql import DataFrame

from localkmeans_spark.engine.column_names import ColumnNames
from localkmeans_spark.errors import invalid
from localkmeans_spark.params import PARAMETERS, checked

Self = TypeVar("Self", bound="LocalKMeansParams")
AnyClass = TypeVar("AnyClass", bound=type)


def param_of(name: str) -> Param[Any]:
    """Return the Param object of a row of the parameter table."""
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

    featuresCol: Param[str] = param_of("featuresCol")
    featuresCols: Param[list[str]] = param_of("featuresCols")
    predictionCol: Param[str] = param_of("predictionCol")
    distanceCol: Param[str] = param_of("distanceCol")
    weightCol: Param[str] = param_of("weightCol")
    k: Param[int] = param_of("k")
    maxIter: Param[int] = param_of("maxIter")
    tol: Param[float] = param_of("tol")
    localSteps: Param[int | str] = param_of("localSteps")
    safeguard: Param[bool] = param_of("safeguard")
    seed: Param[int] = param_of("seed")
    initMode: Param[str] = param_of("initMode")
    initSteps: Param[int] = param_of("initSteps")
    distanceMeasure: Param[str] = param_of("distanceMeasure")
    solver: Param[str] = param_of("solver")
    maxBlockSizeInMB: Param[float] = param_of("maxBlockSizeInMB")
    numPartitions: Param[int] = param_of("numPartitions")
    dtype: Param[str] = param_of("dtype")
    handleInvalid: Param[str] = param_of("handleInvalid")
    canonicalOrder: Param[bool] = param_of("canonicalOrder")
    verbose: Param[bool] = param_of("verbose")

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

    def _check_new_columns(self, dataset: DataFrame) -> None:
        new = {"predictionCol": self.getPredictionCol(), "distanceCol": self.getDistanceCol()}
        ColumnNames(dataset, type(self).__name__).check_new(new)

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

    def getLocalSteps(self) -> int | str:
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
