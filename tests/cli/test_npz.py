"""NumPy files: rows in order, and one line for a file that was made to break readers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from localkmeans_spark.cli.npz import read_arrays, rows_of
from localkmeans_spark.errors import InvalidInputError
from tests.cli.asked import read


@pytest.mark.parametrize(
    ("dtype", "scale", "element"),
    [
        ("u1", None, "float"),
        ("f2", None, "float"),
        ("f4", 0.25, "float"),
        (">f4", None, "float"),
        ("i4", None, "double"),
        ("f8", None, "double"),
        ("?", None, "float"),
    ],
)
def test_rows_in_order(
    spark: SparkSession, tmp_path: Path, dtype: str, scale: float | None, element: str
) -> None:
    x = np.asfortranarray(np.random.default_rng(0).integers(0, 200, (50, 3)).astype(dtype))
    y = np.array([f"class {i % 3}" for i in range(50)])
    more: Any = {} if scale is None else {"scale": np.float32(scale)}
    np.savez(tmp_path / "x.npz", X=x, y=y, other=np.ones(2), **more)
    table = read(spark, tmp_path / "x.npz", partitions=7)
    assert dict(table.frame.dtypes)["features"] == f"array<{element}>"
    assert (table.id_cols, table.label_col) == (("id", "label"), "label")
    parts = table.frame.rdd.glom().map(lambda rows: [tuple(row) for row in rows]).collect()
    assert len(parts) == 7
    rows = [row for part in parts for row in part]
    assert [row[0] for row in rows] == list(range(50))
    np.testing.assert_allclose([row[1] for row in rows], x * np.float64(scale or 1))
    assert [row[2] for row in rows] == list(y)


def test_batches_are_small_and_exact() -> None:
    x = np.arange(600_000, dtype=np.float32).reshape(300, 2000)
    batches = list(rows_of(7, x, None, 0.5, np.float32))
    assert max(batch.nbytes for batch in batches) < 6 << 20 > sum(b.nbytes for b in batches)
    wide = list(rows_of(0, np.tile(x, 6), None, 1.0, np.float32))
    assert max(batch.nbytes for batch in wide) < 6 << 20 < sum(b.nbytes for b in wide)
    ids = np.concatenate([batch.column(0).to_numpy() for batch in batches])
    values = np.concatenate([np.stack(batch.column(1).to_numpy(False)) for batch in batches])
    np.testing.assert_array_equal(ids, np.arange(7, 307))
    np.testing.assert_array_equal(values, x * 0.5)


def npy(array: Any, **values: Any) -> bytes:
    """Return an array as ``np.save`` writes it, its header changed by ``values``."""
    file = io.BytesIO()
    if not values:
        np.save(file, array)
        return file.getvalue()
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape, **values}
    text = repr(header).encode()
    file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes())
    return file.getvalue()


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, data in members:
            made.writestr(f"{name}.npy", data)
    return file.getvalue()


X = np.arange(6.0).reshape(3, 2)
GOOD = archive(("X", npy(X)), ("y", npy(np.array(["a", "b", "ü"]))), ("scale", npy(np.ones(1))))


def x_and(name: str, array: Any) -> bytes:
    return archive(("X", npy(X)), (name, npy(array)))


def header(**values: Any) -> bytes:
    return archive(("X", npy(X, **values)))


def raw_header(text: bytes) -> bytes:
    start = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
    return archive(("X", start + text + X.tobytes()))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: b"", "archive of whole arrays"),
        (lambda: b"PK", "archive of whole arrays"),
        (lambda: b"PK\x03\x04 not really a zip", "archive of whole arrays"),
        (lambda: npy(X), "archive of whole arrays"),
        (lambda: GOOD[: len(GOOD) // 2], "archive of whole arrays"),
        (lambda: GOOD[:200] + GOOD[260:], "archive of whole arrays"),
        (archive, "one with an array X; got none"),
        (lambda: archive(("Z\x1b[2J", npy(X))), "one with an array X; got Z"),
        (lambda: archive(("X", b"")), "whole arrays"),
        (lambda: archive(("X", b"not an array at all")), "whole arrays"),
        (lambda: archive(("X", b"\x93NUMPY\x09\x00" + npy(X)[8:])), "whole arrays"),
        (lambda: archive(("X", npy(X)[:-8])), "whole arrays"),
        (lambda: header(shape=(10**12, 2)), "whole arrays"),
        (lambda: header(shape=(10**30, 2)), "whole arrays"),
        (lambda: header(shape=(-3, -2)), "whole arrays"),
        (lambda: header(shape=(3, 2.0)), "whole arrays"),
        (lambda: header(shape="3"), "whole arrays"),
        (lambda: header(descr="|O"), "numbers or text; got Python objects"),
        (lambda: header(descr="no such"), "whole arrays"),
        (lambda: header(descr=[("a", "<f8"), ("b", "<f8")], shape=(3,)), "X must be"),
        (lambda: header(descr="|V0", shape=(10**12, 5)), "X must be"),
        (lambda: header(descr="<U0", shape=(10**12, 5)), "X must be"),
        (lambda: header(more=1), "whole arrays"),
        (lambda: raw_header(b"(" * 9000), "whole arrays"),
        (lambda: raw_header(b"[" * 900 + b"]" * 900), "whole arrays"),
        (lambda: raw_header(b"{'descr': '\\d', 'shape': (3L,)}"), "whole arrays"),
        (lambda: raw_header(b"9" * 5000), "whole arrays"),
        (lambda: raw_header(b"__import__('os').abort()"), "whole arrays"),
        (lambda: x_and("y", np.ones(2)), r"y must be one label .* 3 rows; got"),
        (lambda: archive(("X", npy(np.array([[1, None]], dtype=object)))), "got Python objects"),
        (lambda: archive(("X", npy(np.float64(3)))), r"X must be of shape .*; got shape \(\)"),
        (lambda: archive(("X", npy(np.ones(3)))), r"X must be of shape .*; got shape \(3,\)"),
        (lambda: archive(("X", npy(np.ones((3, 0))))), "X must be of shape"),
        (lambda: archive(("X", npy(np.ones((2, 2, 2))))), "X must be of shape"),
        (lambda: archive(("X", npy(np.array([["a", "b"]])))), "X must be real numbers"),
        (lambda: archive(("X", npy(X * 1j))), "X must be real numbers"),
        (lambda: archive(("X", npy(X.astype("M8[s]")))), "X must be real numbers"),
        (lambda: x_and("y", np.array([0.5, 1, 2])), "whole numbers or text; got fractions"),
        (lambda: x_and("y", np.array([np.nan, 1, 2])), "whole numbers or text; got fractions"),
        (lambda: x_and("y", np.array([1e300, 1, 2])), "got numbers of more than 64 bits"),
        (lambda: x_and("y", np.array([2**63, 1, 2], "u8")), "got numbers of more than 64 bits"),
        (lambda: x_and("y", np.array([b"a", b"b", b"c"])), "whole numbers or text; got dtype"),
        (lambda: x_and("y", np.full(3, 0xFFFFFFFF, "u4").view("<U1")), "text that is not Unicode"),
        (lambda: x_and("y", np.array(["\ud800"] * 3)), "text that is not Unicode"),
        (lambda: x_and("scale", np.ones(2)), "scale must be one finite number"),
        (lambda: x_and("scale", np.array(np.inf)), "scale must be one finite number"),
        (lambda: x_and("scale", np.array("x" * 10**5)), "scale must be one finite number"),
    ],
)  # fmt: skip
def test_files_made_to_break_readers(
    tmp_path: Path, make: Callable[[], bytes], told: str, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(make())
    recwarn.clear()
    with pytest.raises(InvalidInputError, match=told) as caught:
        read_arrays("fit", str(path))
    check_line(caught.value)
    assert not recwarn.list


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Bytes changed, cut out or put in: the arrays as they were, other numbers, or one line."""
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        change = data.draw(st.sampled_from(["byte", "cut", "put"]))
        if change == "byte":
            damaged[place] = data.draw(st.integers(0, 255))
        elif change == "cut":
            del damaged[place : place + data.draw(st.integers(1, 40))]
        else:
            damaged[place:place] = data.draw(st.binary(max_size=20))
        if not damaged:
            break
    path = tmp_path_factory.mktemp("npz", numbered=True) / "x.npz"
    path.write_bytes(damaged)
    try:
        found = read_arrays("fit", str(path))
    except InvalidInputError as error:
        check_line(error)
    else:
        assert found.x.ndim == 2


def check_line(error: InvalidInputError) -> None:
    text = str(error)
    assert "\n" not in text
    assert len(text) < 700
    assert "allow_pickle" not in text
