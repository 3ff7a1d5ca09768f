"""Fits give what they gave before, to the bit where the arithmetic library is the same.

``fits.json`` holds cost, sizes, rounds and a hash of centers and round records. A change that
means to give other numbers renews it (``python -m tests.frozen.renew``) in a commit of its own that
says why. Where NumPy's BLAS has another kernel than the one that made the file, last bits differ:
there only cost, sizes and rounds are compared.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from tests.frozen.fits import FITS, result_of

FILE = Path(__file__).with_name("fits.json")


def arithmetic() -> list[str]:
    """Name what decides the last bits: NumPy and the kernels of its BLAS."""
    blas = [item for item in threadpool_info() if item["user_api"] == "blas"]
    return [np.__version__, *sorted({item.get("architecture", "?") for item in blas})]


@pytest.mark.parametrize("name", FITS)
def test_fit_gives_what_it_gave(spark, name):
    kept = json.loads(FILE.read_text())
    before, now = dict(kept["fits"][name]), result_of(spark, name)
    if kept["arithmetic"] != arithmetic():
        del before["bits"], now["bits"]
    assert now.pop("cost") == pytest.approx(before.pop("cost"), rel=1e-6)
    assert now == before
