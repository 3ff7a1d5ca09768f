"""Twelve faults in fits on a real cluster: the small form of ``make soak``."""

import re
import subprocess
import sys

import pytest

from tests.soak.cluster import REPOSITORY


@pytest.mark.timeout(900)
def test_fits_give_the_same_bits_whatever_is_killed(tmp_path):
    words = ["--faults", "12", "--minutes", "5", "--cases", "4"]
    command = [sys.executable, "-m", "tests.soak.run", *words, "--seed", "7"]
    with subprocess.Popen(
        [*command, "--output", str(tmp_path)],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        try:
            told, errors = run.communicate(timeout=800)
        except BaseException:
            run.terminate()  # it stops its cluster then
            raise
    assert run.returncode == 0, f"{told}\n{errors[-3000:]}"
    faults = re.search(r"(\d+) faults in", told)
    assert faults and int(faults[1]) > 5, told  # 12, unless the computer is very busy
