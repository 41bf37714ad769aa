"""A sheet to draw on: shapes with attributes, no style and no script, text escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, Literal

from consilience.evidence.visible import visible_text

Theme = Literal["light", "dark"]
WIDTH: Final = 480
"""So narrow that letters stay readable where the picture fills a telephone's screen."""
_WIDE: Final = 4
"""Logarithmic scales over more than this ratio are marked at 1, 2, 5, 10 …"""
_TOO_WIDE: Final = 1e9
"""Over more than this ratio a logarithmic scale shows nothing but powers; values are then shown as they are."""
FONT: Final = "system-ui, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Palette:
    """Colours of a theme; the hues are Okabe and Ito's, told apart by colour-blind readers."""

    ink: str
    soft: str
    line: str
    band: str
    hues: tuple[str, ...]


PALETTES: Final[dict[Theme, Palette]] = {
    "light": Palette(
        "#1c2228", "#56616b", "#c9ced3", "#e3eaf0", ("#0072b2", "#d55e00", "#009e73", "#a05195", "#946300", "#2b83ba")
    ),
    "dark": Palette(
        "#e6eaee", "#a3adb6", "#454d55", "#2b333b", ("#56b4e9", "#ff8c42", "#2fc79a", "#e39bc4", "#f0b429", "#9ad1f5")
    ),
}


@dataclass
class Sheet:
    """Shapes in the order they are drawn.

    Attributes:
        width: In units of the picture.
        height: The same.
        palette: Colours.
    """

    width: float
    height: float
    palette: Palette
    shapes: list[str] = field(default_factory=list)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, colour: str, width: float = 1, dash: str = ""
    ) -> None:
        """Draw a line."""
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.shapes.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width:g}"{dashed}/>'
        )

    def box(self, x: float, y: float, width: float, height: float, *, colour: str) -> None:
        """Draw a filled rectangle."""
        self.shapes.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def dot(self, x: float, y: float, *, colour: str, radius: float = 3, hollow: bool = False) -> None:
        """Draw a dot."""
        paint = f'fill="none" stroke="{colour}" stroke-width="1.4"' if hollow else f'fill="{colour}"'
        self.shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" {paint}/>')

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        colour: str | None = None,
        anchor: Literal["start", "middle", "end"] = "start",
        size: float = 11,
    ) -> None:
        """Write a text; whatever it holds, it is only a text."""
        self.shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-family="{FONT}" font-size="{size:g}" text-anchor="{anchor}" '
            f'fill="{colour or self.palette.ink}">{escape(visible_text(said))}</text>'
        )

    def svg(self) -> bytes:
        """Return the picture."""
        body = "\n".join(self.shapes)
        made = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}">\n{body}\n</svg>\n'
        )
        return made.encode("utf-8")


@dataclass(frozen=True)
class Scale:
    """A way from values to places on a sheet.

    Attributes:
        low: Value at ``start``.
        high: Value at ``end``.
        start: Place of the lower end.
        end: Place of the upper end.
        log: Equal ratios are equally long.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high, at = (
            (math.log(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return self.start + (self.end - self.start) * ((at - low) / (high - low) if high > low else 0.5)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values between the ends."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        if self.log and self.high > self.low * _WIDE:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            return [v for power in powers for k in (1, 2, 5) if self.low <= (v := k * 10.0**power) <= self.high]
        raw = span / most
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(k * power for k in (1, 2, 2.5, 5, 10) if k * power >= raw * 0.999)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def scale_of(values: Sequence[float], start: float, end: float, *, log: bool = False) -> Scale:
    """Return a scale on which all values have room; a logarithmic one only for positive values of like size."""
    low, high = min(values), max(values)
    if log and low > 0 and high / low < _TOO_WIDE:
        room = max((high / low) ** 0.06, 1.01)
        return Scale(low / room, high * room, start, end, log=True)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return Scale(low - room, high + room, start, end)


def short_amount(value: float) -> str:
    """Return a number that is short enough for an axis.

    Example:
        >>> short_amount(1_250_000), short_amount(350_000), short_amount(0.25)
        ('1.25 m', '350 k', '0.25')
    """
    for size, word in ((1e9, " bn"), (1e6, " m"), (1e4, " k")):
        if abs(value) >= size:
            unit = size if size > 1e4 else 1e3
            return f"{value / unit:.4g}{word}"
    return f"{value:.4g}"
