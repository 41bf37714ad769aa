"""``D_index``: what the property brought before, moved with the market; what any model has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

import numpy as np

from consilience.valuation.baselines.base import Baseline, FittedBaseline, Floats, Prediction, information_date
from consilience.valuation.baselines.hedonic import HedonicPrices, days, fit_prices, property_classes
from consilience.valuation.baselines.strata import ENOUGH, ResidualIntervals, fit_intervals
from consilience.valuation.features import FeatureMatrix


@dataclass(frozen=True)
class IndexedPrior(Baseline):
    """The latest earlier price of the parcel times the as-of index; no prediction without one.

    ::

        ln p = ln p_prior + L(cutoff) - L(day of the prior sale)

    L is the as-of level of the hedonic's surplus (`LevelPath`), so that a change in what is sold is no change in price.
    """

    name: ClassVar[str] = "D_index"

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedIndex:
        """Return the index of train's hedonic prices with residual intervals of validation's resales, where enough."""
        prices = fit_prices(train)
        bare = FittedIndex(prices, None, information_date(train, valid))
        point = bare.points(valid)
        if np.count_nonzero(~np.isnan(point)) < ENOUGH:
            return bare
        return FittedIndex(prices, fit_intervals(point, valid.truth(), property_classes(valid)), bare.information_date)


@dataclass(frozen=True)
class FittedIndex(FittedBaseline):
    """A fitted `IndexedPrior`.

    Attributes:
        prices: The hedonic behind the index.
        intervals: Residual quantiles; None where validation holds too few resales.
    """

    prices: HedonicPrices
    intervals: ResidualIntervals | None
    information: date

    @property
    def information_date(self) -> date:
        """The latest day at which a price of train or validation became known."""
        return self.information

    def points(self, subjects: FeatureMatrix) -> Floats:
        """Return prices, shape ``(n,)``; NaN without a prior sale."""
        path, frame = self.prices.path(subjects.sales), subjects.frame
        cutoff = days(frame["cutoff"])
        before = frame["ln_prior_price"].fill_null(float("nan")).to_numpy()
        prices: Floats = np.exp(before + path.at_cutoff(cutoff) - path.at(days(frame["prior_sale_date"]), cutoff))
        return prices

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return a price, and five quantiles where validation gave them, for every subject with a prior sale."""
        point = self.points(subjects)
        quantiles = np.full((len(point), 5), np.nan)
        if self.intervals is not None:
            quantiles = self.intervals.around(point, property_classes(subjects))
        hits = int(np.count_nonzero(~np.isnan(point)))
        share = hits / len(point) if len(point) else 0.0
        notes = [f"{hits} of {len(point)} subjects have a prior sale (hit rate {share:.1%})."]
        if self.intervals is None:
            notes.append(f"Validation holds fewer than {ENOUGH} resales: there are no quantiles.")
        return Prediction(point=point, quantiles=quantiles, notes=tuple(notes))

    def record(self) -> dict[str, Any]:
        """Return everything fitted as JSON."""
        return {
            "features": ["ln_prior_price", "prior_sale_date"],
            "index": self.prices.record(),
            "intervals": None if self.intervals is None else self.intervals.record(),
        }
