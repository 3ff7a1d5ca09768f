"""Which columns hold the features and the weights, and whether they can."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    NumericType,
    StructField,
)

from localkmeans_spark.config import DataConfig
from localkmeans_spark.data.column_names import ColumnNames, FoundColumn
from localkmeans_spark.errors import Fact, invalid

_FEATURES, _WEIGHT = "features", "weight"
_ACCEPTED = "a vector, an array of numbers, or numeric columns"


class IngestColumns(NamedTuple):
    """What to read from the caller's DataFrame.

    Attributes
    ----------
    kind : str
        ``"vector"``, ``"array"`` or ``"columns"``: how ``features`` arrives.
    n_features : int or None
        Known beforehand for ``"columns"`` and for vectors with metadata.
    features : list of FoundColumn
        One, unless ``kind`` is ``"columns"``.
    weight : FoundColumn or None
    """

    kind: str
    n_features: int | None
    features: list[FoundColumn]
    weight: FoundColumn | None

    @property
    def selected(self) -> list[Column]:
        """What Spark is to send: the features and, if there are weights, the weight."""
        return [self.as_features(), *([] if self.weight is None else [self.as_weight()])]

    def as_weight(self) -> Column:
        """The weight as a double, of a column that was asked for."""
        assert self.weight is not None
        return self.weight.column.cast(DoubleType()).alias(_WEIGHT)

    def as_features(self) -> Column:
        """One column: the struct of a vector, an array, or a struct of doubles."""
        if self.kind == "columns":
            numbers = [item.column.cast(DoubleType()) for item in self.features]
            column = F.struct(*[number.alias(f"f{i}") for i, number in enumerate(numbers)])
        elif self.kind == "vector":
            column = _vector_parts(self.features[0].column)
        else:
            column = _floats(self.features[0])
        return column.alias(_FEATURES)


def check_dataframe(data: object, owner: str) -> None:
    """Raise unless this is a DataFrame, of whatever kind of session."""
    if not hasattr(data, "isStreaming") or isinstance(data, type):
        what, fix = _other_frame(data)
        raise invalid(owner, "the data", "a Spark DataFrame", Fact(what), fix)


def _other_frame(data: object) -> tuple[str, str]:
    """Say what this is, and how to make a Spark DataFrame of it."""
    name, module = type(data).__name__, type(data).__module__
    library = module.split(".")[0]
    as_frame = "data.to_frame()" if name == "Series" else "data"
    if module.startswith("pyspark.pandas"):
        return f"a pandas-on-Spark {name}", f"Give {as_frame}.to_spark()."
    if library == "pandas":
        return f"a pandas {name}", f"Give spark.createDataFrame({as_frame})."
    if library in ("polars", "pyarrow"):
        as_frame += ".collect()" if name == "LazyFrame" else ""
        return f"a {library} {name}", f"Give spark.createDataFrame({as_frame}.to_pandas())."
    return f"a value of type {name}", "Make one with spark.createDataFrame(...)."


def check_batch(df: DataFrame, owner: str, fix: str) -> None:
    """Raise if this is a DataFrame (:func:`check_dataframe`), but of a stream."""
    if df.isStreaming:
        raise invalid(owner, "the data", "a batch DataFrame", Fact("a streaming DataFrame"), fix)


def ingest_columns(df: DataFrame, config: DataConfig, owner: str) -> IngestColumns:
    """Check the columns and say how to read them.

    Raises
    ------
    InvalidInputError
        If a column is missing or of a type that cannot hold features or weights.
    """
    names = ColumnNames(df, owner)
    n_features: int | None
    if config.features_cols:
        found = [_number(names, name, "featuresCols", owner) for name in config.features_cols]
        kind, n_features = "columns", len(found)
    else:
        found = [names.resolve(config.features_col, "featuresCol")]
        kind, n_features = _kind(found[0].field, config.features_col, owner)
    weight = None
    if config.weight_col is not None:
        weight = _number(names, config.weight_col, "weightCol", owner)
    return IngestColumns(kind, n_features, found, weight)


def _kind(field: StructField, name: str, owner: str) -> tuple[str, int | None]:
    """Return how a column holds features, and how many if that is known."""
    if isinstance(field.dataType, VectorUDT):
        told = field.metadata.get("ml_attr")  # whatever somebody has put there
        width = told.get("num_attrs") if isinstance(told, dict) else None
        return "vector", width if isinstance(width, int) else None
    if isinstance(field.dataType, ArrayType) and _is_number(field.dataType.elementType):
        return "array", None
    if type(field.dataType).__module__ == "pyspark.mllib.linalg":
        raise invalid(
            owner, f"column '{name}' (featuresCol)", _ACCEPTED,
            Fact(f"a {field.dataType.simpleString()} of the old pyspark.mllib.linalg"),
            f"Convert it with pyspark.mllib.util.MLUtils.convertVectorColumnsToML(df, {name!r}).",
        )  # fmt: skip
    raise _wrong_type(owner, name, "featuresCol", _ACCEPTED, field.dataType)


def _floats(found: FoundColumn) -> Column:
    """Return an array column as Arrow hands it over: float arrays as they are, else doubles."""
    array = found.field.dataType
    if isinstance(array, ArrayType) and isinstance(array.elementType, (FloatType, DoubleType)):
        return found.column
    # A type that is given as an object spares a new session the start of Spark's parser.
    return found.column.cast(ArrayType(DoubleType()))


def _vector_parts(column: Column) -> Column:
    """Return a vector's struct without null indices.

    Spark's Arrow writer takes time quadratic in the batch for arrays that are null in every row,
    as the indices of dense vectors are; empty arrays cost nothing.
    """
    parts = F.unwrap_udt(column)
    indices = F.coalesce(parts["indices"], F.array().cast(ArrayType(IntegerType())))
    fields = [
        indices.alias(name) if name == "indices" else parts[name].alias(name)
        for name in ("type", "size", "indices", "values")
    ]
    return F.when(column.isNotNull(), F.struct(*fields))


def _number(names: ColumnNames, name: str, parameter: str, owner: str) -> FoundColumn:
    found = names.resolve(name, parameter)
    if not _is_number(found.field.dataType):
        raise _wrong_type(owner, name, parameter, "numeric", found.field.dataType)
    return found


def _is_number(data_type: DataType) -> bool:
    return isinstance(data_type, (NumericType, DecimalType, BooleanType))


def _wrong_type(owner: str, name: str, parameter: str, rule: str, data_type: DataType) -> Exception:
    return invalid(
        owner,
        f"column '{name}' ({parameter})",
        rule,
        Fact(data_type.simpleString()),
        "Cast it, or name other columns.",
    )
