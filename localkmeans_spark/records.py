"""What a fit leaves behind: plain data, no Spark, ready to be written as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RoundRecord:
    """One round: broadcast, local steps on every partition, exchange.

    Attributes
    ----------
    round : int
        Number of the round in the order the rounds ran, from 1.
    iteration : int
        Lloyd iterations behind the centers the round began with (falls back after a revert).
    local_steps : int
        Local Lloyd steps every partition did in this round.
    inertia : float
        Exact inertia, the sum of ``w * squared distance``, of the centers the round began with.
    center_shift : float
        Largest Euclidean distance a center moved in this round (0 when the round was discarded).
    max_local_drift : float
        Largest ``||theta_ki - theta_k||`` over partitions i and clusters k with local points:
        how far a partition's center went from the center broadcast at the start of the round.
    rms_deviation : float
        Weighted root mean square distance of the partitions' centers from the new global center
        (the paper's deviation from the virtual iterate).
    empty_clusters : int
        Clusters without points on every partition after the round; they keep their center.
    reverted : bool
        True when the round's work was discarded and the fit went back to the best centers,
        because the centers it began with were worse, or because the partitions disagreed.
    bytes_down, bytes_up : int
        Bytes of centers sent to the partitions, and of sums sent back by the tasks.
    seconds : float
        Wall time of the round; of all restarts and fits that shared it.
    disagreement : float
        Share of the within-cluster scatter that comes from the partitions' centers differing, less
        the share that chance alone would give; near 0 for partitions with alike rows.
    note : str
        Why the round was taken back; empty otherwise.
    reseeded : int
        Empty clusters that were given a row as their new center after the round.
    """

    round: int
    iteration: int
    local_steps: int
    inertia: float
    center_shift: float
    max_local_drift: float
    rms_deviation: float
    empty_clusters: int
    reverted: bool
    bytes_down: int
    bytes_up: int
    seconds: float
    disagreement: float = 0.0
    note: str = ""
    reseeded: int = 0


@dataclass(frozen=True)
class RestartRecord:
    """One of the restarts of a fit.

    Attributes
    ----------
    seed : int
        Of its random draws. The first restart is the fit that ``nInit=1`` gives for this seed.
    inertia : float
        Of its last centers: exact if it was not dropped, else an upper bound from its last round.
    n_iter, n_rounds : int
        Lloyd iterations behind those centers, and rounds run.
    dropped : int or None
        Round after which it was given up; None for those that ran to their end.
    chosen : bool
        True for the one whose centers the fit returned.
    """

    seed: int
    inertia: float
    n_iter: int
    n_rounds: int
    dropped: int | None
    chosen: bool


@dataclass(frozen=True)
class FitRecord:
    """Everything known about one fit apart from the centers.

    Attributes
    ----------
    k_requested, k : int
        Clusters asked for, and centers returned (fewer when there were too few distinct rows).
    n_points, n_features, n_partitions : int
        Rows that took part, columns, and partitions with at least one row.
    n_skipped : int
        Rows left out by ``handleInvalid="skip"``.
    sum_weights : float
        Sum of the weights (the number of rows when there are none).
    local_steps : int or "auto"
    max_iter : int
        L and T as asked for.
    tol : float
        Largest center movement (Euclidean) that counts as converged.
    safeguard : bool
        Whether worse rounds were taken back.
    dtype : str
        Precision of the cached data, ``"float32"`` or ``"float64"``.
    init_mode : str
        How the initial centers were made.
    seed : int
        The seed used, drawn if none was given.
    seeding_passes : int
        Passes over the data that seeding took (beyond the ingest pass).
    n_iter, n_rounds, reverts : int
        Lloyd iterations behind the returned centers; rounds run; rounds taken back.
    converged : bool
        True when the fit stopped because no center moved farther than ``tol``.
    inertia : float
        Exact inertia of the returned centers, from a last pass with them.
    cluster_sizes : list of int
        Rows per cluster in that pass.
    cluster_weights, cluster_inertia : list of float
        Weight and inertia per cluster in that pass.
    bytes_exchanged : int
        Bytes of centers and sums sent in both directions by all rounds, of all restarts.
    seconds : dict
        Wall seconds by phase: ``ingest``, ``seed``, ``iterate``, ``final``, ``total``; of all
        fits that shared the passes.
    rounds : list of RoundRecord
        Of the restart that was chosen.
    warnings : list of str
        What the user was warned of.
    restarts : list of RestartRecord
        All restarts in the order of their seeds; one for ``nInit=1``.
    empty_clusters : str
        What was done about clusters without a row: ``"keep"`` or ``"reseed"``.
    resumed_round : int
        Round after which a checkpoint was taken up again; 0 when the fit ran from its beginning.
    distance_measure : str
        ``"euclidean"``, or ``"cosine"``: then inertia, shifts and drifts are sums and sizes of
        cosine distances, 1 - cos.
    """

    k_requested: int
    k: int
    n_points: int
    n_features: int
    n_partitions: int
    n_skipped: int
    sum_weights: float
    local_steps: int | str
    max_iter: int
    tol: float
    safeguard: bool
    dtype: str
    init_mode: str
    seed: int
    seeding_passes: int
    n_iter: int
    n_rounds: int
    reverts: int
    converged: bool
    inertia: float
    cluster_sizes: list[int]
    cluster_weights: list[float]
    cluster_inertia: list[float]
    bytes_exchanged: int
    seconds: dict[str, float]
    rounds: list[RoundRecord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    restarts: list[RestartRecord] = field(default_factory=list)
    empty_clusters: str = "keep"
    resumed_round: int = 0
    distance_measure: str = "euclidean"

    def costs(self) -> list[tuple[int, float]]:
        """Return the cost at the start of each round that was not taken back, and at the end.

        Returns
        -------
        list of (int, float)
            Number of the round, and inertia; the end has the number after the last round's.
        """
        kept = [(row.round, row.inertia) for row in self.rounds if not row.reverted]
        return [*kept, (self.n_rounds + 1, self.inertia)]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as nested plain Python values (JSON-ready)."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FitRecord:
        """Rebuild a record from :meth:`to_dict`."""
        rounds = [RoundRecord(**row) for row in values["rounds"]]
        restarts = [RestartRecord(**row) for row in values.get("restarts", [])]
        return cls(**{**values, "rounds": rounds, "restarts": restarts})


@dataclass(frozen=True)
class Measures:
    """How good a clustering is, whatever its k; NaN where only one cluster has rows.

    Attributes
    ----------
    silhouette : float
        Weighted mean over the rows, by squared Euclidean distance, or by cosine distance where
        that is the fit's: Spark's ``ClusteringEvaluator``. From -1 to 1, more is better.
    calinski_harabasz : float
        Variance between clusters over variance within, each by its degrees of freedom; more is
        better. With cosine distance, of the rows scaled to length 1, as is the next one. A weight
        counts as so many rows; NaN where all together are no more than clusters.
    davies_bouldin : float
        Mean over clusters of the worst (spread + spread) / distance to another; less is better.
    agreement : float
        Adjusted Rand index with a fit of a sample of the rows from another seed, on that sample;
        NaN where k is too large for the sample, or for the driver's time.
    """

    silhouette: float
    calinski_harabasz: float
    davies_bouldin: float
    agreement: float


@dataclass(frozen=True)
class FitResult:
    """Centers and record of one fit.

    Attributes
    ----------
    centers : ndarray of shape (k, n_features), float64
    origin : ndarray of shape (n_features,), float64, or None
        Frame of the stored data: predictions work on ``dtype(x - origin)``, as the fit did. None
        when partitions had different frames; predictions then work in float64.
    record : FitRecord
    measures : Measures or None
        If they were asked for.
    scales : ndarray of shape (n_features,), float64, or None
        Standard deviations that features were divided by (``standardize``); centers and origin
        are in the rows' own units all the same.
    """

    centers: np.ndarray
    origin: np.ndarray | None
    record: FitRecord
    measures: Measures | None = None
    scales: np.ndarray | None = None


@dataclass(frozen=True)
class LocalKMeansEvaluation:
    """Cost and sizes of a model on some data, as :meth:`LocalKMeansModel.evaluate` returns them.

    Attributes
    ----------
    inertia : float
        Sum of weight times squared distance to the nearest center; with cosine distance, times
        that distance.
    clusterSizes : list of int
        Rows per cluster; those of weight 0 are not counted.
    clusterWeights, clusterInertia : list of float
        Weight and inertia per cluster.
    numSkipped : int
        Rows with null, NaN, infinite or too large features (zeros with cosine distance), left out
        of all of these.
    """

    inertia: float
    clusterSizes: list[int]
    clusterWeights: list[float]
    clusterInertia: list[float]
    numSkipped: int
