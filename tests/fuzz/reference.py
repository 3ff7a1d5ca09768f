"""The slow reference: what a fit must say, by plain NumPy in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from localkmeans_spark import LocalKMeansModel
from tests.fuzz.tables import Table

# Numbers of a size that each dtype must take, and some room to the documented ends.
_SURE = {"float32": (1e-14, 1e15), "float64": (1e-139, 1e139)}
_EPSILON = {"float32": 2.0**-24, "float64": 2.0**-53}


class Rows:
    """The rows of a table that count in a fit, and the digits that may be asked of it."""

    def __init__(self, table: Table, options: dict[str, Any]) -> None:
        n = len(table.x)
        weights = [1.0] * n if table.weights is None else table.weights
        w = np.array([np.nan if v is None else v for v in weights], dtype=np.float64)
        self.kind = table.kind
        self.is_cosine = options["distanceMeasure"] == "cosine"
        self.dtype = options["dtype"]
        present = w != 0
        finite = np.isfinite(table.x).all(axis=1)
        zero = self.is_cosine & finite & ~table.x.any(axis=1)
        self.bad = present & (~finite | zero)
        self.bad_weight = present & finite & ~zero & ~(np.isfinite(w) & (w > 0))
        self.usable = present & ~self.bad & np.isfinite(w) & (w > 0)
        self.x, self.w = table.x[self.usable], w[self.usable]
        self.skips = options["handleInvalid"] != "error"
        self.is_ragged = table.is_ragged
        self.transforms = np.ones(n, bool) if self.skips else finite & ~zero

    def must_refuse(self) -> bool:
        """Whether a fit of these rows breaks a documented rule for sure."""
        broken = self.bad.any() and not self.skips
        return bool(broken or self.bad_weight.any() or not self.usable.any())

    def may_refuse(self) -> bool:
        """Whether a fit may break a rule: what is near the ends of the ranges is not settled."""
        if self.is_ragged or self.must_refuse():
            return True
        least, most = _SURE[self.dtype]
        size = np.abs(self.x).max()
        spread = np.ptp(self.x, axis=0).max()
        too_far = not self.is_cosine and (size > most or 0 < size < least or 0 < spread < least)
        if self.is_cosine:
            too_far = size > 1e139 or np.abs(self.x).max(axis=1).min() < 1e-139
        mass = np.log10(self.w.sum()) + 2 * np.log10(max(spread, size, 1e-300))
        return bool(too_far or abs(np.log10(self.w.sum())) > 240 or abs(mass) > 280)

    def n_distinct(self) -> int | None:
        """Return the number of distinct rows; None when rounding might merge some."""
        x = self.directions() if self.is_cosine else self.x
        distinct = np.unique(x, axis=0)
        if len(distinct) == 1:
            return 1
        span = np.abs(x - np.median(x, axis=0)).max()
        gaps = distinct[:, None, :] - distinct[None, :, :]
        gaps = np.abs(gaps).max(axis=2)[~np.eye(len(distinct), dtype=bool)]
        size = np.abs(x).max()
        least = 1e-4 * max(span, size * 1e-9)
        if self.is_cosine or self.kind in ("sparse", "mixed"):  # kept about 0
            least = max(least, 4 * _EPSILON[self.dtype] * size)
        return len(distinct) if gaps.min() > least else None

    def directions(self) -> np.ndarray:
        """Return the rows scaled to length 1."""
        x = self.x / np.abs(self.x).max(axis=1, keepdims=True)
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    def check(
        self, model: LocalKMeansModel, labels: Sequence[int], options: dict[str, Any]
    ) -> None:
        """Hold a model and the labels of the usable rows against the reference."""
        summary, centers = model.summary, np.array(model.clusterCenters())
        k = len(centers)
        assert np.isfinite(centers).all(), "centers that are not finite"
        assert np.isfinite(summary.trainingCost), "a cost that is not finite"
        assert summary.trainingCost >= 0, "a negative cost"
        assert summary.k == k == len(summary.clusterSizes)
        self._check_count(k, summary.trainingCost, options)
        x = self.directions() if self.is_cosine else self.x
        if self.is_cosine:
            centers = centers / np.linalg.norm(centers, axis=1, keepdims=True)
        try:
            self._check_rows(x, centers, labels, model)
        except AssertionError:
            if self.is_cosine or self.kind not in ("sparse", "mixed"):
                raise
            # Rows that stay sparse have no origin near them: a column far from 0 is rounded.
            self._check_rows(x.astype(self.dtype).astype(float), centers, labels, model)

    def _check_rows(
        self, x: np.ndarray, centers: np.ndarray, labels: Sequence[int], model: LocalKMeansModel
    ) -> None:
        summary, k = model.summary, len(centers)
        # So that squares neither overflow nor vanish.
        unit = 1.0 if self.is_cosine else float(2.0 ** np.frexp(np.abs(x).max())[1])
        x, centers = x / unit, centers / unit
        sq = ((x[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        if self.is_cosine:
            sq /= 2
        near = sq.min(axis=1)
        blur = self._blur(x)
        slack = 2 * np.sqrt(near) * blur + blur**2
        cost, found = float(self.w @ near), summary.trainingCost / unit**2
        allowed = float(self.w @ slack) + 1e-9 * cost
        assert abs(found - cost) <= allowed, f"cost {found!r}, true {cost!r}, allowed {allowed!r}"
        labels = np.asarray(labels)
        assert ((labels >= 0) & (labels < k)).all(), f"labels {labels} of {k} clusters"
        lost = sq[np.arange(len(x)), labels] - near
        worst = int((lost - 4 * slack).argmax())
        assert (lost <= 4 * slack).all(), f"row {worst} has label {labels[worst]}, not the nearest"
        ties = int(((sq <= (near + 4 * slack)[:, None]).sum(axis=1) > 1).sum())
        counts = np.bincount(labels, minlength=k)
        differ = np.abs(counts - summary.clusterSizes).sum()
        assert differ <= 2 * ties, f"clusterSizes {summary.clusterSizes}, by transform {counts}"
        assert sum(summary.clusterSizes) == len(x)
        apart = np.linalg.norm(x - np.median(x, axis=0), axis=1)
        if apart.max() < 1e4 * np.median(apart) and self.w.max() < 1e6 * self.w.min():
            far = [text for text in summary.record.warnings if "values up to" in text]
            assert not far, f"told of far values for no reason: {far}"

    def _check_count(self, k: int, cost: float, options: dict[str, Any]) -> None:
        if "from_rows" in options:
            return
        n_distinct = self.n_distinct()
        if n_distinct is not None:
            expected = min(options["k"], n_distinct)
            assert k == expected, f"{k} clusters of {n_distinct} distinct rows, not {expected}"
        assert k <= min(options["k"], len(self.x))

    def _blur(self, x: np.ndarray) -> float:
        """Return how far rounding may move a row: kept in dtype, its center given in float64."""
        spread = np.abs(x - np.median(x, axis=0)).max(axis=0)
        kept = 40 * _EPSILON[self.dtype] * (np.ones_like(spread) if self.is_cosine else spread)
        told = 8 * _EPSILON["float64"] * np.abs(x).max(axis=0)
        return float(np.linalg.norm(kept + told))
