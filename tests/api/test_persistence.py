"""Save and load: estimators, models, pipelines, and models of earlier versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from chispa import assert_df_equality
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.clustering import KMeans, KMeansModel
from pyspark.ml.evaluation import ClusteringEvaluator
from pyspark.ml.feature import StandardScaler, VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import (
    CrossValidator,
    CrossValidatorModel,
    ParamGridBuilder,
    TrainValidationSplit,
    TrainValidationSplitModel,
)

from localkmeans_spark import InvalidInputError, LocalKMeans, LocalKMeansModel, persistence

MODELS = Path(__file__).parent / "models"


@pytest.fixture(scope="module")
def model(blobs) -> LocalKMeansModel:
    return LocalKMeans(k=3, seed=1, weightCol="weight", distanceCol="d").fit(blobs)


def metadata_file(path: Path) -> Path:
    return next((path / "metadata").glob("part-*"))


def rewrite_metadata(path: Path, **changes: object) -> None:
    file = metadata_file(path)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    for checksum in file.parent.glob(".*.crc"):
        checksum.unlink()


def test_no_zero_has_a_minus(spark, tmp_path):
    # A number as near to 0 as can be keeps its own.
    for made in (
        LocalKMeansModel([[-0.0, 1.0], [-5e-324, -0.0]]),
        LocalKMeansModel([[-0.0, 1.0], [-5e-324, -0.0]], distanceMeasure="cosine"),
    ):
        assert [str(center) for center in made.centers[0]] == ["0.0", "1.0"]
        made.write().overwrite().save(str(tmp_path / "model"))
        loaded = LocalKMeansModel.load(tmp_path / "model")
        signs = [np.signbit(center).tolist() for center in loaded.clusterCenters()]
        assert signs == [[False, False], [True, False]]


def test_a_model_comes_back_whole(model, blobs, tmp_path):
    path = str(tmp_path / "model")
    model.save(path)
    loaded = LocalKMeansModel.load(path)
    assert repr(loaded) == repr(model)
    assert np.array_equal(loaded.clusterCenters(), model.clusterCenters())
    assert np.array_equal(loaded.frame.origin, model.frame.origin)
    assert loaded.frame.dtype == model.frame.dtype == "float32"
    assert loaded.summary.record == model.summary.record
    assert loaded.summary.history.equals(model.summary.history)
    assert {p.name: v for p, v in loaded.extractParamMap().items()} == {
        p.name: v for p, v in model.extractParamMap().items()
    }
    assert_df_equality(loaded.transform(blobs), model.transform(blobs))


def test_predictions_are_gone_after_a_load_with_a_word_on_why(model, tmp_path):
    model.save(str(tmp_path / "model"))
    loaded = LocalKMeansModel.load(str(tmp_path / "model"))
    for field in ("predictions", "cluster"):
        with pytest.raises(InvalidInputError, match="Call transform on the model"):
            getattr(loaded.summary, field)


def test_save_load_save_again(model, tmp_path):
    path = str(tmp_path / "model")
    model.write().overwrite().save(path)
    loaded = LocalKMeansModel.load(path)
    with pytest.raises(InvalidInputError, match=r"write\(\).overwrite\(\).save\(path\)"):
        loaded.save(path)
    loaded.setPredictionCol("again").write().overwrite().save(path)
    assert LocalKMeansModel.load(path).getPredictionCol() == "again"


def test_a_model_without_a_summary(tmp_path):
    path = str(tmp_path / "model")
    LocalKMeansModel([[0.1, 0.2]]).save(path)
    loaded = LocalKMeansModel.load(path)
    assert not loaded.hasSummary
    assert loaded.frame.dtype == "float64"
    assert loaded.clusterCenters()[0].tolist() == [0.1, 0.2]


def test_an_estimator_comes_back_whole(spark, tmp_path):
    path = str(tmp_path / "estimator")
    centers = np.random.default_rng(1).normal(size=(3, 2))
    kmeans = LocalKMeans(k=3, tol=0.0, featuresCols=["a", "b"], initialCenters=centers)
    kmeans.save(path)
    loaded = LocalKMeans.load(path)
    assert loaded.uid == kmeans.uid
    assert np.array_equal(loaded.getInitialCenters(), centers)
    assert (loaded.getK(), loaded.getTol(), loaded.getFeaturesCols()) == (3, 0.0, ["a", "b"])
    assert not loaded.isSet("maxIter")
    LocalKMeans(k=4).write().overwrite().save(path)
    assert LocalKMeans.load(path).getInitialCenters() is None


def test_only_json_and_parquet_are_written(model, tmp_path):
    model.save(str(tmp_path / "model"))
    files = [p.name for p in (tmp_path / "model").rglob("*") if p.is_file()]
    kinds = {name.rsplit(".", 1)[-1] for name in files if not name.startswith((".", "_"))}
    assert kinds == {"txt", "parquet"}
    json.loads(metadata_file(tmp_path / "model").read_text())


def test_models_of_every_format_load(spark):
    found = sorted(path.name for path in MODELS.iterdir())
    assert "v1" in found
    for name in found:
        model = LocalKMeansModel.load(str(MODELS / name))
        assert model.clusterCenters()[0].tolist() == [0.5, 0.5]
        assert model.clusterCenters()[1].tolist() == [8.5, 8.5]
        assert model.predict(Vectors.dense([8.0, 8.0])) == 1
        assert model.getSeed() == 1
        assert model.summary.trainingCost == 2.0
        assert model.summary.clusterSizes == [2, 2]
        assert len(model.summary.history) == model.summary.numRounds


def test_a_later_format_is_refused(tmp_path):
    path = tmp_path / "model"
    shutil.copytree(MODELS / "v1", path)
    rewrite_metadata(path, formatVersion=99, libraryVersion="9.9")
    with pytest.raises(InvalidInputError, match=r"got format 99, of version 9\.9\. Update"):
        LocalKMeansModel.load(str(path))


def test_loading_what_is_something_else(spark, pairs, tmp_path):
    with pytest.raises(InvalidInputError, match="must be a saved LocalKMeansModel; got nothing"):
        LocalKMeansModel.load(str(tmp_path / "missing"))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "metadata").write_text("hello")
    with pytest.raises(InvalidInputError, match="Check the path"):
        LocalKMeansModel.load(str(tmp_path / "text"))
    LocalKMeans().save(str(tmp_path / "estimator"))
    with pytest.raises(InvalidInputError, match="Load it with LocalKMeans"):
        LocalKMeansModel.load(str(tmp_path / "estimator"))
    mllib = KMeans(k=2, seed=1).fit(pairs)
    mllib.save(str(tmp_path / "mllib"))
    with pytest.raises(InvalidInputError, match="use fromMLlib"):
        LocalKMeansModel.load(str(tmp_path / "mllib"))
    assert KMeansModel.load(str(tmp_path / "mllib"))


def test_an_unfinished_save_is_not_a_model(model, tmp_path):
    path = tmp_path / "model"
    model.save(str(path))
    shutil.rmtree(path / "metadata")
    with pytest.raises(InvalidInputError, match="must be a saved LocalKMeansModel"):
        LocalKMeansModel.load(str(path))


def test_pipeline_and_its_model(spark, tmp_path):
    rows = [(float(i % 2) * 10 + i * 0.1, float(i % 2)) for i in range(10)]
    df = spark.createDataFrame(rows, ["a", "b"])
    stages = [
        VectorAssembler(inputCols=["a", "b"], outputCol="raw"),
        StandardScaler(inputCol="raw", outputCol="features"),
        LocalKMeans(k=2, seed=1, initialCenters=[[0.0, 0.0], [2.0, 2.0]]),
    ]
    Pipeline(stages=stages).write().overwrite().save(str(tmp_path / "pipeline"))
    pipeline = Pipeline.load(str(tmp_path / "pipeline"))
    assert pipeline.getStages()[2].getInitialCenters().tolist() == [[0.0, 0.0], [2.0, 2.0]]
    fitted = pipeline.fit(df)
    fitted.write().overwrite().save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    labels = [row["prediction"] for row in loaded.transform(df).orderBy("a").collect()]
    assert labels == [0] * 5 + [1] * 5
    assert loaded.stages[2].summary.k == 2


@pytest.mark.parametrize(
    ("validator", "fitted_class", "extra"),
    [
        (CrossValidator, CrossValidatorModel, {"numFolds": 2}),
        (TrainValidationSplit, TrainValidationSplitModel, {"trainRatio": 0.7}),
    ],
)
def test_model_selection(blobs, tmp_path, validator, fitted_class, extra):
    kmeans = LocalKMeans(seed=1, maxIter=2)
    grid = ParamGridBuilder().addGrid(kmeans.k, [2, 3]).build()
    selection = validator(
        estimator=kmeans, estimatorParamMaps=grid, evaluator=ClusteringEvaluator(), seed=1, **extra
    )
    selection.write().overwrite().save(str(tmp_path / "selection"))
    selection = validator.load(str(tmp_path / "selection"))
    assert selection.getEstimator().getMaxIter() == 2
    fitted = selection.fit(blobs)
    assert isinstance(fitted.bestModel, LocalKMeansModel)
    fitted.write().overwrite().save(str(tmp_path / "fitted"))
    loaded = fitted_class.load(str(tmp_path / "fitted"))
    assert np.array_equal(loaded.bestModel.clusterCenters(), fitted.bestModel.clusterCenters())
    assert loaded.transform(blobs).columns[-1] == "prediction"


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.tex": "x"},
        {"metadata/part-00000": "no JSON"},
        {"metadata/part-00000": '["class"]'},
        {"metadata/v1.metadata.json": '{"class": "a table"}', "data/part-00000.parquet": "x"},
        {"metadata": '{"class": "a file"}'},
        {"": "a file at the path"},
    ],
)
@pytest.mark.parametrize("made", [LocalKMeansModel([[0.0], [1.0]]), LocalKMeans()])
def test_overwrite_leaves_alone_what_was_never_saved(spark, tmp_path, files, made):
    there = tmp_path / "there [1]"
    for name, text in files.items():
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(text)
    told = "must be empty or a saved model or estimator to be overwritten; got something else"
    with pytest.raises(InvalidInputError, match=told):
        made.write().overwrite().save(str(there))
    assert {name: (there / name).read_text() for name in files} == files


@pytest.mark.parametrize("what", [KeyboardInterrupt(), OSError("no space left")])
@pytest.mark.parametrize("saved", [LocalKMeansModel([[0.0], [1.0]]), LocalKMeans(k=2)])
def test_a_save_that_fails_leaves_what_was_there(spark, tmp_path, monkeypatch, saved, what):
    path = tmp_path / "a [1]" / "model"
    saved.save(str(path))

    def fail(*_: object) -> None:
        raise what

    with monkeypatch.context() as patch:
        patch.setattr(persistence, "_write_metadata", fail)
        with pytest.raises((KeyboardInterrupt, InvalidInputError)):
            saved.write().overwrite().save(str(path))
    assert type(saved).load(str(path)).getK() == 2
    assert [item.name for item in path.parent.iterdir() if item.suffix != ".crc"] == ["model"]
    saved.write().overwrite().save(str(path))


def test_a_place_that_cannot_be_written(spark, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInputError) as error:
        LocalKMeansModel([[0.0], [1.0]]).save(str(tmp_path / "file" / "model"))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("stranger", ["notes.txt", "notes/today.txt"])
@pytest.mark.parametrize("saved", [LocalKMeansModel([[0.0], [1.0]]), LocalKMeans(k=3)])
def test_overwrite_leaves_alone_what_lies_beside_a_model(spark, tmp_path, stranger, saved):
    path = tmp_path / "model"
    saved.save(str(path))
    (path / stranger).parent.mkdir(exist_ok=True)
    (path / stranger).write_text("mine")
    with pytest.raises(InvalidInputError, match="must be empty or a saved model"):
        saved.write().overwrite().save(str(path))
    assert (path / stranger).read_text() == "mine"
    assert type(saved).load(str(path)).getK() == saved.getK()


def test_overwrite_replaces_what_was_saved_whatever_class_it_is_of(spark, tmp_path):
    places = {name: str(tmp_path / name) for name in ("empty", "mllib", "pipeline", "ours [1]")}
    (tmp_path / "empty").mkdir()
    KMeans().save(places["mllib"])
    Pipeline(stages=[LocalKMeans()]).save(places["pipeline"])
    LocalKMeans(initialCenters=[[0.0]]).save(places["ours [1]"])
    for path in places.values():
        LocalKMeansModel([[0.0], [1.0]]).write().overwrite().save(path)
        assert LocalKMeansModel.load(path).getK() == 2
