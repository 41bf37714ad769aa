"""Figures of calibration: quantiles, coverage against width, where the truth falls, reliability of probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from consilience.core.answers import LEVELS
from consilience.reports.pictures.canvas import (
    BAND,
    BLUE,
    INK,
    SKY,
    SOFT,
    VERMILION,
    Figure,
    canvas,
    in_percent,
    name_at_right,
    short,
)
from consilience.reports.pictures.multiples import small_multiples
from consilience.reports.tables import plain
from consilience.scoring.calibration import Reliability
from consilience.scoring.pit import PitHistogram
from consilience.scoring.summaries import ClusteredShare

_HALVES: Final = ("0", "50", "100 %")


@dataclass(frozen=True)
class Observed:
    """How often the truth lay at or below each stated quantile of an arm.

    Attributes:
        label: The arm.
        shares: One per level, with its interval.
    """

    label: str
    shares: tuple[ClusteredShare, ...]


def draw_quantiles(arms: Sequence[Observed], *, levels: tuple[float, ...] = LEVELS) -> Figure:
    """Return one small plot per arm: share of truths at or below each stated quantile, against its level.

    Args:
        arms: At least one.
        levels: Levels of the quantiles.
    """

    def one(axes: Any, arm: Observed) -> None:
        axes.plot([0, 1], [0, 1], color=SOFT, lw=0.8, ls=(0, (3, 3)))
        seen = [share.value for share in arm.shares]
        axes.plot(levels, seen, "o-", ms=3, lw=1.1, color=BLUE)
        for level, share in zip(levels, arm.shares, strict=True):
            if share.low is not None and share.high is not None:
                axes.plot([level] * 2, [share.low, share.high], lw=0.9, color=BLUE, alpha=0.7)
        axes.set_xlim(0, 1)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal", adjustable="box")
        axes.set_xticks([0, 0.5, 1], _HALVES)
        axes.set_yticks([0, 0.5, 1], _HALVES)

    return small_multiples(arms, one, [arm.label for arm in arms], x="stated level", y="truths at or below", height=1.5)


def draw_pit(arms: Sequence[tuple[str, PitHistogram]], *, levels: tuple[float, ...] = LEVELS) -> Figure:
    """Return one small histogram per arm over bins with edges at the levels, with the band of right quantiles.

    Args:
        arms: Label and histogram; at least one.
        levels: Levels of the quantiles.
    """
    edges = np.array([0.0, *levels, 1.0])
    top = max(max(*made.density, *made.high) for _, made in arms)

    def one(axes: Any, arm: tuple[str, PitHistogram]) -> None:
        made = arm[1]
        inside = [low <= seen <= high for seen, low, high in zip(made.density, made.low, made.high, strict=True)]
        hues = [SKY if fine else VERMILION for fine in inside]
        axes.bar(edges[:-1], made.density, width=np.diff(edges), align="edge", color=hues, edgecolor="white", lw=0.5)
        axes.stairs(made.high, edges, color=INK, lw=0.9, baseline=None)
        axes.stairs(made.low, edges, color=INK, lw=0.9, baseline=None)
        axes.axhline(1, color=SOFT, lw=0.8, ls=(0, (3, 3)))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, top * 1.04)
        axes.set_xticks([0, 0.5, 1], _HALVES)

    return small_multiples(
        arms, one, [label for label, _ in arms], x="where the truth falls in the stated law", y="density"
    )


@dataclass(frozen=True)
class Covered:
    """How often an arm's 90 % interval held the truth, and how wide it was.

    Attributes:
        label: The arm.
        width: Median of ``(q95 − q05) / point``.
        share: Coverage with its interval.
    """

    label: str
    width: float
    share: ClusteredShare


def draw_coverage(arms: Sequence[Covered], *, nominal: float = 0.9) -> Figure:
    """Return coverage against width: best is near the nominal line and far to the left.

    Args:
        arms: At least one.
        nominal: What the intervals promise.
    """
    figure, ((axes,),) = canvas(max(3.0, 0.7 + 0.2 * len(arms)))
    axes.axhline(nominal, color=SOFT, lw=0.8, ls=(0, (3, 3)))
    hues = []
    for arm in arms:
        low, high = arm.share.low, arm.share.high
        honest = low is None or high is None or low <= nominal <= high
        hues.append(BLUE if honest else VERMILION)
        if low is not None and high is not None:
            axes.plot([arm.width] * 2, [low, high], color=hues[-1], lw=1.0, alpha=0.55)
        axes.plot([arm.width], [arm.share.value], "o" if honest else "s", ms=4.5, color=hues[-1])
    lowest = min(arm.share.value if arm.share.low is None else arm.share.low for arm in arms)
    axes.set_ylim(math.floor(lowest * 10 - 0.5) / 10 if lowest > 0.15 else 0, 1.02)
    axes.set_xlim(0, max(arm.width for arm in arms) * 1.1)
    in_percent(axes.xaxis)
    in_percent(axes.yaxis)
    axes.set_xlabel("median width of the 90 % interval, relative to the point")
    axes.set_ylabel("truths inside it")
    figure.canvas.draw()
    name_at_right(axes, [arm.label for arm in arms], [(arm.width, arm.share.value) for arm in arms], hues)
    return figure


def draw_reliability(made: Reliability, *, label: str, parts: str) -> Figure:
    """Return the CORP reliability diagram with its consistency band, and how often each probability was stated below.

    Args:
        made: From `consilience.scoring.calibration.reliability`.
        label: Whose probabilities.
        parts: Miscalibration, discrimination and uncertainty in words, printed inside.
    """
    figure, grid = canvas(4.6, rows=2, sharex=True, height_ratios=[4, 1])
    upper, lower = grid[0, 0], grid[1, 0]
    upper.fill_between(made.stated, made.low, made.high, color=BAND, lw=0, step=None)
    upper.plot([0, 1], [0, 1], color=SOFT, lw=0.8, ls=(0, (3, 3)))
    upper.plot(made.stated, made.seen, color=BLUE, lw=1.6, marker="o" if made.stated.size <= 30 else None, ms=3)
    upper.set_ylim(-0.02, 1.02)
    upper.set_xlim(-0.02, 1.02)
    upper.set_ylabel("share that came true")
    upper.set_title(f"{short(label)}\n{plain(parts)}", fontsize=7.8)
    edges = np.linspace(0, 1, 21)
    lower.hist(made.stated, bins=edges, weights=made.count, color=SKY, edgecolor="white", lw=0.5)
    lower.set_ylabel("cases")
    lower.set_xlabel("stated probability")
    in_percent(upper.yaxis)
    in_percent(lower.xaxis)
    return figure
