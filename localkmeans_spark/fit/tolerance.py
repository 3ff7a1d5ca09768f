"""What a fit says when it stopped by a tolerance that is large for its rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from localkmeans_spark.config import FitConfig
from localkmeans_spark.data.summary import DataSummary
from localkmeans_spark.fit.lloyd_run import LloydRun

# Centers that move by at most s lower the cost by at most sum of weights * s**2 in that step. A fit
# warns if this is more than a thousandth of the cost, that is, if s is above 3 % of the rows' root
# mean square distance. Stopped at 1 to 3 % of it, plain Lloyd on eight real sets and two of blobs
# (k = 5 to 60) was 0.03 % (median) and 0.4 % (nine of ten) above its end; at 3 to 10 %, 0.2 % and
# 2 %; at 10 to 30 %, 2 % and 8 %.
_LAST_GAIN = 1e-3
# What the warning proposes, as a share of that distance.
_GOOD_SHARE = 1e-3


def tolerance_warnings(
    config: FitConfig, data: DataSummary, run: LloydRun, inertia: float
) -> Iterator[str]:
    """Say that the last step still moved centers far, though not farther than ``tol``.

    Parameters
    ----------
    config : FitConfig
    data : DataSummary
    run : LloydRun
        Ended.
    inertia : float
        Of its centers.
    """
    if not run.converged or not run.rounds:
        return
    moved, mean = run.rounds[-1].center_shift, inertia / data.sum_weights
    is_cosine = config.data.distance_measure == "cosine"  # both are squares, halved, then
    gained, rounding = (
        moved if is_cosine else moved * moved,
        float(data.resolution @ data.resolution),
    )
    if gained <= max(_LAST_GAIN * mean, rounding):
        return
    typical = mean if is_cosine else math.sqrt(mean)
    share = _GOOD_SHARE**2 if is_cosine else _GOOD_SHARE
    what = "mean cosine distance" if is_cosine else "root mean square distance"
    scale = "" if is_cosine else ", or scale the features"
    yield (
        f"{config.owner}: the fit stopped with centers that still moved by {moved:.2g}, because "
        f"tol={config.tol:g} allows it; the {what} of the rows from their centers is only "
        f"{typical:.2g}. More iterations may lower the cost: set tol={share * typical:.1g} or "
        f"less{scale}."
    )
