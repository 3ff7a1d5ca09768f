"""What tells one fit from another: its parameters and its rows as they lie in their partitions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from localkmeans_spark._version import __version__
from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.data_summary import DataSummary

_LEFT_OUT = {"on_round", "checkpoint_dir", "owner"}


def fingerprint(configs: Sequence[FitConfig], data: DataSummary) -> dict[str, Any]:
    """Return what must be the same for a checkpoint to be taken up, as JSON-ready values."""
    rows = hashlib.sha256()
    for item in data.statistics:
        numbers = [item.machine, item.n_points, item.sum_weights, item.sum_sq]
        for values in (np.array(numbers), item.sums, item.largest, item.origin):
            rows.update(np.ascontiguousarray(values).tobytes())
    return {
        "version": __version__,
        "n_points": data.n_points,
        "n_features": data.n_features,
        "n_partitions": len(data.statistics),
        "rows": rows.hexdigest()[:16],
        "fits": [_parameters(config) for config in configs],
    }


def _parameters(config: FitConfig) -> dict[str, Any]:
    values = {
        item.name: getattr(config, item.name)
        for item in fields(config)
        if item.name not in _LEFT_OUT
    }
    if not config.seed_given:
        del values["seed"]  # any will do: the checkpoint's
    if config.initial_centers is not None:
        values["initial_centers"] = digest(np.asarray(config.initial_centers).tobytes())
    values["data"] = asdict(config.data)
    return json.loads(json.dumps(values))


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Say in a few words what differs between two fingerprints."""
    found = [
        f"{name}: {theirs.get(name)}, now {ours[name]}"
        for name in ("version", "n_points", "n_features", "n_partitions")
        if theirs.get(name) != ours[name]
    ]
    if not found and theirs["rows"] != ours["rows"]:
        found.append("other rows, or rows in another order")
    if len(theirs["fits"]) != len(ours["fits"]):
        return [*found, f"{len(theirs['fits'])} fits side by side, now {len(ours['fits'])}"]
    for before, now in zip(theirs["fits"], ours["fits"], strict=True):
        found += [
            f"{name}: {before.get(name)}, now {now.get(name)}"
            for name in sorted(before.keys() | now.keys())
            if before.get(name) != now.get(name)
        ]
    return found


def digest(data: bytes) -> str:
    """Return a short name for some bytes."""
    return hashlib.sha256(data).hexdigest()[:16]
