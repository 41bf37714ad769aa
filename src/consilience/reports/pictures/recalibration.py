"""Figures of calibration before and after it was corrected: coverage of intervals, frequencies of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from consilience.reports.pictures.canvas import BLUE, INK, SOFT, VERMILION, Figure, canvas, in_percent, short
from consilience.reports.pictures.multiples import small_multiples

_HALVES: Final = ("0", "50", "100 %")
_LIFT: Final = 0.16


@dataclass(frozen=True)
class Coverage:
    """How often an interval held the truth.

    Attributes:
        share: Truths inside.
        low: Lower end of its interval; None where there is none.
        high: Upper end.
    """

    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Corrected:
    """One arm's interval before and after it was corrected.

    Attributes:
        arm: The arm.
        before: As it was stated.
        after: With its margins.
        kept: The correction is applied; else it was refused.
    """

    arm: str
    before: Coverage
    after: Coverage
    kept: bool = True


def draw_corrected(panels: Sequence[tuple[float, Sequence[Corrected]]]) -> Figure:
    """Return, per nominal coverage, a row per arm: before in grey, after in blue below it, refused ones as crosses.

    Args:
        panels: Nominal coverage and its arms; at least one.
    """
    arms = sorted({one.arm for _, rows in panels for one in rows})
    figure, grid = canvas(1.15 + 0.32 * len(arms), columns=len(panels), sharey=True)
    handles: dict[str, Any] = {}
    for axes, (nominal, rows) in zip(grid[0], panels, strict=True):
        axes.axvline(nominal, color=SOFT, lw=0.8, ls=(0, (3, 3)))
        for one in rows:
            place = -arms.index(one.arm)
            name, hue, mark = ("after", BLUE, "o") if one.kept else ("after, refused", VERMILION, "x")
            for label, told, lift, tone, shape in (
                ("before", one.before, _LIFT, SOFT, "o"),
                (name, one.after, -_LIFT, hue, mark),
            ):
                if told.low is not None and told.high is not None:
                    axes.plot([told.low, told.high], [place + lift] * 2, color=tone, lw=1.2, alpha=0.6)
                face = "white" if label == "before" else tone
                (handles[label],) = axes.plot(
                    [told.share], [place + lift], shape, ms=4.5, color=tone, mfc=face, mew=1.2, ls="none"
                )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-len(arms) + 0.5, 0.5)
        axes.set_xticks(sorted({0.0, 0.5, nominal}))  # none at the right end, where the next column begins
        in_percent(axes.xaxis)
        axes.set_xlabel(f"truths in {nominal * 100:.0f} % interval")
        axes.tick_params(axis="y", length=0, labelcolor=INK)
    grid[0][0].set_yticks([-k for k in range(len(arms))], [short(arm, 22) for arm in arms])
    names = [name for name in ("before", "after", "after, refused") if name in handles]
    figure.legend([handles[name] for name in names], names, loc="outside upper right", ncols=3, columnspacing=1.2)
    return figure


@dataclass(frozen=True)
class Told:
    """What came true of each stated probability.

    Attributes:
        stated: Rising.
        seen: Share that came true, by isotonic regression.
    """

    stated: tuple[float, ...]
    seen: tuple[float, ...]


@dataclass(frozen=True)
class Mapped:
    """One arm's probabilities before and after they were mapped.

    Attributes:
        arm: The arm.
        before: As they were stated.
        after: Mapped.
        kept: The map is applied; else it was refused.
    """

    arm: str
    before: Told
    after: Told
    kept: bool = True


def draw_mapped(arms: Sequence[Mapped]) -> Figure:
    """Return a small reliability diagram per arm: before in grey, after in blue, in orange where it was refused.

    Args:
        arms: At least one.
    """

    def one(axes: Any, arm: Mapped) -> None:
        axes.plot([0, 1], [0, 1], color=SOFT, lw=0.8, ls=(0, (3, 3)))
        for told, hue, wide in ((arm.before, SOFT, 1.3), (arm.after, BLUE if arm.kept else VERMILION, 1.5)):
            few = len(told.stated) <= 12
            axes.plot(np.array(told.stated), np.array(told.seen), color=hue, lw=wide, marker="o" if few else None, ms=3)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal", adjustable="box")
        axes.set_xticks([0, 0.5, 1], _HALVES)
        axes.set_yticks([0, 0.5, 1], _HALVES)

    labels = [arm.arm for arm in arms]
    return small_multiples(arms, one, labels, x="stated probability", y="share that came true", height=1.6)
