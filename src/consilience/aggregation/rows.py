"""One row per rule: the rule is a column of a prediction file, never a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from consilience.aggregation.intervals import DEFAULT_INTERVAL_RULE, INTERVAL_RULES, IntervalAggregate
from consilience.aggregation.location import FloatArray
from consilience.aggregation.numbers import POINT_RULES, Aggregate, Fitted, Scale
from consilience.errors import DataError

MIXTURE_ROW: Final = "mixture"
_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class AggregateRow:
    """A panel's estimate under one rule.

    Attributes:
        rule: Name of the point rule, or ``mixture``, whose point is the mixture's median.
        point: On the question's own scale.
        q05: Lowest quantile.
        q25: Lower quartile.
        q50: Median of the interval rule; differs from ``point`` for most rules.
        q75: Upper quartile.
        q95: Highest quantile.
        weights: Share of each seat in the point, sum 1, in order of seat id.
        flags: Of both rules; ``point_outside_iqr`` when the point lies outside [q25, q75]. The interval is not shifted.
        interval_rule: Where the quantiles come from.
        n: Seats that entered.
    """

    rule: str
    point: float
    q05: float
    q25: float
    q50: float
    q75: float
    q95: float
    weights: dict[str, float]
    flags: tuple[str, ...]
    interval_rule: str
    n: int


def aggregate_estimates(
    *,
    seats: tuple[str, ...],
    points: FloatArray,
    quantiles: FloatArray,
    scale: Scale,
    weights: Fitted | None = None,
) -> list[AggregateRow]:
    """Return a row for every point rule with the default interval, then the row of the mixture.

    Args:
        seats: Distinct ids of the seats that answered.
        points: One per seat, shape (n,).
        quantiles: One row of five per seat, shape (n, 5).
        scale: Of the question.
        weights: What validation taught, by seat id; None gives equal weights.

    Raises:
        QuorumError: No seat answered.
        DataError: Shapes, ids or numbers do not fit, or a seat's quantiles cross.

    Example:
        >>> import numpy as np
        >>> rows = aggregate_estimates(seats=("a", "b"), points=np.array([100.0, 400]), scale="log",
        ...                            quantiles=np.array([[90.0, 95, 100, 105, 110], [360, 380, 400, 420, 440]]))
        >>> [row.rule for row in rows][-2:], round(rows[1].point, 6)
        (['robust_bayes', 'mixture'], 200.0)
    """
    if len(quantiles) != len(seats):
        raise DataError(
            f"{len(quantiles)} quantile rows for {len(seats)} seats", hint="Give one row of five quantiles per seat."
        )
    interval = INTERVAL_RULES[DEFAULT_INTERVAL_RULE](quantiles=quantiles, scale=scale)
    rows = [
        _row(rule.name, rule(points=points, scale=scale, seats=seats, weights=weights), interval, DEFAULT_INTERVAL_RULE)
        for rule in POINT_RULES
    ]
    mixture = INTERVAL_RULES[MIXTURE_ROW](quantiles=quantiles, scale=scale)
    share = {seat: 1.0 / len(seats) for seat in sorted(seats)}
    middle = Aggregate(value=mixture.quantiles[2], weights=share, flags=(), n=len(seats))
    return [*rows, _row(MIXTURE_ROW, middle, mixture, MIXTURE_ROW)]


def _row(rule: str, made: Aggregate, interval: IntervalAggregate, source: str) -> AggregateRow:
    q05, q25, q50, q75, q95 = interval.quantiles
    slack = _ROUNDING * abs(made.value)
    outside = not q25 - slack <= made.value <= q75 + slack
    flags = (*made.flags, *(flag for flag in interval.flags if flag not in made.flags))
    return AggregateRow(
        rule=rule,
        point=made.value,
        q05=q05,
        q25=q25,
        q50=q50,
        q75=q75,
        q95=q95,
        weights=made.weights,
        flags=(*flags, "point_outside_iqr") if outside else flags,
        interval_rule=source,
        n=made.n,
    )
