"""Every table and every parameter: the right answer, or one line of ours.

``FUZZ_CASES=2000 FUZZ_SEED=1`` runs more cases, drawn anew (``make fuzz``).
"""

import os
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from localkmeans_spark import LocalKMeans
from localkmeans_spark.errors import InvalidInputError
from tests.fuzz.reference import Rows
from tests.fuzz.tables import options, tables

_CASES = int(os.environ.get("FUZZ_CASES", "100"))
_SEED = os.environ.get("FUZZ_SEED")
_MOST_SECONDS = 60


@st.composite
def cases(draw):
    table = draw(tables())
    return table, draw(options(len(table.x)))


def outcome(spark, table, chosen):
    """Fit and label; raise AssertionError unless that ends as it must."""
    rows = Rows(table, chosen)
    df = table.frame(spark)
    try:
        model = _estimator(table, rows, chosen).fit(df)
    except InvalidInputError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "\n" not in refusal, f"more than one line: {refusal}"
        assert rows.may_refuse(), f"refused for no reason: {refusal}"
        return "refused"
    assert not rows.must_refuse(), "took rows that break a rule"
    assert not rows.is_ragged or rows.skips, "took rows of several widths"
    taken = df.where(df["_row"].isin([int(i) for i in rows.usable.nonzero()[0]]))
    labelled = model.transform(taken).select("_row", "prediction").collect()
    labels = [row.prediction for row in sorted(labelled)]
    assert len(labels) == len(rows.x), "rows lost by transform"
    rows.check(model, labels, chosen)
    return "right"


def _estimator(table, rows, chosen):
    params = dict(chosen)
    from_rows = params.pop("from_rows", None)
    if from_rows and len(rows.x):
        params["initialCenters"] = rows.x[:from_rows].tolist()
        params["nInit"] = 1
        params.pop("k")
    if table.weights is not None:
        params["weightCol"] = "weight"
    if table.kind == "columns":
        return LocalKMeans(featuresCols=table.names, **params)
    return LocalKMeans(featuresCol=table.names[0], **params)


@pytest.mark.timeout(30 + 10 * _CASES)
def test_every_table_gets_the_right_answer_or_one_line(spark):
    counts = Counter()
    slowest = 0.0

    @settings(
        max_examples=_CASES,
        derandomize=_SEED is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=True,
    )
    @given(cases())
    def check(case):
        nonlocal slowest
        table, chosen = case
        note(f"{table}\n{chosen}")
        began = time.monotonic()
        counts[outcome(spark, table, chosen)] += 1
        seconds = time.monotonic() - began
        slowest = max(slowest, seconds)
        assert seconds < _MOST_SECONDS, f"{seconds:.0f} s"

    (check if _SEED is None else seeded(int(_SEED))(check))()
    print(f"\n{sum(counts.values())} cases: {dict(counts)}; the slowest took {slowest:.1f} s")
    assert counts["right"] > counts["refused"]
