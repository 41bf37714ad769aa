"""``A_hedonic``: ln price as a sum of what attributes, place, time and an earlier sale are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl

from consilience.valuation.baselines.base import Baseline, FittedBaseline, Floats, Prediction, information_date
from consilience.valuation.baselines.levels import LevelPath, level_path
from consilience.valuation.baselines.ols import LeastSquares, trimmed_least_squares, within
from consilience.valuation.baselines.regressors import (
    HEDONIC,
    Cells,
    Filling,
    attributes,
    features,
    fit_cells,
    fit_filling,
)
from consilience.valuation.baselines.strata import ResidualIntervals, fit_intervals
from consilience.valuation.comparables import Ints
from consilience.valuation.features import FeatureMatrix

ENOUGH_PRIOR: Final = 30
"""Fewer resales in train fit no prior-sale term."""

PRIOR: Final = ("prior_sale", "prior_surplus")


def days(column: pl.Series) -> Ints:
    """Return day numbers; 0 where there is no day."""
    return column.to_physical().fill_null(0).to_numpy().astype(np.int64)


@dataclass(frozen=True)
class HedonicPrices:
    """The regression of ln price on attributes, cells and months, apart from intervals.

    Attributes:
        fit: Attributes and months; the cells' effects.
        filling: What stands for unknown attributes.
        cells: Municipality × class.
        new_place: Effect for a class that train does not hold: the sale-weighted mean of all cells.
        base: Median of what attributes and cells leave in train: the level where none is known.
        months: Month of each month effect; the first month's is 0.
    """

    fit: LeastSquares
    filling: Filling
    cells: Cells
    new_place: float
    base: float
    months: tuple[int, ...]

    def structure(self, values: Floats, frame: pl.DataFrame) -> Floats:
        """Return ln price net of the time of sale, from attributes (NaN where unknown) and the place columns."""
        effect = np.append(self.fit.effects, self.new_place)[self.cells.codes(frame)]
        worth: Floats = effect + self.filling.fill(values, frame["property_class"].to_list()) @ self.fit.of(
            *self.filling.columns
        )
        return worth

    def path(self, sales: pl.DataFrame) -> LevelPath:
        """Return the price levels of all sales known, in order of the day they became known."""
        surplus = np.log(sales["price"].to_numpy()) - self.structure(attributes(sales), sales)
        return level_path(days(sales["available_date"]), surplus, base=self.base)

    def record(self) -> dict[str, Any]:
        """Return coefficients, effects and stand-ins as JSON."""
        return {
            **self.fit.record(),
            "effects": {
                label: {"value": value, "sales": size}
                for label, value, size in zip(
                    self.cells.labels, self.fit.effects.tolist(), self.fit.cell_sizes.tolist(), strict=True
                )
            },
            "effect_of_a_new_place": self.new_place,
            "base_level": self.base,
            "unknown": self.filling.record(),
        }


def fit_prices(train: FeatureMatrix) -> HedonicPrices:
    """Return the hedonic prices of train.

    Raises:
        DataError: Train holds too few sales, or no price.
    """
    values = features(train.frame)
    classes = train.frame["property_class"].to_list()
    filling, cells = fit_filling(values, HEDONIC, classes), fit_cells(train.frame)
    month = train.frame["month_index"].to_numpy().astype(np.int64)
    months = np.unique(month)
    dummies = (month[:, None] == months[None, 1:]).astype(np.float64)
    names = (*filling.columns, *(f"month_{number}" for number in months[1:].tolist()))
    fit = trimmed_least_squares(
        train.truth(),
        np.column_stack([filling.fill(values, classes), dummies]),
        names,
        clusters=clusters(train.frame),
        cells=cells.codes(train.frame),
    )
    new_place = float(np.average(fit.effects, weights=fit.cell_sizes))
    bare = HedonicPrices(fit, filling, cells, new_place, 0.0, tuple(months.tolist()))
    base = float(np.median(train.truth() - bare.structure(values, train.frame)))
    return HedonicPrices(fit, filling, cells, new_place, base, bare.months)


@dataclass(frozen=True)
class Hedonic(Baseline):
    """Ordinary least squares on ln price, with as-of levels in place of months that train cannot know.

    Attributes and municipality × class effects are fitted beside month effects of train::

        ln p = x'β + effect(municipality, class) + month + e

    A subject's time enters as evidence, not as a parameter: the median surplus of sales over x'β and effect, known
    before its cutoff (`LevelPath`). An earlier sale of the parcel adds γ + ρ·s, where s is what it brought beyond the
    subject's structure and the level then; γ and ρ are fitted on the surplus of train's resales. Unknown attributes
    take the median of their class in train and an indicator. Sales that miss by more than five robust standard
    deviations, such as nominal prices, teach nothing (`trimmed_least_squares`). Standard errors are clustered by
    municipality. Intervals are quantiles of validation residuals by class and predicted tercile.
    """

    name: ClassVar[str] = "A_hedonic"

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedHedonic:
        """Return the hedonic fitted on train, its intervals on validation."""
        prices = fit_prices(train)
        path = prices.path(train.sales)
        bare = FittedHedonic(prices, None, None, information_date(train, valid))
        priced = FittedHedonic(prices, _fit_prior(prices, path, train), None, bare.information_date)
        intervals = fit_intervals(priced.points(valid), valid.truth(), property_classes(valid))
        return FittedHedonic(prices, priced.prior, intervals, priced.information_date)


@dataclass(frozen=True)
class FittedHedonic(FittedBaseline):
    """A fitted `Hedonic`.

    Attributes:
        prices: Attributes, places and months.
        prior: The prior-sale term; None where train holds too few resales.
        intervals: Residual quantiles; None only while it is being fitted.
    """

    prices: HedonicPrices
    prior: PriorTerm | None
    intervals: ResidualIntervals | None
    information: date

    @property
    def information_date(self) -> date:
        """The latest day at which a price of train or validation became known."""
        return self.information

    def points(self, subjects: FeatureMatrix) -> Floats:
        """Return prices, shape ``(n,)``."""
        path = self.prices.path(subjects.sales)
        worth = self.prices.structure(features(subjects.frame), subjects.frame)
        log_point = worth + path.at_cutoff(days(subjects.frame["cutoff"]))
        if self.prior is not None:
            log_point += self.prior.columns(prior_surplus(self.prices, path, subjects)) @ self.prior.fit.of(*PRIOR)
        prices: Floats = np.exp(log_point)
        return prices

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return a price and five quantiles for every subject."""
        point = self.points(subjects)
        quantiles = np.full((len(point), 5), np.nan)
        if self.intervals is not None:
            quantiles = self.intervals.around(point, property_classes(subjects))
        return Prediction(point=point, quantiles=quantiles, notes=self._notes(subjects))

    def record(self) -> dict[str, Any]:
        """Return everything fitted as JSON."""
        return {
            "features": [*HEDONIC, "municipality", "property_class", "month_index", "ln_prior_price"],
            "prices": self.prices.record(),
            "prior_sale": None if self.prior is None else self.prior.record(),
            "intervals": None if self.intervals is None else self.intervals.record(),
        }

    def _notes(self, subjects: FeatureMatrix) -> tuple[str, ...]:
        unknown = np.isnan(features(subjects.frame))
        notes = [
            f"{name} is unknown for {count} of {len(subjects)} subjects: train's median of the class stands for it."
            for name, count in zip(HEDONIC, unknown.sum(axis=0).tolist(), strict=True)
            if count and name in self.prices.filling.names
        ]
        notes += [f"{name} is unknown for all of train and prices nothing." for name in self.prices.filling.absent]
        if self.prices.fit.outlying:
            notes.append(f"{self.prices.fit.outlying} sales of train lie too far from all others and teach nothing.")
        new = int((self.prices.cells.codes(subjects.frame) < 0).sum())
        if new:
            notes.append(
                f"{new} subjects lie in places of a class that train does not hold: the mean effect is theirs."
            )
        if self.prior is None:
            notes.append(f"Train holds fewer than {ENOUGH_PRIOR} resales: an earlier sale adds nothing.")
        return tuple(notes)


@dataclass(frozen=True)
class PriorTerm:
    """What an earlier sale of the parcel adds.

    Attributes:
        fit: Coefficients of `PRIOR`.
        low: Surplus of earlier sales in train below which an earlier price is outlying and adds nothing.
        high: The same above.
    """

    fit: LeastSquares
    low: float
    high: float

    def columns(self, surplus: Floats) -> Floats:
        """Return whether there is an earlier sale that counts, and its surplus; zeros without one."""
        there = (surplus >= self.low) & (surplus <= self.high)  # false where it is NaN
        return np.column_stack([there.astype(np.float64), np.where(there, surplus, 0.0)])

    def record(self) -> dict[str, Any]:
        """Return coefficients and bounds as JSON."""
        return {**self.fit.record(), "surplus_between": [self.low, self.high]}


def prior_surplus(prices: HedonicPrices, path: LevelPath, subjects: FeatureMatrix) -> Floats:
    """Return what the parcel's earlier sale brought beyond its structure and the level then; NaN without one."""
    frame = subjects.frame
    level = path.at(days(frame["prior_sale_date"]), days(frame["cutoff"]))
    before = frame["ln_prior_price"].fill_null(float("nan")).to_numpy()
    surplus: Floats = before - level - prices.structure(features(frame), frame)
    return surplus


def _fit_prior(prices: HedonicPrices, path: LevelPath, train: FeatureMatrix) -> PriorTerm | None:
    frame = train.frame
    before = prior_surplus(prices, path, train)
    rows = ~np.isnan(before)
    if rows.sum() < ENOUGH_PRIOR:
        return None
    known = before[rows]
    usual = known[within(known)]
    low, high = float(usual.min()), float(usual.max())
    rows &= (before >= low) & (before <= high)
    surplus = train.truth() - prices.structure(features(frame), frame) - path.at_cutoff(days(frame["cutoff"]))
    columns = np.column_stack([np.ones(int(rows.sum())), before[rows]])
    return PriorTerm(trimmed_least_squares(surplus[rows], columns, PRIOR, clusters=clusters(frame)[rows]), low, high)


def clusters(frame: pl.DataFrame) -> Ints:
    """Return the code of each row's municipality, by which errors are clustered; unknown ones are one cluster."""
    return frame["municipality"].fill_null("(unknown)").rank("dense").to_numpy().astype(np.int64) - 1


def property_classes(subjects: FeatureMatrix) -> Sequence[str]:
    """Return the class of each row, by which intervals differ."""
    return subjects.frame["property_class"].fill_null("(unknown)").to_list()
