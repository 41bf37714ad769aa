"""As-of features: one row of numbers per sale, seen from the day before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from consilience.errors import ConfigError, DataError, LeakError
from consilience.registry import nearest
from consilience.valuation.comparables import ComparableIndex, Floats, Ints
from consilience.valuation.features_comparables import (
    COMPARABLE_FEATURES,
    ComparableTable,
    comparable_features,
    find_comparables,
)
from consilience.valuation.market import MarketHistory
from consilience.valuation.schema import available_date
from consilience.valuation.splits import SPLITS, TimeSplits

AsOf: TypeAlias = Literal["frozen", "rolling"]

KEYS = ("tx_id", "parcel_id", "sale_date", "available_date", "cutoff", "split")
"""Columns that say which sale a row is: the cutoff is the day before the sale, and ``available_date`` the day from
which others, and refitted parameters, may know its price."""

CATEGORIES = ("property_class", "property_subtype", "municipality", "borough", "region", "flood_zone")
"""Text columns, null where unknown."""

ATTRIBUTE_FEATURES = (
    "ln_floor_area",
    "ln_land_area",
    "age",
    "storeys",
    "n_dwellings",
    "bedrooms",
    "bathrooms",
    "quality",
    "condition",
    "new_construction",
    "lat",
    "lng",
    "month_index",
    "month_of_year",
)
"""``age`` is the year of sale minus the year built, below 0 for homes sold before they are built; ``month_index``
counts months since January 1970."""

GEO_FEATURES = ("transit_stops_1km", "da_population_density", "da_median_income", "distance_cbd_km")
ROLL_FEATURES = ("ln_roll", "roll_lag_days")
"""ln of the roll in force, and days from its reference date to the cutoff."""

PRIOR_FEATURES = ("ln_prior_price", "prior_years")
"""The parcel's latest sale known strictly before the cutoff, and years (of 365.25 days) from it to this sale."""

MARKET_FEATURES = (
    "municipality_sales",
    "municipality_ln_price",
    "municipality_ln_per_m2",
    "region_sales",
    "region_ln_price",
    "region_ln_per_m2",
    "region_change",
    "index_level",
    "index_ln_per_m2",
    "index_of_region",
    "nearby_sales",
    "nearby_with_roll",
    "nearby_ratio",
)
"""The figures of M1 (`MarketHistory.levels`), medians as ln."""

FEATURES = (
    *ATTRIBUTE_FEATURES,
    *GEO_FEATURES,
    *ROLL_FEATURES,
    *PRIOR_FEATURES,
    *COMPARABLE_FEATURES,
    *MARKET_FEATURES,
)
"""All numeric columns, Float64, null where unknown."""

PRIOR_COLUMNS = ("prior_sale_date", "prior_sale_price")


@dataclass(frozen=True)
class FeatureMatrix:
    """Sales as models see them.

    Attributes:
        frame: `KEYS`, `CATEGORIES`, ``prior_sale_date``, ``prior_sale_price`` and `FEATURES`, one row per sale. It
            does not hold the row's own price.
        log_price: ln price per row; None where the truth is withheld (`blind`).
        comparables: The comparables of each row, as positions in ``sales``.
        sales: All sales of the table (``tx_id, available_date, price`` and the columns of the analytic table) in the
            order that comparables point into. Only rows that a row's comparables name may speak for it.
        as_of: ``frozen`` or ``rolling``: when the parameters of what is fitted on these rows may be fitted.
    """

    frame: pl.DataFrame
    log_price: Floats | None
    comparables: ComparableTable
    sales: pl.DataFrame
    as_of: AsOf

    def __len__(self) -> int:
        return self.frame.height

    def part(self, *splits: str) -> FeatureMatrix:
        """Return the rows of some splits, in order.

        Raises:
            ConfigError: A split is unknown.
        """
        for name in splits:
            if name not in SPLITS:
                raise ConfigError(f'unknown split "{name}"', hint=nearest(name, SPLITS))
        return self.where(pl.col("split").is_in(splits))

    def where(self, condition: pl.Expr) -> FeatureMatrix:
        """Return the rows for which a condition on the frame is true, in order."""
        return self.take(self.frame.select(condition.fill_null(value=False).arg_true()).to_series().to_numpy())

    def take(self, rows: Ints) -> FeatureMatrix:
        """Return some rows by position."""
        return replace(
            self,
            frame=self.frame[rows],
            log_price=None if self.log_price is None else self.log_price[rows],
            comparables=self.comparables.take(rows),
        )

    def blind(self) -> FeatureMatrix:
        """Return the same rows with their prices withheld."""
        return replace(self, log_price=None)

    def truth(self) -> Floats:
        """Return ln price.

        Raises:
            DataError: It is withheld.
        """
        if self.log_price is None:
            raise DataError("these sales have no known price", hint="Fit and score on sales with prices.")
        return self.log_price

    def numbers(self, columns: tuple[str, ...] = FEATURES) -> Floats:
        """Return numeric columns as an array of shape (rows, columns), NaN where unknown.

        Raises:
            ConfigError: A column is unknown.
        """
        for name in columns:
            if name not in FEATURES:
                raise ConfigError(f'unknown feature "{name}"', hint=nearest(name, FEATURES))
        return np.column_stack([self.frame[name].to_numpy() for name in columns])


def build_feature_matrix(
    analytic: pl.DataFrame, splits: TimeSplits | pl.DataFrame, *, as_of: AsOf = "frozen"
) -> FeatureMatrix:
    """Return the features of every sale of an analytic table, each as of its own cutoff, the day before it.

    Evidence is as of the subject's own cutoff in both modes, for every split: comparables and the prior sale became
    known strictly before it, market figures on it or before. No feature is a fitted parameter or a published index;
    levels of municipalities are trailing medians of what was known. What ``as_of`` settles is fitted parameters, those
    of models and of encodings fitted with them: ``frozen`` ones come from train and validation alone, ``rolling`` ones
    are refitted from sales whose ``available_date`` lies before the day of refit. It is recorded for the fitting arms.

    Args:
        analytic: The whole analytic table.
        splits: The splits of the table (``tx_id, split``).
        as_of: When parameters are fitted.

    Raises:
        ConfigError: ``as_of`` is unknown.
        DataError: A sale of the table has no split.
        LeakError: The roll of a sale refers to a day past its cutoff.

    Example:
        >>> from datetime import date
        >>> from consilience.valuation.schema import ANALYTIC
        >>> sales = [{"tx_id": f"t{day}", "parcel_id": "p", "sale_date": date(2015, 3, day), "price": 1e5 * day,
        ...           "property_class": "house", "flags": []} for day in (1, 3, 3)]
        >>> sales[2]["tx_id"] = "again"
        >>> splits = pl.DataFrame({"tx_id": ["t1", "t3", "again"], "split": ["train", "test", "test"]})
        >>> matrix = build_feature_matrix(pl.DataFrame(sales, schema=ANALYTIC), splits)
        >>> matrix.frame["prior_sale_price"].to_list()
        [None, 100000.0, 100000.0]
        >>> len(matrix.part("train")), matrix.blind().log_price
        (1, None)
    """
    if as_of not in get_args(AsOf):
        raise ConfigError(f'unknown as-of mode "{as_of}"', hint=nearest(as_of, get_args(AsOf)))
    frame = splits.frame if isinstance(splits, TimeSplits) else splits
    subjects = (
        analytic.drop("price", "flags")
        .with_columns(analytic.select(available_date()).to_series(), cutoff=pl.col("sale_date").dt.offset_by("-1d"))
        .join(frame, on="tx_id", how="left", maintain_order="left")
    )
    if subjects["split"].has_nulls():
        tx_id = subjects.filter(pl.col("split").is_null())["tx_id"][0]
        raise DataError(f'sale "{tx_id}" has no split', hint="Make the splits of this table.")
    _refuse_late_rolls(subjects)
    sales = analytic.with_columns(available_date()).sort("available_date", "parcel_id", maintain_order=True)
    table = find_comparables(_index(sales), subjects)
    columns = subjects.select(
        *KEYS, *CATEGORIES, *_attributes(), *_prior_sale(subjects, sales), *_from_arrays(subjects, sales, table)
    )
    return FeatureMatrix(
        frame=columns.select(*KEYS, *CATEGORIES, *PRIOR_COLUMNS, *FEATURES),
        log_price=np.log(analytic["price"].to_numpy()),
        comparables=table,
        sales=sales,
        as_of=as_of,
    )


def _refuse_late_rolls(subjects: pl.DataFrame) -> None:
    late = subjects.filter(pl.col("roll_reference_date") > pl.col("cutoff"))
    if late.height:
        raise LeakError(
            f"the roll of sale {late['tx_id'][0]} refers to {late['roll_reference_date'][0]}, past its cutoff "
            f"{late['cutoff'][0]}",
            hint="Give the roll in force at the sale, or leave it null.",
        )


def _index(sales: pl.DataFrame) -> ComparableIndex:
    return ComparableIndex(
        dates=sales["available_date"].to_numpy(),
        lat=sales["lat"].to_numpy(),
        lng=sales["lng"].to_numpy(),
        area=sales["floor_area_m2"].to_numpy(),
        year_built=sales["year_built"].cast(pl.Float64).to_numpy(),
        parcel=sales["parcel_id"].to_list(),
        klass=sales["property_class"].to_list(),
    )


def _attributes() -> list[pl.Expr]:
    day = pl.col("sale_date")
    month = (day.dt.year().cast(pl.Int32) - 1970) * 12 + day.dt.month() - 1
    roll = pl.col("assessment_total")
    lag = (pl.col("cutoff") - pl.col("roll_reference_date")).dt.total_days()
    made = {
        "ln_floor_area": pl.col("floor_area_m2").log(),
        "ln_land_area": pl.col("land_area_m2").log(),
        "age": day.dt.year() - pl.col("year_built"),
        "month_index": month,
        "month_of_year": day.dt.month(),
        "ln_roll": pl.when(roll > 0).then(roll.log()),
        "roll_lag_days": lag,
    }
    named = (*ATTRIBUTE_FEATURES, *GEO_FEATURES, *ROLL_FEATURES)
    return [made.get(name, pl.col(name)).cast(pl.Float64).alias(name) for name in named]


def _prior_sale(subjects: pl.DataFrame, sales: pl.DataFrame) -> list[pl.Series]:
    """Return day and price of the parcel's latest sale known strictly before the cutoff, and the features of them."""
    parcels = pl.DataFrame({"parcel_id": sales["parcel_id"].unique(maintain_order=True)}).with_row_index("parcel")
    span = 10_000_000  # days never reach it, so parcel and day make one sortable number

    def keys(frame: pl.DataFrame, day: str) -> Ints:
        code = frame.select("parcel_id").join(parcels, on="parcel_id", how="left", maintain_order="left")["parcel"]
        keyed: Ints = code.to_numpy().astype(np.int64) * span + frame[day].to_physical().to_numpy() + span // 2
        return keyed

    known = keys(sales, "available_date")
    order = np.argsort(known, kind="stable")  # equal days stay in the order of the sales
    known = known[order]
    asked = keys(subjects, "cutoff")
    place = np.searchsorted(known, asked, side="left") - 1
    found = (place >= 0) & (known[place] // span == asked // span)
    row = pl.Series(order[place]).to_frame("row").select(pl.when(pl.Series(found)).then(pl.col("row"))).to_series()
    day, price = sales["sale_date"].gather(row), sales["price"].gather(row)
    years = (subjects["sale_date"] - day).dt.total_days() / 365.25
    return [
        day.alias("prior_sale_date"),
        price.alias("prior_sale_price"),
        price.log().alias("ln_prior_price"),
        years.alias("prior_years"),
    ]


def _from_arrays(subjects: pl.DataFrame, sales: pl.DataFrame, table: ComparableTable) -> list[pl.Series]:
    levels = MarketHistory(sales).levels(subjects)
    market = {
        **levels,
        "index_level": levels["index"],
        **{
            name.replace("_", "_ln_", 1): np.log(levels[name])
            for name in levels
            if name.endswith(("_price", "_per_m2"))
        },
    }
    columns = {**comparable_features(table, sales, subjects), **{name: market[name] for name in MARKET_FEATURES}}
    return [pl.Series(name, values).fill_nan(None) for name, values in columns.items()]
