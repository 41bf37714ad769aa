"""Figures as inline SVG: they take their colours from the page and need nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from consilience.reports.tables import plain

_MARGIN = 4.0
_ROW = 46
_AXIS = 50
_LONGEST = 22


@dataclass(frozen=True)
class ForestRow:
    """One line of a forest plot; all numbers are fractions, drawn as percentage points.

    Attributes:
        label: Whose difference it is.
        text: The difference in words and numbers.
        point: The difference.
        low: Lower end; None where there is no interval.
        high: Upper end; None where there is no interval.
    """

    label: str
    text: str
    point: float
    low: float | None = None
    high: float | None = None


def forest(rows: Sequence[ForestRow], *, title: str, axis: str) -> str:
    """Return a forest plot with one labelled line per row, a line at zero and an axis in percentage points.

    Places along the axis are percentages of the width and all else is pixels, so that letters keep the size of the
    page's text on any screen; labels stand above their lines, so that both have room on a narrow one.

    Args:
        rows: At least one.
        title: Read out in place of the picture, with every row's text.
        axis: What the axis says.

    Example:
        >>> forest([ForestRow("F", "−1.0", -0.01)], title="Differences", axis="points").startswith("<svg")
        True
    """
    ends = [0.0, *(x for row in rows for x in (row.point, row.low, row.high) if x is not None)]
    ticks = _ticks(min(ends), max(ends))
    start, stop = ticks[0], ticks[-1]
    height = _ROW * len(rows) + _AXIS

    def at(value: float) -> str:
        return f"{_MARGIN + (value - start) / (stop - start) * (100 - 2 * _MARGIN):.2f}%"

    foot = _ROW * len(rows) + 6
    said = "; ".join(f"{row.label}: {row.text}" for row in rows)
    parts = [
        f'<svg class="forest" width="100%" height="{height}" role="img" aria-labelledby="forest-t forest-d">',
        f'<title id="forest-t">{escape(plain(title))}</title>',
        f'<desc id="forest-d">{escape(plain(said))}</desc>',
        f'<line class="zero" x1="{at(0)}" x2="{at(0)}" y1="0" y2="{foot}"/>',
        f'<line class="axis" x1="{at(start)}" x2="{at(stop)}" y1="{foot}" y2="{foot}"/>',
    ]
    for tick in ticks:
        parts.append(f'<line class="axis" x1="{at(tick)}" x2="{at(tick)}" y1="{foot}" y2="{foot + 4}"/>')
        parts.append(f'<text x="{at(tick)}" y="{foot + 18}" text-anchor="middle">{_tick_text(tick, ticks)}</text>')
    parts.append(f'<text x="50%" y="{foot + 38}" text-anchor="middle">{escape(plain(axis))}</text>')
    for place, row in enumerate(rows):
        top = _ROW * place
        name = row.label if len(row.label) <= _LONGEST else f"{row.label[: _LONGEST - 1]}…"
        parts.append(f'<text class="label" x="0" y="{top + 15}">{escape(plain(name))}</text>')
        parts.append(f'<text class="label" x="100%" y="{top + 15}" text-anchor="end">{escape(plain(row.text))}</text>')
        line = top + 30
        if row.low is not None and row.high is not None:
            parts.append(f'<line class="reach" x1="{at(row.low)}" x2="{at(row.high)}" y1="{line}" y2="{line}"/>')
        parts.append(f'<circle class="point" cx="{at(row.point)}" cy="{line}" r="5"/>')
    return "\n".join([*parts, "</svg>"])


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from at or below ``low`` to at or above ``high``, at most seven."""
    span = max(high - low, 0.001)
    power = 10.0 ** math.floor(math.log10(span))
    step = next(power * k for k in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5) if span / (power * k) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    return [k * step for k in range(first, last + 1)]


def _tick_text(value: float, ticks: Sequence[float]) -> str:
    whole = all(abs(tick * 100 - round(tick * 100)) < 1e-9 for tick in ticks)
    text = f"{value * 100:.0f}" if whole else f"{value * 100:.2f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")
