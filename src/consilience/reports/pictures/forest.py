"""The forest plot: differences of pairs of arms, a column per measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from consilience.reports.pictures.canvas import BAND, BLUE, SOFT, Figure, canvas, in_points, short
from consilience.reports.tables import ABSENT, plain

_SIZE: Final = 7.8
_HALF: Final = 0.17
"""Half the height of a row below its label."""


@dataclass(frozen=True)
class Gap:
    """A difference of two arms in one measure, as a fraction.

    Attributes:
        point: The difference.
        low: Lower end of its interval; None where there is none.
        high: Upper end.
    """

    point: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Contrast:
    """One line of a forest plot.

    Attributes:
        label: Which two arms, such as ``G_debate_r2 − J_single_matched``.
        gaps: One per panel; None where the measure is not known of both arms.
        text: What stands beside it, such as the adjusted p.
        declared: It belongs to the declared family.
    """

    label: str
    gaps: tuple[Gap | None, ...]
    text: str
    declared: bool = True


@dataclass(frozen=True)
class Panel:
    """One column of a forest plot.

    Attributes:
        axis: What its axis says, with its unit.
        better: Which side is better, such as ``← better``.
        margin: Equivalence margin as a fraction, shaded; None for none.
    """

    axis: str
    better: str
    margin: float | None = None


def draw_forest(rows: Sequence[Contrast], *, panels: Sequence[Panel]) -> Figure:
    """Return a forest plot, a label above each line, a line at zero; the declared family filled, others hollow.

    Args:
        rows: At least one, from top to bottom.
        panels: At least one, from left to right.
    """
    figure, grid = canvas(0.95 + 0.4 * len(rows), columns=len(panels), sharey=True)
    places = -np.arange(len(rows), dtype=np.float64)
    for column, (axes, panel) in enumerate(zip(grid[0], panels, strict=True)):
        axes.patch.set_visible(False)  # else it would lie over the labels, which begin in the first column
        # Zero and margin are drawn row by row: no line goes through a label.
        feet, heads = places - _HALF, places + _HALF
        if panel.margin is not None:
            size = np.full(len(rows), 2 * panel.margin)
            axes.barh(places, size, left=-panel.margin, height=2 * _HALF, color=BAND, lw=0, zorder=0.5)
        axes.vlines(np.zeros(len(rows)), feet, heads, color=SOFT, lw=0.8)
        for place, row in zip(places, rows, strict=True):
            _line(axes, place, row.gaps[column], declared=row.declared)
        axes.set_ylim(-len(rows) + 0.6, 0.68)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.06)
        axes.locator_params(axis="x", nbins=4)
        in_points(axes.xaxis)
        axes.set_xlabel(f"{panel.axis}\n{panel.better}", fontsize=_SIZE)
    # Over all columns, so outside the layout: a label of the first column would push the others away.
    first, last = grid[0][0], grid[0][-1]
    for place, row in zip(places, rows, strict=True):
        for axes, x, side, text in ((first, 0, "left", short(row.label, 46)), (last, 1, "right", plain(row.text))):
            axes.text(
                x, place + 0.19, text, transform=axes.get_yaxis_transform(), va="bottom", ha=side, fontsize=_SIZE
            ).set_in_layout(False)
    return figure


def _line(axes: object, place: float, gap: Gap | None, *, declared: bool) -> None:
    draw: Figure = axes
    if gap is None:
        draw.text(0.5, place, ABSENT, transform=draw.get_yaxis_transform(), ha="center", va="center", color=SOFT)
        return
    hue = BLUE if declared else SOFT
    if gap.low is not None and gap.high is not None:
        draw.plot([gap.low, gap.high], [place, place], color=hue, lw=2, solid_capstyle="round")
    draw.plot([gap.point], [place], "o", ms=4.5, color=hue, mfc=hue if declared else "white")
