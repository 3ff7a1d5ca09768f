"""The state of fits after each round, kept on a file system, and taken up again by the next run.

::

    checkpointDir/localkmeans-<fingerprint>/round-000007.npz

The fingerprint stands for the rows as they lie in their partitions and for every parameter. A file
holds one JSON text and the centers as arrays (no pickle); it is written aside and then renamed.
"""

from __future__ import annotations

import io
import json
import logging
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from localkmeans_spark.engine.config import FitConfig
from localkmeans_spark.engine.data_summary import DataSummary
from localkmeans_spark.engine.fingerprint import differences, digest, fingerprint
from localkmeans_spark.engine.hadoop_folder import HadoopFolder
from localkmeans_spark.errors import invalid
from localkmeans_spark.fit.run import Fit

logger = logging.getLogger("localkmeans_spark")

_FORMAT = 1
_PREFIX = "localkmeans-"


class NoCheckpoint:
    """What a fit without ``checkpointDir`` asks: nothing is kept."""

    def resume(self, fits: list[Fit], data: DataSummary) -> None:
        """Bring fits to where they stood after their last round, if there is a checkpoint."""

    def save(self, fits: Sequence[Fit]) -> None:
        """Keep the state of the fits after a round."""

    def remove(self) -> None:
        """Forget the state: the fits are done."""


def open_checkpoint(session: SparkSession, config: FitConfig) -> NoCheckpoint:
    """Return where the state of a fit is kept.

    Raises
    ------
    InvalidInputError
        If the directory cannot be made, before any long work.
    """
    if config.checkpoint_dir is None:
        return NoCheckpoint()
    try:
        folder = HadoopFolder(session, config.checkpoint_dir)
        folder.create()
    except OSError as error:
        raise invalid(
            config.owner, "parameter 'checkpointDir'", "a directory that can be written to",
            config.checkpoint_dir, f"The file system says: {error}.",
        ) from None  # fmt: skip
    return Checkpoint(folder, config.owner)


class Checkpoint(NoCheckpoint):
    """State of a fit, or of several that run side by side, in a folder of its own.

    Parameters
    ----------
    parent : HadoopFolder
        The user's ``checkpointDir``.
    owner : str
    """

    def __init__(self, parent: HadoopFolder, owner: str) -> None:
        self._parent, self._owner = parent, owner
        self._fingerprint: dict[str, Any] = {}
        self._folder = parent
        self._is_broken = False

    def resume(self, fits: list[Fit], data: DataSummary) -> None:
        """Bring fits to where they stood after their last round, if there is a checkpoint."""
        self._fingerprint = fingerprint([item.config for item in fits], data)
        name = _PREFIX + digest(json.dumps(self._fingerprint).encode())
        self._folder = self._parent.child(name)
        found = self._newest(self._folder)
        if found is None:
            self._tell_of_others(name)
            return
        header, arrays = found
        for place, values in enumerate(header["fits"]):
            fits[place] = Fit(replace(fits[place].config, seed=values["seed"]), data)
            fits[place].restore(values, _arrays_of(arrays, place, len(values["runs"])))
        message = "%s: resumed after round %d from the checkpoint in %s"
        logger.info(message, self._owner, header["round"], self._folder.path)

    def save(self, fits: Sequence[Fit]) -> None:
        """Keep the state of the fits after a round; only the newest stays."""
        if self._is_broken:
            return
        number = max(item.n_rounds for item in fits)
        states = [item.state() for item in fits]
        header = {
            "format": _FORMAT,
            "round": number,
            "fingerprint": self._fingerprint,
            "fits": [values for values, _ in states],
        }
        arrays = {
            f"{place}.{restart}.{name}": array
            for place, (_, restarts) in enumerate(states)
            for restart, own in enumerate(restarts)
            for name, array in own.items()
        }
        try:
            self._folder.create()
            before = self._folder.names()
            self._folder.write(f"round-{number:06d}.npz", _pack(header, arrays))
            for name in before:
                if name != f"round-{number:06d}.npz":
                    self._folder.remove(name)
        except OSError as error:  # no reason to throw the fit away
            self._is_broken = True
            text = f"{self._owner}: no more checkpoints in {self._folder.path}: {error}"
            for item in fits:
                item.warnings.append(text)

    def remove(self) -> None:
        """Delete the state: the fits are done."""
        try:
            self._folder.remove()
        except OSError as error:
            message = "%s: the checkpoint in %s could not be removed: %s"
            logger.warning(message, self._owner, self._folder.path, error)

    def _newest(self, folder: HadoopFolder) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        names = [name for name in folder.names() if name.startswith("round-")]
        if not names:
            return None
        try:
            return _unpack(folder.read(names[-1]))
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            message = "%s: the checkpoint %s/%s cannot be read and is not used: %s"
            logger.warning(message, self._owner, folder.path, names[-1], error)
            return None

    def _tell_of_others(self, own: str) -> None:
        """Say in one line that a checkpoint lies here that is not this fit's."""
        for name in self._parent.names():
            if not name.startswith(_PREFIX) or name == own:
                continue
            folder = self._parent.child(name)
            found = self._newest(folder)
            if found is None:
                continue
            reasons = "; ".join(differences(found[0]["fingerprint"], self._fingerprint))
            message = "%s: the checkpoint in %s is of another fit and is not used (%s)"
            logger.warning(message, self._owner, folder.path, reasons)
            return


def _arrays_of(
    arrays: dict[str, np.ndarray], place: int, n_restarts: int
) -> list[dict[str, np.ndarray]]:
    found: list[dict[str, np.ndarray]] = [{} for _ in range(n_restarts)]
    for key, array in arrays.items():
        fit, restart, name = key.split(".")
        if int(fit) == place:
            found[int(restart)][name] = array
    return found


def _pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    everything: dict[str, Any] = {"header": text, **arrays}
    stream = io.BytesIO()
    np.savez(stream, **everything)
    return stream.getvalue()


def _unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != _FORMAT:
        raise ValueError(f"format {header['format']}")
    return header, arrays
