"""The dot plot of what moves members: the pull of the others and the pull of new evidence, by role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consilience.reports.pictures.canvas import HUES, INK, SOFT, Figure, canvas, short

_MARKS: Final = "os^Dv"
_STEP: Final = 0.105
_ROW: Final = 0.13


@dataclass(frozen=True)
class Pull:
    """One coefficient of one role in one arm.

    Attributes:
        arm: The arm.
        role: The role.
        value: Share of the way: 0 is no pull, 1 all of it.
        low: Lower end of its interval.
        high: Upper end.
    """

    arm: str
    role: str
    value: float
    low: float
    high: float


def draw_pulls(panels: Sequence[tuple[str, Sequence[Pull]]], *, arms: Sequence[str], roles: Sequence[str]) -> Figure:
    """Return a column of dots per coefficient, a row per role, the arms of a role below each other; lines at 0 and 1.

    Args:
        panels: What the axis of each column says, and its dots; at least one.
        arms: In the order of the legend.
        roles: From top to bottom.
    """
    size = _ROW + _STEP * len(arms)
    figure, grid = canvas(0.8 + size * len(roles) + 0.17 * ((len(arms) + 1) // 2), columns=len(panels), sharey=True)
    lift = {arm: (len(arms) - 1) / 2 - k for k, arm in enumerate(arms)}
    looks = {arm: (HUES[k % len(HUES)], _MARKS[k // len(HUES) % len(_MARKS)]) for k, arm in enumerate(arms)}
    handles = {}
    for axes, (said, pulls) in zip(grid[0], panels, strict=True):
        for at in (0, 1):
            axes.axvline(at, color=SOFT, lw=0.8, ls=(0, (3, 3)))
        for pull in pulls:
            place = -roles.index(pull.role) + lift[pull.arm] * _STEP / size
            hue, mark = looks[pull.arm]
            axes.plot([pull.low, pull.high], [place, place], color=hue, lw=1.4, solid_capstyle="round")
            (handles[pull.arm],) = axes.plot([pull.value], [place], mark, ms=4, color=hue, mew=0)
        for k in range(1, len(roles)):
            axes.axhline(0.5 - k, color="#eceff2", lw=0.6, zorder=0)
        axes.set_ylim(-len(roles) + 0.5, 0.5)
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel(said)
    grid[0][0].set_yticks([-k for k in range(len(roles))], [short(role, 22) for role in roles])
    for axes in grid[0]:
        axes.tick_params(axis="y", length=0, labelcolor=INK)
    shown = [arm for arm in arms if arm in handles]
    figure.legend(
        [handles[arm] for arm in shown],
        [short(arm) for arm in shown],
        loc="outside lower center",
        ncols=2,
        columnspacing=1.4,
    )
    return figure
