"""Seattle, Lucas County and Ames: handmade rows first, then the counts that the data's README declares."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from consilience.errors import DataError
from consilience.valuation.adapters import ADAPTERS, Built, build
from consilience.valuation.comparables import ComparableIndex
from consilience.valuation.packets import PacketBuilder
from consilience.valuation.schema import MONTH_ONLY, available_date, write_analytic
from consilience.valuation.splits import time_splits

M2_PER_SQFT = 0.09290304

SEATTLE = (
    "pinx,sale_id,sale_price,sale_date,use_type,area,lot_sf,wfnt,bldg_grade,tot_sf,beds,baths,age,eff_age,"
    "longitude,latitude\n"
    "..0007600046,2010..2000,300000,2012-02-29,sfr,48,6466,0,7,1330,3,1.5,60,60,-122.394368,47.57298\n"
    "..0007600046,2010..10,300000,2012-02-29,sfr,48,6466,0,7,1330,3,1.5,60,60,-122.394368,47.57298\n"
    "..0107000032,2010..41,460000,2012-02-29,townhouse,39,0,0,8,1820,33,3.5,1,1,47.704383,-122.365458\n"
)
LUCAS = (
    "location_key,sale_date,price,assessed_value,lat,lon,yrbuilt,stories,living_area_sqft,wall_type,beds,baths,"
    "halfbaths,frontage,depth,garage,garagesqft,rooms,lot_sqft,age_1999_x100,source_row\n"
    "LUC000220,1996-02-29,165000,197200,41.605367,-83.714752,1997,one+half,2594,partbrk,4,2,1,85,0,attached,506,8,14000,"
    "0.02,3430\n"
    "LUC000301,1993-01-04,9000,8500,41.628484,-83.583388,1946,bilevel,872,wood,2,1,0,40,118,detached,240,4,0,0.53,61\n"
)
AMES = (
    "Order\tPID\tMS SubClass\tLot Area\tAlley\tNeighborhood\tBldg Type\tHouse Style\tOverall Qual\tOverall Cond\t"
    "Year Built\tYear Remod/Add\tGr Liv Area\tFull Bath\tHalf Bath\tBedroom AbvGr\tGarage Yr Blt\tMo Sold\tYr Sold\t"
    "Sale Type\tSale Condition\tSalePrice\n"
    "1\t526301100\t020\t31770\tNA\tNAmes\t1Fam\t1Story\t6\t5\t1960\t1960\t1656\t1\t1\t3\tNA\t2\t2008\tWD \tNormal\t"
    "215000\n"
    "2\t526302030\t060\t14267\tNA\tGilbert\tTwnhsE\tSLvl\t8\t5\t2008\t2009\t1329\t2\t0\t2\t2207\t2\t2008\tNew\tPartial\t"
    "215000\n"
    "3\t526302040\t090\t9000\tGrvl\tGilbert\tDuplex\t2Story\t5\t5\t1970\t1970\t1700\t2\t0\t4\t1970\t1\t2010\tCOD\tFamily\t"
    "90000\n"
)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_seattle_text_form(tmp_path: Path) -> None:
    frame = build(ADAPTERS["seattle"], write(tmp_path, "seattle.csv", SEATTLE)).frame
    first, again, swapped = frame.to_dicts()
    assert (first["parcel_id"], first["tx_id"], again["tx_id"]) == ("0007600046", "2010..2000", "2010..10")
    assert (first["sale_date"], first["year_built"], first["municipality"]) == (date(2012, 2, 29), 1952, "area 48")
    assert (first["property_class"], first["quality"], first["bathrooms"]) == ("sfr", 7, 1.5)
    assert first["floor_area_m2"] == 1330 * M2_PER_SQFT
    assert first["distance_cbd_km"] == pytest.approx(6.0, abs=0.1)
    assert (first["flags"], again["flags"]) == ([], ["duplicate"])
    assert (swapped["lat"], swapped["distance_cbd_km"], swapped["land_area_m2"], swapped["bedrooms"]) == (
        *(None, None, None),
        33,
    )
    assert swapped["flags"] == ["impossible_value", "land_area_not_positive", "coordinates_swapped"]


def test_lucas_text_form(tmp_path: Path) -> None:
    made = build(ADAPTERS["lucas"], write(tmp_path, "house.csv", LUCAS))
    low, leap = made.frame.to_dicts()
    assert (leap["tx_id"], leap["parcel_id"], leap["sale_date"]) == ("luc-03430", "LUC000220", date(1996, 2, 29))
    assert (leap["storeys"], leap["bathrooms"], leap["assessment_total"]) == (1.5, 2.5, 197_200)
    assert leap["land_area_m2"] == 14_000 * M2_PER_SQFT
    assert leap["flags"] == ["built_after_sale"]
    assert (low["storeys"], low["land_area_m2"], low["municipality"]) == (None, None, None)
    assert low["flags"] == ["nominal_price", "land_area_not_positive"]
    assert "assessment_total" in made.manifest.later_snapshots()
    assert made.manifest.observations["roll_reference_date"].rule == "absent"


def test_lucas_never_reads_the_age_as_of_1999(tmp_path: Path) -> None:
    path = write(tmp_path, "house.csv", LUCAS)
    assert "age_1999_x100" not in ADAPTERS["lucas"].read(path).columns
    before = build(ADAPTERS["lucas"], path).frame
    changed = LUCAS.replace(",0.02,", ",7.5,").replace(",0.53,", ",0.01,")
    assert changed != LUCAS
    assert build(ADAPTERS["lucas"], write(tmp_path, "other.csv", changed)).frame.equals(before)


def test_ames_text_form_is_known_by_month(tmp_path: Path) -> None:
    made = build(ADAPTERS["ames"], write(tmp_path, "AmesHousing.txt", AMES))
    sold, new, kin = made.frame.to_dicts()
    assert (sold["parcel_id"], sold["tx_id"], sold["sale_date"]) == ("0526301100", "ames-0526301100", date(2008, 2, 1))
    assert made.frame.select(available_date()).to_series().to_list()[0] == date(2008, 2, 29)
    assert (sold["property_class"], sold["storeys"], sold["n_dwellings"], sold["bathrooms"]) == ("house", 1, 1, 1.5)
    assert (sold["quality"], sold["condition"], sold["new_construction"], sold["lat"]) == (6, 5, False, None)
    assert sold["flags"] == [MONTH_ONLY]
    assert (new["storeys"], new["new_construction"], new["property_class"]) == (None, True, "townhouse")
    assert new["flags"] == ["renovated_after_sale", "incomplete_when_assessed", "impossible_value", MONTH_ONLY]
    assert (kin["n_dwellings"], kin["property_subtype"]) == (2, "Duplex")
    assert kin["flags"] == ["declared_non_market", MONTH_ONLY]


@pytest.mark.parametrize(
    ("adapter", "old", "new", "said"),
    [
        ("seattle", ",300000,", ",cheap,", "line 2, column \"sale_price\": 'cheap' is not a number"),
        ("seattle", ",300000,2012", ",-3,2012", 'line 2, column "sale_price": -3.0 is not a price'),
        ("seattle", "2012-02-29", "2013-02-29", "line 2, column \"sale_date\": '2013-02-29' is not a day"),
        ("seattle", "2010..41", "2010..10", "line 4, column \"sale_id\": '2010..10' stands in line 3 too"),
        ("seattle", "longitude", "longitud", 'has no column "longitude". Did you mean "longitud"'),
        ("seattle", ",48,6466", ",48.5,6466", "line 2, column \"area\": '48.5' is not a whole number"),
        ("lucas", "one+half", "one and a bit", "line 2, column \"stories\": 'one and a bit' is not one of one, "),
        ("lucas", ",4,2,1,", ",4.5,2,1,", "line 2, column \"beds\": '4.5' is not a whole number"),
        ("ames", "\t2\t2008\tWD ", "\t13\t2008\tWD ", 'line 2, column "Mo Sold": 13 is not a month from 1 to 12'),
        ("ames", "Family", "Familly", "line 4, column \"Sale Condition\": 'Familly' is not one of Normal, "),
        ("ames", "\t1Fam\t", "\t9Fam\t", "line 2, column \"Bldg Type\": '9Fam' is not one of 1Fam, "),
    ],
)
def test_errors_name_line_and_column(tmp_path: Path, adapter: str, old: str, new: str, said: str) -> None:
    text = {"seattle": SEATTLE, "lucas": LUCAS, "ames": AMES}[adapter]
    assert old in text
    path = write(tmp_path, f"sales.{'txt' if adapter == 'ames' else 'csv'}", text.replace(old, new, 1))
    with pytest.raises(DataError) as caught:
        build(ADAPTERS[adapter], path)
    assert said in str(caught.value)


@pytest.mark.parametrize("adapter", ["seattle", "lucas"])
def test_parquet_and_text_forms_agree_and_types_are_checked(tmp_path: Path, adapter: str) -> None:
    text = write(tmp_path, "sales.csv", {"seattle": SEATTLE, "lucas": LUCAS}[adapter])
    raw = ADAPTERS[adapter].read(text)
    raw.drop("(line)").write_parquet(tmp_path / "sales.parquet")
    made = build(ADAPTERS[adapter], tmp_path / "sales.parquet")
    assert made.frame.equals(build(ADAPTERS[adapter], text).frame)
    raw.drop("(line)").with_columns(price=pl.lit("much")).write_parquet(tmp_path / "sales.parquet")
    with pytest.raises(DataError, match='column "price": its type is String, not a number'):
        build(ADAPTERS[adapter], tmp_path / "sales.parquet")
    raw.drop("(line)").with_columns(beds=pl.Series([2.0, 2.5, 3.0][: raw.height])).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r'row 2, column "beds": 2\.5 is not a whole number'):
        build(ADAPTERS[adapter], tmp_path / "b.parquet")


def test_parquet_whose_metadata_are_broken_is_read_all_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    text = write(tmp_path, "sales.csv", SEATTLE)
    table = ADAPTERS["seattle"].read(text).drop("(line)").to_arrow()
    path = tmp_path / "from_r.parquet"
    parquet.write_table(table.replace_schema_metadata({b"r": b"\xff\xfe"}), path)
    with pytest.warns(UserWarning, match=r"from_r\.parquet: polars cannot read its metadata .* pyarrow instead"):
        made = build(ADAPTERS["seattle"], path)
    assert made.frame.equals(build(ADAPTERS["seattle"], text).frame)


@pytest.fixture(scope="module")
def seattle(shared: Path) -> Built:
    return build(ADAPTERS["seattle"], shared / "data/avm/seattle_sales_2010_2016.parquet")


@pytest.fixture(scope="module")
def lucas(shared: Path) -> Built:
    return build(ADAPTERS["lucas"], shared / "data/avm/lucas_oh_1993_1998.parquet")


@pytest.fixture(scope="module")
def ames(shared: Path) -> Built:
    return build(ADAPTERS["ames"], shared / "data/avm/ames_2006_2010.parquet")


def leap_days(frame: pl.DataFrame) -> int:
    day = pl.col("sale_date").dt
    return frame.filter((day.month() == 2) & (day.day() == 29)).height


@pytest.mark.shared_data
def test_seattle_counts(seattle: Built) -> None:
    frame, counts = seattle.frame, seattle.manifest.flag_counts
    assert dict(frame["property_class"].value_counts().iter_rows()) == {"sfr": 34_516, "townhouse": 8_797}
    assert (frame.height, frame["parcel_id"].n_unique(), frame["municipality"].n_unique()) == (43_313, 38_251, 26)
    assert (counts["duplicate"], counts["same_day_resale"]) == (123, 13)  # together the 136 resales on one day
    assert counts["flip"] == 568
    assert leap_days(frame) == 30
    assert set(frame["tx_id"].str.count_matches(".", literal=True)) == {2}
    assert (frame["bedrooms"] == 0).sum() == 5
    assert not {"coordinates_out_of_range", "coordinates_swapped", "impossible_value"} & set(counts)


@pytest.mark.shared_data
def test_seattle_comparables_equal_the_golden_ones(seattle: Built, shared: Path) -> None:
    table = seattle.frame
    index = ComparableIndex(
        dates=table["sale_date"].to_numpy(),
        lat=table["lat"].to_numpy(),
        lng=table["lng"].to_numpy(),
        area=table["floor_area_m2"].to_numpy(),
        year_built=table["year_built"].to_numpy(),
        parcel=table["parcel_id"].to_list(),
        klass=table["property_class"].to_list(),
    )
    golden = pl.read_parquet(shared / "data/avm/golden/comparables_seattle.parquet").sort("subject_row", "rank")
    subjects = golden.partition_by("subject_row", maintain_order=True)
    assert len(subjects) == 1_500
    for expected in subjects:
        s = table.row(expected["subject_row"][0], named=True)
        found = index.query(
            lat=s["lat"],
            lng=s["lng"],
            area=s["floor_area_m2"],
            year_built=s["year_built"],
            parcel=s["parcel_id"],
            klass=s["property_class"],
            cutoff=s["sale_date"] - timedelta(days=1),
        )
        assert found.rows.tolist() == expected.filter(pl.col("rank") > 0)["comp_row"].to_list()


@pytest.mark.shared_data
def test_lucas_counts(lucas: Built, shared: Path) -> None:
    frame, counts = lucas.frame, lucas.manifest.flag_counts
    assert (frame.height, frame["parcel_id"].n_unique(), leap_days(frame)) == (25_357, 25_357, 21)
    assert counts["built_after_sale"] == 138
    assert (frame["price"].min(), frame["price"].max()) == (2_000, 875_000)
    ratio = frame["assessment_total"] / frame["price"]
    assert bool(ratio.is_between(0.5, 1.5).all())
    assert {"zero_distance_neighbour", "flip", "duplicate"}.isdisjoint(counts)
    raw = pl.read_parquet(shared / "data/avm/lucas_oh_1993_1998.parquet")
    assert (raw["depth"] == 0).sum() == 3_878  # a zero depth is no area: the plot's size is a column of its own
    assert frame["land_area_m2"].null_count() == 0


@pytest.mark.shared_data
def test_ames_counts(ames: Built) -> None:
    frame, counts = ames.frame, ames.manifest.flag_counts
    assert (frame.height, frame["municipality"].n_unique()) == (2_930, 28)
    assert counts[MONTH_ONLY] == 2_930
    assert counts["declared_non_market"] == 190 + 46 + 24 + 12
    assert counts["incomplete_when_assessed"] == 245
    assert (counts["built_after_sale"], counts["renovated_after_sale"]) == (1, 3)
    assert counts["impossible_value"] == 1  # the garage of 2207
    assert frame["lat"].null_count() == frame["lng"].null_count() == 12
    assert frame["sale_date"].dt.day().unique().to_list() == [1]
    assert dict(frame["property_class"].value_counts().iter_rows()) == {
        "house": 2_425,
        "townhouse": 334,
        "two-family": 171,
    }
    split = time_splits(frame).counts()
    assert list(split) == ["train", "validation", "test", "holdout"]


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["seattle", "lucas", "ames"])
def test_later_snapshots_are_declared(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    made: Built = request.getfixturevalue(name)
    write_analytic(made.frame, tmp_path / "analytic.parquet", made.manifest)
    later = set(made.manifest.later_snapshots())
    assert {"floor_area_m2", "year_built", "lat", "lng", "bedrooms"} <= later
    assert not {"sale_date", "price"} & later
    absent = {column for column, rule in made.manifest.observations.items() if rule.rule == "absent"}
    assert all(made.frame[column].null_count() == made.frame.height for column in absent)
    seen = set(made.manifest.observations) - absent
    assert all(made.frame[column].null_count() < made.frame.height for column in seen)


@pytest.mark.shared_data
def test_king_county_zero_rooms_stay_and_nothing_is_dropped(shared: Path) -> None:
    made = build(ADAPTERS["king_county"], shared / "data/avm/king_county_2014_2015.parquet")
    assert (made.frame["bedrooms"] == 0).sum() == 13
    assert (made.frame["bathrooms"] == 0).sum() == 10
    assert (made.manifest.rows, made.manifest.exclusions) == (21_613, {})


@pytest.mark.shared_data
def test_packets_of_leap_days_and_of_unplaced_homes(seattle: Built, lucas: Built, ames: Built) -> None:
    leap = (pl.col("sale_date").dt.month() == 2) & (pl.col("sale_date").dt.day() == 29)
    for made in (seattle, lucas):
        sale = made.frame.filter(leap)["tx_id"][-1]
        packet = PacketBuilder(made.frame, made.manifest).build(sale)
        assert packet.valuation_date == packet.cutoff + timedelta(days=1)
        assert len(packet.sections["C"].items) == 12
    nowhere = ames.frame.filter(pl.col("lat").is_null())["tx_id"][0]
    packet = PacketBuilder(ames.frame, ames.manifest).build(nowhere)
    assert packet.sections["C"].items == packet.sections["G"].items == ()
    assert "Comparables: none; the subject has no coordinates." in packet.notes


@pytest.mark.shared_data
def test_a_sale_known_by_month_is_no_comparable_in_its_own_month(ames: Built) -> None:
    builder = PacketBuilder(ames.frame, ames.manifest)
    sale = ames.frame.filter(pl.col("sale_date") == date(2008, 6, 1), pl.col("lat").is_not_null())["tx_id"][0]
    packet = builder.build(sale)
    known = [item.as_of for item in packet.sections["C"].items]
    assert packet.cutoff == date(2008, 5, 31)
    assert len(known) == 12
    assert all(day is not None and day < packet.cutoff for day in known)


@pytest.mark.shared_data
def test_trailing_blanks_of_ames_are_cut(shared: Path) -> None:
    path = shared / "data/avm/ames_2006_2010.parquet"
    assert "WD " in set(pl.read_parquet(path)["sale_type"])
    words = ADAPTERS["ames"].read(path).select(pl.col(pl.String).str.contains(r"^\s|\s$").any())
    assert not any(words.row(0))
