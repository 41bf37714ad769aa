"""Contrasts of arms: the declared family adjusted together, and all other pairs as exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from consilience.core.undefined import Undefined
from consilience.experiments.measures import Recorded
from consilience.inference.equivalence import Equivalence
from consilience.inference.intervals import DifferenceInterval
from consilience.inference.tests import ClusterTest

MARGIN: Final = 0.01
"""A difference of MdAPE of less than one percentage point does not matter."""
POWER: Final = 0.8
ALPHA: Final = 0.05
SIZE: Final = 0.1

Matched = Literal["own", "other", "unmatched"]


@dataclass(frozen=True)
class ContrastResult(Recorded):
    """One arm against another: MdAPE of the first less that of the second; negative is better.

    Attributes:
        arm: Label of the arm.
        against: Label of the arm it is compared with.
        asks: The questions it answers; empty in exploration.
        declared: It belongs to the declared family.
        matched: Of a contrast with a single agent: matched in cost to this arm (``own``), to another arm (``other``),
            or not (``unmatched``); None elsewhere.
        difference: With its interval, from the draws that all arms share.
        p: Two-sided, by the rule of the interval; undefined below 10 clusters and where the arms are identical.
        holm: Adjusted over the declared family; undefined in exploration.
        max_t: Adjusted over the declared family from the same draws, by the largest statistic; undefined likewise.
        bh: Adjusted over all explored pairs for the rate of false discoveries; undefined in the declared family.
        least_detectable: True difference that this many clusters would show with 80 % power; undefined below 2.
        equivalence: Whether the difference is smaller than `MARGIN`; undefined below 2 clusters.
        mean_log: The same comparison by mean absolute log error, with the cluster-robust t-test.
        sign_flip: p-value of that mean difference by flipping signs of whole clusters.
    """

    arm: str
    against: str
    asks: tuple[str, ...]
    declared: bool
    matched: Matched | None
    difference: DifferenceInterval
    p: float | Undefined
    holm: float | Undefined
    max_t: float | Undefined
    bh: float | Undefined
    least_detectable: float | Undefined
    equivalence: Equivalence | Undefined
    mean_log: ClusterTest
    sign_flip: float | Undefined


@dataclass(frozen=True)
class Missing(Recorded):
    """A declared contrast that could not be made.

    Attributes:
        arm: As declared.
        against: As declared.
        asks: The question it would answer.
        reason: Why it is missing.
    """

    arm: str
    against: str
    asks: str
    reason: str


@dataclass(frozen=True)
class Best(Recorded):
    """The model confidence set: arms that cannot be told from the best by their MdAPE.

    Attributes:
        included: Labels that stay, sorted.
        p: By arm: the largest size at which it stays.
        path: Labels in the order they left, the last to stay at the end.
        size: Share of error allowed.
        flags: ``descriptive_only``, ``few_clusters``.
    """

    included: tuple[str, ...]
    p: dict[str, float]
    path: tuple[str, ...]
    size: float
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Contrasts(Recorded):
    """All contrasts on the common items.

    Attributes:
        declared: The declared family, in its order.
        exploratory: All other pairs of arms, sorted.
        missing: Declared contrasts whose arms are not here.
        family: Declared contrasts with a p-value, over which they are adjusted.
        best: The model confidence set; undefined with one cluster.
        margin: Of the equivalence tests.
        alpha: Level of tests and of the least detectable difference.
        power: Of the least detectable difference.
    """

    declared: tuple[ContrastResult, ...]
    exploratory: tuple[ContrastResult, ...]
    missing: tuple[Missing, ...]
    family: int
    best: Best | Undefined
    margin: float
    alpha: float
    power: float
