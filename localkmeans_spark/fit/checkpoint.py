"""The state of fits after each round, kept on a file system, and taken up again by the next run.

::

    checkpointDir/localkmeans-<fingerprint>/round-000007.state

The fingerprint stands for the rows as they lie in their partitions, for every parameter and for the
library's version. The files of the last two rounds are kept: one that is damaged is set aside, and
the one before serves. A file is the SHA-256 of all that follows, and a NumPy archive: centers, and
everything else as JSON.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from localkmeans_spark._version import __version__
from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.errors import invalid
from localkmeans_spark.fit.run import Fit
from localkmeans_spark.spark_private import HadoopPath

logger = logging.getLogger("localkmeans_spark")

_PREFIX = "localkmeans-"


def open_checkpoint(session: SparkSession, config: FitConfig) -> Checkpoint:
    """Return where the state of a fit is kept.

    Raises
    ------
    InvalidInputError
        If the directory cannot be made, before any long work.
    """
    if config.checkpoint_dir is None:
        return Checkpoint(None)
    try:
        folder = HadoopPath(session, config.checkpoint_dir)
        folder.create()
    except OSError as error:
        raise invalid(
            OWNER, "parameter 'checkpointDir'", "a directory that can be written to",
            config.checkpoint_dir, f"The file system says: {error}.",
        ) from None  # fmt: skip
    return Checkpoint(folder)


class Checkpoint:
    """State of a fit, or of several that run side by side, in a folder of its own.

    Parameters
    ----------
    parent : HadoopPath or None
        The user's ``checkpointDir``; None to keep nothing.
    """

    def __init__(self, parent: HadoopPath | None) -> None:
        self._parent = parent
        self._folder: HadoopPath | None = None
        self._newest, self._is_broken = "", False

    def resume(self, fits: list[Fit], data: DataSummary) -> None:
        """Bring fits to where they stood after their last round, if there is a checkpoint."""
        if self._parent is None:
            return
        name = _PREFIX + fingerprint([item.config for item in fits], data)
        self._folder = self._parent.child(name)
        for name in reversed(_rounds(self._folder)):
            try:
                fits[:] = self._read(name, fits, data)
            except Exception as error:  # whatever is in the file, it does not end a fit
                message = "%s: the checkpoint %s/%s cannot be used and is set aside: %r"
                logger.warning(message, OWNER, self._folder, name, error)
                continue
            self._newest = name
            message = "%s: resumed after round %d from the checkpoint in %s"
            number = max(item.resumed_round for item in fits)
            logger.info(message, OWNER, number, self._folder)
            return
        self._tell_of_others(self._parent, self._folder)

    def _read(self, name: str, fits: Sequence[Fit], data: DataSummary) -> list[Fit]:
        """Return the fits of a file.

        Raises
        ------
        Exception
            Of any kind, if the file is damaged.
        """
        assert self._folder is not None
        states, arrays = unpack(self._folder.child(name).read())
        found = []
        for place, (item, values) in enumerate(zip(fits, states, strict=True)):
            own = [
                {name: arrays[key] for name in ("centers", "best")
                 if (key := f"{place}.{restart}.{name}") in arrays}
                for restart in range(item.config.n_init)
            ]  # fmt: skip
            found.append(Fit(replace(item.config, seed=values["seed"]), data))
            found[-1].restore(values, own)
        return found

    def save(self, fits: Sequence[Fit]) -> None:
        """Keep the state of the fits after a round, and that of the round before."""
        if self._folder is None or self._is_broken:
            return
        states = [item.state() for item in fits]
        arrays = {
            f"{place}.{restart}.{name}": array
            for place, (_, restarts) in enumerate(states)
            for restart, own in enumerate(restarts)
            for name, array in own.items()
        }
        name = f"round-{max(item.n_rounds for item in fits):06d}.state"
        try:
            self._folder.create()
            self._folder.child(name).write(pack([values for values, _ in states], arrays))
            for other in _rounds(self._folder):
                if other not in (name, self._newest):
                    self._folder.child(other).remove()
        except OSError as error:  # no reason to throw the fit away
            text = f"{OWNER}: no more checkpoints in {self._folder}: {error}"
            self._is_broken = True
            for item in fits:
                item.warnings.append(text)
        self._newest = name

    def remove(self) -> None:
        """Delete the state: the fits are done."""
        if self._folder is None:
            return
        try:
            self._folder.remove()
        except OSError as error:
            message = "%s: the checkpoint in %s could not be removed: %s"
            logger.warning(message, OWNER, self._folder, error)

    def _tell_of_others(self, parent: HadoopPath, own: HadoopPath) -> None:
        """Say in one line that a checkpoint lies here that is not this fit's."""
        for name in parent.names():
            folder = parent.child(name)
            if name.startswith(_PREFIX) and str(folder) != str(own):
                message = (
                    "%s: the checkpoint in %s is of another fit and is not used: its rows, their "
                    "partitions, a parameter or the library's version differ. To take it up, fit "
                    "with the same; delete it if it is of no use"
                )
                logger.warning(message, OWNER, folder)
                return


def _rounds(folder: HadoopPath) -> list[str]:
    """Return the names of a folder's files, the last round's last."""
    found = [name for name in folder.names() if name.startswith("round-")]
    return sorted(found, key=lambda name: (len(name), name))


def pack(values: list[Any], arrays: dict[str, Any]) -> bytes:
    """Return a file of JSON-ready values and arrays."""
    stream = io.BytesIO()
    np.savez(stream, values=np.frombuffer(json.dumps(values).encode(), dtype=np.uint8), **arrays)
    body = stream.getvalue()
    return hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Return what :func:`pack` was given."""
    size = hashlib.sha256().digest_size
    digest, body = data[:size], data[size:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("cut or damaged")
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        arrays = dict(file)
    return json.loads(arrays.pop("values").tobytes()), arrays


def fingerprint(configs: Sequence[FitConfig], data: DataSummary) -> str:
    """Return a name for what must be the same for a checkpoint to be taken up.

    That is every bit of the rows as they lie in their partitions, too.
    """
    rows = [[item.partition, item.checksum] for item in data.statistics]
    return _digest([__version__, rows, [_parameters(config) for config in configs]])


def _parameters(config: FitConfig) -> dict[str, Any]:
    values = asdict(config)
    del values["checkpoint_dir"]  # says nothing about the fit
    if not config.seed_given:
        del values["seed"]  # any will do: the checkpoint's
    if config.initial_centers is not None:
        values["initial_centers"] = _digest(np.asarray(config.initial_centers).tolist())
    return values


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
