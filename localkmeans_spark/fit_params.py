"""Parameters, getters and setters that only the estimator has."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from pyspark.ml.param import Param

from localkmeans_spark.accessors import LocalKMeansParams, documented, param_of
from localkmeans_spark.param_types import CenterRows

FitSelf = TypeVar("FitSelf", bound="FitParams")


@documented
class FitParams(LocalKMeansParams):
    """What only the estimator has: setters for how to fit, and the initial centers."""

    initialCenters: Param[CenterRows] = param_of("initialCenters")
    nInit: Param[int] = param_of("nInit")
    emptyClusters: Param[str] = param_of("emptyClusters")
    checkpointDir: Param[str] = param_of("checkpointDir")

    def getInitialCenters(self) -> np.ndarray | None:
        rows = self._value_or_none(self.initialCenters)
        if rows is None:
            return None
        centers = np.array(rows, dtype=np.float64)
        centers.flags.writeable = False  # a change would change nothing here
        return centers

    def getNInit(self) -> int:
        return self.getOrDefault(self.nInit)

    def setNInit(self: FitSelf, value: int) -> FitSelf:
        return self._set(nInit=value)

    def getEmptyClusters(self) -> str:
        return self.getOrDefault(self.emptyClusters)

    def setEmptyClusters(self: FitSelf, value: str) -> FitSelf:
        return self._set(emptyClusters=value)

    def getCheckpointDir(self) -> str | None:
        return self._value_or_none(self.checkpointDir)

    def setCheckpointDir(self: FitSelf, value: str | None) -> FitSelf:
        return self._set(checkpointDir=value)

    def setK(self: FitSelf, value: int) -> FitSelf:
        return self._set(k=value)

    def setMaxIter(self: FitSelf, value: int) -> FitSelf:
        return self._set(maxIter=value)

    def setTol(self: FitSelf, value: float) -> FitSelf:
        return self._set(tol=value)

    def setLocalSteps(self: FitSelf, value: int | str) -> FitSelf:
        return self._set(localSteps=value)

    def setSafeguard(self: FitSelf, value: bool) -> FitSelf:
        return self._set(safeguard=value)

    def setSeed(self: FitSelf, value: int | None) -> FitSelf:
        return self._set(seed=value)

    def setInitMode(self: FitSelf, value: str) -> FitSelf:
        return self._set(initMode=value)

    def setInitSteps(self: FitSelf, value: int) -> FitSelf:
        return self._set(initSteps=value)

    def setInitialCenters(self: FitSelf, value: Any) -> FitSelf:
        return self._set(initialCenters=value)

    def setDistanceMeasure(self: FitSelf, value: str) -> FitSelf:
        return self._set(distanceMeasure=value)

    def setSolver(self: FitSelf, value: str) -> FitSelf:
        return self._set(solver=value)

    def setMaxBlockSizeInMB(self: FitSelf, value: float) -> FitSelf:
        return self._set(maxBlockSizeInMB=value)

    def setNumPartitions(self: FitSelf, value: int | None) -> FitSelf:
        return self._set(numPartitions=value)

    def setDtype(self: FitSelf, value: str) -> FitSelf:
        return self._set(dtype=value)

    def setCanonicalOrder(self: FitSelf, value: bool) -> FitSelf:
        return self._set(canonicalOrder=value)

    def setVerbose(self: FitSelf, value: bool) -> FitSelf:
        return self._set(verbose=value)
