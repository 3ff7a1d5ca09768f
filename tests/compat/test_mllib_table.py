"""docs/COMPATIBILITY.md is complete, and its verdicts are true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyspark.ml.clustering as mllib
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.ml.param import Param

from localkmeans_spark import LocalKMeans, LocalKMeansModel
from localkmeans_spark.params import PARAMETERS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "COMPATIBILITY.md").read_text()
ROWS = {
    cells[0].strip("`"): cells[1]
    for line in TEXT.splitlines()
    if len(cells := [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]) == 3
}
CLASSES = ["KMeans", "KMeansModel", "KMeansSummary"]


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def verdict_on(class_name: str, member: str) -> str | None:
    """Its own row, its parameter's, or that of the estimator's method of the same name."""
    keys = [f"{class_name}.{member}"]
    accessor = re.fullmatch("[gs]et([A-Z])(.*)", member)
    if accessor:
        keys.append(accessor[1].lower() + accessor[2])
    keys += [member, f"KMeans.{member}"]
    return next((ROWS[key] for key in keys if key in ROWS), None)


@pytest.fixture(scope="module")
def ours(spark) -> dict[str, object]:
    model = LocalKMeansModel.load(str(ROOT / "tests" / "api" / "models" / "v1"))
    return {"KMeans": LocalKMeans(), "KMeansModel": model, "KMeansSummary": model.summary}


def test_verdicts_are_known_words():
    known = {"same", "better", "partly", "different", "different default", "absent"}
    assert set(ROWS.values()) - {"here", "---"} <= known


@pytest.mark.parametrize("name", CLASSES)
def test_everything_of_mllib_has_a_true_row(ours, name):
    members = public(getattr(mllib, name))
    assert len(members) > 5
    for member in members:
        verdict = verdict_on(name, member)
        assert verdict is not None, f"{name}.{member} has no row"
        assert (member in dir(ours[name])) == (verdict != "absent"), f"{name}.{member}: {verdict}"


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_only_ours_is_listed(ours, name):
    section = TEXT.split(f"## `{name}`")[1].split("\n## ")[0]
    # Parameters and their getters and setters have a section of their own.
    accessors = {f"{verb}{p[0].upper()}{p[1:]}" for p in PARAMETERS for verb in ("get", "set")}
    if name == "KMeansModel":
        accessors = {accessor for accessor in accessors if accessor.startswith("get")}
    known = public(getattr(mllib, name)) | accessors | set(PARAMETERS) | {"uid"}
    for member in public(ours[name]) - known:
        # A row of its own: MLlib has it in later versions of PySpark.
        listed = f"`{member}`" in section or f"{name}.{member}" in ROWS
        assert listed, f"{name}.{member} is not mentioned"


def test_parameters_only_here_are_listed():
    section = TEXT.split("## Parameters")[1].split("\n## ")[0]
    for name in PARAMETERS:
        assert f"`{name}`" in section


def test_defaults_are_mllibs_where_the_table_says_so(spark):
    theirs, ours = mllib.KMeans(), LocalKMeans()
    params = [name for name in public(theirs) if isinstance(getattr(theirs, name), Param)]
    for name in params:
        if ROWS[name] in ("same", "better", "partly") and name != "seed":
            assert theirs.isDefined(name) == ours.isDefined(name), name
            if theirs.isDefined(name):
                assert theirs.getOrDefault(name) == ours.getOrDefault(name), name
    assert theirs.getInitMode() != ours.getInitMode()


def test_mllibs_training_cost_is_one_iteration_behind(spark):
    """The reason for a "better" in the table; it may go when MLlib changes."""
    rows = np.array([(i, i * i % 7) for i in range(50)], dtype=float)
    df = spark.createDataFrame([(Vectors.dense(row),) for row in rows], ["features"]).coalesce(1)
    for estimator, exact in ((mllib.KMeans, False), (LocalKMeans, True)):
        model = estimator(k=3, maxIter=1, seed=1).fit(df)
        centers = np.array(model.clusterCenters())
        cost = ((rows[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()
        assert (model.summary.trainingCost == pytest.approx(cost, rel=1e-9)) == exact
