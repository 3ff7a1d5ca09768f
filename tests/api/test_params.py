"""The parameter table and its Spark face. No test here starts a session."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.ml import Pipeline
from pyspark.ml.clustering import KMeans
from pyspark.ml.param import Param, Params
from pyspark.ml.tuning import ParamGridBuilder

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel
from localkmeans_spark.params import PARAMETERS

ROOT = Path(__file__).parents[2]

GOOD = {
    "featuresCol": "f",
    "featuresCols": ["a", "b"],
    "predictionCol": "cluster",
    "distanceCol": "d",
    "distancesCol": "all",
    "secondCol": "second",
    "marginCol": "margin",
    "weightCol": "w",
    "k": 7,
    "maxIter": 3,
    "tol": 0.0,
    "localSteps": 1,
    "safeguard": False,
    "nInit": 4,
    "emptyClusters": "reseed",
    "checkpointDir": "hdfs:///checkpoints",
    "seed": -5,
    "initMode": "k-means||",
    "initSteps": 4,
    "initialCenters": [[0.0, 1.0], [2.0, 3.0]],
    "distanceMeasure": "euclidean",
    "standardize": True,
    "solver": "block",
    "maxBlockSizeInMB": 0.0,
    "numPartitions": 3,
    "dtype": "float64",
    "handleInvalid": "keep",
    "canonicalOrder": True,
    "verbose": True,
}
BAD = [
    ("featuresCol", ""),
    ("featuresCol", 3),
    ("featuresCols", []),
    ("featuresCols", ["a", "a"]),
    ("featuresCols", "a,b"),
    ("predictionCol", ""),
    ("distanceCol", 1),
    ("weightCol", 1),
    ("k", 0),
    ("k", -1),
    ("k", 2.5),
    ("k", "3"),
    ("k", True),
    ("k", None),
    ("maxIter", -1),
    ("tol", -1e-9),
    ("tol", float("nan")),
    ("tol", float("inf")),
    ("tol", "0"),
    ("localSteps", 0),
    ("safeguard", 1),
    ("nInit", 0),
    ("nInit", 1.5),
    ("nInit", 1_001),
    ("nInit", 10**7),
    ("emptyClusters", "drop"),
    ("checkpointDir", ""),
    ("seed", 2**64),
    ("seed", 1.5),
    ("initMode", "kmeans++"),
    ("initSteps", 0),
    ("initSteps", 1001),
    ("initialCenters", [1.0, 2.0]),
    ("initialCenters", [[np.nan]]),
    ("initialCenters", [[1.0], [2.0, 3.0]]),
    ("initialCenters", np.empty((0, 2))),
    ("initialCenters", "centers"),
    ("distanceMeasure", "manhattan"),
    ("solver", "row"),
    ("maxBlockSizeInMB", 16.0),
    ("numPartitions", 0),
    ("numPartitions", 2**31),
    ("dtype", "float16"),
    ("handleInvalid", "ignore"),
    ("canonicalOrder", "yes"),
    ("verbose", None),
]


def stem(name: str) -> str:
    return name[0].upper() + name[1:]


def test_buildable_before_a_session_exists():
    code = (
        "from localkmeans_spark import LocalKMeans\n"
        "from pyspark import SparkContext\n"
        "kmeans = LocalKMeans(k=3, seed=1).copy()\n"
        "kmeans.explainParams()\n"
        "try: kmeans.setK(0)\n"
        "except ValueError: pass\n"
        "assert SparkContext._active_spark_context is None\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_kernel_imports_on_a_worker_without_pyspark_ml():
    code = "import sys, localkmeans_spark.kernel.assign\nassert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_the_signature_shows_the_table():
    shown = dict(inspect.signature(LocalKMeans.__init__).parameters)
    del shown["self"]
    assert {name: parameter.default for name, parameter in shown.items()} == {
        name: row.default for name, row in PARAMETERS.items()
    }
    assert list(shown) == list(PARAMETERS)


def test_every_parameter_has_a_param_a_setter_and_a_getter():
    kmeans = LocalKMeans()
    assert {param.name for param in kmeans.params} == set(PARAMETERS) == set(GOOD)
    for name, row in PARAMETERS.items():
        assert isinstance(getattr(kmeans, name), Param)
        assert row.help in getattr(kmeans, name).doc
        assert getattr(kmeans, "get" + stem(name))() == row.default
        assert getattr(kmeans, "set" + stem(name)).__doc__


@pytest.mark.parametrize("name", GOOD)
def test_setter_getter_constructor_and_param_map_agree(name: str):
    value = GOOD[name]
    by_setter = LocalKMeans()
    assert getattr(by_setter, "set" + stem(name))(value) is by_setter
    by_constructor = LocalKMeans(**{name: value})
    by_map = LocalKMeans()
    by_map = by_map.copy({by_map.getParam(name): value})
    by_params = LocalKMeans().setParams(**{name: value})
    for kmeans in (by_setter, by_constructor, by_map, by_params, by_setter.copy()):
        assert np.array_equal(getattr(kmeans, "get" + stem(name))(), value)
        assert kmeans.isSet(name)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_values_are_refused_on_every_way_in(name: str, value: object):
    row = PARAMETERS[name]
    message = f"LocalKMeans: parameter '{name}' must be {row.rule}; got "
    kmeans = LocalKMeans()
    ways = [
        lambda: LocalKMeans(**{name: value}),
        lambda: getattr(kmeans, "set" + stem(name))(value),
        lambda: kmeans.setParams(**{name: value}),
        lambda: kmeans.set(kmeans.getParam(name), value),
        lambda: kmeans.copy({kmeans.getParam(name): value}),
        lambda: ParamGridBuilder().addGrid(kmeans.getParam(name), [value]).build(),
    ]
    for way in ways:
        with pytest.raises(InvalidInputError) as caught:
            way()
        assert str(caught.value).startswith(message)
        assert str(caught.value).endswith(row.fix)
    assert not kmeans.isSet(name)


def test_the_message_shows_a_large_array_by_its_shape():
    with pytest.raises(InvalidInputError, match=r"got an array of shape \(3, 0\)\."):
        LocalKMeans(initialCenters=np.empty((3, 0)))


def test_none_unsets_what_starts_unset():
    kmeans = LocalKMeans(seed=3, weightCol="w")
    kmeans.setSeed(None).setWeightCol(None)
    assert kmeans.getSeed() is None
    assert kmeans.getWeightCol() is None
    assert not kmeans.isDefined("seed")


def test_clear_restores_the_default():
    kmeans = LocalKMeans(maxIter=3)
    kmeans.clear(kmeans.maxIter)
    assert kmeans.getMaxIter() == 20


def test_whole_floats_count_as_integers_as_in_mllib():
    k = LocalKMeans(k=3.0).getK()
    assert k == 3
    assert isinstance(k, int)
    assert LocalKMeans(k=np.int64(4)).getK() == 4


@pytest.mark.parametrize("names", [np.array(["a", "b"]), pd.Index(["a", "b"]), ("a", "b")])
def test_names_may_be_an_array(names):
    assert LocalKMeans(featuresCols=names).getFeaturesCols() == ["a", "b"]


def test_unknown_names_are_refused():
    with pytest.raises(InvalidInputError, match=r"one of canonicalOrder, .*; got 'kk'"):
        LocalKMeans().setParams(kk=3)
    with pytest.raises(TypeError):
        LocalKMeans(kk=3)
    with pytest.raises(TypeError):
        LocalKMeans(3)  # keywords only, as MLlib


def test_copies_are_independent_and_keep_the_uid():
    kmeans = LocalKMeans(k=3, initialCenters=[[1.0], [2.0], [3.0]])
    twin = kmeans.copy()
    twin.setK(4)
    assert (kmeans.getK(), twin.getK()) == (3, 4)
    assert twin.uid == kmeans.uid
    assert not twin.getInitialCenters().flags.writeable


def test_initial_centers_are_copied_when_set():
    mine = np.array([[1.0], [2.0]])
    kmeans = LocalKMeans(initialCenters=mine)
    mine[0] = 99.0
    assert kmeans.getInitialCenters()[0, 0] == 1.0


def test_the_later_of_the_two_features_setters_wins():
    kmeans = LocalKMeans(featuresCols=["a"]).setFeaturesCol("v")
    assert kmeans.getFeaturesCols() is None
    kmeans.setFeaturesCols(["a", "b"])
    assert kmeans.getFeaturesCol() == "features"


def test_explain_params_tells_meaning_range_and_values():
    text = LocalKMeans(k=3).explainParams()
    assert "k: Number of clusters. Must be an integer >= 1. (default: 2, current: 3)" in text
    assert "seed: Seed of all random draws" in text


def test_the_model_shares_all_params_but_a_few_about_fitting():
    model = LocalKMeansModel([[0.0], [1.0]])
    only_to_fit = {"initialCenters", "nInit", "emptyClusters", "checkpointDir"}
    assert {param.name for param in model.params} == set(PARAMETERS) - only_to_fit
    with pytest.raises(InvalidInputError, match=r"^LocalKMeansModel: parameter 'predictionCol'"):
        model.setPredictionCol("")


def test_the_class_documentation_lists_every_parameter():
    for name, row in PARAMETERS.items():
        assert f"{name} : {row.rule}, default" in LocalKMeans.__doc__
    assert "{parameters}" not in LocalKMeans.__doc__


@pytest.mark.parametrize("name", GOOD)
def test_the_param_of_the_class_stands_for_that_of_the_instance(name: str):
    of_class = pickle.loads(pickle.dumps(getattr(LocalKMeans, name)))
    kmeans = LocalKMeans().copy({of_class: GOOD[name]})
    assert np.array_equal(getattr(kmeans, "get" + stem(name))(), GOOD[name])
    assert kmeans.isSet(name)
    model = LocalKMeansModel([[0.0], [1.0]]).copy({of_class: GOOD[name]})
    assert not model.hasParam(name) or model.getOrDefault(name) == GOOD[name]
    with pytest.raises(InvalidInputError, match=r"parameter 'k' must be an integer"):
        LocalKMeans().copy({LocalKMeans.k: 0})


def test_the_param_of_the_instance_wins_over_that_of_the_class():
    kmeans = LocalKMeans()
    assert kmeans.copy({kmeans.k: 3, LocalKMeans.k: 4}).getK() == 3


def test_a_pipeline_hands_each_stage_the_params_of_all():
    one, two, other = LocalKMeans(), LocalKMeans(), Params()
    foreign = {two.k: 7, KMeans.tol: 0.5, Param(other, "k", ""): 8}
    copies = Pipeline(stages=[one, two]).copy({one.k: 5, **foreign, LocalKMeans.maxIter: 9})
    found = [(stage.getK(), stage.getTol(), stage.getMaxIter()) for stage in copies.getStages()]
    assert found == [(5, 1e-4, 9), (7, 1e-4, 9)]


@pytest.mark.parametrize("other", [LocalKMeans(), KMeans], ids=["instance", "class"])
def test_a_map_of_others_params_is_refused_where_it_is_given(other: Any):
    kmeans, model, nothing = LocalKMeans(), LocalKMeansModel([[0.0], [1.0]]), object()
    ways = [
        lambda: kmeans.fit(nothing, {other.k: 3}),
        lambda: kmeans.fit(nothing, [{}, {other.k: 3}]),
        lambda: kmeans.fitMultiple(nothing, [{other.k: 3}]),
        lambda: model.transform(nothing, {other.k: 3}),
    ]
    told = r"LocalKMeans(Model)?: the parameter map must be one with params of \w+; got 'k' of "
    for way in ways:
        with pytest.raises(InvalidInputError, match=told):
            way()
