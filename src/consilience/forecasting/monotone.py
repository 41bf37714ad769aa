"""Monotone interpolation of a distribution function through its quantiles: piecewise cubic, with jumps and tails.

Own code, because at run time only the special functions and optimisers of scipy are used; tests compare with its
``PchipInterpolator``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

ATOM: Final = 1e-9
"""Knots nearer than this share of the range are one point with a jump: no grid of thousands of steps tells them."""
_FLATTEST: Final = 1 / 3
"""Least slope at an outer knot, in slopes of its segment, for the tail; the cubic itself has at most three of them."""


def slopes(x: Sequence[float], y: Sequence[float]) -> tuple[float, ...]:
    r"""Return the derivatives at the knots for which the piecewise cubic through monotone data is monotone.

    Inside, the weighted harmonic mean ``(w1 + w2) / (w1/d1 + w2/d2)`` of the neighbouring secants, ``w1 = 2 h2 + h1``,
    ``w2 = h2 + 2 h1``, and 0 where they differ in sign or one is flat; at the ends the three-point formula, held to the
    sign of the secant and to three times its size.

    Args:
        x: Strictly increasing, at least two.
        y: As many.

    Reference: Fritsch & Carlson 1980; Fritsch & Butland 1984. Degenerate: two knots give their secant.

    Example:
        >>> slopes([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])
        (0.0, 1.5, 4.0)
    """
    h = [b - a for a, b in pairwise(x)]
    d = [(b - a) / width for (a, b), width in zip(pairwise(y), h, strict=True)]
    if len(d) == 1:
        return (d[0], d[0])
    inner = [
        0.0 if low * high <= 0 else 3 * (left + right) / ((2 * right + left) / low + (right + 2 * left) / high)
        for (left, right), (low, high) in zip(pairwise(h), pairwise(d), strict=True)
    ]
    return (_end(h[0], h[1], d[0], d[1]), *inner, _end(h[-1], h[-2], d[-1], d[-2]))


def _end(near: float, far: float, secant: float, beyond: float) -> float:
    slope = ((2 * near + far) * secant - near * beyond) / (near + far)
    if slope * secant <= 0:
        return 0.0
    return 3 * secant if secant * beyond < 0 and abs(slope) > 3 * abs(secant) else slope


def hermite(t: float, x: tuple[float, float], y: tuple[float, float], d: tuple[float, float]) -> float:
    """Return the cubic on one segment with values y and derivatives d at its ends, held between the values.

    Example:
        >>> hermite(0.5, (0.0, 1.0), (0.0, 1.0), (1.0, 1.0))
        0.5
    """
    width = x[1] - x[0]
    s = (t - x[0]) / width
    rise = s * s * (3 - 2 * s)
    bend = width * s * (1 - s) * (d[0] * (1 - s) - d[1] * s)
    value = y[0] + (y[1] - y[0]) * rise + bend
    return min(max(value, y[0]), y[1])  # rounding alone can lead outside


@dataclass(frozen=True)
class Knot:
    """A place where the distribution function is known.

    Attributes:
        place: Where, in shares of the range.
        below: Its value just before; lower than ``at`` where quantiles coincide.
        at: Its value there.
    """

    place: float
    below: float
    at: float


def knots(places: Sequence[float], levels: Sequence[float]) -> tuple[Knot, ...]:
    """Return the knots of quantiles in order; those at one place (`ATOM`) become one with a jump.

    Example:
        >>> knots([0.1, 0.5, 0.5], [0.05, 0.25, 0.5])
        (Knot(place=0.1, below=0.05, at=0.05), Knot(place=0.5, below=0.25, at=0.5))
    """
    found: list[Knot] = []
    for place, level in zip(places, levels, strict=True):
        if found and place - found[-1].place < ATOM:
            found[-1] = Knot(found[-1].place, found[-1].below, level)
        else:
            found.append(Knot(place, level, level))
    return tuple(found)


class DistributionFunction:
    """A monotone function through knots: cubic between them, exponential beyond the outer ones.

    A jump ends one cubic and begins another. Beyond the outer knots the remaining mass m falls off as
    ``m exp(-k u / m)`` at distance u, where k is the slope at the knot, at least a third of its segment's secant. An
    outer knot with a jump takes the mass beyond it in, because no slope is known there. A knot with no mass beyond it
    (a closed end) is the end.

    Args:
        points: In order of place, at least one.

    Example:
        >>> normal = DistributionFunction(knots([0.3, 0.4, 0.5, 0.6, 0.7], [0.05, 0.25, 0.5, 0.75, 0.95]))
        >>> normal(0.5), round(normal(0.45), 4), round(normal(0.2), 4)
        (0.5, 0.3715, 0.0015)
    """

    def __init__(self, points: Sequence[Knot]) -> None:
        self._knots = tuple(points)
        self._places = [knot.place for knot in self._knots]
        self._slopes = self._segment_slopes()

    def _segment_slopes(self) -> list[tuple[float, float]]:
        """Return the derivatives at both ends of each segment; they differ at a jump."""
        found: list[tuple[float, float]] = []
        first, end = 0, len(self._knots) - 1
        for i in range(1, len(self._knots)):
            jump = self._knots[i].at > self._knots[i].below
            if jump or i == end:
                run = self._knots[first : i + 1]
                d = slopes([k.place for k in run], [run[0].at, *(k.below for k in run[1:])])
                found += pairwise(d)
                first = i
        return found

    def __call__(self, place: float) -> float:
        """Return the probability of what lies at or before a place."""
        i = bisect_right(self._places, place) - 1
        if i < 0:
            return self._tail(self._knots[0].below, self._places[0] - place, first=True)
        knot = self._knots[i]
        if i == len(self._knots) - 1:
            return 1 - self._tail(1 - knot.at, place - knot.place, first=False)
        after = self._knots[i + 1]
        return hermite(place, (knot.place, after.place), (knot.at, after.below), self._slopes[i])

    def _tail(self, mass: float, distance: float, *, first: bool) -> float:
        i = 0 if first else len(self._knots) - 1
        jump = self._knots[i].at > self._knots[i].below
        if mass <= 0 or jump or not self._slopes:
            return 0.0
        low, high = self._knots[:2] if first else self._knots[-2:]
        secant = (high.below - low.at) / (high.place - low.place)
        slope = max(self._slopes[0][0] if first else self._slopes[-1][1], _FLATTEST * secant)
        return mass * math.exp(-slope / mass * distance)
