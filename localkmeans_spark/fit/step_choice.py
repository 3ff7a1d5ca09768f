"""``localSteps="auto"``: how many local steps pay, from what a round cost."""

from __future__ import annotations

import math
from typing import NamedTuple

# Local steps of a first round from rough centers, before anything was measured: the default's.
_FIRST_GUESS = 5
# From centers near a result, the partitions find out by themselves in the first round: they stop
# when a step moves the centers by less than this share of the inertia. Much more would be too
# early: where clusters overlap, a step that gains little is often followed by some that gain more.
_ENOUGH = 0.00003
# At least 2, so that every round tells what a later step costs; more than 20 gain nothing anywhere
# (the partitions' own rows are fitted by then).
_FEWEST, _MOST = 2, 20
# Rounds of one step that many local steps can spare at most, a round that stays. The exchanges to
# come within 0.1 % of the centralized cost go about like 1 + 4 / L (see ARCHITECTURE.md).
_SPARED = 4.0


class RoundTimes(NamedTuple):
    """What a round cost one set of centers, in wall seconds.

    Attributes
    ----------
    outside : float
        Everything but arithmetic: scheduling, moving blocks and centers, merging, the network.
    first : float
        The first local step, which looks at every row.
    later : float
        All later steps.
    steps : float
        Local steps a partition did, in the mean.
    """

    outside: float = 0.0
    first: float = 0.0
    later: float = 0.0
    steps: float = 1.0


def first_steps(near: bool, max_iter: int) -> tuple[int, float]:
    """Return L of the first round, and the gain that is too little for another step.

    Half of the iterations are left for rounds that begin where all partitions' rows lead.
    """
    if near:
        return max(1, min(_MOST, max_iter // 2)), _ENOUGH
    return _FIRST_GUESS, 0.0


def steps_that_pay(times: RoundTimes) -> int:
    """Choose L for the next round.

    With rounds ~ 1 + s / L and seconds a round = a + L b, their product is least at
    L = sqrt(s a / b): b is what a later step costs, a what a round costs besides L such steps.

    Parameters
    ----------
    times : RoundTimes
        Of a round.

    Returns
    -------
    int, from 2 to 20; 5 when no partition did a second step
    """
    if times.steps <= 1:
        return _FIRST_GUESS
    step = times.later / (times.steps - 1)
    once = max(0.0, times.outside + times.first - step)
    if step * _MOST**2 <= _SPARED * once:
        return _MOST
    return max(_FEWEST, round(math.sqrt(_SPARED * once / step)))
