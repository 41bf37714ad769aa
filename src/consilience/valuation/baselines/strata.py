"""Intervals from what a model missed by: quantiles of validation residuals, apart by class and predicted price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from consilience.errors import DataError
from consilience.valuation.baselines.base import LEVELS, Floats

ENOUGH: Final = 30
"""A stratum with fewer residuals takes those of all."""

TERCILES: Final = 3


@dataclass(frozen=True)
class ResidualIntervals:
    """Quantiles of log residuals by property class and tercile of the predicted price.

    Attributes:
        cuts: Two prices per class between its terciles.
        quantiles: Five log residuals at `LEVELS` per class and tercile that has enough of them.
        pooled: Those of all residuals, for every other stratum.
        counts: Residuals per class and tercile.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> point = np.exp(rng.normal(13, 0.4, 300))
        >>> fitted = fit_intervals(point, np.log(point) + rng.normal(0, 0.1, 300), ["house"] * 300)
        >>> fitted.around(np.array([500_000.0]), ["house"]).round(-4).tolist()
        [[430000.0, 460000.0, 500000.0, 530000.0, 580000.0]]
    """

    cuts: dict[str, tuple[float, float]]
    quantiles: dict[str, tuple[tuple[float, ...] | None, ...]]
    pooled: tuple[float, ...]
    counts: dict[str, tuple[int, ...]]

    def around(self, point: Floats, classes: Sequence[str]) -> Floats:
        """Return five prices around each point, shape ``(n, 5)``; NaN where the point is.

        Args:
            point: Prices, shape ``(n,)``.
            classes: Property class of each; one that validation did not hold takes the pooled residuals.
        """
        steps = np.tile(np.array(self.pooled), (len(point), 1))
        of_class = np.asarray(classes, dtype=object)
        for name, rows in self.quantiles.items():
            here = of_class == name
            tercile = np.searchsorted(np.array(self.cuts[name]), point, side="right")
            for number, found in enumerate(rows):
                if found is not None:
                    steps[here & (tercile == number)] = found
        prices: Floats = point[:, None] * np.exp(steps)
        return prices

    def record(self) -> dict[str, Any]:
        """Return the fitted residuals as JSON."""
        return {
            "levels": list(LEVELS),
            "enough": ENOUGH,
            "pooled": list(self.pooled),
            "strata": {
                name: {
                    "cuts": list(self.cuts[name]),
                    "counts": list(self.counts[name]),
                    "quantiles": [None if row is None else list(row) for row in self.quantiles[name]],
                }
                for name in sorted(self.quantiles)
            },
        }


def fit_intervals(point: Floats, log_price: Floats, classes: Sequence[str]) -> ResidualIntervals:
    """Return residual quantiles, by stratum, of predictions whose truth is known; rows without one are left out.

    Quantiles interpolate linearly between order statistics.

    Args:
        point: Predicted prices, shape ``(n,)``.
        log_price: ln of the prices paid.
        classes: Property class of each.

    Raises:
        DataError: Fewer than `ENOUGH` rows have a prediction.
    """
    rows = np.flatnonzero(~np.isnan(point))
    if rows.size < ENOUGH:
        raise DataError(
            f"validation holds {rows.size} predicted sales and intervals need {ENOUGH}",
            hint="Choose boundaries that leave a longer validation period.",
        )
    price, residual = point[rows], log_price[rows] - np.log(point[rows])
    of_class = np.asarray(classes, dtype=object)[rows]
    cuts: dict[str, tuple[float, float]] = {}
    quantiles: dict[str, tuple[tuple[float, ...] | None, ...]] = {}
    counts: dict[str, tuple[int, ...]] = {}
    for name in sorted(set(of_class)):
        here = of_class == name
        low, high = (float(cut) for cut in np.quantile(price[here], [1 / 3, 2 / 3]))
        tercile = np.searchsorted(np.array([low, high]), price, side="right")
        groups = [residual[here & (tercile == number)] for number in range(TERCILES)]
        cuts[name] = (low, high)
        counts[name] = tuple(group.size for group in groups)
        quantiles[name] = tuple(_levels(group) if group.size >= ENOUGH else None for group in groups)
    return ResidualIntervals(cuts=cuts, quantiles=quantiles, pooled=_levels(residual), counts=counts)


def _levels(residual: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in np.quantile(residual, LEVELS))
