"""What is left out of the stderr of Spark's processes, and what is not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

DAEMON = '  File "/x/pyspark.zip/pyspark/daemon.py", line 264, in manager\n'
IDLE = f"Traceback (most recent call last):\n{DAEMON}BrokenPipeError: [Errno 32] Broken pipe\n"
OWN = 'Traceback (most recent call last):\n  File "mine.py", line 1, in f\nValueError: no\n'


def _filtered(text: str) -> str:
    """Return what the filter leaves of the stderr of a process that writes ``text``."""
    code = (
        "import subprocess, sys\n"
        "from jobs.quiet_start import quiet_start\n"
        "with quiet_start():\n"
        "    child = subprocess.Popen([sys.executable, '-c', sys.argv[1]])\n"
        "child.wait()\n"
        "import os, threading\n"
        "os.close(2)\n"  # the last writer but the child: the filter comes to its end
        "[t.join(10) for t in threading.enumerate() if t.name == 'stderr-filter']\n"
    )
    writes = f"import sys; sys.stderr.write({text!r})"
    done = subprocess.run(
        [sys.executable, "-c", code, writes], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return done.stderr


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("Picked up JAVA_TOOL_OPTIONS\nreal\n", "real\n"),
        (f"{IDLE}{IDLE}real\n", "real\n"),
        (OWN, OWN),
        ("".join(line * 2 for line in IDLE.splitlines(keepends=True)) + "real\n", "real\n"),
        (f"{IDLE}{OWN}{IDLE}", OWN),
        ("Traceback (most recent call last):\n" + DAEMON + "ValueError: no\n",) * 2,
        ("Traceback (most recent call last):\n" + DAEMON,) * 2,
    ],
)
def test_idle_workers_are_not_heard_and_everything_else_is(written: str, left: str) -> None:
    assert _filtered(written) == left
