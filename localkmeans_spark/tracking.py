"""A model in MLflow: parameters, cost by round, a page, and a model that scores without Spark.

MLflow is imported when it is asked for: ``pip install 'localkmeans_spark[mlflow]'``.
"""

from __future__ import annotations

import json
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from localkmeans_spark._version import __version__
from localkmeans_spark.errors import Fact, invalid
from localkmeans_spark.libraries import OLDEST
from localkmeans_spark.persistence import model_of, parts_of

if TYPE_CHECKING:
    from localkmeans_spark.model import LocalKMeansModel
    from localkmeans_spark.summary import LocalKMeansSummary

_ARRAYS, _METADATA = "arrays.npz", "model.json"
_TYPES = {"tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "long",
          "float": "float"}  # fmt: skip


def log_to_mlflow(model: LocalKMeansModel, name: str = "model", **options: Any) -> Any:
    """Log a model, and what is known of its fit, to MLflow's active run.

    Parameters
    ----------
    model : LocalKMeansModel
    name : str
        The model becomes ``runs:/<run>/<name>``.
    **options
        Of ``mlflow.pyfunc.log_model``, such as ``registered_model_name`` and ``signature``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        ``mlflow.pyfunc.load_model(info.model_uri)`` labels pandas tables and arrays without Spark;
        its ``get_raw_model()`` is the LocalKMeansModel (MLflow 3).

    Raises
    ------
    ImportError
        Without MLflow, with the command that installs it.
    InvalidInputError
        If no run is active.
    """
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError as error:
        fix = "pip install 'localkmeans_spark[mlflow]'"
        raise ImportError(f"log_to_mlflow needs mlflow: {fix}") from error
    run = mlflow.active_run()
    if run is None:
        fix = "Call it inside 'with mlflow.start_run():'."
        raise invalid("log_to_mlflow", "a run of MLflow", "active", Fact("none"), fix)
    values = {param.name: value for param, value in model.extractParamMap().items()}
    # The client does not cut long values, and servers of an MLflow before 2.8 refuse longer ones.
    mlflow.log_params({k: str(v)[:500] for k, v in values.items() if v is not None})
    if model.hasSummary:
        _log_fit(mlflow, run.info.run_id, model.summary)
    place = "name" if int(mlflow.__version__.split(".")[0]) >= 3 else "artifact_path"
    told = {place: name, "signature": _signature(model), **mlflow_requirements(), **options}
    with TemporaryDirectory() as folder:
        data = Path(folder) / "localkmeans"
        _save(model, data)
        return mlflow.pyfunc.log_model(loader_module=__name__, data_path=str(data), **told)


def mlflow_requirements() -> dict[str, list[str]]:
    """Return what every ``log_model`` of MLflow must be told, for models to load elsewhere.

    ``mlflow.spark.log_model(model, "model", **mlflow_requirements())``: what MLflow infers
    lacks this library. It travels along as code, so it need not be on a package index.
    """
    found = [(name, str(import_module(name).__version__)) for name in OLDEST]
    needed = [f"{name}=={version.split('+')[0]}" for name, version in found]
    package = Path(__file__).parent
    if package.is_dir():
        return {"pip_requirements": needed, "code_paths": [str(package)]}
    return {"pip_requirements": [*needed, f"localkmeans_spark=={__version__}"]}  # from a zip


def _log_fit(mlflow: Any, run_id: str, summary: LocalKMeansSummary) -> None:
    from mlflow.entities import Metric

    record, now = summary.record, int(time.time() * 1000)
    figures = {"trainingCost": record.inertia, "numIter": record.n_iter,
               "numRounds": record.n_rounds, "reverts": record.reverts, "rows": record.n_points,
               "seconds": record.seconds["total"]}  # fmt: skip
    mlflow.log_metrics({key: float(value) for key, value in figures.items()})
    metrics = [Metric("cost", cost, now, step) for step, cost in record.costs()]
    mlflow.MlflowClient().log_batch(run_id, metrics=metrics)
    mlflow.log_dict(record.to_dict(), "localkmeans/fit.json")
    page = f"<!doctype html><meta charset='utf-8'><title>k-means</title>{summary._repr_html_()}"
    mlflow.log_text(page, "localkmeans/summary.html")


def _signature(model: LocalKMeansModel) -> Any:
    """Return names and types of the columns the model was fitted on; None where not known."""
    training = model.summary._training if model.hasSummary else None
    names = model.getFeaturesCols()
    if training is None or not names:
        return None
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    kinds = dict(training[1].dtypes)
    columns = [ColSpec(_TYPES.get(kinds.get(name, ""), "double"), name) for name in names]
    return ModelSignature(Schema(columns), Schema([ColSpec("integer", "prediction")]))


def _save(model: LocalKMeansModel, folder: Path) -> None:
    arrays, metadata = parts_of(model)
    folder.mkdir()
    np.savez(folder / _ARRAYS, **dict[str, Any](arrays))
    (folder / _METADATA).write_text(json.dumps(metadata), encoding="utf-8")


def _load_pyfunc(path: str) -> _Scorer:
    """Return the model that :func:`log_to_mlflow` wrote; MLflow calls this by its name."""
    from localkmeans_spark.model import LocalKMeansModel

    metadata = json.loads((Path(path) / _METADATA).read_text(encoding="utf-8"))
    with np.load(Path(path) / _ARRAYS) as arrays:
        return _Scorer(model_of(LocalKMeansModel, metadata, dict(arrays)))


class _Scorer:
    """What ``mlflow.pyfunc`` calls."""

    def __init__(self, model: LocalKMeansModel) -> None:
        self._model = model

    def get_raw_model(self) -> LocalKMeansModel:
        return self._model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> np.ndarray:
        """Return the cluster of each row of a table (by name, or all columns in order)."""
        rows = model_input
        if isinstance(rows, pd.DataFrame):
            names, column = self._model.getFeaturesCols(), self._model.getFeaturesCol()
            missing = [name for name in names or () if name not in rows]
            if missing:
                found = Fact(f"none in {list(rows.columns)}")
                fix = "Give the columns of the fit by their names."
                raise invalid("LocalKMeansModel", f"column '{missing[0]}'", "there", found, fix)
            if not names and column in rows:
                rows = np.array([getattr(v, "toArray", lambda v=v: v)() for v in rows[column]])
            else:
                rows = (rows[list(names)] if names else rows).to_numpy(np.float64, na_value=np.nan)
        return np.atleast_1d(self._model.predict(rows))
