"""Every parameter's name, type, default, range and words, in one table.

The constructor's defaults, the setters' checks, ``explainParams``, the class's documentation and
the error messages all read :data:`PARAMETERS`.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import numpy as np

from localkmeans_spark.errors import Fact, InvalidInputError, count_of, invalid
from localkmeans_spark.param_types import (
    Parameter,
    anything,
    as_centers,
    as_flag,
    as_integer,
    as_names,
    as_number,
    as_steps,
    as_text,
    one_of,
)

# Restarts, steps of k-means|| (each a pass over the rows), values of k in a row: more are a slip.
# All restarts begin side by side, each with a row of every partition and a seeding on the driver. A
# best end that one restart in 100 finds is found by 1,000 but for 4 times in 100,000.
MOST = 1_000
# What Spark can count.
_MOST_PARTITIONS = 2**31 - 1

NEW_COLUMNS = ("predictionCol", "distanceCol", "distancesCol", "secondCol", "marginCol")
"""Parameters that name columns which transform adds."""

PARAMETERS: dict[str, Parameter] = {
    "featuresCol": Parameter(
        "features", "a column name", as_text, bool,
        "Column with the features: a vector (dense or sparse) or an array of numbers.",
        "Name one column, or give several numeric columns with featuresCols.",
        owner="rows",
    ),
    "featuresCols": Parameter(
        None, "a list of different column names", as_names,
        lambda names: len(names) > 0 and all(names) and len(set(names)) == len(names),
        "Numeric columns that together are the features, instead of featuresCol.",
        "List each numeric column once, for example ['age', 'income'].",
        owner="rows",
    ),
    "predictionCol": Parameter(
        "prediction", "a column name", as_text, bool,
        "Column that transform adds with the number of each row's cluster (int).",
        "Give the new column a name.",
        owner="rows",
    ),
    "distanceCol": Parameter(
        None, "a column name", as_text, bool,
        "Column that transform adds with the distance (distanceMeasure) to that cluster's center "
        "(double); no such column when unset.",
        "Give the new column a name, or leave it unset.",
        owner="rows",
    ),
    "distancesCol": Parameter(
        None, "a column name", as_text, bool,
        "Column that transform adds with the distances to all k centers (array of double); no such "
        "column when unset.",
        "Give the new column a name, or leave it unset.",
        owner="rows",
    ),
    "secondCol": Parameter(
        None, "a column name", as_text, bool,
        "Column that transform adds with the number of the second nearest cluster (int; null when "
        "k is 1); no such column when unset.",
        "Give the new column a name, or leave it unset.",
        owner="rows",
    ),
    "marginCol": Parameter(
        None, "a column name", as_text, bool,
        "Column that transform adds with 1 - distance / distance to the second nearest center "
        "(double): near 0 for rows between two clusters; no such column when unset.",
        "Give the new column a name, or leave it unset.",
        owner="rows",
    ),
    "weightCol": Parameter(
        None, "a column name", as_text, anything,
        "Column with a weight >= 0 for each row; every row weighs 1 when unset or empty. Rows of "
        "weight 0 count for nothing, as if they were absent.",
        "Name a numeric column, or leave it unset.",
        owner="rows",
    ),
    "k": Parameter(
        2, "an integer >= 1", as_integer, lambda k: k >= 1,
        "Number of clusters.",
        "Set it to the number of clusters you want.",
    ),
    "maxIter": Parameter(
        20, "an integer >= 0", as_integer, lambda steps: steps >= 0,
        "Most Lloyd iterations to run.",
        "Leave it at 20 unless the summary says the fit did not converge.",
    ),
    "tol": Parameter(
        1e-4, "a finite number >= 0", as_number, lambda tol: 0 <= tol < np.inf,
        "Stop when no center moves farther than this (distanceMeasure).",
        "Use 0 to run until the centers stand still.",
    ),
    "localSteps": Parameter(
        5, 'an integer >= 1, or "auto"', as_steps, lambda steps: steps == "auto" or steps >= 1,
        'Lloyd steps each partition does on its own rows between two exchanges of centers; "auto" '
        "lets the partitions stop by themselves when a step gains little, after 20 steps (5 in the "
        "first round) and half of the iterations left at most.",
        "Use 1 for plain distributed Lloyd.",
    ),
    "safeguard": Parameter(
        True, "True or False", as_flag, anything,
        "Take back a round that made the cost worse and go on with fewer local steps, so that "
        "partitions with different kinds of rows do no harm.",
        "Leave it True unless you want the algorithm exactly as published.",
    ),
    "nInit": Parameter(
        1, f"an integer from 1 to {MOST:,}", as_integer,
        lambda count: 1 <= count <= MOST,
        "Restarts from different initial centers, run side by side in the same passes; hopeless "
        "ones are dropped after a few rounds, and the best is returned.",
        "Use 5 when single fits end at different costs.",
        owner="fit",
    ),
    "emptyClusters": Parameter(
        "keep", "'keep' or 'reseed'", as_text, one_of("keep", "reseed"),
        "What to do with a cluster that no row of any partition is nearest to: keep its center, "
        "or put it on a row drawn like an initial center.",
        "Use 'reseed' to have k clusters with rows.",
        owner="fit",
    ),
    "checkpointDir": Parameter(
        None, "the path of a directory", as_text, bool,
        "Directory, on any file system Spark can write to, where the state of the fit is kept "
        "after each round; the same fit started again goes on from there. Removed at the end. Fits "
        "that run at the same time need one each.",
        "Name a directory that outlives the driver, or leave it unset.",
        owner="fit",
    ),
    "seed": Parameter(
        None, "an integer of at most 64 bits", as_integer, lambda seed: -(2**63) <= seed < 2**64,
        "Seed of all random draws; when unset every fit draws a fresh one and records it.",
        "Give a whole number, or leave it unset.",
    ),
    "initMode": Parameter(
        "k-means++", "'k-means++', 'local-k-means++', 'k-means||' or 'random'", as_text,
        one_of("k-means++", "local-k-means++", "k-means||", "random"),
        "How to choose the initial centers: 'k-means++' is greedy, each center the best of several "
        "draws by a sample of the rows; 'local-k-means++' draws each once, by the law of the "
        "LocalKMeans paper; 'k-means||' is Bahmani's; 'random' takes rows at random.",
        "To start from centers of your own, use initialCenters.",
    ),
    "initSteps": Parameter(
        2, f"an integer from 1 to {MOST:,}", as_integer,
        lambda steps: 1 <= steps <= MOST,
        "Steps of the k-means|| initialization; the other modes do not need it.",
        "Leave it at 2.",
    ),
    "initialCenters": Parameter(
        None, "a (k, n_features) array of finite numbers, or a fitted k-means model", as_centers,
        anything,
        "Centers to start from: an array, or a model of this library, MLlib or scikit-learn. "
        "Nothing is drawn at random then, and k follows from it if unset.",
        "Give one row of numbers for each cluster.",
        owner="fit",
    ),
    "distanceMeasure": Parameter(
        "euclidean", "'euclidean' or 'cosine'", as_text, one_of("euclidean", "cosine"),
        "Distance between rows and centers. With 'cosine' (1 - cos of the angle) rows and centers "
        "are scaled to length 1, and cost, distances and tol are cosine distances; rows of zeros "
        "have no direction and fall under handleInvalid.",
        "To use another distance, transform the features first.",
    ),
    "standardize": Parameter(
        False, "True or False", as_flag, anything,
        "Divide each feature by its standard deviation before rows are compared, so that all "
        "features count alike. Centers stay in the rows' own units and transform takes rows as "
        "they are; cost and distances are those of the divided features. Not with cosine distance.",
        "Use True when features have different units.",
    ),
    "solver": Parameter(
        "auto", "'auto' or 'block'", as_text, one_of("auto", "block"),
        "How the rows are processed; both names mean blocks of rows as matrices.",
        "Leave it at 'auto': the row-by-row solver gives the same result, only later.",
    ),
    "maxBlockSizeInMB": Parameter(
        0.0, "0.0", as_number, lambda size: size == 0,
        "Size of a block of rows in MB; 0.0 lets the library choose.",
        "Leave it at 0.0: the library chooses a size that fits the processor's cache.",
    ),
    "numPartitions": Parameter(
        None, f"an integer from 1 to {_MOST_PARTITIONS:,}", as_integer,
        lambda count: 1 <= count <= _MOST_PARTITIONS,
        "Partitions to spread the rows over before fitting; the DataFrame's own when unset.",
        "Use about the number of cores of the cluster, or leave it unset.",
    ),
    "dtype": Parameter(
        "float32", "'float32' or 'float64'", as_text, one_of("float32", "float64"),
        "Precision in which the rows are kept; sums are float64 either way. The largest number, "
        "from the middle of a column that lies far from 0, must be between 1e-15 and 1e16 in size "
        "for float32, between 1e-140 and 1e140 for float64.",
        "Use 'float64' when float32 cannot tell your rows apart.",
    ),
    "handleInvalid": Parameter(
        "error", "'error', 'skip' or 'keep'", as_text, one_of("error", "skip", "keep"),
        "What to do with rows that have a null, NaN or infinite feature, or (transform, evaluate) "
        "one too large for dtype, or (cosine distance) zeros only: fail, leave them out, or (keep) "
        "let transform put them in an extra cluster k; fit leaves them out with keep as with skip.",
        "Use 'skip' to leave such rows out.",
        owner="rows",
    ),
    "canonicalOrder": Parameter(
        False, "True or False", as_flag, anything,
        "Number the clusters by size, largest first, ties by coordinates.",
        "Use True to have the same clusters numbered the same way in every fit.",
    ),
    "verbose": Parameter(
        False, "True or False", as_flag, anything,
        "Show rounds, cost and time left on stderr: in a bar in terminals and notebooks, elsewhere "
        "a line a round; or log them, if the program has set up logging.",
        "Use True to follow a long fit.",
    ),
}  # fmt: skip


def checked(owner: str, name: str, value: Any) -> Any:
    """Return the clean value of a parameter.

    Parameters
    ----------
    owner : str
        The class shown in the message.
    name : str
        A key of :data:`PARAMETERS`.
    value : object

    Raises
    ------
    InvalidInputError
        When the type is wrong or the value is out of range.
    """
    parameter = PARAMETERS[name]
    try:
        clean = parameter.convert(value)
    except (TypeError, ValueError, OverflowError):
        raise _refused(owner, name, value) from None
    if not parameter.holds(clean):
        raise _refused(owner, name, value)
    return clean


def _refused(owner: str, name: str, value: Any) -> InvalidInputError:
    parameter = PARAMETERS[name]
    if isinstance(value, np.ndarray):
        numbers = (
            "" if value.dtype.kind in "fiu" and np.isfinite(value).all() else " with odd values"
        )
        value = Fact(f"an array of shape {value.shape}{numbers}")
    return invalid(owner, f"parameter '{name}'", parameter.rule, value, parameter.fix)


def check_directions(owner: str, subject: str, centers: np.ndarray) -> None:
    """Raise if cosine distance cannot use these centers: a row of zeros has no direction."""
    zeros = int((~centers.any(axis=1)).sum())
    if zeros:
        raise invalid(
            owner, subject, "free of rows of zeros with distanceMeasure='cosine'",
            Fact(f"{zeros} of {count_of(len(centers), 'row')} of zeros"), "Leave them out.",
        )  # fmt: skip


def signature() -> inspect.Signature:
    """Return the signature of the estimator's constructor, as help() and notebooks show it."""
    kind = inspect.Parameter
    return inspect.Signature(
        [
            kind("self", kind.POSITIONAL_OR_KEYWORD),
            *(
                kind(name, kind.KEYWORD_ONLY, default=row.default)
                for name, row in PARAMETERS.items()
            ),
        ]
    )


def parameter_docs() -> str:
    """Return the "Parameters" section of the estimator's documentation."""
    lines = []
    for name, parameter in PARAMETERS.items():
        default = "unset" if parameter.default is None else repr(parameter.default)
        lines.append(f"{name} : {parameter.rule}, default {default}")
        lines += textwrap.wrap(parameter.doc, 95, initial_indent="    ", subsequent_indent="    ")
    return "\n    ".join(lines)
