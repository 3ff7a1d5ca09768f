"""Command-line options as parameters of the estimator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.options import FitOptions
from localkmeans_spark import LocalKMeans
from localkmeans_spark.errors import InvalidInputError

PARAMS = {
    "k": "k",
    "local_steps": "localSteps",
    "max_iter": "maxIter",
    "tol": "tol",
    "seed": "seed",
    "init": "initMode",
    "n_init": "nInit",
    "empty_clusters": "emptyClusters",
    "checkpoint_dir": "checkpointDir",
    "distance_measure": "distanceMeasure",
    "partitions": "numPartitions",
    "dtype": "dtype",
    "safeguard": "safeguard",
    "handle_invalid": "handleInvalid",
    "weight_col": "weightCol",
}
"""Parameters of the estimator by the name of the option that sets them."""

_COLUMNS = {"features_col": "featuresCol", "feature_cols": "featuresCols"}

# An error raised by a Python worker, or by a column.
_RAISED = re.compile(
    rf"(?:\b{InvalidInputError.__name__}: |\[USER_RAISED_EXCEPTION\] (?=LocalKMeans))"
    r"(.+?)(?: SQLSTATE: \w+)?$",
    re.MULTILINE,
)


def make_estimator(owner: str, options: FitOptions) -> LocalKMeans:
    """Return the estimator that the options describe; no session is needed.

    Raises
    ------
    InvalidInputError
        When a value is out of range; the message names the flag.
    """
    estimator = LocalKMeans(predictionCol="prediction", distanceCol="distance", verbose=True)
    for option in PARAMS:
        value = getattr(options, option)
        if value is not None:
            set_by_flag(owner, estimator, option, value)
    return estimator


def set_by_flag(owner: str, estimator: LocalKMeans, option: str, value: Any) -> None:
    """Set the parameter behind an option; an error names the flag, as that is what was typed."""
    with in_words_of_flags(owner):
        estimator.set(estimator.getParam(PARAMS[option]), value)


@contextmanager
def in_words_of_flags(owner: str) -> Iterator[None]:
    """Let the library's errors speak of ``--local-steps`` where they say ``localSteps``.

    That includes those raised on workers, which arrive inside an error of Spark's.
    """
    try:
        yield
    except Exception as error:
        text = str(error)
        if not isinstance(error, InvalidInputError):
            raised = _RAISED.search(text)
            if raised is None or not type(error).__module__.startswith(("pyspark", "py4j")):
                raise
            text = raised[1]
        raise InvalidInputError(_reworded(owner, text)) from None


def _reworded(owner: str, text: str) -> str:
    text = re.sub(r"^LocalKMeans(Model)?: ", f"{owner}: ", text)
    for option, param in (PARAMS | _COLUMNS).items():
        flag = "--" + option.replace("_", "-")
        text = text.replace(f"parameter '{param}'", flag).replace(f"({param})", f"({flag})")
        # A choice of two, "... to 'skip' (drop them) or 'keep'", is one of plain words, too.
        text = re.sub(rf"(\bset {param} to '\w+' \([^)]*\) or )'(\w+)'", r"\1\2", text)
        text = re.sub(rf"\bset {param}(?: to |=)'(\w+)'", rf"give {flag} \1", text)
        text = re.sub(rf"\bSet {param}(?: to |=)'(\w+)'", rf"Give {flag} \1", text)
    return text
