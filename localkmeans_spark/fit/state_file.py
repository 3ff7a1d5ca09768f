"""The bytes of a checkpoint file, and checks of what is read back: nothing in it is believed.

Layout: one line that names the format, the SHA-256 of all that follows, the length of a JSON text
(8 bytes), the text, float64 arrays one after the other. The text's ``arrays`` gives their names
and shapes. What reads or checks raises ``ValueError`` with the reason in a few words, or whatever
Python raises for values of the wrong kind.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from localkmeans_spark.config import FitConfig
from localkmeans_spark.records import RoundRecord

_FORMAT = b"localkmeans checkpoint, format 2\n"
_DIGEST_BYTES, _LENGTH_BYTES = 32, 8
# JSON text of a round, and of everything else in a fit; generous.
_ROUND_BYTES, _OTHER_BYTES = 1 << 10, 1 << 20


def most_bytes(configs: Sequence[FitConfig], n_features: int) -> int:
    """Return what the file of some fits cannot exceed: nothing larger is read into memory."""
    return sum(
        config.n_init * (16 * config.k * n_features + _ROUND_BYTES * (2 * config.max_iter + 8))
        + _OTHER_BYTES
        for config in configs
    )


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return a file of JSON-ready values and float64 arrays."""
    shapes = [[name, *array.shape] for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": shapes}).encode()
    parts = [np.ascontiguousarray(array, dtype=np.float64).tobytes() for array in arrays.values()]
    body = b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *parts])
    return _FORMAT + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what :func:`pack` was given; arrays are finite and have two dimensions."""
    if not data.startswith(_FORMAT):
        raise ValueError("not a checkpoint of this format")
    start = len(_FORMAT) + _DIGEST_BYTES
    digest, body = data[len(_FORMAT) : start], data[start:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("cut or damaged")
    end = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    try:
        header = json.loads(body[_LENGTH_BYTES:end])
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    _require(isinstance(header, dict) and isinstance(header.get("arrays"), list), "no arrays")
    arrays = {}
    for item in header.pop("arrays"):
        _require(isinstance(item, list) and len(item) == 3, "a shape that is none")
        name, *shape = item
        _require(isinstance(name, str) and all(map(_is_natural, shape)), "a shape that is none")
        stop = end + 8 * shape[0] * shape[1]
        _require(stop <= len(body), "an array longer than the file")
        array = np.frombuffer(body[end:stop], dtype="<f8").reshape(shape).astype(np.float64)
        _require(bool(np.isfinite(array).all()), "NaN or infinite centers")
        arrays[name], end = array, stop
    _require(end == len(body), "a rest behind the arrays")
    return header, arrays


def check_fit(
    values: dict[str, Any],
    arrays: Sequence[dict[str, np.ndarray]],
    config: FitConfig,
    n_features: int,
) -> None:
    """Raise unless this is a state of a fit with these parameters (``run.Fit.state``)."""
    _require(_is_natural(values["seed"]) and _is_natural(values["judged"]), "seed or judged")
    _require(values["seed"] == config.seed or not config.seed_given, "another seed")
    _require(len(values["runs"]) == config.n_init, "another number of restarts")
    _require(any(run["dropped"] is None for run in values["runs"]), "every restart dropped")
    for run, own in zip(values["runs"], arrays, strict=True):
        _require(_is_natural(run["passes"]) and _is_natural(run["seeding_passes"]), "passes")
        _require(run["dropped"] is None or _is_natural(run["dropped"]), "dropped")
        if run["lloyd"] or own:
            _check_lloyd(run["lloyd"], own, config.k, n_features)


def _check_lloyd(
    values: dict[str, Any], arrays: dict[str, np.ndarray], k: int, n_features: int
) -> None:
    """Raise unless this is a state of rounds (``lloyd_run.LloydRun.state``)."""
    for name in ("n_iter", "local_steps", "last_steps"):
        _require(_is_natural(values[name]), name)
    for name in ("converged", "is_auto"):
        _require(_is_bool(values[name]), name)
    for name in ("bound", "last_inertia"):
        _require(values[name] is None or _is_amount(values[name]), name)
    _require(values["local_steps"] >= 1, "local_steps")
    _require(isinstance(values["rounds"], list), "rounds")
    for number, row in enumerate(values["rounds"], start=1):
        _check_round(row, number)
    wanted = {"centers"}
    if values["best"] is not None:
        wanted.add("best")
        inertia, iteration = values["best"]
        _require(_is_amount(inertia) and _is_natural(iteration), "best")
    _require(arrays.keys() == wanted, "other arrays than expected")
    shape = arrays["centers"].shape
    _require(1 <= shape[0] <= k and shape[1] == n_features, "centers of another shape")
    _require(all(array.shape == shape for array in arrays.values()), "centers of another shape")
    empty = values["empty"]
    _require(all(_is_natural(place) and place < shape[0] for place in empty), "empty clusters")
    _require(len(set(empty)) == len(empty) < shape[0] and isinstance(empty, list), "empty clusters")


def _check_round(row: dict[str, Any], number: int) -> None:
    kinds = {"int": _is_natural, "float": _is_number, "bool": _is_bool, "str": _is_text}
    _require(row.keys() == {item.name for item in fields(RoundRecord)}, "rounds")
    for item in fields(RoundRecord):
        _require(kinds[str(item.type)](row[item.name]), f"{item.name} of a round")
    _require(row["round"] == number and row["local_steps"] >= 1, "number of a round")


def _require(holds: bool, subject: str) -> None:
    if not holds:
        raise ValueError(subject)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_natural(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0
