"""Processes that are started and ended as a group, so that nothing of them stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence

_GRACE_SECONDS = 10


def run_group(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command in a process group of its own and return its exit status as shells report it.

    Ctrl-C reaches the command through this process, and whatever of it is left when it ends, or
    when this process is told to end, is killed.
    """
    process = subprocess.Popen(words, env=env, start_new_session=True)
    try:
        status = process.wait()
    except BaseException:
        end_group(process, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        raise
    finally:
        end_group(process, signal.SIGKILL)
        process.wait()
    return status if status >= 0 else 128 - status


def end_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a process started with ``start_new_session`` and to all of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def children_of(parent: int) -> list[int]:
    """Return the ids of the living processes that ``parent`` started.

    Ended ones that nobody asked after (zombies) are left out: ``spark-class`` leaves one behind.
    """
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in table.splitlines())
    return [int(pid) for pid, ppid, state in rows if int(ppid) == parent and state[0] != "Z"]


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Let Ctrl-C and requests to end wait until the block is through."""
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
