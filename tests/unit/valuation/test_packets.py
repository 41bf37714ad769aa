from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from consilience.core.canonical import canonical_json
from consilience.core.packet import Packet
from consilience.errors import DataError, LeakError
from consilience.valuation.packets import PacketBuilder
from consilience.valuation.schema import ANALYTIC, IDENTITY, MONTH_ONLY, Manifest, Observation, RegionMap

DAY = date(2015, 6, 1)
CUTOFF = date(2015, 5, 31)


def sale(tx_id: str, day: date = DAY - timedelta(days=60), **changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "tx_id": tx_id,
        "parcel_id": f"parcel-{tx_id}",
        "sale_date": day,
        "price": 300_000.4,
        "currency": "USD",
        "property_class": "house",
        "municipality": "98001",
        "region": "King",
        "lat": 47.654321,
        "lng": -122.123456,
        "floor_area_m2": 123.456,
        "year_built": 1980,
        "storeys": 1.5,
        "condition": 4.0,
        "quality": 8.0,
        "source": "secret-source",
        "flags": [],
    }
    return fields | changed


def builder(*sales: dict[str, Any], rules: dict[str, Observation] | None = None, **options: Any) -> PacketBuilder:
    observations = {name: Observation(rule="at_sale") for name in ANALYTIC if name not in IDENTITY}
    manifest = Manifest(
        adapter="csv",
        source_file="s.csv",
        source_sha256="0" * 64,
        rows=len(sales),
        currency="USD",
        region=RegionMap(municipality="zip code", region="county"),
        observations=observations | (rules or {}),
    )
    return PacketBuilder(pl.DataFrame(list(sales), schema=ANALYTIC), manifest, **options)


def content(packet: Packet, evidence_id: str) -> dict[str, Any]:
    item = packet.item(evidence_id)
    assert item is not None
    return dict(item.content)


SUBJECT = sale("subject", DAY, price=777_777.0)


def test_header_and_subject() -> None:
    packet = builder(SUBJECT, sale("other")).build("subject")
    assert (packet.item_id, packet.valuation_date, packet.cutoff) == ("subject", DAY, CUTOFF)
    assert (packet.cutoff_rule, list(packet.sections)) == ("last_admissible", ["P", "C", "M", "G"])
    assert content(packet, "P") == {
        "valuation_date": "2015-06-01",
        "cutoff": "2015-05-31",
        "currency": "USD",
        "property_class": "house",
        "property_subtype": None,
        "municipality": "98001",
        "borough": None,
        "lat": 47.654,
        "lng": -122.123,
        "floor_area_m2": 123.5,
        "land_area_m2": None,
        "year_built": 1980,
        "storeys": 1.5,
        "n_dwellings": None,
        "new_construction": None,
        "assessment_land": None,
        "assessment_building": None,
        "assessment_total": None,
        "roll_reference_date": None,
        "prior_sale_date": None,
        "prior_sale_price": None,
        "missing_fields": [
            "property_subtype",
            "borough",
            "land_area_m2",
            "n_dwellings",
            "new_construction",
            "assessment_land",
            "assessment_building",
            "assessment_total",
            "roll_reference_date",
        ],
    }


def test_no_identity_no_target_no_fine_coordinates() -> None:
    packet = builder(SUBJECT, *(sale(f"other{i}") for i in range(20))).build("subject")
    text = canonical_json(packet.model_dump(mode="json")).decode()
    assert not re.search(r"parcel|other\d|secret-source|777777|47\.6543|condition|quality", text)
    assert packet.evidence_ids() == ("P", *(f"C{i:02d}" for i in range(1, 13)), "M1")


def test_comparables_hold_what_is_needed_to_compare() -> None:
    other = sale("other", assessment_total=240_000.0, lat=47.66, new_construction=False)
    rules = {name: Observation(rule="absent") for name in ("land_area_m2", "n_dwellings")}
    packet = builder(SUBJECT, other, rules=rules).build("subject")
    item = packet.item("C01")
    assert item is not None
    assert item.as_of == date(2015, 4, 2)
    assert item.content == {
        "sale_date": "2015-04-02",
        "price": 300_000,
        "distance_km": 0.63,
        "floor_area_m2": 123.5,
        "year_built": 1980,
        "storeys": 1.5,
        "new_construction": False,
        "price_to_assessment": 1.25,
    }


def test_roll_with_its_reference_date_which_may_not_be_late() -> None:
    roll = {"assessment_land": 1e5, "assessment_building": 2e5, "assessment_total": 3e5}
    shown = content(builder(sale("s", DAY, **roll, roll_reference_date=date(2013, 7, 1))).build("s"), "P")
    assert (shown["assessment_total"], shown["roll_reference_date"]) == (300_000, "2013-07-01")
    with pytest.raises(LeakError, match=r"refers to 2015-06-01, past its cutoff 2015-05-31"):
        builder(sale("s", DAY, roll_reference_date=DAY)).build("s")


def test_prior_sale_is_the_latest_strictly_before_the_cutoff() -> None:
    own = {"parcel_id": SUBJECT["parcel_id"]}
    history = [
        sale("a", date(2010, 1, 1), price=1e5, **own),
        sale("b", CUTOFF - timedelta(days=1), price=2e5, **own),
        sale("c", CUTOFF, price=3e5, **own),
        sale("d", DAY + timedelta(days=9), price=4e5, **own),
    ]
    packet = builder(SUBJECT, *history).build("subject")
    shown = content(packet, "P")
    assert (shown["prior_sale_date"], shown["prior_sale_price"]) == ("2015-05-30", 200_000)
    assert packet.sections["C"].items == ()
    month_only = sale("a", date(2015, 5, 1), flags=[MONTH_ONLY], **own)
    assert content(builder(SUBJECT, month_only).build("subject"), "P")["prior_sale_date"] is None


def test_condition_and_quality_only_when_declared() -> None:
    packet = builder(SUBJECT, sale("other"), declare_condition=True).build("subject")
    assert (content(packet, "P")["condition"], content(packet, "C01")["quality"]) == (4, 8)


def test_later_snapshots_are_marked_dated_and_noted() -> None:
    late = Observation(rule="snapshot", as_of=date(2016, 1, 1), later_than_sale=True)
    packet = builder(SUBJECT, rules={"floor_area_m2": late}).build("subject")
    item = packet.item("P")
    assert item is not None
    assert (item.snapshot, item.as_of) == (True, date(2016, 1, 1))
    assert packet.notes[-1] == "One snapshot for all sales, which may be later than the sale: floor_area_m2."
    undated = Observation(rule="snapshot", later_than_sale=True)
    item = builder(SUBJECT, rules={"floor_area_m2": late, "storeys": undated}).build("subject").item("P")
    assert item is not None
    assert (item.snapshot, item.as_of) == (True, None)
    item = builder(SUBJECT).build("subject").item("P")
    assert item is not None
    assert (item.snapshot, item.as_of) == (False, CUTOFF)


def test_notes_tell_radius_candidates_extension_and_missing_terms() -> None:
    near = [sale(f"n{i}") for i in range(3)]
    assert builder(SUBJECT, *near).build("subject").notes == ("Comparables: 3 of 3 candidates within 1 km.",)
    wide = builder(SUBJECT, sale("far", lat=47.8)).build("subject").notes
    assert wide == (
        "Comparables: 1 of 1 candidates within 25 km.",
        "Fewer than 3 candidates within 10 km: the search was extended to 25 km.",
    )
    blind = builder(sale("subject", DAY, floor_area_m2=None), *near).build("subject").notes
    assert blind[1].startswith("Floor area is unknown")
    assert builder(SUBJECT).build("subject").notes == ("Comparables: none; no sale qualifies within 25 km.",)
    lost = builder(sale("subject", DAY, lat=None, lng=None), *near).build("subject")
    assert lost.notes == ("Comparables: none; the subject has no coordinates.",)
    assert {"lat", "lng"} <= set(content(lost, "P")["missing_fields"])


def test_geography_is_empty_when_nothing_is_known() -> None:
    assert builder(SUBJECT).build("subject").sections["G"].items == ()
    known = builder(sale("s", DAY, distance_cbd_km=3.0), rules={"flood_zone": Observation(rule="absent")}).build("s")
    assert content(known, "G1")["flood_zone"] is None


def test_item_has_question_truth_strata_and_cluster() -> None:
    prior = sale("prior", date(2010, 1, 1), parcel_id=SUBJECT["parcel_id"])
    item = builder(SUBJECT, prior, *(sale(f"n{i}") for i in range(3))).build_item("subject")
    assert (item.question.kind, item.question.scale, item.question.unit) == ("estimate", "log", "USD")
    assert (item.question.id, item.truth, item.cluster) == ("subject", 777_777.0, "parcel-subject")
    assert item.strata == {
        "property_class": "house",
        "municipality": "98001",
        "municipality_size": "small",
        "price_tercile": "high",
        "comparables": "3",
        "radius_km": "1",
        "prior_sale": "yes",
        "missing_fields": "9",
    }
    assert "777777" not in item.question.text


def test_unknown_sale() -> None:
    with pytest.raises(DataError, match=r'no sale "nobody"'):
        builder(SUBJECT).build("nobody")


def test_packets_are_the_same_bytes_whatever_the_order_of_rows() -> None:
    sales = [SUBJECT, *(sale(f"n{i}", DAY - timedelta(days=i + 2), price=1e5 + i) for i in range(30))]
    assert builder(*sales).build("subject").digest == builder(*reversed(sales)).build("subject").digest
