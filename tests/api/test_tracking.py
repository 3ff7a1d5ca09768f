"""Models in MLflow. What is kept and scored is tested everywhere, the rest where MLflow is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.ml.linalg import Vectors

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel
from localkmeans_spark.libraries import OLDEST
from localkmeans_spark.tracking import _load_pyfunc, _save, log_to_mlflow, mlflow_requirements

ROWS = [(f"n{i}", i % 3 * 100, float(i % 4)) for i in range(24)]
ELSEWHERE = """
import json, sys, mlflow.pyfunc, pandas as pd
model = mlflow.pyfunc.load_model(sys.argv[1])
import localkmeans_spark
labels = model.predict(pd.read_json(sys.argv[2])[["age", "income"]].astype({"age": "float"}))
print(json.dumps([localkmeans_spark.__file__, labels.tolist()]))
"""


@pytest.fixture(scope="module")
def fitted(spark):
    frame = spark.createDataFrame(ROWS, "name string, income bigint, age double")
    kmeans = LocalKMeans(k=3, seed=1, featuresCols=["age", "income"], standardize=True)
    model = kmeans.fit(frame)
    return model, [row.prediction for row in model.transform(frame).collect()]


def test_what_is_kept_labels_plain_columns(fitted, tmp_path):
    model, labels = fitted
    _save(model, tmp_path / "kept")
    found = _load_pyfunc(str(tmp_path / "kept"))
    table = pd.DataFrame(ROWS, columns=["name", "income", "age"])
    assert found.predict(table).tolist() == labels
    assert found.predict(table.iloc[5:6]).tolist() == labels[5:6]
    assert found.predict(table[["age", "income"]].to_numpy()).tolist() == labels
    loaded = found.get_raw_model()
    assert loaded.uid == model.uid and loaded.extractParamMap() == model.extractParamMap()
    assert loaded.summary.record == model.summary.record
    with pytest.raises(InvalidInputError, match="column 'age' must be there; got none in"):
        found.predict(table.drop(columns="age"))
    with pytest.raises(InvalidInputError, match="got 1 NaN or infinite number"):
        found.predict(table.assign(age=[None, *table["age"][1:]]))


def test_vectors_arrays_and_columns_in_order(tmp_path):
    _save(LocalKMeansModel([[0.0, 0.0], [9.0, 9.0]]), tmp_path / "kept")
    found = _load_pyfunc(str(tmp_path / "kept"))
    rows = [[8.0, 9.0], [1.0, 0.0]]
    for each in (rows, [Vectors.dense(row) for row in rows], [np.array(row) for row in rows]):
        assert found.predict(pd.DataFrame({"id": [1, 2], "features": each})).tolist() == [1, 0]
    assert found.predict(pd.DataFrame(rows, columns=["a", "b"])).tolist() == [1, 0]
    assert not found.get_raw_model().hasSummary


def test_without_mlflow_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'localkmeans_spark\[mlflow\]'"):
        log_to_mlflow(LocalKMeansModel([[0.0]]))


def test_requirements_name_every_library_and_the_code():
    told = mlflow_requirements()
    assert [line.split("==")[0] for line in told["pip_requirements"]] == list(OLDEST)
    assert (Path(told["code_paths"][0]) / "tracking.py").is_file()


@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_a_run_has_it_all_and_the_model_loads_elsewhere(fitted, store, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    if store == "sqlite":
        pytest.importorskip("alembic")
    monkeypatch.chdir(tmp_path)
    place = {"file": (tmp_path / "runs").as_uri(), "sqlite": f"sqlite:///{tmp_path}/runs.db"}
    mlflow.set_tracking_uri(place[store])
    model, labels = fitted
    with pytest.raises(InvalidInputError, match="a run of MLflow must be active; got none"):
        log_to_mlflow(model)
    with mlflow.start_run() as run:
        info = log_to_mlflow(model, metadata={"by": "test"})
    client, run_id = mlflow.MlflowClient(), run.info.run_id
    data = client.get_run(run_id).data
    assert data.params["k"] == "3" and data.params["featuresCols"] == "['age', 'income']"
    assert data.metrics["trainingCost"] == model.summary.trainingCost
    costs = {metric.step: metric.value for metric in client.get_metric_history(run_id, "cost")}
    assert costs[1] == model.summary.record.rounds[0].inertia
    assert costs[model.summary.numRounds + 1] == model.summary.trainingCost
    pages = {item.path for item in client.list_artifacts(run_id, "localkmeans")}
    assert pages == {"localkmeans/fit.json", "localkmeans/summary.html"}
    assert info.signature.inputs.input_names() == ["age", "income"]
    assert [str(kind) for kind in info.signature.inputs.input_types()] == [
        "DataType.double", "DataType.long",
    ]  # fmt: skip
    loaded = mlflow.pyfunc.load_model(f"runs:/{run_id}/model")
    table = pd.DataFrame(ROWS, columns=["name", "income", "age"])
    assert loaded.predict(table[["age", "income"]]).tolist() == labels
    assert isinstance(loaded.get_raw_model(), LocalKMeansModel)
    table.to_json(tmp_path / "table.json")
    ended = subprocess.run(  # no Java, and no library but the one that came with the model
        [sys.executable, "-P", "-c", ELSEWHERE, info.model_uri, str(tmp_path / "table.json")],
        env={"PATH": os.environ["PATH"], "JAVA_HOME": "/nowhere", "MLFLOW_ALLOW_FILE_STORE": "true",
             "MLFLOW_TRACKING_URI": place[store]},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    file, found = json.loads(ended.stdout.splitlines()[-1])
    assert found == labels
    assert "code" in Path(file).parts and Path(file).parents[1] != Path.cwd()
