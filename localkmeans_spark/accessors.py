"""Spark's face of the parameter table: Param objects, getters, setters, checks on every way in."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pyspark.ml.param import Param, Params
from pyspark.sql import DataFrame

from localkmeans_spark.config import DataConfig, FitConfig
from localkmeans_spark.data.column_names import ColumnNames
from localkmeans_spark.errors import Fact, count_of, invalid
from localkmeans_spark.params import NEW_COLUMNS, PARAMETERS, check_directions, checked

Self = TypeVar("Self", bound="LocalKMeansParams")
AnyClass = TypeVar("AnyClass", bound=type)

_CLASS_LEVEL = Params._dummy().uid  # where LocalKMeans.k says that it belongs

# Of these two, setting one clears the other.
_FEATURES = {"featuresCol": "featuresCols", "featuresCols": "featuresCol"}


def with_parameters(owners: str, set_by: str) -> Callable[[AnyClass], AnyClass]:
    """Class decorator: add Param objects, getters and setters from the parameter table.

    Parameters
    ----------
    owners : str
        Owners, separated by spaces, of the rows of the table that the class has.
    set_by : str
        Owners of those that it has setters for.
    """

    def add(cls: AnyClass) -> AnyClass:
        for name, parameter in PARAMETERS.items():
            if parameter.owner not in owners.split():
                continue
            convert = partial(checked, "LocalKMeans", name)
            setattr(cls, name, Param(Params._dummy(), name, parameter.help, convert))
            accessors: dict[str, Callable[..., Any]] = {"get": _getter(name)}
            if parameter.owner in set_by.split():
                accessors["set"] = _setter(name)
            for verb, method in accessors.items():
                method.__name__ = verb + name[0].upper() + name[1:]
                method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
                method.__doc__ = f"{verb.capitalize()} `{name}`. {parameter.help}"
                setattr(cls, method.__name__, method)
        return cls

    return add


def _getter(name: str) -> Callable[[Any], Any]:
    def get(self: LocalKMeansParams) -> Any:
        value = self._value(name)
        if name == "initialCenters" and value is not None:
            value = np.array(value, dtype=np.float64)
            value.flags.writeable = False  # a change would change nothing here
        return value

    return get


def _setter(name: str) -> Callable[[Any, Any], Any]:
    def set_value(self: Self, value: Any) -> Self:
        self._set(**{name: value})
        if name in _FEATURES:
            self.clear(self.getParam(_FEATURES[name]))
        return self

    return set_value


class LocalKMeansParams(Params):
    """Parameters of the estimator or its model.

    A parameter without a value reads as None, and setting None makes it unset again.
    """

    if TYPE_CHECKING:  # what the table adds

        def __getattr__(self, name: str) -> Any: ...

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

    def copy(self: Self, extra: Any = None) -> Self:
        """Return a copy with the values of a parameter map.

        ``LocalKMeans.k`` in the map stands for this instance's ``k``. Params of other stages are
        passed over, since a pipeline hands the same map to all of its stages.
        """
        if isinstance(extra, dict):
            by_class = {
                self.getParam(param.name): value
                for param, value in extra.items()
                if _is_ours(param) and param.parent == _CLASS_LEVEL and self.hasParam(param.name)
            }
            extra = by_class | extra
        return super().copy(extra)

    def _check_map(self, extra: Any) -> None:
        """Raise if a map given to this very instance holds params that would change nothing."""
        owner = type(self).__name__
        for param in extra if isinstance(extra, dict) else ():
            if not isinstance(param, Param) or param.parent == self.uid:
                continue
            is_of_class = param.parent == _CLASS_LEVEL
            if is_of_class != _is_ours(param):
                raise invalid(
                    owner, "the parameter map", f"one with params of {self.uid}",
                    Fact(f"'{param.name}' of {'another class' if is_of_class else param.parent}"),
                    f"Take the param from the instance itself, or write {owner}.{param.name}."
                    if self.hasParam(param.name) else "Leave it out.",
                )  # fmt: skip

    def _value(self, name: str) -> Any:
        param = self.getParam(name)
        return self.getOrDefault(param) if self.isDefined(param) else None

    def _check_features(self) -> None:
        if self.isSet("featuresCol") and self.isSet("featuresCols"):
            raise invalid(
                type(self).__name__,
                "features",
                "in one place",
                {name: self._value(name) for name in _FEATURES},
                "Set featuresCol or featuresCols, not both.",
            )

    def _check_new_columns(self, dataset: DataFrame) -> None:
        new = {name: self._value(name) for name in NEW_COLUMNS}
        ColumnNames(dataset, type(self).__name__).check_new(new)


def _is_ours(param: Any) -> bool:
    """Say whether a param comes from the table, of whatever instance it is."""
    return getattr(getattr(param, "typeConverter", None), "func", None) is checked


def fit_config(params: LocalKMeansParams) -> FitConfig:
    """Read every parameter once; raise if two of them contradict each other."""
    params._check_features()
    if params.getStandardize() and params.getDistanceMeasure() == "cosine":
        raise invalid(
            "LocalKMeans", "parameter 'standardize'", "False with distanceMeasure='cosine'", True,
            "Cosine distance compares directions, which dividing features would turn: scale the "
            "columns yourself if that is what you want.",
        )  # fmt: skip
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
