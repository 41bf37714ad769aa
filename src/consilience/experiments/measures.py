"""Numbers of an evaluation with their intervals, and what the intervals and ratios of an arm were worth."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from consilience.core.undefined import Undefined
from consilience.inference.intervals import DifferenceInterval, Rule
from consilience.scoring.equity import VerticalEquity
from consilience.scoring.summaries import ClusteredShare


def plain(value: Any) -> Any:
    """Return a result as JSON values; what is undefined is null, with its reason under ``undefined`` beside it.

    Example:
        >>> plain(DifferenceInterval(point=0.5, level=0.95, n_clusters=1, flags=("no_interval",)))["low"] is None
        True
    """
    if isinstance(value, Undefined):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        told = {field.name: getattr(value, field.name) for field in fields(value)}
        reasons = {name: one.reason for name, one in told.items() if isinstance(one, Undefined)}
        return {name: plain(one) for name, one in told.items()} | ({"undefined": reasons} if reasons else {})
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value


class Recorded:
    """A result that can be written down."""

    def record(self) -> dict[str, Any]:
        """Return the result as JSON values; what is undefined is null, with its reason beside it."""
        told: dict[str, Any] = plain(self)
        return told


@dataclass(frozen=True)
class Measure(Recorded):
    """A number over items, with its cluster-bootstrap interval.

    Attributes:
        value: In the sample.
        low: Lower end of the 95 % interval; None with fewer than two clusters.
        high: Upper end.
        rule: ``percentile`` or ``se_t``; None without an interval.
        n: Items.
        n_clusters: Clusters G of them.
        flags: ``no_interval`` (G < 2), ``descriptive_only`` (G < 10), ``few_clusters`` (G < 20), ``below_possible`` (of
            a number that cannot be negative the interval reaches below 0).
    """

    value: float
    low: float | None
    high: float | None
    rule: Rule | None
    n: int
    n_clusters: int
    flags: tuple[str, ...] = ()

    @classmethod
    def of(cls, interval: DifferenceInterval, *, n: int) -> Measure:
        """Return a number from the interval of its draws."""
        flags = tuple(flag for flag in interval.flags if flag != "identical")
        return cls(interval.point, interval.low, interval.high, interval.rule, n, interval.n_clusters, flags)


@dataclass(frozen=True)
class IntervalScores(Recorded):
    """What the stated intervals were worth, over the items with all five quantiles; scores are of logarithms.

    Attributes:
        n: Items.
        coverage50: Share of truths in [q25, q75], with the interval of clustered items.
        coverage90: Share of truths in [q05, q95].
        below: Share of truths at or below each of the five quantiles, in order of levels.
        width50: Median of ``(q75 - q25) / point``.
        width90: Median of ``(q95 - q05) / point``.
        wis: Mean weighted interval score over five quantiles, WIS5; 0 is best.
        dispersion: Part of its mean for width.
        overprediction: Part for truths below.
        underprediction: Part for truths above.
        crps: Mean CRPS of the reconstructed law; 0 is best.
        interval_score90: Mean interval score of [q05, q95]; 0 is best.
        pit_bins: Truths in each of the six bins between quantiles; expected shares 0.05, 0.2, 0.25, 0.25, 0.2, 0.05.
        point_masses: Items whose quantiles were all equal; scored with the least width.
    """

    n: int
    coverage50: ClusteredShare
    coverage90: ClusteredShare
    below: tuple[ClusteredShare, ...]
    width50: float
    width90: float
    wis: Measure
    dispersion: float
    overprediction: float
    underprediction: float
    crps: Measure
    interval_score90: Measure
    pit_bins: tuple[int, ...]
    point_masses: int


@dataclass(frozen=True)
class RatioScores(Recorded):
    """How even the estimates were, as assessors judge: ratios of estimate to price; nothing is trimmed.

    Attributes:
        n: Sales.
        median: Median ratio; 1 is best.
        cod: Coefficient of dispersion, percent; 0 is best.
        prd: Price-related differential; 1 is best.
        prb: Price-related bias; 0 is best, negative is regressive.
        vei: Vertical equity indicator, percent, with its groups; 0 is best.
        kakwani: Kakwani index; 0 is best, negative is regressive.
    """

    n: int
    median: Measure
    cod: Measure
    prd: Measure
    prb: Measure | Undefined
    vei: VerticalEquity | Undefined
    kakwani: float
