from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from consilience.valuation.market import MarketHistory, year_before
from consilience.valuation.schema import ANALYTIC, MONTH_ONLY, available_date

CUTOFF = date(2015, 6, 20)


def sale(day: date, price: float, **changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "sale_date": day,
        "price": price,
        "floor_area_m2": 100.0,
        "property_class": "house",
        "municipality": "m",
        "region": "r",
        "lat": 47.0,
        "lng": -122.0,
        "flags": [],
    }
    return fields | changed


def context(sales: list[dict[str, Any]], **changed: Any) -> Any:
    table = pl.DataFrame(sales, schema=ANALYTIC).with_columns(available_date())
    place: dict[str, Any] = {"lat": 47.0, "lng": -122.0, "municipality": "m", "region": "r"}
    place |= {"property_class": "house", "cutoff": CUTOFF}
    return MarketHistory(table).context(**(place | changed))


def month(year: int, number: int, prices: list[float], **changed: Any) -> list[dict[str, Any]]:
    return [sale(date(year, number, 1 + i), price, **changed) for i, price in enumerate(prices)]


def test_twelve_months_end_on_the_cutoff_and_exclude_the_day_a_year_before() -> None:
    days = [CUTOFF, CUTOFF + timedelta(days=1), date(2014, 6, 20), date(2014, 6, 21)]
    found = context([sale(day, 100.0 * 10**i) for i, day in enumerate(days)])
    assert found["municipality_12m"] == {"sales": 2, "median_price": 50050, "median_price_per_m2": 500}
    assert found["within_3km_12m"]["sales"] == 2
    assert year_before(date(2016, 2, 29)) == date(2015, 2, 28)


def test_month_only_sales_are_known_at_the_month_end() -> None:
    sold = [sale(date(2015, 6, 1), 1e5, flags=[MONTH_ONLY])]
    assert context(sold)["municipality_12m"]["sales"] == 0
    assert context(sold, cutoff=date(2015, 6, 30))["municipality_12m"]["sales"] == 1


def test_index_is_100_in_the_first_month_with_five_and_null_in_empty_months() -> None:
    sales = [
        *month(2015, 1, [1e5] * 4),
        *month(2015, 2, [2e5] * 5),
        *month(2015, 4, [3e5] * 9),
        *month(2015, 6, [4e5] * 25),
    ]
    assert context(sales)["index"] == {
        "of": "municipality",
        "base_month": "2015-02",
        "first_month": "2015-02",
        "values": [100.0, None, 150.0, None, 200.0],
        "partial_month": "2015-06",
    }


def test_index_never_reads_the_rest_of_the_cutoff_month() -> None:
    sales = [*month(2015, 5, [2e5] * 20), *month(2015, 6, [2e5] * 3), sale(date(2015, 6, 21), 9e9)]
    assert context(sales)["index"]["values"] == [100.0, 100.0]
    assert context(sales, cutoff=date(2015, 6, 1))["index"]["values"] == [100.0, 100.0]


def test_index_keeps_the_last_sixty_months() -> None:
    sales = [row for year in range(2008, 2016) for n in range(1, 7) for row in month(year, n, [1e5] * 5)]
    index = context(sales)["index"]
    assert (len(index["values"]), index["first_month"], index["base_month"]) == (60, "2010-07", "2008-01")


def test_few_sales_give_the_regions_index() -> None:
    far = month(2015, 3, [5e5] * 8, municipality="n")
    index = context([*month(2015, 3, [1e5] * 19), *far])["index"]
    assert index["of"] == "region"
    assert context([*month(2015, 3, [1e5] * 20), *far])["index"]["of"] == "municipality"
    assert context(month(2015, 3, [1e5] * 4))["index"] is None
    assert context(far, municipality=None, region=None)["index"] is None


def test_levels_are_of_the_class_and_nearby_sales_of_all() -> None:
    sales = [*month(2015, 3, [1e5] * 3), *month(2015, 3, [9e5] * 4, property_class="flat")]
    found = context(sales)
    assert found["municipality_12m"]["median_price"] == 100000
    assert found["region_12m"]["sales"] == 3
    assert found["within_3km_12m"]["sales"] == 7
    assert context(sales, lat=47.03)["within_3km_12m"]["sales"] == 0
    assert context(sales, lat=None)["within_3km_12m"] is None


@pytest.mark.parametrize(("first", "change"), [(date(2013, 6, 28), 0.25), (date(2013, 7, 1), None)])
def test_change_on_year_needs_two_covered_years(first: date, change: float | None) -> None:
    sales = [sale(first, 2e5), sale(date(2014, 1, 5), 2e5), sale(date(2015, 1, 5), 2.5e5)]
    assert context(sales)["region_12m"] == {"sales": 1, "median_price": 250000, "change_on_year": change}


def test_price_to_assessment_counts_known_rolls_only() -> None:
    rolls = [1e5, 2e5, None, 0.0]
    sales = [sale(date(2015, 1, 5), 3e5, assessment_total=roll) for roll in rolls]
    around = context(sales)["within_3km_12m"]
    assert around == {"sales": 4, "with_roll": 2, "median_price_to_assessment": 2.25}


def test_no_sales_is_unknown_and_the_mortgage_rate_is_said_to_be() -> None:
    found = context([])
    assert found["municipality_12m"] == {"sales": 0, "median_price": None, "median_price_per_m2": None}
    assert found["region_12m"] == {"sales": 0, "median_price": None, "change_on_year": None}
    assert (found["mortgage_rate"], found["mortgage_rate_note"]) == (None, "not in the data")
