"""Differences of arms on common questions, tested together: from the baseline, and from an agent of their money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from consilience.core.undefined import Undefined
from consilience.experiments.contrasts import p_of
from consilience.experiments.family import SINGLE, single
from consilience.experiments.measures import Recorded
from consilience.inference.intervals import DifferenceInterval, difference_interval
from consilience.inference.multiplicity import adjust
from consilience.scoring.point import FloatArray

Key = tuple[str, str]
"""Arm and rule."""
_EXPLORED: Final = Undefined("not the primary rule")


@dataclass(frozen=True)
class Gap(Recorded):
    """The mean loss, or share of right answers, of one arm less that of another, on the common questions.

    Attributes:
        against: The other arm.
        money_ratio: How many times the money of this arm the other has; None where either is free or unknown.
        difference: With its interval, from the draws that all arms share.
        p: Two-sided, by the rule of the interval; undefined below 10 clusters and where the arms are identical.
        holm: Adjusted over all comparisons of one table; undefined for rules other than the primary one.
    """

    against: str
    money_ratio: float | None
    difference: DifferenceInterval
    p: float | Undefined
    holm: float | Undefined


@dataclass(frozen=True)
class Gaps:
    """What an arm is compared with.

    Attributes:
        baseline: The baseline arm; None for it.
        matched: The single agent that was given the arm's own money, else that of another arm; None where there is
            none, and where that is the baseline.
    """

    baseline: Gap | None = None
    matched: Gap | None = None


@dataclass(frozen=True)
class Losses:
    """What every arm and rule scored on the common questions.

    Attributes:
        columns: Arm and rule of each column.
        values: One row per question.
        draws: Means in each resample, shape (B, columns).
        n_clusters: Clusters of the questions.
        costs: Cost over all questions by arm; None where unknown.
    """

    columns: Sequence[Key]
    values: FloatArray
    draws: FloatArray
    n_clusters: int
    costs: Mapping[str, float | None]

    def gap(self, one: Key, other: Key) -> Gap:
        """Return one column less another, not yet adjusted."""
        a, b = self.columns.index(one), self.columns.index(other)
        draws = self.draws[:, a] - self.draws[:, b]
        point = float(self.values[:, a].mean() - self.values[:, b].mean())
        between = difference_interval(point=point, draws=draws, n_clusters=self.n_clusters)
        own, theirs = self.costs.get(one[0]), self.costs.get(other[0])
        return Gap(other[0], theirs / own if own and theirs else None, between, p_of(between, draws), _EXPLORED)


def gaps(losses: Losses, *, base: Key, primary: Mapping[str, str]) -> dict[Key, Gaps]:
    """Return what every arm and rule is compared with, p-values adjusted by Holm over all arms' primary rules.

    Args:
        losses: On the common questions.
        base: Baseline arm and its rule.
        primary: Primary rule of each arm.
    """
    first = [key for key in losses.columns if primary.get(key[0]) == key[1]]
    labels = [arm for arm, _ in first]
    made: dict[tuple[Key, Key], Gap] = {}
    matched: dict[Key, Key] = {}
    for key in losses.columns:
        if key[0] != base[0]:
            made[key, base] = losses.gap(key, base)
    for key in first:
        pair = None if key == base or key[0].startswith(SINGLE) else next(single(key[0], labels), None)
        if pair is not None and pair.against != base[0]:
            other = (pair.against, primary[pair.against])
            matched[key] = other
            made[key, other] = losses.gap(key, other)
    family = [pair for pair in made if pair[0] in first]
    holm = dict(zip(family, adjust(p=[made[pair].p for pair in family], method="holm").p, strict=True))
    told = {pair: replace(gap, holm=holm.get(pair, _EXPLORED)) for pair, gap in made.items()}
    return {
        key: Gaps(told.get((key, base)), told.get((key, matched[key])) if key in matched else None)
        for key in losses.columns
    }
