"""The examples in MLlib's own documentation of KMeans, run with our classes.

They are taken from the PySpark that is installed. Each place where ours differs is in
``DIFFERENCES``, with the row of docs/COMPATIBILITY.md that says why.
"""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import numpy as np
import pyspark.ml.clustering as mllib
import pytest

from localkmeans_spark import LocalKMeans, LocalKMeansModel

TABLE = (Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md").read_text()

# (what MLlib's documentation shows, what ours gives, the row that explains it)
DIFFERENCES = [
    ("\nKMeans...\n", "\nLocalKMeans...\n", "`repr(KMeans())`"),
    ("\nKMeansModel...\n", "\nLocalKMeansModel...\n", "`repr(KMeansModel)`"),
    (
        ">>> model.predict(df.head().features)\n0\n",
        ">>> model.predict(df.head().features) in (0, 1)\nTrue\n",
        "Numbers of the clusters",
    ),
    (
        ">>> model2.hasSummary\nFalse\n",
        ">>> model2.hasSummary\nTrue\n",
        "`KMeansModel.hasSummary`",
    ),
]


@pytest.fixture
def legacy_printing():
    # As PySpark prints arrays when it runs its own examples.
    before = np.get_printoptions()
    np.set_printoptions(legacy="1.13")
    yield
    np.set_printoptions(**{**before, "legacy": before["legacy"] or False})


def test_mllibs_examples(spark, tmp_path, legacy_printing):
    text = inspect.cleandoc(mllib.KMeans.__doc__)
    for theirs, ours, row in DIFFERENCES:
        assert theirs in text
        assert row in TABLE
        text = text.replace(theirs, ours)
    names = {
        "KMeans": LocalKMeans,
        "KMeansModel": LocalKMeansModel,
        "spark": spark,
        "temp_path": str(tmp_path),
    }
    test = doctest.DocTestParser().get_doctest(text, names, "MLlib's KMeans", None, 0)
    assert len(test.examples) > 30
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert result.failed == 0, "".join(report)
