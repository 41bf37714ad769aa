"""Market context (M1) as of a cutoff: levels, an index recomputed from the sales known by then, and activity nearby."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import JsonValue

from consilience.valuation.comparables import Floats, Ints, SaleTiles, day_numbers, middle

NEARBY_KM = 3.0
FEW_SALES = 20
BASE_SALES = 5
# A roll may lie five years back; a longer path only costs tokens.
INDEX_MONTHS = 60

Place: TypeAlias = tuple[str, str, str]
Bools: TypeAlias = npt.NDArray[np.bool_]

LEVELS = (
    "municipality_sales",
    "municipality_price",
    "municipality_per_m2",
    "region_sales",
    "region_price",
    "region_per_m2",
    "region_change",
    "index",
    "index_per_m2",
    "index_of_region",
    "nearby_sales",
    "nearby_with_roll",
    "nearby_ratio",
)
"""What `MarketHistory.levels` gives."""


def year_before(day: date) -> date:
    """Return the same day one year earlier; 29 February becomes 28 February.

    Example:
        >>> year_before(date(2016, 2, 29))
        datetime.date(2015, 2, 28)
    """
    try:
        return day.replace(year=day.year - 1)
    except ValueError:
        return day.replace(year=day.year - 1, day=28)


def _day(day: date) -> int:
    return day.toordinal() - date(1970, 1, 1).toordinal()


def _month(day: date) -> int:
    return (day.year - 1970) * 12 + day.month - 1


def _month_numbers(days: Ints) -> Ints:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _month_name(month: int) -> str:
    return f"{1970 + month // 12:04d}-{month % 12 + 1:02d}"


def _median(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return middle(known) if known.size else None


def _window(days: Ints, after: Ints, until: Ints) -> tuple[Ints, Ints]:
    """Return bounds of the slices of sorted days later than ``after`` and up to ``until``."""
    return np.searchsorted(days, after, side="right"), np.searchsorted(days, until, side="right")


def _medians(values: Floats, low: Ints, high: Ints) -> Floats:
    """Return the median of the known values in each slice, NaN where there are none."""
    found = (_median(values[start:stop]) for start, stop in zip(low.tolist(), high.tolist(), strict=True))
    return np.array([math.nan if median is None else median for median in found])


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


@dataclass
class _Series:
    """The sales of one place and class in order of the day they became known."""

    days: Ints
    price: Floats
    per_m2: Floats

    def __post_init__(self) -> None:
        months = _month_numbers(self.days)
        starts = np.flatnonzero(np.diff(months, prepend=months[:1] - 1))
        blocks = zip(months[starts].tolist(), np.split(self.per_m2, starts[1:]), strict=True)
        self._monthly = {month: (_median(block), int(np.isfinite(block).sum())) for month, block in blocks}

    def between(self, after: date, until: date) -> slice:
        """Return the slice of sales dated after one day and up to another."""
        low, high = np.searchsorted(self.days, (_day(after), _day(until)), side="right")
        return slice(int(low), int(high))

    def months(self, cutoffs: Ints) -> tuple[Floats, Floats, Bools]:
        """Return, per cutoff (day numbers): index and median price per m² of the last whole month that has one.

        The third array says whether there is an index at all, be it for the month of the cutoff alone.
        """
        index, level = np.full(len(cutoffs), np.nan), np.full(len(cutoffs), np.nan)
        there = np.zeros(len(cutoffs), dtype=np.bool_)
        base = min((month for month, (_, count) in self._monthly.items() if count >= BASE_SALES), default=None)
        if base is None:
            return index, level, there
        first = self._monthly[base][0]
        last = _month_numbers(cutoffs)
        months = [month for month, (median, _) in sorted(self._monthly.items()) if month >= base and median is not None]
        medians = np.array([self._monthly[month][0] for month in months], dtype=np.float64)
        place = np.searchsorted(months, last) - 1
        known = (place >= 0) & (np.array(months)[place] > last - INDEX_MONTHS)
        level[known] = medians[place[known]]
        index[known] = 100 * level[known] / first if first is not None else np.nan
        starts = last.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        low, high = _window(self.days, starts - 1, cutoffs)
        priced = np.r_[0, np.cumsum(np.isfinite(self.per_m2))]
        there = (last > base) | ((last == base) & (priced[high] - priced[low] >= BASE_SALES))
        return index, level, there

    def index(self, cutoff: date) -> dict[str, JsonValue] | None:
        """Return the monthly index of the median price per m² up to the cutoff, None before its base month exists."""
        last = _month(cutoff)
        monthly = {month: entry for month, entry in self._monthly.items() if month < last}
        partial = self.per_m2[self.between(cutoff.replace(day=1) - timedelta(days=1), cutoff)]
        monthly[last] = (_median(partial), int(np.isfinite(partial).sum()))
        base = min((month for month, (_, count) in monthly.items() if count >= BASE_SALES), default=None)
        level = None if base is None else monthly[base][0]
        if base is None or level is None:
            return None
        start = max(base, last - INDEX_MONTHS + 1)
        medians = [monthly.get(month, (None, 0))[0] for month in range(start, last + 1)]
        return {
            "base_month": _month_name(base),
            "first_month": _month_name(start),
            "values": [None if median is None else round(100 * median / level, 1) for median in medians],
            "partial_month": _month_name(last),
        }


class MarketHistory:
    """All sales of a data set, ready to describe the market as it could be known at any cutoff.

    Every figure uses sales that were known on or before the cutoff; nothing is read from a published index.

    Args:
        sales: An analytic table with ``available_date`` (`consilience.valuation.schema.available_date`) beside it.

    Example:
        >>> from consilience.valuation.schema import ANALYTIC, available_date
        >>> sale = {"sale_date": date(2015, 1, 5), "price": 3e5, "floor_area_m2": 100.0, "property_class": "house",
        ...         "municipality": "98001", "region": "King", "lat": 47.0, "lng": -122.0, "flags": []}
        >>> table = pl.DataFrame([sale], schema=ANALYTIC).with_columns(available_date())
        >>> seen = MarketHistory(table).context(lat=47.0, lng=-122.0, municipality="98001", region="King",
        ...                                     property_class="house", cutoff=date(2015, 1, 5))
        >>> seen["municipality_12m"]
        {'sales': 1, 'median_price': 300000, 'median_price_per_m2': 3000}
    """

    def __init__(self, sales: pl.DataFrame) -> None:
        roll = pl.col("assessment_total")
        kept = ("available_date", "municipality", "region", "property_class", "lat", "lng", "price")
        table = sales.select(
            *kept,
            per_m2=pl.col("price") / pl.col("floor_area_m2"),
            ratio=pl.col("price") / pl.when(roll > 0).then(roll),
        ).sort("available_date", maintain_order=True)
        self._first = table["available_date"].min()
        self._series: dict[Place, _Series] = {}
        for column in ("municipality", "region"):
            known = table.filter(pl.col(column).is_not_null())
            for (name, klass), part in known.group_by(column, "property_class", maintain_order=True):
                self._series[column, str(name), str(klass)] = _Series(
                    days=day_numbers(part["available_date"]),
                    price=_floats(part, "price"),
                    per_m2=_floats(part, "per_m2"),
                )
        located = table.filter(pl.col("lat").is_not_null() & pl.col("lng").is_not_null())
        self._ratio = _floats(located, "ratio")
        self._nearby = SaleTiles(
            day_numbers(located["available_date"]),
            _floats(located, "lat"),
            _floats(located, "lng"),
            radius_km=NEARBY_KM,
        )

    def context(
        self,
        *,
        lat: float | None,
        lng: float | None,
        municipality: str | None,
        region: str | None,
        property_class: str,
        cutoff: date,
    ) -> dict[str, JsonValue]:
        """Return the content of M1 for a place and class at a cutoff.

        Months and "12m" count back from the cutoff (the same day a year earlier is excluded). Levels, index and change
        are those of the property class; ``within_3km_12m`` counts all classes.

        Returns:
            ``municipality_12m`` (sales, median price, median price per m²); ``index`` (of the municipality, or of the
            region when the municipality has fewer than 20 sales in 12 months or no month with 5; 100 in the first
            month with at least 5 sales; a month without sales is null; None when neither has a base month; the last
            60 months); ``region_12m`` (median price and its change on the 12 months before, None unless the data
            reach back over both years); ``within_3km_12m`` (sales, those with a roll value, median price-to-assessment
            ratio; None without coordinates); ``mortgage_rate`` None, as the data do not hold it.
        """
        local = self._series.get(("municipality", municipality, property_class)) if municipality is not None else None
        wide = self._series.get(("region", region, property_class)) if region is not None else None
        start = year_before(cutoff)
        recent = local.between(start, cutoff) if local is not None else slice(0, 0)
        n_local = recent.stop - recent.start
        index, scope = (local.index(cutoff) if local is not None and n_local >= FEW_SALES else None), "municipality"
        if index is None and wide is not None:
            index, scope = wide.index(cutoff), "region"
        return {
            "municipality_12m": {
                "sales": n_local,
                "median_price": None if local is None else _whole(_median(local.price[recent])),
                "median_price_per_m2": None if local is None else _whole(_median(local.per_m2[recent])),
            },
            "index": None if index is None else {"of": scope, **index},
            "region_12m": self._regional(wide, start, cutoff),
            "within_3km_12m": self._around(lat, lng, start, cutoff),
            "mortgage_rate": None,
            "mortgage_rate_note": "not in the data",
        }

    def levels(self, subjects: pl.DataFrame) -> dict[str, Floats]:
        """Return the figures of `context` for many subjects as columns (`LEVELS`), unrounded, NaN where unknown.

        ``index`` and ``index_per_m2`` are the last whole month's entry of the index that `context` shows (100 in its
        base month) and its median price per m²; ``index_of_region`` is 1 where that index is the region's.

        Args:
            subjects: ``lat, lng, municipality, region, property_class, cutoff``.
        """
        n = subjects.height
        out = {name: np.full(n, np.nan) for name in LEVELS}
        cutoffs = subjects["cutoff"].to_physical().to_numpy().astype(np.int64)
        starts, befores = _years_before(cutoffs)
        out["municipality_sales"][:] = out["region_sales"][:] = 0
        months: dict[str, tuple[Floats, Floats, Bools]] = {}
        for scope in ("municipality", "region"):
            found = (np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, dtype=np.bool_))
            months[scope] = found
            asked = subjects.with_row_index("row").filter(pl.col(scope).is_not_null())
            for (name, klass), part in asked.group_by(scope, "property_class", maintain_order=True):
                series = self._series.get((scope, str(name), str(klass)))
                if series is None:
                    continue
                rows = part["row"].to_numpy()
                days, first, back = np.unique(cutoffs[rows], return_index=True, return_inverse=True)
                start, before = starts[rows][first], befores[rows][first]
                low, high = _window(series.days, start, days)
                price = _medians(series.price, low, high)
                out[f"{scope}_sales"][rows] = (high - low)[back]
                out[f"{scope}_price"][rows] = price[back]
                out[f"{scope}_per_m2"][rows] = _medians(series.per_m2, low, high)[back]
                for values, column in zip(series.months(days), found, strict=True):
                    column[rows] = values[back]
                if scope == "region" and isinstance(self._first, date):
                    covered = _month_numbers(before) >= _month(self._first)
                    low, high = _window(series.days, before, start)
                    then = np.where(covered, _medians(series.price, low, high), np.nan)
                    out["region_change"][rows] = (price / then - 1)[back]
        local = (out["municipality_sales"] >= FEW_SALES) & months["municipality"][2]
        for name, near, wide in zip(("index", "index_per_m2"), months["municipality"], months["region"], strict=False):
            out[name] = np.where(local, near, wide)
        out["index_of_region"] = np.where(local, 0.0, np.where(months["region"][2], 1.0, np.nan))
        self._nearby_levels(subjects, starts, cutoffs, out)
        return out

    def _nearby_levels(self, subjects: pl.DataFrame, starts: Ints, cutoffs: Ints, out: dict[str, Floats]) -> None:
        placed = subjects.select("lat", "lng", first=starts + 1, last=cutoffs).with_row_index("row").drop_nulls()
        near = placed.with_columns(pl.col("lat").round(2).alias("y"), pl.col("lng").round(2).alias("x"))
        for row, lat, lng, first, last in near.sort("y", "x", "last", "row").drop("y", "x").iter_rows():
            members, _ = self._nearby.within(lat, lng, first=first, last=last)
            ratio = self._ratio[members]
            ratio = ratio[np.isfinite(ratio)]
            out["nearby_sales"][row] = members.size
            out["nearby_with_roll"][row] = ratio.size
            if ratio.size:
                out["nearby_ratio"][row] = middle(ratio)

    def _regional(self, wide: _Series | None, start: date, cutoff: date) -> dict[str, JsonValue]:
        if wide is None:
            return {"sales": 0, "median_price": None, "change_on_year": None}
        recent = wide.between(start, cutoff)
        now = _median(wide.price[recent])
        before = year_before(start)
        # A year that the data cover only in part would compare seasons, not years.
        covered = isinstance(self._first, date) and _month(self._first) <= _month(before)
        then = _median(wide.price[wide.between(before, start)]) if covered else None
        change = None if now is None or then is None else round(now / then - 1, 3)
        return {"sales": recent.stop - recent.start, "median_price": _whole(now), "change_on_year": change}

    def _around(self, lat: float | None, lng: float | None, start: date, cutoff: date) -> dict[str, JsonValue] | None:
        if lat is None or lng is None:
            return None
        members, _ = self._nearby.within(lat, lng, first=_day(start) + 1, last=_day(cutoff))
        ratio = self._ratio[members]
        median = _median(ratio)
        return {
            "sales": members.size,
            "with_roll": int(np.isfinite(ratio).sum()),
            "median_price_to_assessment": None if median is None else round(median, 3),
        }


def _years_before(cutoffs: Ints) -> tuple[Ints, Ints]:
    """Return the same days one and two years earlier."""
    days, back = np.unique(cutoffs, return_inverse=True)
    starts = [year_before(date.fromordinal(day + date(1970, 1, 1).toordinal())) for day in days.tolist()]
    start, before = day_numbers(starts), day_numbers([year_before(day) for day in starts])
    return start[back], before[back]


def _floats(table: pl.DataFrame, column: str) -> Floats:
    """Return a column as float64, NaN where null."""
    return table[column].cast(pl.Float64).to_numpy().astype(np.float64)
