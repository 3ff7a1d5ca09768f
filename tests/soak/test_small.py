"""Thirty faults in fits on a real cluster: the small form of ``make soak``."""

import subprocess
import sys

import pytest

from tests.soak.cluster import REPOSITORY


@pytest.mark.timeout(900)
def test_fits_give_the_same_bits_whatever_is_killed(tmp_path):
    words = ["--faults", "30", "--cases", "8", "--most-faults", "4", "--seed", "7"]
    command = [sys.executable, "-m", "tests.soak.run", *words, "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
