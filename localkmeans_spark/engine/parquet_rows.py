"""One partition's Parquet row groups → encoded blocks (runs in the Python worker)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from localkmeans_spark.engine.ingest import IngestPlan, encode_rows
from localkmeans_spark.errors import Fact, invalid

# What is read of a row group at a time: of all its columns together, and of one.
_BUFFER_BYTES, _LEAST_BUFFER, _MOST_BUFFER = 32 << 20, 16 << 10, 1 << 20


class RowGroups(NamedTuple):
    """Some row groups of one file, by their numbers."""

    path: str
    numbers: list[int]


def encode_row_groups(
    partitions: Iterable[Sequence[RowGroups]],
    plan: IngestPlan,
    names: Sequence[str],
    weight: str | None,
    n_rows: int,
) -> Iterator[bytes]:
    """Read a partition's rows, as Spark would send them, and turn them into blocks.

    Parameters
    ----------
    partitions : iterable of sequences of RowGroups
        One, the task's.
    plan : IngestPlan
    names : sequence of str
        Columns of the features; one unless ``plan.kind`` is ``"columns"``.
    weight : str or None
        Column of the weights.
    n_rows : int
        In every Arrow batch but the last.
    """
    groups = (item for partition in partitions for item in partition)
    columns = list(dict.fromkeys([*names, *([] if weight is None else [weight])]))
    batches = _of_length(_read(groups, columns, n_rows), n_rows)
    return encode_rows((_selected(batch, plan.kind, names, weight) for batch in batches), plan)


def _read(groups: Iterable[RowGroups], columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
    for group in groups:
        yield from _read_file(group, columns, n_rows)


def _read_file(group: RowGroups, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
    buffer = min(_MOST_BUFFER, max(_LEAST_BUFFER, _BUFFER_BYTES // len(columns)))
    try:
        with pq.ParquetFile(group.path, buffer_size=buffer, pre_buffer=False) as file:
            yield from file.iter_batches(n_rows, group.numbers, columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise invalid(
            "LocalKMeans", f"file '{group.path}'", "a whole Parquet file",
            Fact(f"one that cannot be read ({str(error).splitlines()[0]})"),
            "Restore it, or set spark.sql.files.ignoreCorruptFiles=true to go without it.",
        ) from error  # fmt: skip


def _of_length(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Cut and join batches to the same number of rows; the last may have fewer.

    As Spark sends them: where a batch ends decides, for one, which rows place the origin.
    """
    held: list[pa.RecordBatch] = []
    missing = n_rows
    for batch in batches:
        while len(batch) >= missing:
            yield _joined([*held, batch.slice(0, missing)])
            batch = batch.slice(missing)
            held, missing = [], n_rows
        if len(batch):
            held.append(batch)
            missing -= len(batch)
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _selected(
    batch: pa.RecordBatch, kind: str, names: Sequence[str], weight: str | None
) -> pa.RecordBatch:
    """Return the columns that ``columns.ingest_columns`` selects."""
    found = [_features(batch, kind, names)]
    if weight is not None:
        found.append(_as_doubles(batch.column(weight)))
    return pa.RecordBatch.from_arrays(found, names=["features", "weight"][: len(found)])


def _features(batch: pa.RecordBatch, kind: str, names: Sequence[str]) -> pa.Array:
    if kind == "columns":
        columns = [_as_doubles(batch.column(name)) for name in names]
        return pa.StructArray.from_arrays(columns, [f"f{i}" for i in range(len(names))])
    features = batch.column(names[0])
    if kind == "array" and not pa.types.is_floating(features.type.value_type):
        # Not safe: Java, too, rounds integers of more than 53 bits.
        return features.cast(pa.list_(pa.float64()), safe=False)
    return features


def _as_doubles(column: pa.Array) -> pa.Array:
    return column.cast(pa.float64(), safe=False)
