"""Directories of a process that do not outlive it, not even one that was killed.

A killed process cannot remove its own: the next one does. Each directory holds a file that its
process keeps locked, and the system lets go of the lock however the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import glob
import os
import platform
import shutil
import tempfile
from pathlib import Path

_PREFIX = "localkmeans-"
_LOCK = ".in-use"


def temporary_directory(purpose: str) -> Path:
    """Make a directory that is removed when this process ends."""
    remove_abandoned(Path(tempfile.gettempdir()), _PREFIX)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
    hold(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def hold(folder: Path) -> int:
    """Mark a directory as in use until this process ends; return what :func:`release` needs."""
    new = folder / f"{_LOCK}-new"
    handle = os.open(new, os.O_CREAT | os.O_RDWR, 0o600)
    os.write(handle, platform.node().encode())
    with contextlib.suppress(OSError):  # no locks here: then nobody takes it for abandoned, either
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    new.rename(folder / _LOCK)  # only now does anybody look at it
    return handle


def release(folder: Path, handle: int) -> None:
    """Take the mark away: the directory stays."""
    (folder / _LOCK).unlink(missing_ok=True)
    os.close(handle)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove directories whose processes, on this machine, have ended.

    Those without a mark are left alone, and those of other machines that share the disk: not every
    shared file system tells of their locks.
    """
    for mark in parent.glob(f"{glob.escape(prefix)}*/{_LOCK}"):
        try:
            handle = os.open(mark, os.O_RDWR)
        except OSError:  # another user's, or just removed
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.read(handle, 1024) == platform.node().encode():
                shutil.rmtree(mark.parent, ignore_errors=True)
        except OSError:  # in use
            continue
        finally:
            os.close(handle)
