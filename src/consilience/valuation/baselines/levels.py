"""The price level as of a day: medians of what sales brought beyond their attributes, known by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from consilience.valuation.baselines.base import Floats
from consilience.valuation.comparables import Ints

ENOUGH: Final = 30
"""A median of fewer sales is widened."""

TRAILING_DAYS: Final = (30, 60, 120, 240, 480)
"""Windows before a cutoff; the first with enough sales counts, else the last."""

HALF_WIDTHS: Final = (15, 30, 60, 120, 240)
"""Half widths of windows around a past day."""


@dataclass(frozen=True)
class LevelPath:
    """Log price levels day by day.

    The level at a cutoff is the median over sales known strictly before it, of the last 30 days or, where these hold
    fewer than 30 sales, of 60, 120, 240 or 480. The level of a past day is the median of the 15 days around it (30 to
    240 where sales are few) if that whole window lies before the cutoff, else the level at the cutoff: nothing dated
    on or after a cutoff enters what is said for it.

    Attributes:
        first_day: Day number of the first entry.
        trailing: Level at each day taken as a cutoff; NaN before the first sale.
        central: Level around each day; NaN where no sale lies near.
        reach: Last day of the window behind each entry of ``central``.
        base: Level where there is none.

    Example:
        >>> path = level_path(np.array([10, 11, 12]), np.array([0.1, 0.2, 0.3]), base=0.0)
        >>> path.at_cutoff(np.array([10, 12, 99])).round(2).tolist()
        [0.0, 0.15, 0.2]
    """

    first_day: int
    trailing: Floats
    central: Floats
    reach: Ints
    base: float

    def at_cutoff(self, cutoffs: Ints) -> Floats:
        """Return the level at each cutoff (day numbers); `base` where no sale was known."""
        place = np.clip(cutoffs - self.first_day, 0, len(self.trailing) - 1)
        level = self.trailing[place]
        known = (cutoffs >= self.first_day) & ~np.isnan(level)
        return np.where(known, level, self.base)

    def at(self, days: Ints, cutoffs: Ints) -> Floats:
        """Return the level of past days as known at a cutoff each (shapes broadcast)."""
        days, cutoffs = np.broadcast_arrays(days, cutoffs)
        place = np.clip(days - self.first_day, 0, len(self.central) - 1)
        level = self.central[place]
        known = (self.reach[place] < cutoffs) & ~np.isnan(level)
        return np.where(known, level, self.at_cutoff(cutoffs))


def level_path(days: Ints, residuals: Floats, *, base: float) -> LevelPath:
    """Return the levels of sales.

    Args:
        days: Day number at which each sale became known, ascending.
        residuals: ln price of each less what its attributes explain; NaN is left out.
        base: Level where nothing is known.
    """
    there = ~np.isnan(residuals)
    days, residuals = days[there], residuals[there]
    if not days.size:
        return LevelPath(0, np.array([np.nan]), np.array([np.nan]), np.array([0]), base)
    first, last = int(days[0]), int(days[-1])
    grid = np.arange(first, last + 2 + TRAILING_DAYS[-1])
    ends = np.searchsorted(days, grid)
    before = [(np.searchsorted(days, grid - width), ends) for width in TRAILING_DAYS]
    around = [
        (np.searchsorted(days, grid - half), np.searchsorted(days, grid + half, side="right")) for half in HALF_WIDTHS
    ]
    central, chosen = _medians(residuals, around)
    return LevelPath(first, _medians(residuals, before)[0], central, grid + np.array(HALF_WIDTHS)[chosen], base)


def _medians(residuals: Floats, windows: Sequence[tuple[Ints, Ints]]) -> tuple[Floats, Ints]:
    """Return, per day, the median in the first window with enough sales (else the last), and which one that was."""
    starts, ends = (np.array([window[side] for window in windows]) for side in (0, 1))
    enough = ends - starts >= ENOUGH
    enough[-1] = True
    chosen = enough.argmax(axis=0)
    each = np.arange(len(chosen))
    spans = zip(starts[chosen, each].tolist(), ends[chosen, each].tolist(), strict=True)
    medians = [float(np.median(residuals[start:end])) if end > start else float("nan") for start, end in spans]
    return np.array(medians), chosen
