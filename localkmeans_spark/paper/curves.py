"""From traces to the paper's curves: one number a step for every quantity."""

from __future__ import annotations

import numpy as np

from localkmeans_spark.paper import quantities as q
from localkmeans_spark.paper.runs import Trace


def curve_quantities(
    trace: Trace, truth: np.ndarray | None = None, own_matching: bool = False
) -> dict[str, np.ndarray]:
    """Return the paper's quantities of one run at every step, each of shape (T,).

    Clusters are matched with true clusters at every step anew, by the counts of all machines.

    Parameters
    ----------
    trace : Trace
    truth : ndarray of shape (K, d) or None
        True centers; without them Lambda is left out.
    own_matching : bool
        Also ``A_own``: misclustering when every machine has a matching of its own.

    Returns
    -------
    dict of str to ndarray
        ``A``, ``A_i_max``, ``G``, ``G_i_mean``, ``G_i_max``, ``Delta``, ``objective`` (every
        machine's rows around the centers that labelled them), and with ``truth`` ``Lambda``,
        ``Lambda_plain`` (of the plain mean), ``Lambda_i_mean``, ``Lambda_i_max``.
    """
    found: dict[str, list[float]] = {}

    def note(name: str, value: float | np.floating | np.ndarray) -> None:
        found.setdefault(name, []).append(float(value))

    gamma = q.separation(truth)[0] if truth is not None else 1.0
    for step, counts in enumerate(trace.counts):
        total = counts.sum(axis=0)
        matched = q.matching(total)
        each = q.reordered(counts, matched)
        g = q.clusterwise_error(each)
        note("A", q.misclustering(total, matched))
        note("A_i_max", np.nanmax(q.agreement_error(each)))
        note("G", q.clusterwise_error(q.reordered(total, matched)))
        note("G_i_mean", g.mean())
        note("G_i_max", g.max())
        if own_matching:
            note("A_own", q.misclustering_own_matching(counts))
        if truth is None:
            continue
        local = q.center_error(trace.sq_to_truth[step], matched, gamma)
        for name, centers in (("Lambda", trace.centers), ("Lambda_plain", trace.plain_means)):
            sq = q.sq_distances_between(centers[step], truth)
            note(name, q.center_error(sq, matched, gamma))
        note("Lambda_i_mean", local.mean())
        note("Lambda_i_max", local.max())
    return {
        **{name: np.array(values) for name, values in found.items()},
        "Delta": trace.deviation,
        "objective": trace.inertia.sum(axis=1),
    }


def clusters_lost(counts: np.ndarray) -> int:
    """Count true clusters that are the largest part of no cluster.

    Parameters
    ----------
    counts : ndarray of shape (K, K), int
        Confusion counts of all machines: true cluster by label.
    """
    found = set(counts[:, counts.any(axis=0)].argmax(axis=0).tolist())
    return len(counts) - len(found)
