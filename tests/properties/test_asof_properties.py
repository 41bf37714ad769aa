"""What is dated on or after a day moves nothing that was valued by that day."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.core.canonical import canonical_json
from consilience.valuation.packets import PacketBuilder
from consilience.valuation.schema import ANALYTIC, IDENTITY, MONTH_ONLY, Manifest, Observation, RegionMap

START = date(2014, 12, 20)
SQFT = 0.09290304


def manifest(rows: int) -> Manifest:
    return Manifest(
        adapter="csv",
        source_file="s.csv",
        source_sha256="0" * 64,
        rows=rows,
        currency="USD",
        region=RegionMap(municipality="town", region="county"),
        observations={name: Observation(rule="at_sale") for name in ANALYTIC if name not in IDENTITY},
    )


def packets(table: pl.DataFrame, tx_ids: list[str]) -> list[bytes]:
    builder = PacketBuilder(table, manifest(table.height))
    return [canonical_json(builder.build(tx_id).model_dump(mode="json")) for tx_id in tx_ids]


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    one = st.fixed_dictionaries(
        {
            "parcel_id": st.sampled_from("abcdefgh"),
            "sale_date": st.integers(0, 40).map(lambda day: START + timedelta(days=day)),
            "price": st.integers(1, 99).map(lambda thousands: thousands * 1e4),
            "property_class": st.sampled_from(["house", "house", "flat"]),
            "municipality": st.sampled_from(["m", "n", None]),
            "lat": st.sampled_from([47.0, 47.005, 47.05, None]),
            "floor_area_m2": st.sampled_from([80.0, 100.0, None]),
            "year_built": st.sampled_from([1950, 2000, None]),
            "assessment_total": st.sampled_from([2e5, None]),
            "flags": st.sampled_from([[], [], [MONTH_ONLY]]),
        }
    )
    sales: list[dict[str, Any]] = draw(st.lists(one, min_size=6, max_size=24))
    fixed = {"currency": "USD", "region": "r", "lng": -122.0, "source": "s"}
    return pl.DataFrame([sale | fixed | {"tx_id": f"t{i}"} for i, sale in enumerate(sales)], schema=ANALYTIC)


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(1, 40), st.floats(0.1, 9.0))
def test_the_future_moves_nothing(table: pl.DataFrame, day: int, factor: float) -> None:
    future = pl.col("sale_date") >= START + timedelta(days=day)
    subjects = table.filter(pl.col("sale_date") <= START + timedelta(days=day))["tx_id"].to_list()
    repriced = table.with_columns(price=pl.when(future).then(pl.col("price") * factor).otherwise("price"))
    assert packets(repriced, subjects) == packets(table, subjects)
    earlier = table.filter(~future)
    assert packets(earlier, earlier["tx_id"].to_list()) == packets(table, earlier["tx_id"].to_list())


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(0, 5), st.floats(0.1, 9.0))
def test_a_subjects_own_price_moves_nothing_in_its_packet(table: pl.DataFrame, row: int, factor: float) -> None:
    tx_id = table["tx_id"][row]
    own = pl.col("tx_id") == tx_id
    repriced = table.with_columns(price=pl.when(own).then(pl.col("price") * factor).otherwise("price"))
    assert packets(repriced, [tx_id]) == packets(table, [tx_id])


@settings(max_examples=60, deadline=None)
@given(tables())
def test_every_dated_item_is_admissible(table: pl.DataFrame) -> None:
    builder = PacketBuilder(table, manifest(table.height))
    for tx_id in table["tx_id"]:
        packet = builder.build(tx_id)
        for item in packet.sections["C"].items:
            assert item.as_of is not None
            assert 1 <= (packet.cutoff - item.as_of).days <= 540
        prior = packet.sections["P"].items[0].content["prior_sale_date"]
        assert prior is None or str(prior) < packet.cutoff.isoformat()


@pytest.mark.shared_data
def test_the_future_moves_nothing_in_king_county(shared: Path) -> None:
    raw = pl.read_parquet(shared / "data" / "avm" / "king_county_2014_2015.parquet")
    table = raw.select(
        tx_id=pl.format("kc-{}", "source_row"),
        parcel_id="parcel_id",
        sale_date="sale_date",
        price=pl.col("price").cast(pl.Float64),
        currency=pl.lit("USD"),
        property_class=pl.lit("house"),
        municipality=pl.col("zipcode").cast(pl.String),
        region=pl.lit("King"),
        lat="lat",
        lng="lon",
        floor_area_m2=pl.col("sqft_living") * SQFT,
        year_built=pl.col("yr_built").cast(pl.Int32),
        source=pl.lit("s"),
        flags=pl.lit([], dtype=pl.List(pl.String)),
    )
    table = table.with_columns(
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in ANALYTIC.items() if name not in table.columns
    ).select(ANALYTIC.names())
    day = date(2015, 2, 16)
    future = pl.col("sale_date") >= day
    before = table.filter(~future).sort("sale_date").tail(2000)["tx_id"].gather_every(20).to_list()
    on_the_day = table.filter(pl.col("sale_date") == day)["tx_id"].head(30).to_list()
    expected = packets(table, [*before, *on_the_day])
    repriced = table.with_columns(price=pl.when(future).then(pl.col("price") * 3).otherwise("price"))
    assert packets(repriced, [*before, *on_the_day]) == expected
    assert packets(table.filter(~future), before) == expected[: len(before)]
    assert on_the_day
    assert sum(b'"C12"' in packet for packet in expected) > 90
