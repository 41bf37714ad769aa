"""How far answers were off, and how often truths lay below the stated quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from consilience.reports.drawings.sheet import PALETTES, WIDTH, Scale, Sheet, Theme, scale_of, short_amount

_HEIGHT: Final = 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 20.0, 24.0, 40.0


@dataclass(frozen=True)
class Scored:
    """An answer and its truth.

    Attributes:
        item_id: The item.
        said: The point, or the probability of yes.
        truth: The number, or 0 or 1.
        quantiles: At .05, .25, .50, .75, .95; None without.
    """

    item_id: str
    said: float
    truth: float
    quantiles: tuple[float, ...] | None


def draw_errors(scored: Sequence[Scored], theme: Theme, *, log: bool) -> bytes:
    """Return answers against truths, with the line of equality."""
    sheet = Sheet(WIDTH, _HEIGHT, PALETTES[theme])
    values = [value for one in scored for value in (one.said, one.truth)]
    x = scale_of(values, _LEFT, WIDTH - _RIGHT, log=log and min(values) > 0)
    y = scale_of(values, _HEIGHT - _BOTTOM, _TOP, log=log and min(values) > 0)
    _frame(sheet, x, y, "truth", "answer")
    sheet.line(x(x.low), y(y.low), x(x.high), y(y.high), colour=sheet.palette.soft, dash="4 3")
    for one in scored:
        sheet.dot(x(one.truth), y(one.said), colour=sheet.palette.hues[0], radius=3)
    return sheet.svg()


def draw_calibration(levels: Sequence[tuple[float, float]], theme: Theme, *, across: str, up: str) -> bytes:
    """Return observed shares against stated ones, with the line where both are the same.

    Args:
        levels: Stated and observed shares.
        theme: Colours.
        across: What the horizontal axis holds.
        up: What the vertical one holds.
    """
    sheet = Sheet(WIDTH, _HEIGHT, PALETTES[theme])
    x, y = Scale(0, 1, _LEFT, WIDTH - _RIGHT), Scale(0, 1, _HEIGHT - _BOTTOM, _TOP)
    _frame(sheet, x, y, across, up)
    sheet.line(x(0), y(0), x(1), y(1), colour=sheet.palette.soft, dash="4 3")
    places = [(x(stated), y(observed)) for stated, observed in levels]
    for one, other in pairwise(places):
        sheet.line(*one, *other, colour=sheet.palette.hues[0], width=1.6)
    for place in places:
        sheet.dot(*place, colour=sheet.palette.hues[0], radius=4)
    return sheet.svg()


def _frame(sheet: Sheet, x: Scale, y: Scale, across: str, up: str) -> None:
    soft = sheet.palette.soft
    for tick in y.ticks():
        sheet.line(_LEFT, y(tick), WIDTH - _RIGHT, y(tick), colour=sheet.palette.band)
        sheet.text(_LEFT - 5, y(tick) + 4, short_amount(tick), anchor="end", size=10, colour=soft)
    for tick in x.ticks(4):
        sheet.text(x(tick), _HEIGHT - _BOTTOM + 14, short_amount(tick), anchor="middle", size=10, colour=soft)
    sheet.text(4, 11, up, size=10, colour=soft)
    sheet.text(WIDTH - _RIGHT, _HEIGHT - 8, across, anchor="end", size=10, colour=soft)
