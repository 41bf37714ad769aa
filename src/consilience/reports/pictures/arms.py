"""Figures of whole arms: skill against cost, parts of the interval score, repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from consilience.reports.pictures.canvas import (
    AMBER,
    BLUE,
    INK,
    LINE,
    SKY,
    SOFT,
    VERMILION,
    Figure,
    canvas,
    in_percent,
    name_at_right,
    short,
)
from consilience.reports.tables import percent

_SCALE: Final = 100


@dataclass(frozen=True)
class Priced:
    """One arm in the plane of cost and skill.

    Attributes:
        label: The arm.
        cost: Dollars per item; 0 for what costs nothing.
        skill: ``1 − score / score of the reference``, 1 is best, 0 as good as the reference.
        low: Lower end of its interval; None where there is none.
        high: Upper end.
    """

    label: str
    cost: float
    skill: float
    low: float | None = None
    high: float | None = None


def frontier(arms: Sequence[Priced]) -> tuple[Priced, ...]:
    """Return the arms that no other beats at the same or a lower cost, from cheap to dear.

    Example:
        >>> made = frontier([Priced("a", 1.0, 0.2), Priced("b", 2.0, 0.1), Priced("c", 3.0, 0.4)])
        >>> [arm.label for arm in made]
        ['a', 'c']
    """
    best, kept = -math.inf, []
    for arm in sorted(arms, key=lambda arm: (arm.cost, -arm.skill, arm.label)):
        if arm.skill > best:
            kept.append(arm)
            best = arm.skill
    return tuple(kept)


def draw_skill_cost(arms: Sequence[Priced], *, reference: str, score: str) -> Figure:
    """Return skill against cost per item (logarithmic; what is free stands at the left edge), with the frontier.

    Args:
        arms: At least one.
        reference: The arm whose skill is 0.
        score: Name of the score.
    """
    figure, ((axes,),) = canvas(max(3.0, 0.7 + 0.2 * len(arms)))
    paid = [arm.cost for arm in arms if arm.cost > 0]
    left, right = (min(paid), max(paid)) if paid else (0.01, 1.0)
    free = left / 3
    best = frontier(arms)
    named = {arm.label for arm in best}

    def at(arm: Priced) -> float:
        return arm.cost if arm.cost > 0 else free

    axes.set_xscale("log")
    axes.axhline(0, color=SOFT, lw=0.8, ls=(0, (3, 3)))
    axes.step(
        [*map(at, best), right * 1.6], [*(a.skill for a in best), best[-1].skill], where="post", color=BLUE, lw=1.2
    )
    for arm in arms:
        hue = BLUE if arm.label in named else SOFT
        if arm.low is not None and arm.high is not None:
            axes.plot([at(arm)] * 2, [arm.low, arm.high], color=hue, lw=1.0, alpha=0.35)
        axes.plot([at(arm)], [arm.skill], "o", ms=4.5, color=hue, mfc=hue if arm.label in named else "white")
    axes.set_xlim(free / 1.6, right * 1.6)
    ticks = [10.0**k for k in range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)]
    ticks = [tick for tick in ticks if free * 1.5 < tick < right * 1.6]
    if any(arm.cost == 0 for arm in arms):
        axes.set_xticks([free, *ticks], ["free", *(f"${tick:g}" for tick in ticks)])
    else:
        axes.set_xticks(ticks, [f"${tick:g}" for tick in ticks])
    axes.minorticks_off()
    in_percent(axes.yaxis, signed=True)
    axes.set_xlabel("cost per item (log scale)")
    axes.set_ylabel(f"skill in {score} over {short(reference, 18)}")
    figure.canvas.draw()
    name_at_right(
        axes,
        [arm.label for arm in arms],
        [(at(arm), arm.skill) for arm in arms],
        [BLUE if arm.label in named else SOFT for arm in arms],
    )
    return figure


@dataclass(frozen=True)
class ScoreParts:
    """The mean interval score of an arm in its parts, all in the unit of the logarithm.

    Attributes:
        label: The arm.
        dispersion: Cost of width.
        over: Cost of truths below the intervals.
        under: Cost of truths above.
    """

    label: str
    dispersion: float
    over: float
    under: float

    @property
    def total(self) -> float:
        """The whole score."""
        return self.dispersion + self.over + self.under


def draw_score_parts(arms: Sequence[ScoreParts]) -> Figure:
    """Return stacked bars of the weighted interval score, the best on top, with its value at the end of each.

    Args:
        arms: At least one.
    """
    arms = sorted(arms, key=lambda arm: (arm.total, arm.label))
    figure, ((axes,),) = canvas(1.0 + 0.2 * len(arms))
    places = -np.arange(len(arms), dtype=np.float64)
    start = np.zeros(len(arms))
    parts = (("dispersion", "width", SKY), ("over", "truth below", VERMILION), ("under", "truth above", AMBER))
    for name, label, hue in parts:
        size = np.array([getattr(arm, name) for arm in arms]) * _SCALE
        axes.barh(places, size, left=start, height=0.7, color=hue, label=label, edgecolor="white", lw=0.4)
        start += size
    for place, end in zip(places, start, strict=True):
        axes.text(end + start.max() * 0.01, place, f"{end:.1f}", va="center", fontsize=7.5)
    axes.set_yticks(places, [short(arm.label) for arm in arms])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_xlim(0, start.max() * 1.1)
    axes.set_xlabel("WIS5 of the log price × 100 (less is better)")
    figure.legend(loc="outside upper right", ncols=3, handlelength=1.0, columnspacing=1.2)
    return figure


@dataclass(frozen=True)
class Repeated:
    """One item asked again and again by one arm.

    Attributes:
        arm: The arm.
        item_id: The item.
        points: The answer of every run, at least two.
    """

    arm: str
    item_id: str
    points: tuple[float, ...]

    def deviations(self) -> tuple[float, ...]:
        """Return the logarithms of the answers less their mean."""
        logs = [math.log(point) for point in self.points]
        middle = math.fsum(logs) / len(logs)
        return tuple(value - middle for value in logs)


def run_sd(rows: Sequence[Repeated]) -> float:
    """Return the pooled standard deviation of the log answer from run to run.

    Example:
        >>> round(run_sd([Repeated("E", "a", (100.0, 110.0)), Repeated("E", "b", (50.0, 50.0))]), 4)
        0.0477
    """
    squares = math.fsum(value**2 for row in rows for value in row.deviations())
    return math.sqrt(squares / sum(len(row.points) - 1 for row in rows))


def draw_run_to_run(rows: Sequence[Repeated]) -> Figure:
    """Return, per arm, how far each repetition lies from the item's mean, and the standard deviation in words.

    Args:
        rows: At least one.
    """
    arms = sorted({row.arm for row in rows})
    figure, ((axes,),) = canvas(0.8 + 0.25 * len(arms))
    axes.axvline(0, color=SOFT, lw=0.8, ls=(0, (3, 3)))
    for place, arm in enumerate(arms):
        own = [row for row in rows if row.arm == arm]
        lift = np.linspace(0.22, -0.22, len(own)) if len(own) > 1 else np.zeros(1)
        for row, up in zip(own, lift, strict=True):
            away = row.deviations()
            axes.plot([min(away), max(away)], [-place + up] * 2, color=LINE, lw=0.9, zorder=1)
            axes.plot(away, [-place + up] * len(away), "o", ms=3, color=BLUE, alpha=0.75, mew=0)
        text = f"SD {percent(run_sd(own))}"
        axes.text(1.01, -place, text, transform=axes.get_yaxis_transform(), va="center", fontsize=7.5)
    axes.set_yticks([-k for k in range(len(arms))], [short(arm) for arm in arms])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_ylim(-len(arms) + 0.45, 0.55)
    axes.locator_params(axis="x", nbins=5)
    in_percent(axes.xaxis, digits=1, signed=True)
    axes.set_xlabel("answer relative to the item's mean over runs")
    return figure
