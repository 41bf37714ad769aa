from __future__ import annotations

import math
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.valuation.comparables import ComparableIndex, Comparables, SaleTiles

CUTOFF = date(2015, 6, 1)
LAT, LNG = 47.6, -122.3
KM = 1 / 111.195
SQFT = 0.09290304
Sale = dict[str, Any]


def sale(**changed: Any) -> Sale:
    fields: Sale = {"ago": 100, "km": 0.5, "area": 100.0, "year": 1990.0, "parcel": "c", "klass": "house"}
    return fields | changed


def index_of(sales: list[Sale]) -> ComparableIndex:
    return ComparableIndex(
        dates=[CUTOFF - timedelta(days=s["ago"]) for s in sales],
        lat=[math.nan if s["km"] is None else LAT + s["km"] * KM for s in sales],
        lng=[LNG + s.get("east", 0.0) * KM for s in sales],
        area=[s["area"] for s in sales],
        year_built=[s["year"] for s in sales],
        parcel=[s["parcel"] for s in sales],
        klass=[s["klass"] for s in sales],
    )


def ask(index: ComparableIndex, **changed: Any) -> Comparables:
    subject: dict[str, Any] = {"lat": LAT, "lng": LNG, "area": 100.0, "year_built": 1990.0}
    subject |= {"parcel": "s", "klass": "house", "cutoff": CUTOFF}
    return index.query(**(subject | changed))


def rows(sales: list[Sale], **changed: Any) -> list[int]:
    return [int(row) for row in ask(index_of(sales), **changed).rows]


def naive(sales: list[Sale], *, area: float | None = 100.0, parcel: str = "s") -> tuple[list[int], float | None, int]:
    """The rule, read word by word."""

    def distance(s: Sale) -> float:
        phi, lam = math.radians(LAT + s["km"] * KM), math.radians(LNG + s.get("east", 0.0) * KM)
        half = math.sin((phi - math.radians(LAT)) / 2) ** 2
        half += math.cos(phi) * math.cos(math.radians(LAT)) * math.sin((lam - math.radians(LNG)) / 2) ** 2
        return 2 * 6371.0088 * math.asin(math.sqrt(half))

    fit = [i for i, s in enumerate(sales) if s["klass"] == "house" and s["parcel"] != parcel and 1 <= s["ago"] <= 540]
    chosen: list[int] = []
    radius = 25.0
    for radius in (1.0, 3.0, 10.0, 25.0):
        chosen = [i for i in fit if distance(sales[i]) <= radius]
        if len(chosen) >= 3:
            break
    gaps = {i: math.nan if area is None else abs(math.log(sales[i]["area"] / area)) for i in chosen}
    known = [gap for gap in gaps.values() if not math.isnan(gap)]
    fill = median(known) if known else 0.0
    scores = {
        i: distance(sales[i]) / radius
        + 1.5 * (fill if math.isnan(gaps[i]) else gaps[i])
        + 0.5 * abs(sales[i]["year"] - 1990) / 50
        + 0.5 * sales[i]["ago"] / 540
        for i in chosen
    }
    best = sorted(chosen, key=lambda i: (round(scores[i], 9), -sales[i]["ago"], sales[i]["parcel"], i))[:12]
    return best, radius if chosen else None, len(chosen)


@st.composite
def sale_tables(draw: st.DrawFn) -> list[Sale]:
    one = st.builds(
        sale,
        ago=st.sampled_from([0, 1, 2, 90, 91, 539, 540, 541]),
        km=st.sampled_from([0.0, 0.4, 0.9, 1.1, 2.5, 7.0, 9.9, 10.2, 20.0, 30.0]),
        east=st.sampled_from([0.0, 0.3, 3.0]),
        area=st.sampled_from([80.0, 100.0, 100.5, math.nan]),
        year=st.sampled_from([1950.0, 1990.0, 2010.0]),
        parcel=st.sampled_from(["a", "b", "c", "s"]),
        klass=st.sampled_from(["house", "house", "flat"]),
    )
    return draw(st.lists(one, max_size=40))


@settings(max_examples=150, deadline=None)
@given(sale_tables(), st.sampled_from([100.0, None]))
def test_equals_the_rule_read_word_by_word(sales: list[Sale], area: float | None) -> None:
    expected, radius, count = naive(sales, area=area)
    found = ask(index_of(sales), area=area)
    assert (found.rows.tolist(), found.radius_km, found.n_candidates) == (expected, radius, count)
    assert bool(found.scores.size == 0 or (np.diff(found.scores) >= -1e-11).all())


def test_window_is_1_to_540_days_before_the_cutoff() -> None:
    sales = [sale(ago=ago, parcel=f"p{ago}") for ago in (-1, 0, 1, 540, 541)]
    assert sorted(rows(sales)) == [2, 3]


def test_own_parcel_and_other_class_never_count() -> None:
    sales = [sale(parcel="s"), sale(klass="flat"), sale(klass=None), sale(km=None), sale(parcel=None)]
    assert rows(sales) == [4]
    assert rows(sales, parcel=None) == [0, 4] or rows(sales, parcel=None) == [4, 0]


def test_radius_stops_at_the_first_with_three() -> None:
    near = [sale(km=0.5, parcel="a"), sale(km=0.9, parcel="b")]
    assert ask(index_of([*near, sale(km=2.9)])).radius_km == 3.0
    assert ask(index_of([*near, sale(km=0.1)])).radius_km == 1.0
    wide = ask(index_of([*near, sale(km=24.0)]))
    assert (wide.radius_km, wide.extended, wide.n_candidates) == (25.0, True, 3)
    nothing = ask(index_of([sale(km=26.0)]))
    assert (nothing.radius_km, nothing.extended, nothing.n_candidates, nothing.rows.size) == (None, True, 0, 0)


def test_twelve_at_most_and_all_candidates_counted() -> None:
    found = ask(index_of([sale(ago=ago, parcel=str(ago)) for ago in range(1, 31)]))
    assert (found.rows.tolist(), found.n_candidates) == (list(range(12)), 30)


def test_score_is_the_published_sum() -> None:
    sales = [sale(km=0.5, area=120.0, year=1970.0, ago=54), *(sale(km=0.9, parcel=p) for p in "ab")]
    found = ask(index_of(sales))
    place = found.rows.tolist().index(0)
    assert found.distances_km[place] == pytest.approx(0.5, rel=1e-4)
    assert found.scores[place] == pytest.approx(
        found.distances_km[place] + 1.5 * math.log(1.2) + 0.5 * 20 / 50 + 0.5 * 54 / 540, abs=1e-12
    )


def test_ties_stand_in_order_of_date_parcel_and_input() -> None:
    assert rows([sale(parcel="b"), sale(parcel="a"), sale(parcel="b"), sale(parcel="a")]) == [1, 3, 0, 2]


@pytest.mark.parametrize("unit", [1.0, SQFT, 1 / 3, 1e-7])
def test_rounding_breaks_no_tie(unit: float) -> None:
    # 80 and 125 are equally far from 100 in logarithms, whatever the unit; so are north and south.
    areas = [80.0, 125.0, 80.0, 125.0]
    sales = [sale(km=0.3, area=a * unit, parcel=p) for a, p in zip(areas, "dcba", strict=True)]
    found = ask(index_of(sales), area=100.0 * unit)
    assert found.rows.tolist() == [3, 2, 1, 0]


def test_unknown_terms_count_their_median_and_are_flagged() -> None:
    sales = [sale(parcel="a", area=math.nan), sale(parcel="b", area=110.0), sale(parcel="c", area=150.0)]
    found = ask(index_of(sales))
    assert found.missing_terms == ("floor_area",)
    assert found.rows.tolist() == [1, 0, 2]
    assert found.scores[1] == pytest.approx((found.scores[0] + found.scores[2]) / 2)
    unknown = ask(index_of(sales), area=None, year_built=None)
    assert unknown.missing_terms == ("floor_area", "year_built")
    assert unknown.scores == pytest.approx(found.distances_km + 0.5 * 100 / 540, abs=1e-9)


def test_without_place_or_class_nothing_is_comparable() -> None:
    index = index_of([sale()])
    assert ask(index, lat=None).missing_terms == ("distance",)
    assert ask(index, klass="castle").n_candidates == 0
    assert ask(index, klass=None).radius_km is None
    assert ask(index_of([])).n_candidates == 0


def test_poles_and_date_line_are_nothing_special() -> None:
    days = np.array([1, 2, 3])
    line = SaleTiles(days, np.array([0.0, 0.0, 0.0]), np.array([179.999, -179.999, 0.0]), radius_km=1.0)
    assert line.within(0.0, 180.0, first=0, last=9)[0].tolist() == [0, 1]
    pole = SaleTiles(days, np.array([89.999, 89.999, -89.999]), np.array([0.0, 180.0, 0.0]), radius_km=1.0)
    assert pole.within(90.0, 77.0, first=0, last=9)[0].tolist() == [0, 1]


def test_bad_columns_are_named() -> None:
    with pytest.raises(DataError, match=r"not above 0 in row 1"):
        index_of([sale(), sale(area=0.0)])
    with pytest.raises(DataError, match=r"differ in length: \[0, 1\]"):
        ComparableIndex(dates=[CUTOFF], lat=[], lng=[], area=[], year_built=[], parcel=[], klass=[])


@pytest.mark.shared_data
@pytest.mark.parametrize("unit", [1.0, SQFT])
@pytest.mark.parametrize("name", ["king_county", "seattle"])
def test_golden(shared: Path, name: str, unit: float) -> None:
    avm = shared / "data" / "avm"
    if name == "king_county":
        table = pl.read_parquet(avm / "king_county_2014_2015.parquet").with_columns(
            area="sqft_living", year="yr_built", klass=pl.lit("house")
        )
    else:
        table = pl.read_parquet(avm / "seattle_sales_2010_2016.parquet").with_columns(
            area="tot_sf", year=pl.col("sale_date").dt.year() - pl.col("age"), klass="use_type"
        )
    table = table.sort("sale_date", "parcel_id", maintain_order=True).with_columns(pl.col("area") * unit)
    index = ComparableIndex(
        dates=table["sale_date"].to_numpy(),
        lat=table["lat"].to_numpy(),
        lng=table["lon"].to_numpy(),
        area=table["area"].to_numpy(),
        year_built=table["year"].to_numpy(),
        parcel=table["parcel_id"].to_list(),
        klass=table["klass"].to_list(),
    )
    golden = pl.read_parquet(avm / "golden" / f"comparables_{name}.parquet").sort("subject_row", "rank")
    subjects = golden.partition_by("subject_row", maintain_order=True)
    assert len(subjects) == 1500
    for expected in subjects:
        s = table.row(expected["subject_row"][0], named=True)
        found = index.query(
            lat=s["lat"],
            lng=s["lon"],
            area=s["area"],
            year_built=s["year"],
            parcel=s["parcel_id"],
            klass=s["klass"],
            cutoff=s["sale_date"] - timedelta(days=1),
        )
        empty = expected["rank"][0] == 0
        assert found.rows.tolist() == ([] if empty else expected["comp_row"].to_list())
        assert found.radius_km == expected["radius_km"][0]
        assert found.n_candidates == expected["n_candidates"][0]
        if not empty:
            assert np.abs(found.scores - expected["score"].to_numpy()).max() < 1e-13
