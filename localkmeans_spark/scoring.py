"""One batch of rows → labels and costs, in the Python workers of ``transform``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from localkmeans_spark.data.arrow_rows import read_features
from localkmeans_spark.data.checks import VALUE_RANGE
from localkmeans_spark.errors import Fact, InvalidInputError, invalid
from localkmeans_spark.kernel.assign import assign_rows, to_frame
from localkmeans_spark.kernel.chunks import rows_made_dense, slices
from localkmeans_spark.kernel.distances import all_sq_distances, second_nearest
from localkmeans_spark.kernel.scale import factors_of, scaled_rows
from localkmeans_spark.kernel.sparse_rows import SparseRows, finite_rows, rows_within
from localkmeans_spark.kernel.spherical import COSINE_OF_SQ, unit_rows

# Labels from here down say how wide rows of a wrong width are (``RowRule.tells_width``); those
# between here and 0 count unusable rows, of which a batch has fewer.
WIDTH_CODE = -(2**30)


class ModelFrame(NamedTuple):
    """Centers and how rows are compared with them.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
        Of length 1 for cosine distance; with ``scales``, those of the divided rows.
    origin : ndarray of shape (n_features,), float64
    dtype : str
        See ``kernel.assign.assign_rows``.
    is_cosine : bool
    scales : ndarray of shape (n_features,), float64, or None
        Standard deviations that features are divided by.
    """

    centers: np.ndarray
    origin: np.ndarray
    dtype: str
    is_cosine: bool = False
    scales: np.ndarray | None = None

    @property
    def factors(self) -> np.ndarray | None:
        """What rows are multiplied by before they are compared; None for nothing."""
        return None if self.scales is None else factors_of(self.scales, self.dtype)

    @property
    def limit(self) -> float:
        """Farthest from the origin that a number may lie; the fit has the same rule."""
        return VALUE_RANGE[self.dtype][1]

    def too_far(self) -> str:
        """Say what lies beyond the limit; with cosine distance, which has none, nothing does."""
        middle = " from the middle of their column" if self.origin.any() else ""
        return f"numbers beyond {self.limit:g}{middle} (dtype='{self.dtype}')"


class RowRule(NamedTuple):
    """What to do with rows that cannot be labelled.

    They are null, have NaN or infinite numbers or some beyond the frame's limit, or are zero for
    cosine distance.

    Attributes
    ----------
    subject : str
        The features as the user knows them, for example ``"column 'features'"``.
    on_invalid : str
        ``"null"`` gives them no label; ``"count"`` gives them minus the number of such rows in
        their batch, for a column that raises; ``"raise"`` raises.
    tells_width : bool
        Give all rows of a batch the label ``WIDTH_CODE - width`` if one has that wrong width,
        instead of raising, which would show the user a worker's stack trace.
    """

    subject: str
    on_invalid: str
    tells_width: bool = False


class Scored(NamedTuple):
    """Labels (n,) int32, whether they are null (n,), and costs (n,) float64 or None.

    A cost is the squared Euclidean distance, or the cosine distance; NaN where there is no label.
    ``distances`` (n, k), not squared, are there if they were asked for.
    """

    labels: np.ndarray
    is_null: np.ndarray
    costs: np.ndarray | None
    distances: np.ndarray | None = None


def label_rows(
    x: Any, frame: ModelFrame, with_costs: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Label rows as the fit labelled them.

    Parameters
    ----------
    x : ndarray of shape (n, n_features) or SparseRows
    frame : ModelFrame
    with_costs : bool

    Returns
    -------
    labels : ndarray of shape (n,), int32
    costs : ndarray of shape (n,), float64; empty without costs
    usable : ndarray of shape (n,), bool, or None
        None when all rows are; labels and costs are those of the usable rows alone.
    """
    if not frame.is_cosine:
        usable = rows_within(x, frame.origin, frame.limit)
    else:
        usable = finite_rows(x)
        x, is_zero = unit_rows(x)
        if is_zero is not None:
            usable = ~is_zero if usable is None else usable & ~is_zero
    if usable is not None:
        x = x[usable]
    labels, costs = assign_rows(
        x, frame.centers, frame.origin, frame.dtype, with_costs, frame.factors
    )
    return labels, COSINE_OF_SQ * costs if frame.is_cosine else costs, usable


def distances_to_all(x: Any, frame: ModelFrame) -> np.ndarray:
    """Return the distances of usable rows to all centers, shape (n, k), float64.

    Parameters
    ----------
    x : ndarray of shape (n, n_features) or SparseRows
    frame : ModelFrame
    """
    if frame.is_cosine:
        x, _ = unit_rows(x)
    factors = frame.factors
    found = np.empty((len(x), len(frame.centers)))
    origin = frame.origin if factors is None else frame.origin * factors
    for rows in slices(len(x), rows_made_dense(x.shape[1])):
        part = x[rows]
        if isinstance(part, SparseRows) and frame.origin.any():
            part = part.toarray()
        elif isinstance(part, SparseRows):
            part = part.astype(frame.dtype)
        if not isinstance(part, SparseRows):
            part = to_frame(part, frame.origin, frame.dtype)
        part = part if factors is None else scaled_rows(part, factors)
        found[rows] = all_sq_distances(part, frame.centers - origin)
    return COSINE_OF_SQ * found if frame.is_cosine else np.sqrt(found)


def score_column(
    column: pa.Array,
    kind: str,
    frame: ModelFrame,
    rule: RowRule,
    with_costs: bool,
    with_all: bool = False,
) -> Scored:
    """Label one Arrow batch (runs on: executor).

    Parameters
    ----------
    column : pyarrow.Array
        Features as ``data.columns.ingest_columns`` selects them.
    kind : str
        Of that column.
    frame : ModelFrame
    rule : RowRule
    with_costs : bool
    with_all : bool
        Also the distances to all centers.

    Raises
    ------
    InvalidInputError
        If a row has another number of features than the centers, or by ``rule.on_invalid``.
    """
    n_features = frame.centers.shape[1]
    n = len(column)
    labels, is_null = np.zeros(n, dtype=np.int32), np.ones(n, dtype=bool)
    costs = np.full(n, np.nan) if with_costs else None
    distances = np.full((n, len(frame.centers)), np.nan) if with_all else None
    rows = read_features(column, kind, n_features)
    if len(rows.other_lengths):
        lengths = np.unique(rows.other_lengths[rows.other_lengths != n_features])
        if rule.tells_width and len(lengths):
            labels[:] = WIDTH_CODE - min(int(lengths[0]), -WIDTH_CODE - 1)
            return Scored(labels, ~is_null, costs, distances)
        found = ", ".join(str(length) for length in lengths[:3])
        raise wrong_width(rule.subject, n_features, found or "indices outside a row")
    found_labels, found_costs, usable = label_rows(rows.x, frame, with_costs)
    kept = rows.kept if usable is None else rows.kept[usable]
    labels[kept], is_null[kept] = found_labels, False
    if costs is not None:
        costs[kept] = found_costs
    if distances is not None:
        x = rows.x if usable is None else rows.x[usable]
        distances[kept] = distances_to_all(x, frame)
    bad = n - len(kept)
    if bad and rule.on_invalid == "raise":
        raise invalid_rows(rule, frame, f"{bad} such row(s) in one batch of rows")
    if bad and rule.on_invalid == "count":
        labels[is_null] = -bad
        is_null[:] = False
    return Scored(labels, is_null, costs, distances)


def as_arrow(scored: Scored) -> pa.Array:
    """Return labels, or a struct of labels and costs, as an Arrow array."""
    mask = scored.is_null if scored.is_null.any() else None
    labels = pa.array(scored.labels, type=pa.int32(), mask=mask)
    if scored.costs is None:
        return labels
    columns = {"label": labels, "cost": pa.array(scored.costs)}
    if scored.distances is not None:
        columns |= _of_distances(scored.labels, scored.distances)
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _of_distances(labels: np.ndarray, distances: np.ndarray) -> dict[str, pa.Array]:
    """Return columns of all distances, of the second nearest center and the margin."""
    n, k = distances.shape
    is_null = np.isnan(distances).any(axis=1)
    second, margin = np.zeros(n, dtype=np.int32), np.full(n, np.nan)
    if k > 1:
        fine = ~is_null
        second[fine], margin[fine] = second_nearest(distances[fine], labels[fine])
    offsets = pa.array(np.arange(n + 1, dtype=np.int32) * k)
    mask = pa.array(is_null) if is_null.any() else None
    lists = pa.ListArray.from_arrays(offsets, pa.array(distances.reshape(-1)), mask=mask)
    return {
        "distances": lists,
        "second": pa.array(second, mask=is_null | (k == 1)),
        "margin": pa.array(margin),
    }


def wrong_width(subject: str, n_features: int, found: object) -> InvalidInputError:
    """Build the error for rows of another width than the centers."""
    return invalid(
        "LocalKMeansModel",
        subject,
        f"{n_features} numbers wide, as the model's centers are",
        Fact(found),
        "Give it the columns that the model was fitted on.",
    )


def invalid_rows(rule: RowRule, frame: ModelFrame, found: str) -> InvalidInputError:
    """Build the error for rows that cannot be labelled."""
    zeros = "rows of zeros, which have no direction for cosine distance"
    return invalid(
        "LocalKMeansModel",
        rule.subject,
        "free of null, NaN and infinite values, and of "
        + (zeros if frame.is_cosine else frame.too_far()),
        Fact(found),
        "Clean them, or set handleInvalid to 'skip' (drop them) or 'keep' (extra cluster k).",
    )
