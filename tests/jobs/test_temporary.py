"""Temporary directories go with their process; those of killed ones at the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MAKE = (
    "import sys, time; from jobs.temporary import temporary_directory as t; "
    "print(t('npz'), flush=True); sys.stdin.read()"
)


def start(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_those_of_killed_processes_are_removed_and_no_others(tmp_path):
    (tmp_path / "localkmeans-notes").mkdir()
    killed, abandoned = start(tmp_path)
    alive, in_use = start(tmp_path)
    assert abandoned.is_dir()  # still in use when the second one looked
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    last, own = start(tmp_path)
    assert (abandoned.is_dir(), in_use.is_dir(), own.is_dir()) == (False, True, True)
    for process in (alive, last):
        process.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["localkmeans-notes"]
    assert abandoned.name.startswith("localkmeans-npz-")
