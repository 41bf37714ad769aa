"""A hedonic regression whose places borrow from each other.

A mixed model of ln price: fixed effects of attributes and class, a month-by-month walk of the price level, and random
intercepts and trends of region, municipality and borough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.valuation.baselines.base import Floats
from consilience.valuation.baselines.hedonic import days
from consilience.valuation.baselines.levels import LevelPath, level_path
from consilience.valuation.baselines.mixed import Block, Ints, MixedFit, fit_mixed
from consilience.valuation.baselines.ols import OUTLYING, within
from consilience.valuation.baselines.regressors import attributes, features

NUMBERS: Final = (
    "ln_floor_area",
    "ln_land_area",
    "age",
    "storeys",
    "n_dwellings",
    "bedrooms",
    "bathrooms",
    "quality",
)
SQUARED: Final = ("ln_floor_area", "age", "quality")
PLACES: Final = ("region", "municipality", "borough")
MONTH: Final = "month"
TREND: Final = "trend"
DAYS_PER_YEAR: Final = 365.25

_DEPENDENT: Final = 1e-9
_NAMES: Final = {"region": ("region",), "municipality": ("municipality",), "borough": ("municipality", "borough")}


@dataclass(frozen=True)
class Terms:
    """The fixed effects.

    Attributes:
        means: Mean of each attribute over train, from which it is measured; None where train does not know it.
        classes: Property classes of train, the first being the base.
        kept: Names of the columns that do not depend on those before them, in order.
    """

    means: dict[str, float | None]
    classes: tuple[str, ...]
    kept: tuple[str, ...] = ()

    def columns(self, homes: Homes) -> dict[str, Floats]:
        """Return every column by its name."""
        columns = {"intercept": np.ones(len(homes.values))}
        for (name, mean), value in zip(self.means.items(), homes.values.T, strict=True):
            if mean is None:
                continue
            unknown = np.isnan(value)
            columns[name] = np.where(unknown, 0.0, value - mean)
            columns[f"{name} unknown"] = unknown.astype(np.float64)
            if name in SQUARED:
                columns[f"{name} squared"] = columns[name] ** 2
        klass = homes.frame["property_class"].to_numpy()
        columns |= {f"class {name}": (klass == name).astype(np.float64) for name in self.classes[1:]}
        return columns

    def design(self, homes: Homes) -> Floats:
        """Return the kept columns as an array."""
        columns = self.columns(homes)
        return np.column_stack([columns[name] for name in self.kept])


@dataclass(frozen=True)
class Homes:
    """Homes on the days on which they are valued.

    Attributes:
        values: `NUMBERS`, NaN where unknown.
        frame: ``property_class, region, municipality, borough``.
        day: Day numbers.
    """

    values: Floats
    frame: pl.DataFrame
    day: Ints

    @classmethod
    def at_sale(cls, frame: pl.DataFrame) -> Homes:
        """Return the rows of a feature matrix on their sale days."""
        return cls(features(frame, NUMBERS), frame, days(frame["sale_date"]))

    @classmethod
    def at_prior_sale(cls, frame: pl.DataFrame) -> Homes:
        """Return the same homes as they were at their prior sales: younger, and otherwise alike."""
        values = features(frame, NUMBERS)
        values[:, NUMBERS.index("age")] -= frame["prior_years"].to_numpy()
        return cls(values, frame, days(frame["prior_sale_date"]))


@dataclass(frozen=True)
class PooledHedonic:
    """The fitted mixed model.

    Attributes:
        terms: Fixed effects.
        places: Code of each place by its name, per level.
        origin: Mean sale day of train, from which trends count.
        last: Last sale day of train, after which trends stand still.
        model: Coefficients, effects and variances.
        base: Median of ln price − structure in train: the level where none is known.
        outlying: Sales of train left out as `OUTLYING`.
    """

    terms: Terms
    places: dict[str, dict[str, int]]
    origin: float
    last: int
    model: MixedFit
    base: float
    outlying: int

    def structure(self, homes: Homes) -> Floats:
        """Return ln value net of the general price level."""
        total: Floats = self.terms.design(homes) @ self.model.fixed
        for block in _places(homes, self.places, self.origin, self.last):
            effects = self.model.effects.get(block.name)
            if effects is not None:
                total += np.where(block.code >= 0, effects[block.code], 0.0) * block.factor
        return total

    def path(self, sales: pl.DataFrame) -> LevelPath:
        """Return the price levels of all sales known, in order of the day they became known."""
        homes = Homes(attributes(sales, NUMBERS), sales, days(sales["sale_date"]))
        surplus = np.log(sales["price"].to_numpy()) - self.structure(homes)
        return level_path(days(sales["available_date"]), surplus, base=self.base)


def fit_pooled(frame: pl.DataFrame, log_price: Floats, *, slopes: bool) -> PooledHedonic:
    """Return the mixed model of train, in which months walk; the level of a later day is evidence, no parameter.

    Prices that are none, such as a nominal dollar, would swell every variance: least squares without places and then
    the model itself say which sales lie more than `OUTLYING` robust standard deviations off, and the rest is fitted.

    Args:
        frame: Rows of a feature matrix.
        log_price: ln price of each.
        slopes: Let places differ in their trend.

    Raises:
        DataError: Too few sales, or more places than can be fitted.
    """
    homes = Homes.at_sale(frame)
    terms = _fit_terms(homes)
    places = {level: codes for level in PLACES if len(codes := _codes(frame, level)) > 1}
    origin, last = float(homes.day.mean()), int(homes.day.max())
    blocks = [block for block in _places(homes, places, origin, last) if slopes or not block.name.endswith(TREND)]
    months = frame["month_index"].to_numpy().astype(np.int64)
    months -= months.min()
    if months.max() > 0:
        blocks.append(Block(MONTH, int(months.max()), months - 1, np.ones(len(months)), kind="walk"))
    design = terms.design(homes)
    plain = np.linalg.lstsq(design, log_price, rcond=None)[0]
    usual = within(log_price - design @ plain, OUTLYING)

    def fitted(usual: npt.NDArray[np.bool_]) -> tuple[PooledHedonic, Floats]:
        rows = np.flatnonzero(usual)
        model = fit_mixed(log_price[rows], design[rows], [block.take(rows) for block in blocks])
        hedonic = PooledHedonic(terms, places, origin, last, model, 0.0, len(months) - len(rows))
        return hedonic, log_price - hedonic.structure(homes)

    first, surplus = fitted(usual)
    level = np.append(first.model.effects.get(MONTH, np.zeros(0)), 0.0)  # -1 is the month in which the walk begins
    hedonic, surplus = fitted(usual & within(surplus - level[months - 1], OUTLYING))
    return replace(hedonic, base=float(np.median(surplus)))


def _fit_terms(homes: Homes) -> Terms:
    """Return the fixed effects that train can tell apart."""
    known = np.isfinite(homes.values)
    means = {
        name: float(homes.values[known[:, k], k].mean()) if known[:, k].any() else None
        for k, name in enumerate(NUMBERS)
    }
    terms = Terms(means, tuple(homes.frame["property_class"].unique().sort()))
    columns = {name: column for name, column in terms.columns(homes).items() if column.any()}
    table = np.column_stack(list(columns.values()))
    table /= np.linalg.norm(table, axis=0)
    products = table.T @ table
    # A column depends on those kept where they explain all of its length: an elimination without exchanges of rows.
    kept = []
    for k, name in enumerate(columns):
        if products[k, k] > _DEPENDENT:
            products -= np.outer(products[:, k], products[k]) / products[k, k]
            kept.append(name)
    return replace(terms, kept=tuple(kept))


def _place_names(frame: pl.DataFrame, level: str) -> pl.Series:
    return frame.select(pl.concat_str(_NAMES[level], separator=" / ")).to_series()


def _codes(frame: pl.DataFrame, level: str) -> dict[str, int]:
    return {name: code for code, name in enumerate(_place_names(frame, level).drop_nulls().unique().sort())}


def _places(homes: Homes, places: Mapping[str, Mapping[str, int]], origin: float, last: int) -> list[Block]:
    """Return intercepts and trends of the places of homes."""
    ones = np.ones(len(homes.day))
    years = (np.minimum(homes.day, last) - origin) / DAYS_PER_YEAR
    blocks = []
    for level, codes in places.items():
        code = np.array([codes.get(name, -1) for name in _place_names(homes.frame, level)], dtype=np.int64)
        blocks += [Block(level, len(codes), code, ones), Block(f"{level} {TREND}", len(codes), code, years)]
    return blocks
