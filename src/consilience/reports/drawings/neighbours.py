"""Comparable sales around a home, by distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consilience.reports.drawings.sheet import PALETTES, WIDTH, Scale, Sheet, Theme

_HEIGHT: Final = 300.0
_GOLDEN: Final = math.pi * (3 - math.sqrt(5))


@dataclass(frozen=True)
class Neighbour:
    """A comparable sale.

    Attributes:
        id: As it is cited.
        distance_km: From the subject.
        visible: The role that is looked at may see it.
        bearing: Radians from north; None where the packet does not say, as for coordinates that are no evidence.
    """

    id: str
    distance_km: float
    visible: bool
    bearing: float | None = None


def draw_neighbours(found: Sequence[Neighbour], theme: Theme) -> bytes:
    """Return rings of distance with the sales on them; where no direction is known, one is spread evenly."""
    sheet = Sheet(WIDTH, _HEIGHT, PALETTES[theme])
    middle_x, middle_y = WIDTH / 2, _HEIGHT / 2
    far = max((one.distance_km for one in found), default=1.0) or 1.0
    radius = Scale(0, far, 0, _HEIGHT / 2 - 22)
    for tick in [tick for tick in radius.ticks(3) if tick > 0]:
        sheet.shapes.append(
            f'<circle cx="{middle_x:.1f}" cy="{middle_y:.1f}" r="{radius(tick):.1f}" fill="none" '
            f'stroke="{sheet.palette.line}"/>'
        )
        sheet.text(
            middle_x, middle_y - radius(tick) - 3, f"{tick:g} km", anchor="middle", size=9, colour=sheet.palette.soft
        )
    sheet.box(middle_x - 4, middle_y - 4, 8, 8, colour=sheet.palette.ink)
    for number, one in enumerate(found):
        angle = _GOLDEN * number if one.bearing is None else one.bearing
        x = middle_x + radius(one.distance_km) * math.sin(angle)
        y = middle_y - radius(one.distance_km) * math.cos(angle)
        colour = sheet.palette.hues[0] if one.visible else sheet.palette.soft
        sheet.dot(x, y, colour=colour, radius=4.5, hollow=not one.visible)
        sheet.text(x + 7, y + 4, one.id, size=9.5, colour=colour)
    return sheet.svg()
