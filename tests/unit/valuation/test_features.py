from __future__ import annotations

import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.errors import ConfigError, DataError, LeakError
from consilience.valuation.adapters.king_county import KingCounty
from consilience.valuation.adapters.synthetic import SyntheticTown
from consilience.valuation.comparables import ComparableIndex
from consilience.valuation.features import FEATURES, FeatureMatrix, build_feature_matrix
from consilience.valuation.features_comparables import find_comparables
from consilience.valuation.market import MarketHistory
from consilience.valuation.schema import ANALYTIC, MONTH_ONLY, available_date
from consilience.valuation.splits import time_splits
from consilience.valuation.synthetic import generate

DAY = date(2015, 6, 1)
NEAR = 0.001


def sale(tx_id: str, ago: int = 0, **changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "tx_id": tx_id,
        "parcel_id": tx_id,
        "sale_date": DAY - timedelta(days=ago),
        "price": 2e5,
        "property_class": "house",
        "municipality": "m",
        "region": "r",
        "lat": 47.0,
        "lng": -122.0,
        "floor_area_m2": 100.0,
        "year_built": 1990,
        "flags": [],
    }
    return fields | changed


def matrix(sales: list[dict[str, Any]]) -> FeatureMatrix:
    table = pl.DataFrame(sales, schema=ANALYTIC)
    return build_feature_matrix(table, table.select("tx_id", split=pl.lit("train")))


def row(sales: list[dict[str, Any]], tx_id: str) -> dict[str, Any]:
    return matrix(sales).frame.row(by_predicate=pl.col("tx_id") == tx_id, named=True)


def town(n: int, seed: int = 3) -> pl.DataFrame:
    return SyntheticTown().to_analytic(generate(sales=n, seed=seed).sales)


@pytest.fixture(scope="module")
def small() -> pl.DataFrame:
    """A town with some sales of which only the month is known, and some on a leap day."""
    table = town(1500)
    nth = pl.int_range(pl.len())
    month_only = nth % 7 == 0
    return table.with_columns(
        sale_date=pl.when(month_only)
        .then(pl.col("sale_date").dt.month_start())
        .when(nth % 97 == 0)
        .then(pl.date(2024, 2, 29))
        .otherwise("sale_date"),
        flags=pl.when(month_only).then(pl.concat_list("flags", pl.lit(MONTH_ONLY))).otherwise("flags"),
        roll_reference_date=pl.lit(None, dtype=pl.Date),
    )


def asked(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The sales in order of evidence, and each as a subject."""
    sales = table.with_columns(available_date()).sort("available_date", "parcel_id", maintain_order=True)
    return sales, sales.with_columns(cutoff=pl.col("sale_date") - pl.duration(days=1))


def test_levels_are_those_of_the_context_row_by_row(small: pl.DataFrame) -> None:
    sales, subjects = asked(small)
    history = MarketHistory(sales)
    levels = history.levels(subjects)
    place = ("lat", "lng", "municipality", "region", "property_class", "cutoff")
    seen = {"index": 0, "change": 0, "region": 0}
    for i, subject in enumerate(subjects.select(place).iter_rows(named=True)):
        context: Any = history.context(**subject)
        got = {name: None if math.isnan(values[i]) else float(values[i]) for name, values in levels.items()}

        def whole(name: str, got: dict[str, float | None] = got) -> int | None:
            value = got[name]
            return None if value is None else round(value)

        assert context["municipality_12m"] == {
            "sales": got["municipality_sales"],
            "median_price": whole("municipality_price"),
            "median_price_per_m2": whole("municipality_per_m2"),
        }
        region = context["region_12m"]
        assert (region["sales"], region["median_price"]) == (got["region_sales"], whole("region_price"))
        change = got["region_change"]
        assert region["change_on_year"] == (None if change is None else round(change, 3))
        index = context["index"]
        scope = {0.0: "municipality", 1.0: "region", None: None}[got["index_of_region"]]
        assert scope == (None if index is None else index["of"])
        whole_months = [] if index is None else [value for value in index["values"][:-1] if value is not None]
        level = got["index"]
        assert (None if level is None else round(level, 1)) == (whole_months[-1] if whole_months else None)
        around = context["within_3km_12m"]
        ratio = got["nearby_ratio"]
        expected = {
            "sales": got["nearby_sales"],
            "with_roll": got["nearby_with_roll"],
            "median_price_to_assessment": None if ratio is None else round(ratio, 3),
        }
        assert (around or dict.fromkeys(expected)) == expected
        seen["index"] += level is not None
        seen["change"] += change is not None
        seen["region"] += scope == "region"
    assert min(seen.values()) > 100


def test_batch_comparables_are_those_of_the_query(small: pl.DataFrame) -> None:
    sales, subjects = asked(small)
    index = comparable_index(sales)
    table = find_comparables(index, subjects)
    names = {"floor_area_m2": "area", "parcel_id": "parcel", "property_class": "klass"}
    columns = ("lat", "lng", "floor_area_m2", "year_built", "parcel_id", "property_class", "cutoff")
    found = 0
    for i, subject in enumerate(subjects.select(columns).rename(names).iter_rows(named=True)):
        one = index.query(**subject)
        k = one.rows.size
        assert table.rows[i].tolist() == one.rows.tolist() + [-1] * (12 - k)
        np.testing.assert_allclose(table.scores[i, :k], one.scores, rtol=0, atol=1e-12)
        np.testing.assert_allclose(table.distances_km[i, :k], one.distances_km, rtol=0, atol=1e-9)
        assert table.candidates[i] == one.n_candidates
        assert one.radius_km == (None if math.isnan(table.radius_km[i]) else table.radius_km[i])
        found += k
    assert found > 5000


def comparable_index(sales: pl.DataFrame) -> ComparableIndex:
    return ComparableIndex(
        dates=sales["available_date"].to_numpy(),
        lat=sales["lat"].to_numpy(),
        lng=sales["lng"].to_numpy(),
        area=sales["floor_area_m2"].to_numpy(),
        year_built=sales["year_built"].cast(pl.Float64).to_numpy(),
        parcel=sales["parcel_id"].to_list(),
        klass=sales["property_class"].to_list(),
    )


def test_statistics_of_comparables_by_hand() -> None:
    prices = [1e5, 2e5, 3e5, 4e5]
    sales = [sale(f"c{i}", 10 + i, price=price, floor_area_m2=100.0 + i) for i, price in enumerate(prices)]
    got = row([*sales, sale("s", floor_area_m2=50.0)], "s")
    logs = [math.log(price) for price in prices]
    per_m2 = [math.log(price / (100 + i)) for i, price in enumerate(prices)]
    assert (got["comp_count"], got["comp_candidates"], got["comp_radius_km"], got["comp_nearest_km"]) == (4, 4, 1, 0)
    assert got["comp_days"] == 10.5  # from the cutoff, a day before the sale
    assert got["comp_ln_price"] == pytest.approx(np.median(logs))
    assert got["comp_ln_price_q25"] == pytest.approx(np.quantile(logs, 0.25))
    assert got["comp_ln_per_m2_q75"] == pytest.approx(np.quantile(per_m2, 0.75))
    assert got["comp_ln_by_area"] == pytest.approx(np.median(per_m2) + math.log(50))
    areas = [math.log((100 + i) / 50) for i in range(4)]
    assert got["comp_area_gap"] == pytest.approx(-np.mean(areas))
    scores = [1.5 * area + 0.5 * (9 + i) / 540 for i, area in enumerate(areas)]
    assert got["comp_score"] == pytest.approx(np.mean(scores))
    weights = np.exp(-np.array(scores))
    assert got["comp_ln_weighted"] == pytest.approx(np.average(logs, weights=weights))
    assert got["comp_ln_weighted_by_area"] == pytest.approx(np.average(per_m2, weights=weights) + math.log(50))


def test_attributes_roll_and_month_as_of_the_sale() -> None:
    subject = sale("s", assessment_total=1e5, roll_reference_date=DAY - timedelta(days=41), new_construction=True)
    got = row([subject], "s")
    assert (got["age"], got["month_index"], got["month_of_year"]) == (25, 45 * 12 + 5, 6)
    assert (got["roll_lag_days"], got["ln_roll"], got["new_construction"]) == (40, math.log(1e5), 1)
    assert got["cutoff"] == DAY - timedelta(days=1)
    assert got["comp_count"] == 0
    assert got["comp_radius_km"] is got["comp_ln_price"] is got["prior_years"] is got["index_level"] is None


def test_unknown_is_null_and_never_zero() -> None:
    blank: dict[str, Any] = dict.fromkeys(["lat", "lng", "floor_area_m2", "year_built", "municipality", "region"])
    got = row([sale("c", 9), sale("s", assessment_total=0.0, **blank)], "s")
    known = {name for name in FEATURES if got[name] is not None}
    counts = {"comp_count", "comp_candidates", "municipality_sales", "region_sales"}
    assert known == {"month_index", "month_of_year", *counts}
    assert all(got[name] == 0 for name in counts)


def test_shared_coordinates_are_comparables_at_distance_zero() -> None:
    got = row([sale("a", 5), sale("b", 4), sale("s")], "s")
    assert (got["comp_count"], got["comp_nearest_km"]) == (2, 0)


def test_same_day_resales_do_not_see_each_other() -> None:
    sales = [sale("a", 400, parcel_id="p"), sale("b", parcel_id="p", price=3e5), sale("c", parcel_id="p", price=4e5)]
    for tx_id in ("b", "c"):
        got = row(sales, tx_id)
        assert (got["prior_sale_price"], got["prior_sale_date"]) == (2e5, DAY - timedelta(days=400))
        assert got["prior_years"] == pytest.approx(400 / 365.25)
        assert got["comp_count"] == 0
        assert got["municipality_sales"] == 0
    assert row(sales, "a")["prior_sale_price"] is None
    later = row([*sales, sale("d", -9, parcel_id="p")], "d")
    assert later["prior_sale_price"] == 4e5  # of one day, the last in the order of the table, as packets have it


def test_a_sale_on_the_cutoff_is_market_but_no_comparable_and_no_prior_sale() -> None:
    got = row([sale("a", 1), sale("b", 1, parcel_id="s"), sale("s")], "s")
    assert (got["comp_count"], got["prior_sale_price"], got["municipality_sales"]) == (0, None, 2)
    got = row([sale("a", 2), sale("b", 2, parcel_id="s"), sale("s")], "s")
    assert (got["comp_count"], got["prior_sale_price"], got["municipality_sales"]) == (1, 2e5, 2)


def test_month_only_sales_are_known_at_the_month_end() -> None:
    month_only = sale("a", 31, parcel_id="s", flags=[MONTH_ONLY])  # May: known on the 31st, the subject's cutoff
    neighbour = sale("n", 31, flags=[MONTH_ONLY])
    got = row([month_only, neighbour, sale("s")], "s")
    assert (got["comp_count"], got["prior_sale_price"], got["municipality_sales"]) == (0, None, 2)
    got = row([month_only, neighbour, sale("s", -1)], "s")
    assert (got["comp_count"], got["prior_sale_price"], got["prior_sale_date"]) == (1, 2e5, date(2015, 5, 1))


def test_leap_days_count_as_days() -> None:
    leap = date(2016, 2, 29)
    got = row([sale("a", 0, sale_date=date(2015, 2, 28)), sale("s", sale_date=leap)], "s")
    assert got["comp_days"] == (leap - date(2015, 3, 1)).days
    assert got["municipality_sales"] == 0  # the year before 28 February 2016 excludes 28 February 2015
    assert (got["month_index"], got["cutoff"]) == (46 * 12 + 1, date(2016, 2, 28))


def test_built_after_the_sale_has_a_negative_age() -> None:
    assert row([sale("s", year_built=2016)], "s")["age"] == -1


def test_thirty_three_bedrooms_stay_as_the_table_has_them() -> None:
    assert row([sale("s", bedrooms=33)], "s")["bedrooms"] == 33


def test_a_roll_past_the_cutoff_is_a_leak() -> None:
    with pytest.raises(LeakError, match="the roll of sale s refers to 2015-06-01"):
        matrix([sale("s", roll_reference_date=DAY)])


def test_parts_conditions_and_withheld_truth() -> None:
    table = pl.DataFrame([sale("a", 9), sale("b", 5), sale("c", 0)], schema=ANALYTIC)
    splits = pl.DataFrame({"tx_id": ["c", "b", "a"], "split": ["test", "validation", "train"]})
    whole = build_feature_matrix(table, splits, as_of="rolling")
    assert whole.as_of == "rolling"
    part = whole.part("validation", "test")
    assert part.frame["tx_id"].to_list() == ["b", "c"]
    assert part.comparables.rows[1, :3].tolist() == [1, 0, -1]  # positions in all sales, whatever the part
    assert part.sales.height == 3
    early = whole.where(pl.col("available_date") < DAY)
    assert early.truth().tolist() == [math.log(2e5)] * 2
    assert whole.numbers(("age", "n_dwellings")).tolist()[0] == pytest.approx([25.0, math.nan], nan_ok=True)
    with pytest.raises(DataError, match="no known price"):
        whole.blind().truth()
    with pytest.raises(ConfigError, match='"tset"'):
        whole.part("tset")
    with pytest.raises(ConfigError, match='unknown feature "price"'):
        whole.numbers(("price",))


def test_what_cannot_be_built_is_said() -> None:
    table = pl.DataFrame([sale("a")], schema=ANALYTIC)
    with pytest.raises(DataError, match='sale "a" has no split'):
        build_feature_matrix(table, pl.DataFrame({"tx_id": ["b"], "split": ["train"]}))
    wrong: Any = "frosen"
    with pytest.raises(ConfigError, match="frozen"):
        build_feature_matrix(table, table.select("tx_id", split=pl.lit("train")), as_of=wrong)


def test_no_feature_knows_the_price_of_its_row() -> None:
    table = town(400)
    whole = build_feature_matrix(table, time_splits(table).frame)
    assert whole.frame.columns == [*whole.frame.columns[:14], *FEATURES]
    assert not {"price", "flags"} & set(whole.frame.columns)
    assert all(whole.frame.schema[name] == pl.Float64 for name in FEATURES)
    assert not any(whole.frame[name].is_nan().any() for name in FEATURES)


@pytest.mark.shared_data
def test_king_county_equals_the_golden_comparables(shared: Path) -> None:
    raw = KingCounty().read(shared / "data" / "avm" / "king_county_2014_2015.parquet")
    sales, subjects = asked(KingCounty().to_analytic(raw))
    golden = pl.read_parquet(shared / "data" / "avm" / "golden" / "comparables_king_county.parquet")
    chosen = golden["subject_row"].unique(maintain_order=True)
    table = find_comparables(comparable_index(sales), subjects[chosen])
    found = [
        (subject, rank, comp)
        for subject, rows in zip(chosen, table.rows.tolist(), strict=True)
        for rank, comp in enumerate(rows, 1)
        if comp >= 0
    ]
    expected = golden.filter(pl.col("rank") > 0).select("subject_row", "rank", "comp_row")
    assert found == list(expected.iter_rows())
