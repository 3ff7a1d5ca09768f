"""Temporary directories that do not outlive their process, not even one that was killed."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "localkmeans-"
_LOCK = ".in-use"


def temporary_directory(purpose: str) -> Path:
    """Make a directory that is removed when this process ends.

    A killed process cannot remove its own: the next one that asks for a directory does. Each holds
    a file that its process keeps locked, and the system lets go of the lock however that ends.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
    _lock(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _lock(folder: Path) -> None:
    # Left open: it is closed, and the lock gone, when the process ends.
    handle = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned() -> None:
    for mark in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            handle = os.open(mark, os.O_RDWR)
        except OSError:  # another user's, or just removed
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # in use
            continue
        else:
            shutil.rmtree(mark.parent, ignore_errors=True)
        finally:
            os.close(handle)
