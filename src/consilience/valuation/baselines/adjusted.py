"""``A2_adjusted_comps``: the median of comparables brought to the cutoff and to the subject's attributes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar, Final

import numpy as np

from consilience.valuation.baselines.base import Baseline, FittedBaseline, Floats, Prediction, information_date
from consilience.valuation.baselines.hedonic import HedonicPrices, clusters, days, fit_prices, property_classes
from consilience.valuation.baselines.levels import LevelPath
from consilience.valuation.baselines.ols import LeastSquares, trimmed_least_squares
from consilience.valuation.baselines.regressors import HEDONIC, attributes, features
from consilience.valuation.baselines.strata import ResidualIntervals, fit_intervals
from consilience.valuation.features import FeatureMatrix

ADJUSTED: Final = (*HEDONIC, "bedrooms", "bathrooms")
"""Attributes whose differences are priced."""


@dataclass(frozen=True)
class AdjustedComparables:
    """Comparables of subjects in money, shape ``(n, 12)`` each, NaN past the last one.

    Attributes:
        price: Prices paid.
        indexed: Prices brought to the subject's cutoff by the as-of level.
        adjusted: Those brought to the subject's attributes too.
    """

    price: Floats
    indexed: Floats
    adjusted: Floats


@dataclass(frozen=True)
class AdjustedComps(Baseline):
    """The median of the 12 comparables, each moved in time and then to the subject's attributes.

    ::

        ln p = median_j [ ln p_j + L(cutoff) - L(day_j) + (x - x_j)'g ]

    L is the as-of level of the hedonic's surplus (`LevelPath`). The prices g of differences are fitted on train by
    regressing a sale's ln price less its comparables' mean (each at the level of the sale's cutoff) on its attributes
    less theirs: the comparables hold the place constant, which dummies of municipalities do only in part. An attribute
    unknown on either side adjusts nothing. A subject without comparables gets no prediction.
    """

    name: ClassVar[str] = "A2_adjusted_comps"

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedAdjusted:
        """Return differences priced on train, intervals from validation."""
        prices = fit_prices(train)
        path = prices.path(train.sales)
        indexed, differences = _indexed(path, train), _differences(train)
        there = ~np.isnan(indexed).all(axis=1)
        gap = train.truth()[there] - np.nanmean(indexed[there], axis=1)
        count = (~np.isnan(indexed)).sum(axis=1)[there]
        # An unknown difference counts 0, as it does when comparables are adjusted.
        means = np.column_stack([np.nansum(columns[there], axis=1) / count for columns in differences])
        fit = trimmed_least_squares(gap, means, ADJUSTED, clusters=clusters(train.frame)[there])
        bare = FittedAdjusted(prices, fit, None, information_date(train, valid))
        intervals = fit_intervals(bare.points(valid), valid.truth(), property_classes(valid))
        return FittedAdjusted(prices, fit, intervals, bare.information_date)


@dataclass(frozen=True)
class FittedAdjusted(FittedBaseline):
    """A fitted `AdjustedComps`.

    Attributes:
        prices: The hedonic behind the level.
        fit: Prices of differences.
        intervals: Residual quantiles; None only while it is being fitted.
    """

    prices: HedonicPrices
    fit: LeastSquares
    intervals: ResidualIntervals | None
    information: date

    @property
    def information_date(self) -> date:
        """The latest day at which a price of train or validation became known."""
        return self.information

    def adjust(self, subjects: FeatureMatrix) -> AdjustedComparables:
        """Return every comparable of the subjects as paid, as indexed and as adjusted."""
        indexed = _indexed(self.prices.path(subjects.sales), subjects)
        adjusted = indexed.copy()
        for value, columns in zip(self.fit.of(*ADJUSTED).tolist(), _differences(subjects), strict=True):
            adjusted += value * np.where(np.isnan(columns), 0.0, columns)
        rows = subjects.comparables.rows
        paid = np.where(rows >= 0, subjects.sales["price"].to_numpy()[rows], np.nan)
        return AdjustedComparables(price=paid, indexed=np.exp(indexed), adjusted=np.exp(adjusted))

    def points(self, subjects: FeatureMatrix) -> Floats:
        """Return prices, shape ``(n,)``; NaN without comparables."""
        adjusted = np.log(self.adjust(subjects).adjusted)
        point = np.full(len(subjects), np.nan)
        there = ~np.isnan(adjusted).all(axis=1)
        point[there] = np.exp(np.nanmedian(adjusted[there], axis=1))
        return point

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return a price and five quantiles for every subject with comparables."""
        point = self.points(subjects)
        quantiles = np.full((len(point), 5), np.nan)
        if self.intervals is not None:
            quantiles = self.intervals.around(point, property_classes(subjects))
        alone = int(np.isnan(point).sum())
        notes = (f"{alone} of {len(point)} subjects have no comparables and no prediction.",) if alone else ()
        return Prediction(point=point, quantiles=quantiles, notes=notes)

    def record(self) -> dict[str, Any]:
        """Return everything fitted as JSON."""
        return {
            "features": [*ADJUSTED, "comparables"],
            "differences": self.fit.record(),
            "level": self.prices.record(),
            "intervals": None if self.intervals is None else self.intervals.record(),
        }


def _indexed(path: LevelPath, subjects: FeatureMatrix) -> Floats:
    """Return ln prices of comparables at the level of the subjects' cutoffs."""
    rows = subjects.comparables.rows
    cutoff = days(subjects.frame["cutoff"])
    sold = days(subjects.sales["available_date"])[rows]
    moved = np.log(subjects.sales["price"].to_numpy())[rows] - path.at(sold, cutoff[:, None])
    return np.where(rows >= 0, moved + path.at_cutoff(cutoff)[:, None], np.nan)


def _differences(subjects: FeatureMatrix) -> list[Floats]:
    """Return, per attribute, the subject's less each comparable's, NaN where either is unknown."""
    rows = subjects.comparables.rows
    own, sold = features(subjects.frame, ADJUSTED), attributes(subjects.sales, ADJUSTED)
    return [np.where(rows >= 0, own[:, k, None] - sold[rows, k], np.nan) for k in range(len(ADJUSTED))]
