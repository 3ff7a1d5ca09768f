"""What a fit says when its result may not be what the user wants, and what helps."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from localkmeans_spark.config import OWNER, FitConfig
from localkmeans_spark.data.summary import FAR, DataSummary, is_rounding
from localkmeans_spark.fit.lloyd_run import LloydRun
from localkmeans_spark.fit.requests import Assignment
from localkmeans_spark.kernel.differences import sq_gaps
from localkmeans_spark.kernel.nearest import MOST_LOOKED_AT, too_close

# The share of a cost that is worth a word.
_LITTLE = 1e-3
# A fit warns when rounding of the rows is more than a tenth of their squared distances.
_LOST_SHARE = 10.0
# Or when clusters of more than this share of the weight lie too close together for products.
_ROUGH_SHARE = 0.01
# Columns this many times wider than all others, in which this share of what separates the centers
# lies, decide alone. In ten public tables only one has such columns (bytes sent and received in
# the KDD Cup 1999 table, beside rates from 0 to 1).
_WIDER, _SHARE, _NAMED = 10.0, 0.99, 3
# Spreads that differ by more are worth a word.
_UNLIKE = 100.0
# Centers that move by at most s lower the cost by at most sum of weights * s**2 in that step. A fit
# warns if this is more than a thousandth of the cost, that is, if s is above 3 % of the rows' root
# mean square distance. Stopped at 1 to 3 % of it, plain Lloyd on eight real sets and two of blobs
# (k = 5 to 60) was 0.03 % (median) and 0.4 % (nine of ten) above its end; at 3 to 10 %, 0.2 % and
# 2 %; at 10 to 30 %, 2 % and 8 %. The warning proposes a thousandth of that distance.


class FitWarnings:
    """The warnings of a fit that has ended.

    Parameters
    ----------
    data : DataSummary
    config : FitConfig
    centers : ndarray of shape (k, n_features), float64
        Absolute.
    assignment : Assignment
        Of all rows, by these centers.
    """

    def __init__(
        self, data: DataSummary, config: FitConfig, centers: np.ndarray, assignment: Assignment
    ) -> None:
        self._data, self._config, self._centers = data, config, centers
        self._is_cosine = config.data.distance_measure == "cosine"
        self._weights = assignment.weights.sum(axis=0)
        inertia = assignment.inertia.sum(axis=0)
        self._inertia = float(assignment.inertia.sum())
        mean_sq = np.zeros_like(inertia)  # 0 without rows
        np.divide(inertia, self._weights, out=mean_sq, where=self._weights > 0)
        self._mean_sq = mean_sq
        # Most partitions have the origin of the heaviest one.
        self._origin = max(data.statistics, key=lambda item: item.sum_weights).origin

    def all(self, run: LloydRun) -> list[str]:
        """Return all warnings, one line each; ``run`` made the centers."""
        if self._is_cosine:  # rows of length 1: neither rounding nor wide columns
            return list(self._tolerance(run))
        wide: list[str] = []
        if not self._config.data.standardize:  # which is what both advise
            wide = list(self._wide_columns()) or list(self._unlike_spreads())
        return [*self.rounding(), *wide, *self._tolerance(run)]

    def rounding(self) -> list[str]:
        """Say where centers and cost are rough because rows or sums have too few digits."""
        far = list(self._far_values())
        # Far values are rough themselves, which is no news then.
        lost = [] if far else self._lost_digits()
        return [*self._lost_in_double(), *far, *lost, *self._mixed_up()]

    def _lost_in_double(self) -> Iterator[str]:
        """Columns of whole numbers so large that float64 makes neighbors of them equal."""
        size = np.abs(self._data.frame.mean)
        apart = np.spacing(size)
        rough = np.flatnonzero((apart > 1.0) & (self._data.far < 1e3 * apart))
        if len(rough):
            place = rough[0]
            yield (
                f"{OWNER}: {self._column(place)} has values about {size[place]:.2g}, "
                f"which float64 keeps as multiples of {apart[place]:,.0f}: smaller differences are "
                "lost before the fit. Subtract the middle while they are whole numbers."
            )

    def _lost_digits(self) -> Iterator[str]:
        """Rows are kept with too few digits for the distances that were found."""
        dtype, weights, mean_sq = self._config.data.dtype, self._weights, self._mean_sq
        # Rows are off by up to half of their last digit, which is a quarter of the resolution; a
        # twelfth of the square is the mean if all errors are alike likely. Clusters of values
        # beyond the usual are rougher, by their own size.
        eps = float(np.finfo(dtype).eps)
        size = np.maximum(self._data.resolution / 4.0, eps * np.abs(self._centers - self._origin))
        lost = np.einsum("kd,kd->k", size, size) / 12.0
        # Far less than rounding: the rows of a cluster are copies of one.
        is_rough = (weights > 0) & (_LITTLE * lost < mean_sq) & (mean_sq < _LOST_SHARE * lost)
        share = float(weights[is_rough].sum()) / self._data.sum_weights
        if share > _ROUGH_SHARE:
            of_rough = weights[is_rough] / weights[is_rough].sum()
            some = "" if share > 0.995 else f" in clusters with {share:.0%} of the weight"
            yield (
                f"{OWNER}: rows kept as {dtype} are off by about "
                f"{math.sqrt(of_rough @ lost[is_rough]):.2g}{some}, and their distances from the "
                f"centers are {math.sqrt(of_rough @ mean_sq[is_rough]):.2g} (root mean squares): "
                f"centers and cost are rough.{self._more_digits}"
            )

    def _far_values(self) -> Iterator[str]:
        """A few values are so far away that little else counts, or that sums lost other rows."""
        data, used = self._data, self._weights > 0
        weights, mean = self._weights[used], data.frame.mean
        eps = float(np.finfo(np.float64).eps)
        # A sum is off by half a spacing of the last grid for each partition, a center by the
        # rounding of its way to the partitions and back.
        spacing = np.where(data.far > 0.0, data.frame.sum_grids[-1], 0.0)  # sums of zeros are exact
        of_sums = 0.5 * len(data.statistics) * spacing / weights[:, None]
        of_means = eps * (np.abs(self._centers[used] - mean) + np.abs(mean))
        # Rows that are their own center lost nothing.
        sq_off = np.einsum("kd,kd->k", of_sums + of_means, of_sums + of_means)
        is_off = self._mean_sq[used] >= 1e-6 * sq_off
        lost = float(weights[is_off] @ sq_off[is_off])
        least = float(weights @ self._mean_sq[used])
        least = max(least, 1e-9 * data.sum_weights * data.scale**2)
        is_lost = data.scale > 0.0 and lost > _LITTLE * least
        if not (is_lost or data.frame.has_far_rows):
            return
        near = f"half of the rows lie within {data.scale:.2g} of it"
        place = int(data.far.argmax())
        if data.frame.has_far_rows or data.far[place] > FAR * data.scale:
            what = "they take clusters of their own"
            if is_lost:
                what = "centers and cost lost digits beside them"
            yield (
                f"{OWNER}: {self._column(place)} has values up to "
                f"{data.far[place]:.2g} from the middle, and {near}: {what}. Drop or clip such "
                "values."
            )
        elif of_means.max() > of_sums.max():
            place = int(np.abs(mean).argmax())
            yield (
                f"{OWNER}: the middle of {self._column(place)} is {mean[place]:.2g}, "
                f"and {near}: float64 has too few digits for centers and cost. Subtract the middle "
                "first."
            )
        else:
            yield (
                f"{OWNER}: the clusters' weights differ from {weights.min():.2g} to "
                f"{weights.max():.2g}: centers and cost of light ones lost digits. Leave rows of "
                "such small weights out."
            )

    def _column(self, place: int) -> str:
        data = self._config.data
        named = self._name(place)
        return named if data.features_cols else f"column '{data.features_col}', {named},"

    def _mixed_up(self) -> Iterator[str]:
        """Centers are nearer to one another than the rounding of a row's product with them."""
        used, dtype = np.flatnonzero(self._weights > 0), self._config.data.dtype
        if len(used) < 2 or not self._inertia:
            return
        if dtype == "float32" and len(self._centers) <= MOST_LOOKED_AT:
            return  # products were made in float64 then
        about = self._centers[used] - self._origin
        is_rough = too_close(about, dtype)
        share = float(self._weights[used][is_rough].sum()) / float(self._weights.sum())
        if share > _ROUGH_SHARE:
            sq_norms = np.einsum("kd,kd->k", about, about)
            gap, norm = (
                math.sqrt(float(np.median(sq[is_rough]))) for sq in (sq_gaps(about), sq_norms)
            )
            yield (
                f"{OWNER}: clusters with {share:.0%} of the weight lie {norm:.2g} "
                f"from the origin and {gap:.2g} apart, too close for products of {dtype}: "
                f"centers and cost may be far from the best.{self._more_digits}"
            )

    @property
    def _more_digits(self) -> str:
        return " Set dtype='float64'." if self._config.data.dtype == "float32" else ""

    def _wide_columns(self) -> Iterator[str]:
        """A few columns, much wider than the others, alone decide the clusters."""
        data = self._data
        # A few far values make a column that wide; another warning says so.
        if len(self._centers) < 2 or data.frame.has_far_rows:
            return
        # Half the range of every column, or a little more.
        widths = np.where(is_rounding(data.far, data.frame.mean), 0.0, data.far)
        # Of widths up to 1e140 the squares would be too large.
        between = self._weights @ ((self._centers - data.frame.mean) / (widths.max() or 1.0)) ** 2
        wide, times = widest(widths)
        share = between[wide].sum() / between.sum() if between.any() else 0.0
        if not len(wide) or share <= _SHARE:
            return
        names = [self._name(i) for i in wide]
        more = f" and {len(wide) - _NAMED} more" if len(wide) > _NAMED else ""
        decide = "decides" if len(wide) == 1 else "decide"
        yield (
            f"{OWNER}: {', '.join(names[:_NAMED])}{more} {decide} the clusters alone, "
            f"with a range {times:,.0f} times as wide as any other column's. If the others are to "
            "count, set standardize=True."
        )

    def _name(self, place: int) -> str:
        of = self._config.data.features_cols
        return f"column '{of[place]}'" if of else f"feature {place} (counted from 0)"

    def _unlike_spreads(self) -> Iterator[str]:
        """Features of very different spreads count very differently.

        By the first pass's look at some rows: a feature's spread is how far three quarters of them
        are from the middle, at most.
        """
        spreads = np.max([item.usual for item in self._data.statistics], axis=0)
        varies = np.flatnonzero(~is_rounding(spreads, self._data.frame.mean))
        if not len(varies):
            return
        most, least = varies[spreads[varies].argmax()], varies[spreads[varies].argmin()]
        times = spreads[most] / spreads[least]
        if times > _UNLIKE:
            yield (
                f"{OWNER}: {self._name(most)} has a spread {times:,.0f} times that of "
                f"{self._name(least)}, and counts for so much more in every distance. If features "
                "are to count alike, set standardize=True."
            )

    def _tolerance(self, run: LloydRun) -> Iterator[str]:
        """The last step still moved centers far, though not farther than ``tol``."""
        if not run.converged or not run.rounds:
            return
        moved, mean = run.rounds[-1].center_shift, self._inertia / self._data.sum_weights
        rounding = float(self._data.resolution @ self._data.resolution)
        # Both are squares, halved, with cosine distance.
        gained = moved if self._is_cosine else moved * moved
        if gained <= max(_LITTLE * mean, rounding):
            return
        what, typical, share = "root mean square distance", math.sqrt(mean), _LITTLE
        if self._is_cosine:
            what, typical, share = "mean cosine distance", mean, _LITTLE**2
        scale = "" if self._is_cosine else ", or scale the features"
        yield (
            f"{OWNER}: the fit stopped with centers that still moved by {moved:.2g}, "
            f"because tol={self._config.tol:g} allows it; the {what} of the rows from their "
            f"centers is only {typical:.2g}. More iterations may lower the cost: set "
            f"tol={share * typical:.1g} or less{scale}."
        )


def widest(widths: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the columns much wider than all others, and how many times wider they are.

    At most half of the columns that vary at all can be much wider than the others; none, an empty
    array, when no such gap is there.
    """
    order = np.argsort(-widths, kind="stable")
    order = order[widths[order] > 0]
    ratios = widths[order[:-1]] / widths[order[1:]]
    gaps = np.flatnonzero(ratios[: len(order) // 2] >= _WIDER)
    if not len(gaps):
        return order[:0], 1.0
    return order[: gaps[0] + 1], float(ratios[gaps[0]])
