"""Every example that help() shows is executed."""

from __future__ import annotations

import doctest
import importlib

import pytest

NAMES = [
    "estimator",
    "model",
    "summary",
    "predict",
    "sweep",
    "describe",
    "drift",
    "metrics",
    "theory",
]


@pytest.mark.parametrize("name", NAMES)
def test_examples(spark, tmp_path, name):
    module = importlib.import_module(f"localkmeans_spark.{name}")
    names = {"spark": spark, "temp_path": str(tmp_path)}
    result = doctest.testmod(module, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    if name in ("estimator", "model"):
        assert result.attempted >= 6
