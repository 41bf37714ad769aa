"""Vertical equity: whether dear homes are estimated like cheap ones, by groups of value and by concentration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.scoring.point import FloatArray
from consilience.scoring.ratio import CONSTANT, ratio

Grouping = Literal["rank", "percentile"]

LEAST_SALES: Final = 20
_FEW, _SOME = 50, 500


@dataclass(frozen=True)
class VerticalEquity:
    """The vertical equity indicator and what it consists of, groups from the cheapest to the dearest.

    Attributes:
        value: ``100 (median ratio of the dearest group - that of the cheapest) / M``, percent; 0 is best, negative is
            regressive, within 10 of 0 is accepted as it stands.
        significance: The gap between the nearer ends of those two groups' rank intervals, percent, signed like
            ``value`` where they are apart; of the other sign or 0 where they overlap.
        separate: Whether the two intervals do not overlap.
        group_sizes: Sales in each group.
        group_medians: Median ratio of each group.
        group_intervals: Rank interval of each group's median.
        level: Nominal coverage of the intervals.
        grouping: How the groups were cut.
        n: Sales.
    """

    value: float
    significance: float
    separate: bool
    group_sizes: tuple[int, ...]
    group_medians: tuple[float, ...]
    group_intervals: tuple[tuple[float, float], ...]
    level: float
    grouping: Grouping
    n: int


def vertical_equity(
    *, estimate: FloatArray, price: FloatArray, level: float = 0.90, grouping: Grouping = "rank"
) -> VerticalEquity | Undefined:
    r"""Return the vertical equity indicator: how the median ratio moves from the cheapest to the dearest sales.

    Sales are ordered by the value ``(price + estimate/M)/2`` and cut into 2 groups (20 to 50 sales), 4 (to 500) or 10.
    Of drafts, not of a final standard; they leave the cut open, so it is named.

    Args:
        estimate: Shape (n,), positive.
        price: Shape (n,), positive.
        level: Nominal coverage of the rank intervals, in (0, 1).
        grouping: ``rank``: group q ends at rank ``ceil(q n / k)``, as in the worked example of the draft; sales of
            equal value are ordered by their ratio. ``percentile``: group edges are interpolated percentiles of the
            value and a sale on an edge belongs below, as common software does.

    Degenerate: undefined below 20 sales, and where a group is too small for a rank interval.

    Reference: IAAO Standard on Ratio Studies, exposure draft 2025.

    Raises:
        DataError: As `consilience.scoring.ratio.ratio`, or the level is outside (0, 1).

    Example:
        >>> sold = np.linspace(100.0, 290.0, 20)
        >>> found = vertical_equity(estimate=np.where(sold < 195, 1.1, 0.9) * sold, price=sold)
        >>> round(found.value, 6), found.group_sizes, found.separate
        (-20.0, (10, 10), True)
    """
    from scipy.special import ndtri  # noqa: PLC0415 - scipy is loaded where it is used

    if not 0 < level < 1:
        raise DataError(f"an interval at level {level}", hint="Give a level between 0 and 1.")
    ratios = ratio(estimate=estimate, price=price)
    n, middle = ratios.size, float(np.median(ratios))
    if n < LEAST_SALES:
        return Undefined(f"{n} sales; at least {LEAST_SALES} are needed")
    k = 2 if n <= _FEW else 4 if n <= _SOME else 10
    value = 0.5 * price + 0.5 * estimate / middle
    order = np.lexsort((ratios, value))
    if grouping == "rank":
        ends = [math.ceil(q * n / k) for q in range(1, k)]
    else:
        edges = np.quantile(value, np.arange(1, k) / k)
        ends = np.searchsorted(value[order], edges, side="right").tolist()
    groups = [np.sort(part) for part in np.split(ratios[order], ends)]
    z = float(ndtri(0.5 + level / 2))
    intervals = [_rank_interval(group, z) for group in groups]
    small = [q + 1 for q, interval in enumerate(intervals) if interval is None]
    if small:
        return Undefined(f"group {small[0]} of {k} has {groups[small[0] - 1].size} sales, too few for a rank interval")
    found = tuple(interval for interval in intervals if interval is not None)
    medians = tuple(float(np.median(group)) for group in groups)
    (bottom_low, bottom_high), (top_low, top_high) = found[0], found[-1]
    rising = medians[-1] >= medians[0]
    gap = top_low - bottom_high if rising else top_high - bottom_low
    return VerticalEquity(
        value=100.0 * (medians[-1] - medians[0]) / middle,
        significance=100.0 * gap / middle,
        separate=gap > 0 if rising else gap < 0,
        group_sizes=tuple(group.size for group in groups),
        group_medians=medians,
        group_intervals=found,
        level=level,
        grouping=grouping,
        n=n,
    )


def _rank_interval(ordered: FloatArray, z: float) -> tuple[float, float] | None:
    """Return the interval of a median between two ranks: ``z sqrt(n)/2`` ranks (+ 1/2 if n is even), rounded up."""
    n = ordered.size
    even = n % 2 == 0
    reach = math.ceil(z * math.sqrt(n) / 2 + (0.5 if even else 0.0))
    low, high = (n // 2 + 1 - reach, n // 2 + reach) if even else ((n + 1) // 2 - reach, (n + 1) // 2 + reach)
    return (float(ordered[low - 1]), float(ordered[high - 1])) if low >= 1 and high <= n else None


@dataclass(frozen=True)
class Concentration:
    """How the estimates are concentrated on dear homes, compared with the prices.

    Attributes:
        estimates: Gini index of the estimates in the order of prices.
        prices: Gini index of the prices.
        kakwani: ``estimates - prices``; 0 is best, negative is regressive.
        modified: ``estimates / prices``; 1 is best, below is regressive; undefined where all prices are equal.
    """

    estimates: float
    prices: float
    kakwani: float
    modified: float | Undefined


def concentration(*, estimate: FloatArray, price: FloatArray) -> Concentration:
    r"""Return the Kakwani index and its modified form: ``G = (2 sum_i i x_(i) / sum_i x_(i) - (n + 1)) / n``.

    Sales are ordered by price; of equal prices the one given first comes first, as in the reference software, so give
    rows in a fixed order.

    Reference: Kakwani 1977; Quintos 2020.

    Raises:
        DataError: As `consilience.scoring.ratio.ratio`.

    Example:
        >>> made = concentration(estimate=np.array([100.0, 150.0, 250.0]), price=np.array([100.0, 200.0, 300.0]))
        >>> round(made.kakwani, 6), round(made.modified, 6)
        (-0.022222, 0.9)
    """
    ratio(estimate=estimate, price=price)
    order = np.argsort(price, kind="stable")
    of_estimates, of_prices = _gini(estimate[order]), _gini(price[order])
    equal = float(np.ptp(price)) <= CONSTANT * float(price.max())
    return Concentration(
        estimates=of_estimates,
        prices=of_prices,
        kakwani=of_estimates - of_prices,
        modified=Undefined("all prices are equal") if equal else of_estimates / of_prices,
    )


def _gini(ordered: FloatArray) -> float:
    n = ordered.size
    ranks = np.arange(1, n + 1)
    return (2.0 * float((ranks * ordered).sum() / ordered.sum()) - (n + 1)) / n
