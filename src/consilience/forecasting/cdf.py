"""Quantiles become a distribution function on a question's grid, and that one is made fit for submission.

Three steps: `interpolate` one member's quantiles, `average` the members by index on one grid, `admissible` to mix in
what the server's rules ask for, with a record of each change. The check itself is `metaculus_rules`, not used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from consilience.core.answers import LEVELS
from consilience.core.question import Strict
from consilience.errors import DataError, reason
from consilience.forecasting.metaculus_rules import (
    DECIMALS,
    DEFAULT_STEPS,
    MAX_PROBABILITY,
    MIN_PROBABILITY,
    largest_step,
    smallest_step,
)
from consilience.forecasting.monotone import DistributionFunction, Knot, knots
from consilience.forecasting.questions import MOST_OUTCOMES, ForecastQuestion

_ROOM: Final = 2e-10
"""What steps keep from the rules' limits, because rounding both ends to ten decimals may take 1e-10 away."""
_FARTHEST: Final = 1e100

Adjusted = Literal["open_lower_mass", "open_upper_mass", "least_slope", "largest_step"]


class Grid(Strict):
    """The points at which a question's distribution function is asked for.

    Attributes:
        lower: Lower bound of the range.
        upper: Upper bound.
        open_lower: Whether values below it are possible.
        open_upper: Whether values above it are possible.
        zero_point: For a logarithmic scale: the value its logarithm is measured from, outside the range; 0 is one.
        steps: N; a discrete question has one per outcome.

    Raises:
        ValueError: The range is empty, too narrow or too wide for floating point, or holds the zero point.

    Example:
        >>> grid = Grid(lower=1, upper=100, open_lower=False, open_upper=True, zero_point=0, steps=2)
        >>> [round(x, 6) for x in grid.values]
        [1.0, 10.0, 100.0]
    """

    lower: float
    upper: float
    open_lower: bool
    open_upper: bool
    zero_point: float | None = None
    steps: int = Field(default=DEFAULT_STEPS, ge=1, le=MOST_OUTCOMES)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not self.lower < self.upper:
            raise ValueError("lower must be below upper")
        if self.zero_point is not None and self.lower <= self.zero_point <= self.upper:
            raise ValueError("the zero point of a logarithmic scale lies outside the range")
        width = self.upper - self.lower
        if not math.isfinite(width) or (self.zero_point is not None and not self._measurable(self.zero_point)):
            raise ValueError("the range is too wide for floating point")
        if any(low >= high for low, high in pairwise(self.values)):
            raise ValueError("the range is too narrow for floating point: two points of the grid are one number")
        return self

    def _measurable(self, zero: float) -> bool:
        near = self.lower - zero
        ratio = (self.upper - self.lower) / near if near else math.inf
        return math.isfinite(ratio) and 1 + ratio > 0 and math.log1p(ratio) != 0

    @property
    def _log_ratio(self) -> float | None:
        """Logarithm of ``r = (max - z) / (min - z)``; None on a linear scale."""
        if self.zero_point is None:
            return None
        return math.log1p((self.upper - self.lower) / (self.lower - self.zero_point))

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The N + 1 points: ``min + (max - min) t``, on a logarithmic scale ``(r^t - 1) / (r - 1)`` for t."""
        inner = [self._value(i / self.steps) for i in range(1, self.steps)]
        return (self.lower, *inner, self.upper)

    def _value(self, t: float) -> float:
        ratio = self._log_ratio
        share = t if ratio is None else math.expm1(t * ratio) / math.expm1(ratio)
        return self.lower + (self.upper - self.lower) * share

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the lower bound, 1 at the upper, the inverse of the grid between.

        Outside the range the scale goes on; on the side of the zero point, where a logarithm ends, it goes on straight
        with the slope it has at the bound.

        Raises:
            DataError: The value lies out of all proportion to the range.

        Example:
            >>> grid = Grid(lower=1, upper=100, open_lower=True, open_upper=True, zero_point=0)
            >>> round(grid.place(10), 9), round(grid.place(0), 4)
            (0.5, -0.2171)
        """
        width, zero = self.upper - self.lower, self.zero_point
        if value in {self.lower, self.upper}:
            return float(value == self.upper)
        place = (value - self.lower) / width
        ratio = self._log_ratio
        if zero is not None and ratio is not None:
            if value < self.lower and zero < self.lower:
                place = (value - self.lower) / (self.lower - zero) / ratio
            elif value > self.upper and zero > self.upper:
                place = 1 + (value - self.upper) / (self.upper - zero) / ratio
            else:
                place = math.log1p((value - self.lower) / (self.lower - zero)) / ratio
        if not abs(place) < _FARTHEST:
            raise DataError(
                f"{value} lies {place:.0e} ranges away from {self.lower} to {self.upper}",
                hint="Check the unit of the answer and the bounds of the question.",
            )
        return min(max(place, 0.0), 1.0) if self.lower < value < self.upper else place


class CdfAdjustment(Strict):
    """One change that the server's rules asked for.

    Attributes:
        rule: ``open_lower_mass`` and ``open_upper_mass``: the end was held to .001 or .999. ``least_slope``: a straight
            line was mixed in. ``largest_step``: a rise was spread over its neighbours.
        before: What the rule is about, before: the end's value, the smallest step, the largest step.
        after: The same, after.
        weight: Share of the straight line, for ``least_slope``.
    """

    rule: Adjusted
    before: float
    after: float
    weight: float | None = None


class BuiltCdf(Strict):
    """A distribution function that the server accepts.

    Attributes:
        grid: Where it is given.
        values: N + 1 values with ten decimals.
        adjustments: What was changed for the rules, in order; rounding alone is not told.
    """

    grid: Grid
    values: tuple[float, ...]
    adjustments: tuple[CdfAdjustment, ...]


def grid_of(question: ForecastQuestion) -> Grid:
    """Return the grid of a numeric, discrete or date question; a discrete one has a step per outcome in its range.

    Raises:
        DataError: It has no such range, or one that no grid can be laid over.

    Example:
        >>> asked = ForecastQuestion(text="How many?", kind="discrete", lower=-0.5, upper=10.5, inbound_outcomes=11)
        >>> len(grid_of(asked).values)
        12
    """
    if question.lower is None or question.upper is None:
        raise DataError(
            f"question {question.id} has no range, so there is no grid for a distribution function",
            hint="Give lower and upper, and say which of them are open.",
        )
    try:
        return Grid(
            lower=question.lower,
            upper=question.upper,
            open_lower=question.open_lower,
            open_upper=question.open_upper,
            zero_point=question.zero_point,
            steps=question.inbound_outcomes or DEFAULT_STEPS,
        )
    except ValidationError as error:
        raise DataError(
            f"no grid can be laid over the range of question {question.id}: {reason(error)}", hint="Mend its range."
        ) from error


def interpolate(quantiles: Sequence[float], grid: Grid) -> tuple[float, ...]:
    """Return the distribution function of one answer on a grid, before any rule of a server.

    Piecewise cubic and monotone through the five quantiles, in the question's own scale (`DistributionFunction`). A
    closed bound is a knot of its own with value 0 or 1. Towards an open one the mass beyond q05 and q95 falls off
    exponentially, and what has not fallen off at the bound lies outside. Quantiles that coincide are a jump; one at a
    closed lower bound enters with the first step.

    Args:
        quantiles: At levels .05, .25, .50, .75, .95, in order; they may coincide.
        grid: Where it is asked for.

    Raises:
        DataError: Another number of quantiles, not finite, out of order (they are never sorted), or beyond a closed
            bound.

    Example:
        >>> ends = Grid(lower=0, upper=10, open_lower=False, open_upper=True, steps=5)
        >>> [round(p, 4) for p in interpolate([1, 3, 5, 7, 9], ends)]
        [0.0, 0.1383, 0.3715, 0.6285, 0.8559, 0.9913]
    """
    _check(quantiles, grid)
    places, levels = [grid.place(value) for value in quantiles], list(LEVELS)
    if not grid.open_lower:
        places, levels = [0.0, *places], [0.0, *levels]
    if not grid.open_upper:
        places, levels = [*places, 1.0], [*levels, 1.0]
    function = DistributionFunction(_ended(knots(places, levels), grid))
    raw = [function(i / grid.steps) for i in range(grid.steps + 1)]
    first = raw[0] if grid.open_lower else 0.0
    last = raw[-1] if grid.open_upper else 1.0
    return tuple(accumulate([first, *raw[1:-1], last], max))  # neighbours may cross by a rounding


def _ended(points: tuple[Knot, ...], grid: Grid) -> tuple[Knot, ...]:
    """Return the knots with the last one at the closed upper bound, should a quantile just below have swallowed it."""
    if grid.open_upper or points[-1].place == 1.0:
        return points
    return (*points[:-1], Knot(1.0, points[-1].below, points[-1].at))


def _check(quantiles: Sequence[float], grid: Grid) -> None:
    if len(quantiles) != len(LEVELS) or not all(map(math.isfinite, quantiles)):
        raise DataError(f"no five finite quantiles: {list(quantiles)}", hint="Give those of one estimate.")
    for (low, q), (high, r) in pairwise(zip(LEVELS, quantiles, strict=True)):
        if q > r:
            raise DataError(
                f"the quantile at {low} is {q} and that at {high} is {r}: they are out of order",
                hint="An answer like this contradicts itself; ask again. Quantiles are never sorted into order.",
            )
    lowest, highest = quantiles[0], quantiles[-1]
    if (lowest < grid.lower and not grid.open_lower) or (highest > grid.upper and not grid.open_upper):
        raise DataError(
            f"quantiles from {lowest} to {highest} pass a closed bound of {grid.lower} to {grid.upper}",
            hint="The question rules such values out; ask again, or declare the bound open.",
        )


def average(members: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the mean of distribution functions that were taken on one grid, index by index.

    Raises:
        DataError: No member, or they have different lengths.

    Example:
        >>> average([[0.0, 0.2, 1.0], [0.0, 0.6, 1.0]])
        (0.0, 0.4, 1.0)
    """
    if len({len(member) for member in members}) != 1:
        raise DataError(
            f"distribution functions of lengths {[len(member) for member in members]}",
            hint="Average at least one, and all on the same grid.",
        )
    return tuple(math.fsum(column) / len(members) for column in zip(*members, strict=True))


def admissible(raw: Sequence[float], grid: Grid) -> BuiltCdf:
    r"""Return a distribution function that the server accepts, changed no more than its rules ask, with a record.

    1. An open end is held to at least .001 or at most .999.
    2. If a step is smaller than the least, the function becomes ``(1 - w) F + w L``, where L is the straight line
       between the outermost ends (0 or .001, 1 or .999) and w the smallest weight that lifts every step enough: about
       .01 where F is flat.
    3. If a step is larger than the most, what exceeds it goes half to each neighbour (at an end, all to the one there
       is), again and again until no step exceeds it: a jump becomes the shortest steep stretch around it.

    Then values are rounded to ten decimals. A function that is accepted as it is comes back rounded and unadjusted.

    Raises:
        DataError: The values do not fit the grid, decrease, or miss 0 or 1 at a closed end.

    Example:
        >>> ends = Grid(lower=0, upper=1, open_lower=False, open_upper=True, steps=4)
        >>> made = admissible([0.0, 0.0, 0.4, 0.8, 1.0], ends)
        >>> made.values
        (0.0, 0.0025000002, 0.4009959961, 0.799491992, 0.999)
        >>> [(a.rule, a.before, round(a.after, 4)) for a in made.adjustments]
        [('open_upper_mass', 1.0, 0.999), ('least_slope', 0.0, 0.0025)]
    """
    _check_raw(raw, grid)
    low = MIN_PROBABILITY if grid.open_lower else 0.0
    high = MAX_PROBABILITY if grid.open_upper else 1.0
    held = [min(max(value, low), high) for value in raw]
    ends: tuple[tuple[Adjusted, int], ...] = (("open_lower_mass", 0), ("open_upper_mass", -1))
    told = [CdfAdjustment(rule=rule, before=raw[i], after=held[i]) for rule, i in ends if held[i] != raw[i]]
    lifted, weight = _lifted(held, low, high)
    if weight > 0:
        before, after = min(_rises(held)), min(_rises(lifted))
        told.append(CdfAdjustment(rule="least_slope", before=before, after=after, weight=weight))
    spread = _spread(lifted)
    if spread != lifted:
        told.append(CdfAdjustment(rule="largest_step", before=max(_rises(lifted)), after=max(_rises(spread))))
    values = tuple(round(value, DECIMALS) for value in spread)
    return BuiltCdf(grid=grid, values=values, adjustments=tuple(told))


def panel_cdf(members: Sequence[Sequence[float]], grid: Grid) -> BuiltCdf:
    """Return the distribution function of a panel: each member's quantiles interpolated, averaged, made admissible.

    Raises:
        DataError: As `interpolate`, or there is no member.

    Example:
        >>> grid = Grid(lower=0, upper=10, open_lower=False, open_upper=False)
        >>> made = panel_cdf([[1, 3, 5, 7, 9], [2, 3, 4, 5, 6]], grid)
        >>> len(made.values), round(made.values[100], 4), made.adjustments
        (201, 0.625, ())
    """
    return admissible(average([interpolate(quantiles, grid) for quantiles in members]), grid)


def _check_raw(raw: Sequence[float], grid: Grid) -> None:
    fits = len(raw) == grid.steps + 1 and all(0 <= value <= 1 for value in raw)
    ends = fits and (grid.open_lower or raw[0] == 0) and (grid.open_upper or raw[-1] == 1)
    if not ends or any(before > after for before, after in pairwise(raw)):
        raise DataError(
            f"{len(raw)} values are no distribution function on a grid of {grid.steps} steps",
            hint="Give one value in [0, 1] per point, never decreasing, exactly 0 and 1 at closed ends.",
        )


def _rises(values: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(values)]


def _rounded_rises(values: Sequence[float]) -> list[float]:
    return [round(rise, DECIMALS) for rise in _rises([round(value, DECIMALS) for value in values])]


def _lifted(values: list[float], low: float, high: float) -> tuple[list[float], float]:
    steps = len(values) - 1
    if min(_rounded_rises(values)) >= smallest_step(steps):
        return values, 0.0
    least, line = min(_rises(values)), (high - low) / steps
    weight = (smallest_step(steps) + _ROOM - least) / (line - least)
    straight = [low + line * i for i in range(steps)] + [high]
    return [(1 - weight) * value + weight * level for value, level in zip(values, straight, strict=True)], weight


def _spread(values: list[float]) -> list[float]:
    """Return where spreading what exceeds the largest step comes to rest, in time linear in the steps.

    Half to each neighbour, again and again, is a divisible sandpile on a line: its rest does not depend on the order of
    moves, and it is the solution of an obstacle problem. Written for ``g_k = F_k - F_0 - k m``, where m is the largest
    step, it says that g falls everywhere, by the least change that lets it: the slopes of the least concave majorant of
    its sums, which is antitonic regression, held between its ends (cf. Levine & Peres 2009, "Strong spherical
    asymptotics for rotor-router aggregation and the divisible sandpile"; Barlow et al. 1972 for the regression).
    """
    steps = len(values) - 1
    if max(_rounded_rises(values)) <= largest_step(steps):
        return values
    most, first = largest_step(steps) - _ROOM, values[0]
    blocks: list[tuple[float, int]] = []  # mean of g and its points, falling
    for k in range(1, steps):
        mean, n = values[k] - first - k * most, 1
        while blocks and blocks[-1][0] < mean:
            before, points = blocks.pop()
            mean, n = (before * points + mean * n) / (points + n), points + n
        blocks.append((mean, n))
    lowest = values[-1] - first - steps * most
    spread = [first]
    for mean, n in blocks:
        held = min(max(mean, lowest), 0.0)
        for _ in range(n):
            k = len(spread)
            spread.append(values[k] if n == 1 and held == mean else first + (k * most + held))
    return [*spread, values[-1]]
