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
# Local paths need no session.
DRAFT = (
    "import sys; from jobs.outputs import Draft\n"
    "with Draft('fit', 'out', False, 'metrics.json') as draft:\n"
    "    folder = draft.begin(None)\n"
    "    folder.child('metrics.json').write(b'{}')\n"
    "    print(folder.path, flush=True)\n"
    "    sys.stdin.read() and draft.publish()"
)


def start(folder: Path, code: str = MAKE) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(REPOSITORY)},
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


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_killed_job_s_output_is_removed_by_the_next_one_and_no_other(tmp_path):
    others = [".out.partial-by-hand", ".out.old-1", ".output.partial-1"]
    for name in others:
        (tmp_path / name).mkdir()
    killed, abandoned = start(tmp_path, DRAFT)
    alive, in_use = start(tmp_path, DRAFT)
    assert abandoned.is_dir()
    kill(killed)
    assert (abandoned / "metrics.json").exists()
    last, own = start(tmp_path, DRAFT)
    assert (abandoned.exists(), in_use.is_dir(), own.is_dir()) == (False, True, True)
    last.communicate("publish")
    alive.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "out"])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["metrics.json"]


def test_another_machine_s_output_is_left_alone(tmp_path):
    killed, abandoned = start(tmp_path, DRAFT)
    kill(killed)
    (abandoned / ".in-use").write_text("another machine")
    last, _ = start(tmp_path, DRAFT)
    last.communicate()
    assert abandoned.is_dir()
