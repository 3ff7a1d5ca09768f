"""libsvm files: as wide as the model asks for, and told in one line when they are malformed."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from localkmeans_spark.errors import Fact, InvalidInputError, invalid

_NUMBER = r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|NaN|Infinity)[dDfF]?"
_LINE = rf"^\s*(#.*|{_NUMBER}( +0*[1-9]\d*:{_NUMBER})*)?\s*$"
# What Spark's reader stumbles over: a number that is none, a part without a colon, the order.
_MALFORMED = re.compile(
    r"NumberFormatException|ArrayIndexOutOfBoundsException|indices should be|requirement failed"
)
_LONGEST = 80


def read_libsvm(
    owner: str, spark: SparkSession, path: str, n_features: int | None = None
) -> DataFrame:
    """Return a libsvm file as a table of ``label`` and ``features``.

    Parameters
    ----------
    owner : str
    spark : SparkSession
    path : str
    n_features : int or None
        Width to give the rows where the highest index of the file is below it: a file need not
        name a feature that is 0 in all its rows. None leaves the width to the file.

    Raises
    ------
    InvalidInputError
        When a line is not ``label index:value index:value ...`` with ascending indices from 1.
    """
    reader = spark.read.format("libsvm")
    try:
        frame = reader.load(path)  # reads the file once, for its width
    except Exception as error:
        of_spark = type(error).__module__.startswith(("pyspark", "py4j"))
        if not of_spark or not _MALFORMED.search(str(error)):
            raise
        raise _malformed(owner, spark, path, str(error)) from None
    width = frame.schema["features"].metadata.get("numFeatures")
    if n_features is not None and width is not None and width < n_features:
        frame = reader.option("numFeatures", str(n_features)).load(path)
    return frame


def _malformed(owner: str, spark: SparkSession, path: str, told: str) -> InvalidInputError:
    lines = spark.read.text(path).select("value", F.input_file_name().alias("file"))
    wrong = lines.where(~F.col("value").rlike(_LINE)).first()
    if wrong is not None:
        line, name = wrong["value"], wrong["file"].rsplit("/", 1)[-1]
        found = f"the line {_short(line)} in {name}"
    else:  # all are well formed, so it is the order; Spark tells the line
        line_told = re.search(r'line="(.*)"', told)
        found = f"the line {_short(line_told[1])}" if line_told else "something else"
    return invalid(
        owner, f"--input {path}",
        "lines of 'label index:value index:value ...', indices ascending from 1", Fact(found),
        "Mend the file.",
    )  # fmt: skip


def _short(line: str) -> str:
    return repr(line if len(line) <= _LONGEST else line[:_LONGEST] + " …")
