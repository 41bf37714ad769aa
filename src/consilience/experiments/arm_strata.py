"""The primary measure of every arm by stratum."""

from __future__ import annotations

from dataclasses import dataclass

from consilience.experiments.measures import Measure, Recorded


@dataclass(frozen=True)
class StratumResult(Recorded):
    """One arm under the primary rule on the items of one stratum.

    Attributes:
        stratum: What the items were grouped by, such as ``price_tercile``.
        level: Which group.
        arm: The arm.
        n_items: Items of the group that were put to it.
        n_answered: Items of them that it answered.
        mdape: Median absolute percentage error of the answered ones; None when none was answered.
    """

    stratum: str
    level: str
    arm: str
    n_items: int
    n_answered: int
    mdape: Measure | None
