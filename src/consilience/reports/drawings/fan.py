"""The fan of an item: what every seat said in every round, and what the rule made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from consilience.aggregation.answers import AnswerRow
from consilience.core.answers import AnyAnswer, Estimate, Probability
from consilience.core.question import Question
from consilience.reports.drawings.sheet import PALETTES, WIDTH, Scale, Sheet, Theme, scale_of, short_amount

_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 18.0, 44.0
_HEIGHT: Final = 330.0
_PANEL: Final = 46.0
_MOST_NUMBERED: Final = 14


@dataclass(frozen=True)
class Said:
    """A number that a seat stated in one round.

    Attributes:
        point: The number.
        quantiles: At .05, .25, .50, .75, .95; None for a probability.
    """

    point: float
    quantiles: tuple[float, float, float, float, float] | None


@dataclass(frozen=True)
class Fan:
    """What is drawn.

    Attributes:
        seats: Labels, in seat order; the pictures number them from 1.
        rounds: By round, what each seat said in it.
        panel: The panel's answer; None without one.
        truth: What turned out; None where unknown or sealed.
        unit: Of the values; None for none.
        log: Values are compared by ratio.
    """

    seats: Sequence[str]
    rounds: Sequence[tuple[int, Mapping[str, Said]]]
    panel: Said | None
    truth: float | None
    unit: str | None
    log: bool

    @property
    def alt(self) -> str:
        """What a reader sees in it, in words."""
        told = [
            f"round {number}: {short_amount(min(one.point for one in said.values()))} to "
            f"{short_amount(max(one.point for one in said.values()))}"
            for number, said in self.rounds
            if said
        ]
        end = "" if self.panel is None else f"; the panel: {short_amount(self.panel.point)}"
        return f"Estimates of {len(self.seats)} seats; {'; '.join(told)}{end}"


def fan_of(
    rounds: Sequence[tuple[int, Mapping[str, AnyAnswer]]],
    *,
    question: Question,
    members: Sequence[str],
    row: AnswerRow | None,
    truth: float | str | None = None,
) -> Fan | None:
    """Return the fan of a question that was answered in numbers; None for options.

    Args:
        rounds: By round, what each seat answered in it.
        question: What was asked.
        members: Seats, in order.
        row: The panel's answer; None without one.
        truth: What turned out; None where unknown or sealed.
    """
    if question.kind not in {"estimate", "probability"}:
        return None
    told = [(number, {seat: _said(answer) for seat, answer in said.items()}) for number, said in rounds]
    panel = None
    if row is not None:
        panel = Said(float(row.headline), None if row.interval is None else _five(row.interval[1]))
    known = float(truth) if isinstance(truth, int | float) else None
    return Fan(members, told, panel, known, question.unit, question.scale == "log")


def _said(answer: AnyAnswer) -> Said:
    if isinstance(answer, Estimate):
        return Said(answer.point, _five(answer.quantiles))
    if isinstance(answer, Probability):
        return Said(answer.p_yes, None)
    raise TypeError(f"{type(answer).__name__} is no number")


def _five(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    q05, q25, q50, q75, q95 = values
    return q05, q25, q50, q75, q95


def draw_fan(fan: Fan, theme: Theme) -> bytes:
    """Return the fan as SVG: a column per round, in it a bar per seat (thin 90 %, thick 50 %), dots joined by seat."""
    sheet = Sheet(WIDTH, _HEIGHT, PALETTES[theme])
    every = [value for _, said in fan.rounds for one in said.values() for value in _values(one)]
    every += [] if fan.panel is None else _values(fan.panel)
    every += [] if fan.truth is None else [fan.truth]
    if not every:
        sheet.text(WIDTH / 2, _HEIGHT / 2, "no number was stated", anchor="middle", colour=sheet.palette.soft)
        return sheet.svg()
    y = scale_of(every, _HEIGHT - _BOTTOM, _TOP, log=fan.log and min(every) > 0)
    _axis(sheet, y, fan)
    _seats(sheet, y, fan)
    if fan.panel is not None:
        x = WIDTH - _RIGHT - _PANEL / 2
        _bar(sheet, x, y, fan.panel, sheet.palette.ink, wide=True)
        sheet.text(x, _HEIGHT - 12, "panel", anchor="middle")
    if fan.truth is not None:
        sheet.line(_LEFT, y(fan.truth), WIDTH - _RIGHT, y(fan.truth), colour=sheet.palette.ink, width=1.2, dash="2 3")
        sheet.text(WIDTH - _RIGHT, y(fan.truth) - 3, "truth", anchor="end", size=9.5)
    return sheet.svg()


def _seats(sheet: Sheet, y: Scale, fan: Fan) -> None:
    """Draw a column per round: the lines that join a seat's answers first, so that its bars lie over them."""
    room = WIDTH - _LEFT - _RIGHT - (_PANEL if fan.panel else 0)
    wide = room / max(1, len(fan.rounds))
    xs = [wide * (place + 1) / (len(fan.seats) + 1) for place in range(len(fan.seats))]
    starts = [_LEFT + column * wide for column in range(len(fan.rounds))]
    for (number, _), start in zip(fan.rounds, starts, strict=True):
        sheet.text(start + wide / 2, _HEIGHT - 12, f"round {number}", anchor="middle", colour=sheet.palette.soft)
    for place, (seat, x) in enumerate(zip(fan.seats, xs, strict=True)):
        stood = [(start + x, said[seat]) for (_, said), start in zip(fan.rounds, starts, strict=True) if seat in said]
        for (x1, before), (x2, after) in pairwise(stood):
            sheet.line(x1, y(before.point), x2, y(after.point), colour=sheet.palette.line, width=0.8)
        for start in starts if len(fan.seats) <= _MOST_NUMBERED else ():
            number_at = _HEIGHT - _BOTTOM + 12
            sheet.text(start + x, number_at, str(place + 1), anchor="middle", size=7.5, colour=_hue(sheet, place))
    for place, (seat, x) in enumerate(zip(fan.seats, xs, strict=True)):
        for (_, said), start in zip(fan.rounds, starts, strict=True):
            if seat in said:
                _bar(sheet, start + x, y, said[seat], _hue(sheet, place))


def _hue(sheet: Sheet, place: int) -> str:
    return sheet.palette.hues[place % len(sheet.palette.hues)]


def _values(said: Said) -> list[float]:
    return [said.point, *(() if said.quantiles is None else (said.quantiles[0], said.quantiles[-1]))]


def _axis(sheet: Sheet, y: Scale, fan: Fan) -> None:
    for tick in y.ticks():
        sheet.line(_LEFT, y(tick), WIDTH - _RIGHT, y(tick), colour=sheet.palette.band)
        sheet.text(_LEFT - 5, y(tick) + 4, short_amount(tick), anchor="end", colour=sheet.palette.soft, size=10)
    unit = "" if fan.unit is None else fan.unit
    sheet.text(4, 11, f"{unit}{' (log scale)' if y.log else ''}".strip(), colour=sheet.palette.soft, size=10)


def _bar(sheet: Sheet, x: float, y: Scale, said: Said, colour: str, *, wide: bool = False) -> None:
    if said.quantiles is not None:
        q05, q25, _, q75, q95 = said.quantiles
        sheet.line(x, y(q05), x, y(q95), colour=colour, width=1.6 if wide else 1)
        sheet.line(x, y(q25), x, y(q75), colour=colour, width=7 if wide else 3.4)
    sheet.dot(x, y(said.point), colour=colour, radius=4 if wide else 2.8)
