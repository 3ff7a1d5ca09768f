"""Which Parquet files a DataFrame is made of, if it is nothing but columns of theirs.

Python workers then read the files by themselves (``parquet_rows``). Through the JVM the same rows
are decoded there, made Arrow, sent to Python, and the blocks sent back: from 512 MB of arrays that
takes about twice as long. What is not sure to be the same rows, in the same partitions and order,
is left to Spark.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
)

from localkmeans_spark.engine.column_names import quoted
from localkmeans_spark.engine.parquet_rows import RowGroups

logger = logging.getLogger(__name__)

# Spark's plan is read call by call (0.2 ms each), and every file's footer on the driver, all of its
# columns (3 us each).
_MOST_FILES, _MOST_COLUMNS = 256, 100_000
# Around the scan of a plain DataFrame; a projection is looked at more closely.
_TRANSPARENT = {"WholeStageCodegenExec", "ColumnarToRowExec", "InputAdapter", "ProjectExec"}
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_ARROW_TYPES: dict[type[DataType], pa.DataType] = {
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
}


def parquet_partitions(
    df: DataFrame, fields: Sequence[StructField] | None
) -> list[list[RowGroups]] | None:
    """Say what each partition of a DataFrame reads, if workers can read it by themselves.

    Parameters
    ----------
    df : DataFrame
    fields : sequence of StructField, or None
        Its columns to be read; None for what is not a column.

    Returns
    -------
    list of list of RowGroups, or None
        One list a partition, as Spark would read them. None if the DataFrame is more than columns
        of Parquet files of this file system, or the files are not what its schema says.
    """
    if not fields or any(_arrow_type(field.dataType) is None for field in fields):
        return None
    try:
        return _partitions(df, fields)
    except Exception as error:  # whatever is odd here, Spark reads it or tells what is wrong
        logger.debug("left to Spark: %s", error)
        return None


def _partitions(df: DataFrame, fields: Sequence[StructField]) -> list[list[RowGroups]] | None:
    scan = _plain_scan(_select(df, {field.name for field in fields}))
    if scan is None or not _reads(scan, fields) or _has_other_rules(scan, df):
        return None
    pieces = _pieces(scan)
    if pieces is None:
        return None
    paths = {item.path for part in pieces for item in part}
    if len(paths) * scan.relation().dataSchema().length() > _MOST_COLUMNS:
        return None
    files = {path: _File(path, fields) for path in paths}
    found = [[files[item.path].groups(item) for item in part] for part in pieces]
    n_found = sum(len(item.numbers) for part in found for item in part)
    return found if n_found == sum(file.n_groups for file in files.values()) else None


def _select(df: DataFrame, names: set[str]) -> Any:
    """Return Spark's plan of some columns, in the DataFrame's order."""
    # Without Column objects, which take a millisecond each.
    context = df.sparkSession.sparkContext
    first, *others = [quoted(name) for name in df.schema.names if name in names]
    more = context._gateway.new_array(context._jvm.java.lang.String, len(others))  # type: ignore[union-attr]
    for i, name in enumerate(others):
        more[i] = name
    return df._jdf.select(first, more).queryExecution().executedPlan()


def _plain_scan(node: Any) -> Any:
    """Return the scan of files under nodes that change no row, or None."""
    while (name := node.getClass().getSimpleName()) in _TRANSPARENT:
        if name == "ProjectExec":
            kinds = [item.getClass().getSimpleName() for item in _each(node.projectList())]
            if set(kinds) != {"AttributeReference"}:
                return None
        node = node.child()
    return node if name == "FileSourceScanExec" else None


def _reads(scan: Any, fields: Sequence[StructField]) -> bool:
    """Whether this reads the columns from Parquet files, not from names of directories."""
    if scan.relation().fileFormat().getClass().getName() != _PARQUET or scan.bucketedScan():
        return False
    return {field.name for field in fields} <= set(scan.requiredSchema().fieldNames())


def _has_other_rules(scan: Any, df: DataFrame) -> bool:
    """Whether broken files are passed over, columns found by ids, or batches cut by their bytes."""
    conf = df.sparkSession.conf
    if df.sparkSession._jsparkSession.conf().getAll().contains(_BATCH_BYTES):
        return True
    names = (
        "spark.sql.files.ignoreCorruptFiles",
        "spark.sql.files.ignoreMissingFiles",
        "spark.sql.parquet.fieldId.read.enabled",
    )
    options = scan.relation().options().keys().mkString(" ").lower()
    return "ignore" in options or any(
        str(conf.get(name, "false")).lower() == "true" for name in names
    )


class _Piece(NamedTuple):
    path: str
    start: int
    length: int


def _pieces(scan: Any) -> list[list[_Piece]] | None:
    """Return the pieces of files that each partition reads, or None if they are not here."""
    partitions, n_files = [], 0
    for partition in _each(scan.inputRDD().filePartitions()):
        files = list(partition.files())
        n_files += len(files)
        if n_files > _MOST_FILES:
            return None
        urls = [urlsplit(file.filePath().urlEncoded()) for file in files]
        if any(url.scheme != "file" or url.netloc for url in urls):
            return None
        partitions.append(
            [
                _Piece(unquote(url.path), file.start(), file.length())
                for url, file in zip(urls, files, strict=True)
            ]
        )
    return partitions or None


def _each(sequence: Any) -> Iterator[Any]:
    """Iterate over a Scala sequence."""
    return (sequence.apply(i) for i in range(sequence.size()))


class _File:
    """A file, once it is sure that it holds the columns."""

    def __init__(self, path: str, fields: Sequence[StructField]) -> None:
        with pq.ParquetFile(path) as file:
            schema, self._metadata = file.schema_arrow, file.metadata
        spellings = Counter(name.lower() for name in schema.names)
        for field in fields:
            found = schema.field(field.name).type
            if spellings[field.name.lower()] > 1:
                raise TypeError(f"{path}: several columns {field.name} but for upper case")
            if not _alike(found, _arrow_type(field.dataType)):
                raise TypeError(f"{path}: {field.name} is {found}")
        self._path, self._n_bytes = path, Path(path).stat().st_size
        self.n_groups = self._metadata.num_row_groups
        codec = self._metadata.row_group(0).column(0).compression if self.n_groups else "SNAPPY"
        if codec != "UNCOMPRESSED" and not pa.Codec.is_available(codec):
            raise TypeError(f"{path}: no codec for {codec}")

    def groups(self, piece: _Piece) -> RowGroups:
        """Return the row groups whose middle lies in a piece: those that Spark reads there."""
        numbers: Sequence[int] = range(self.n_groups)
        inside = range(piece.start, piece.start + piece.length)
        if inside != range(self._n_bytes):
            numbers = [i for i in numbers if _midpoint(self._metadata.row_group(i)) in inside]
        return RowGroups(self._path, list(numbers))


def _midpoint(group: Any) -> int:
    """Return where a row group's middle lies, as Parquet's Java library computes it."""
    columns = [group.column(i) for i in range(group.num_columns)]
    first = columns[0]
    start = first.data_page_offset
    if first.has_dictionary_page and 0 < first.dictionary_page_offset < start:
        start = first.dictionary_page_offset
    return start + sum(column.total_compressed_size for column in columns) // 2


def _arrow_type(data_type: DataType) -> pa.DataType | None:
    """Return what a column of Spark is in a Parquet file; None if it is left to Spark."""
    if isinstance(data_type, VectorUDT):
        parts = {
            "type": pa.int8(),
            "size": pa.int32(),
            "indices": pa.list_(pa.int32()),
            "values": pa.list_(pa.float64()),
        }
        return pa.struct(parts)
    if isinstance(data_type, ArrayType):
        element = _ARROW_TYPES.get(type(data_type.elementType))
        return None if element is None else pa.list_(element)
    return _ARROW_TYPES.get(type(data_type))


def _alike(found: pa.DataType, wanted: pa.DataType | None) -> bool:
    """Whether types are the same but for names inside lists and what may be null."""
    if wanted is None or found.id != wanted.id or found.num_fields != wanted.num_fields:
        return False
    if pa.types.is_list(found):
        return _alike(found.value_type, wanted.value_type)
    if pa.types.is_struct(found):
        return all(
            found.field(i).name == wanted.field(i).name
            and _alike(found.field(i).type, wanted.field(i).type)
            for i in range(found.num_fields)
        )
    return found == wanted
