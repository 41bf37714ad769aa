from __future__ import annotations

import time
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.errors import ConfigError, DataError
from consilience.valuation.adapters import ADAPTERS, Built, build
from consilience.valuation.adapters.base import fill_absent, read_text_table
from consilience.valuation.exclusions import MARKET
from consilience.valuation.flags import FLAGS, annotate
from consilience.valuation.schema import LINE, MONTH_ONLY, Bounds, read_analytic, validate, write_analytic

KC_HEADER = (
    "id,date,price,bedrooms,bathrooms,sqft_living,sqft_lot,floors,waterfront,view,condition,grade,sqft_above,"
    "sqft_basement,yr_built,yr_renovated,zipcode,lat,long,sqft_living15,sqft_lot15"
)
KC_ROWS = (
    '"7129300520","20141013T000000",221900,3,1,1180,5650,"1",0,0,3,7,1180,0,1955,0,"98178",47.5112,-122.257,1340,5650',
    '"123059127","20140502T000000",625000,33,3.25,2730,54014,1.5,0,0,3,9,1560,1170,2015,2016,"98059",47.5133,-122.11,1,1',
)


def kc_csv(folder: Path, *rows: str, header: str = KC_HEADER) -> Path:
    path = folder / "kc_house_data.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def sale(**values: Any) -> dict[str, Any]:
    return {"parcel_id": "1", "sale_date": date(2020, 1, 1), "price": 200_000.0, "lat": 47.5, "lng": -122.0} | values


def flags_of(*sales: dict[str, Any], bounds: Bounds | None = None) -> list[list[str]]:
    rows = [
        {"tx_id": f"t{i}", "currency": "USD", "property_class": "house", "source": "test"} | row
        for i, row in enumerate(sales)
    ]
    flagged = validate(annotate(fill_absent(pl.DataFrame(rows, infer_schema_length=None)), bounds=bounds))
    return flagged.sort("tx_id")["flags"].to_list()


def test_the_registry_names_the_nearest_adapter() -> None:
    assert ADAPTERS.names() == ["synthetic", "king_county", "seattle", "lucas", "ames", "csv"]
    with pytest.raises(ConfigError, match='Did you mean "king_county"'):
        ADAPTERS["kingcounty"]


def test_king_county_csv_becomes_the_analytic_table(tmp_path: Path) -> None:
    frame = build(ADAPTERS["king_county"], kc_csv(tmp_path, *KC_ROWS)).frame
    early, late = frame.to_dicts()
    assert (early["tx_id"], early["parcel_id"], early["sale_date"]) == ("kc-00001", "0123059127", date(2014, 5, 2))
    assert (late["tx_id"], late["price"], late["municipality"]) == ("kc-00000", 221_900.0, "98178")
    assert late["floor_area_m2"] == 1180 * 0.09290304
    assert late["land_area_m2"] == 5650 * 0.09290304
    assert (late["quality"], late["condition"], late["storeys"], late["lng"]) == (7, 3, 1, -122.257)
    assert late["distance_cbd_km"] == pytest.approx(11.96, abs=0.05)
    assert late["assessment_total"] is None
    assert late["flags"] == []
    assert early["flags"] == ["built_after_sale", "renovated_after_sale", "impossible_value"]


def test_king_county_csv_errors_name_place_and_remedy(tmp_path: Path) -> None:
    adapter = ADAPTERS["king_county"]
    with pytest.raises(DataError, match=r'line 3, column "price": .*is not a number'):
        adapter.read(kc_csv(tmp_path, KC_ROWS[0], KC_ROWS[1].replace("625000", "a lot")))
    with pytest.raises(DataError, match='has no column "zipcode"'):
        adapter.read(kc_csv(tmp_path, header=KC_HEADER.replace("zipcode", "zip")))
    with pytest.raises(DataError, match='line 2, column "date"'):
        adapter.read(kc_csv(tmp_path, KC_ROWS[0].replace("20141013", "20141313")))
    with pytest.raises(DataError, match=r'line 2, column "price": -5\.0'):
        build(adapter, kc_csv(tmp_path, KC_ROWS[0].replace("221900", "-5")))
    with pytest.raises(DataError, match="there is no file"):
        adapter.read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="more than 1 rows"):
        adapter.read(kc_csv(tmp_path, *KC_ROWS), row_limit=1)
    with pytest.raises(DataError, match="holds no sales"):
        build(adapter, kc_csv(tmp_path))
    with pytest.raises(ConfigError, match="takes no mapping"):
        adapter.configure(tmp_path / "mapping.yaml")


def test_a_parquet_form_with_other_types_is_refused(tmp_path: Path) -> None:
    adapter, path = ADAPTERS["king_county"], tmp_path / "kc.parquet"
    raw = adapter.read(kc_csv(tmp_path, *KC_ROWS))
    raw.write_parquet(path)
    assert build(adapter, path).frame.equals(build(adapter, tmp_path / "kc_house_data.csv").frame)
    raw.with_columns(sqft_living=pl.lit("big")).write_parquet(path)
    with pytest.raises(DataError, match=r"kc\.parquet does not fit"):
        build(adapter, path)
    raw.with_columns(bedrooms=pl.lit(2.5)).write_parquet(path)
    with pytest.raises(DataError, match=r'row 1, column "bedrooms": 2\.5 is not a whole number'):
        build(adapter, path)


@pytest.fixture(scope="module")
def king_county(shared: Path) -> Built:
    begun = time.process_time()
    made = build(ADAPTERS["king_county"], shared / "data/avm/king_county_2014_2015.parquet")
    assert time.process_time() - begun < 5
    return made


@pytest.mark.shared_data
def test_king_county_counts(king_county: Built) -> None:
    frame = king_county.frame
    assert frame.height == 21_613
    sold = frame.group_by("parcel_id").len()["len"].value_counts()
    assert dict(sold.iter_rows()) == {1: 21_260, 2: 175, 3: 1}
    counts = king_county.manifest.flag_counts
    assert counts["built_after_sale"] == 12
    assert counts["renovated_after_sale"] == 6
    assert counts["flip"] == 94
    assert frame.filter(pl.col("flags").list.contains("impossible_value"))["bedrooms"].to_list() == [33]
    shared_places = frame.filter(pl.col("flags").list.contains("zero_distance_neighbour")).select("lat", "lng")
    assert shared_places.n_unique() == 560
    assert not {"duplicate", "nominal_price", "coordinates_out_of_range"} & set(counts)
    assert (frame["price"].min(), frame["price"].max()) == (75_000, 7_700_000)


@pytest.mark.shared_data
def test_king_county_keeps_the_reference_order(king_county: Built, shared: Path) -> None:
    raw = pl.read_parquet(shared / "data/avm/king_county_2014_2015.parquet")
    ordered = raw.sort("sale_date", "parcel_id", maintain_order=True)
    ids = ordered.select(pl.format("kc-{}", pl.col("source_row").cast(pl.String).str.zfill(5))).to_series()
    assert king_county.frame["tx_id"].to_list() == ids.to_list()
    assert king_county.frame["floor_area_m2"].to_list() == (ordered["sqft_living"] * 0.09290304).to_list()


@pytest.mark.shared_data
def test_both_forms_of_king_county_give_the_same_table(king_county: Built, shared: Path, tmp_path: Path) -> None:
    raw = pl.read_parquet(shared / "data/avm/king_county_2014_2015.parquet").sort("source_row")
    public = raw.select(
        pl.col("parcel_id").cast(pl.Int64).alias("id"),
        pl.col("sale_date").dt.strftime("%Y%m%dT000000").alias("date"),
        *(name.replace("long", "lon") for name in KC_HEADER.split(",")[2:]),
    ).rename({"lon": "long"})
    public.write_csv(tmp_path / "kc_house_data.csv")
    assert build(ADAPTERS["king_county"], tmp_path / "kc_house_data.csv").frame.equals(king_county.frame)


@pytest.mark.shared_data
def test_king_county_declares_its_later_snapshot(king_county: Built, tmp_path: Path) -> None:
    write_analytic(king_county.frame, tmp_path / "analytic.parquet", king_county.manifest)
    assert read_analytic(tmp_path / "analytic.parquet").equals(king_county.frame)
    later = king_county.manifest.later_snapshots()
    assert {"floor_area_m2", "quality", "year_built", "lat"} <= set(later)
    assert not {"price", "sale_date"} & set(later)
    assert king_county.manifest.observations["flood_zone"].rule == "absent"
    assert king_county.manifest.currency == "USD"


MAPPING = """
columns:
  parcel_id: Kataster
  sale_date: Monat
  price: Preis
  floor_area_m2: Flaeche
  land_area_m2: Grund
  bedrooms: Zimmer
  new_construction: Neu
  municipality: Ort
  lat: Breite
  lng: Laenge
constants: {currency: EUR, property_class: house}
observed: {rule: at_sale}
observations:
  bedrooms: {rule: snapshot, as_of: 2021-01-01, later_than_sale: true}
region:
  municipality: town
  region: state
  centres: [{name: Centre, lat: 48.2, lng: 16.37}]
  bounds: {lat_min: 46, lat_max: 49, lng_min: 9, lng_max: 18}
delimiter: ";"
decimal_comma: true
encoding: cp1252
date_format: "%m/%Y"
month_only: true
land_area: ha
sale_type: Art
market_sale_types: [Kauf]
"""
FILE = (
    "Kataster;Monat;Preis;Flaeche;Grund;Zimmer;Neu;Ort;Breite;Laenge;Art\n"
    "007;02/2020;250000,50;100,5;0,05;3;ja;Mödling;48,08;16,28;Kauf\n"
    "008;01/2020;9000; NA ;0;;;Wien;16,37;48,2;Schenkung\n"
)


def csv_build(folder: Path, *, mapping: str = MAPPING, text: str = FILE, encoding: str = "cp1252") -> Built:
    (folder / "mapping.yaml").write_text(mapping)
    (folder / "sales.csv").write_bytes(text.encode(encoding))
    return build(ADAPTERS["csv"].configure(folder / "mapping.yaml"), folder / "sales.csv")


def test_a_mapped_csv_with_commas_units_months_and_an_encoding(tmp_path: Path) -> None:
    made = csv_build(tmp_path, text=FILE.replace("ja", "yes"))
    gift, sold = made.frame.to_dicts()
    assert (sold["parcel_id"], sold["tx_id"], sold["sale_date"]) == ("007", "line-0000002", date(2020, 2, 1))
    assert (sold["price"], sold["floor_area_m2"], sold["land_area_m2"]) == (250_000.5, 100.5, 500.0)
    assert (sold["bedrooms"], sold["new_construction"], sold["municipality"]) == (3, True, "Mödling")
    assert sold["distance_cbd_km"] == pytest.approx(14.9, abs=0.2)
    assert sold["flags"] == [MONTH_ONLY]
    assert (gift["floor_area_m2"], gift["land_area_m2"], gift["lat"], gift["distance_cbd_km"]) == (None,) * 4
    assert set(gift["flags"]) == {
        "declared_non_market",
        "nominal_price",
        "land_area_not_positive",
        "coordinates_swapped",
        MONTH_ONLY,
    }
    assert made.manifest.later_snapshots() == ("bedrooms",)
    assert (made.manifest.currency, made.manifest.observations["quality"].rule) == ("EUR", "absent")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("decimal_comma", "decimal_coma", 'Did you mean "decimal_comma"'),
        ("  bedrooms: Zimmer", "  bedroms: Zimmer", 'Did you mean "bedrooms"'),
        ("  price: Preis\n", "", 'columns must name "price"'),
        ("currency: EUR, ", "", '"currency" must be a column or a constant'),
        ("property_class: house", "municipality: x, property_class: house", "both a column and a constant"),
        ("property_class: house", "storeys: x, property_class: house", "cannot be a constant"),
        ("cp1252", "klingon", "unknown encoding"),
        ("cp1252", "hex", "unknown encoding"),
        ("land_area: ha", "land_area: football_pitch", "land_area"),
        ("market_sale_types: [Kauf]", "", "go together"),
        ('delimiter: ";"', 'delimiter: ";;"', "delimiter"),
    ],
)
def test_a_wrong_mapping_says_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MAPPING
    with pytest.raises(ConfigError) as caught:
        csv_build(tmp_path, mapping=MAPPING.replace(old, new))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("250000,50", "250.000,50", 'line 2, column "Preis"'),
        ("250000,50", "inf", 'line 2, column "Preis"'),
        ("250000,50", "-1", 'line 2, column "Preis": -1.0 is not a price'),
        ("250000,50", "1e300", 'line 2, column "Preis": 1e+300 is not a price'),
        ("007", "", 'line 2, column "Kataster": there is no value'),
        ("02/2020", "2020-02", 'line 2, column "Monat"'),
        (";3;", ";2,5;", "line 2, column \"Zimmer\": '2,5' is not a whole number"),
        ("yes", "perhaps", 'line 2, column "Neu"'),
        ("Preis", "Price", 'has no column "Preis"'),
    ],
)
def test_a_wrong_value_names_row_and_column_of_the_file(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        csv_build(tmp_path, text=FILE.replace("ja", "yes").replace(old, new))
    assert said in str(caught.value)


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text, lines in (
        ("a,b\n1,2\n3,4\n", [2, 3]),
        ("a,b\r\n1,2\r\n3,4", [2, 3]),
        ('\ufeff\n\na,"b\n(m2)"\n1,"2\n2"\n3,4\n\n5,"6\n\n6"\n', [5, 7, 8, 9]),
    ):
        path.write_bytes(text.encode())
        assert read_text_table(path)[LINE].to_list() == lines


def test_an_id_given_twice_names_both_lines_and_the_column_of_the_file(tmp_path: Path) -> None:
    mapping = MAPPING.replace("columns:\n", "columns:\n  tx_id: Akt\n").replace(
        'date_format: "%m/%Y"', "date_format: '%m/%Y'"
    )
    header, sold, gift = FILE.replace("ja", "yes").splitlines()
    text = f"Akt;{header}\nx1;{sold}\nx2;{sold}\nx1;{gift}\n"
    with pytest.raises(DataError, match="line 2, column \"Akt\": 'x1' stands in line 4 too"):
        csv_build(tmp_path, mapping=mapping, text=text)


def test_a_source_without_sales_says_so(tmp_path: Path) -> None:
    path = tmp_path / "kc.parquet"
    full = ADAPTERS["king_county"].read(kc_csv(tmp_path, *KC_ROWS))
    for empty in (full.clear(), pl.DataFrame()):
        empty.write_parquet(path)
        with pytest.raises(DataError, match=r"kc\.parquet holds no sales"):
            build(ADAPTERS["king_county"], path)
    full.drop("price").write_parquet(path)
    with pytest.raises(DataError, match='has no column "price"') as caught:
        build(ADAPTERS["king_county"], path)
    assert "Did you mean" not in caught.value.hint
    with pytest.raises(DataError, match='is left by the exclusions "market"'):
        build(ADAPTERS["king_county"], kc_csv(tmp_path, KC_ROWS[1]), exclusions=MARKET)


def test_bad_values_of_parquet_name_the_row_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kc.parquet"
    raw = ADAPTERS["king_county"].read(kc_csv(tmp_path, *KC_ROWS)).with_columns(sqft_living=pl.Series([1180, -4]))
    raw.with_columns(floors=pl.Series([1.0, float("nan")])).write_parquet(path)
    with pytest.raises(DataError, match='row 2, column "floors": nan is not finite'):
        build(ADAPTERS["king_county"], path)
    raw.with_columns(grade=pl.Series([float("inf"), 7.0])).write_parquet(path)
    with pytest.raises(DataError, match='row 1, column "grade": inf is not finite'):
        build(ADAPTERS["king_county"], path)


def test_unreadable_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("é\n1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"is not utf-8 \(byte 0\)"):
        read_text_table(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="is no table"):
        read_text_table(path)
    path.write_bytes(b"a,b\n1,2\n1,2,3\n")
    with pytest.raises(DataError, match="is no table"):
        read_text_table(path)


def test_hostile_text_stays_data(tmp_path: Path) -> None:
    payloads = ["=cmd|' /C calc'!A0", "\x1b[31mred", "\u202eevil\u200b", "{{7*7}}", "a\x00b", "../../etc/passwd"]
    path = tmp_path / "a.csv"
    path.write_text("\ufeffname\n" + "\n".join(payloads) + "\n", encoding="utf-8")
    assert read_text_table(path)["name"].to_list() == payloads


def test_the_csv_adapter_asks_for_its_mapping(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a mapping"):
        ADAPTERS["csv"].configure(None)
    with pytest.raises(ConfigError, match="has no mapping"):
        ADAPTERS["csv"].read(tmp_path / "a.csv")


def test_two_currencies_are_refused(tmp_path: Path) -> None:
    mapping = MAPPING.replace("currency: EUR, ", "").replace("  municipality: Ort", "  currency: Ort")
    with pytest.raises(DataError, match="one currency, found: Mödling, Wien"):
        csv_build(tmp_path, mapping=mapping, text=FILE.replace("ja", "yes"))


def test_resales_are_flagged_on_the_later_sale() -> None:
    first = sale()
    assert flags_of(first, sale(sale_date=date(2020, 12, 31), price=300_001.0)) == [[], ["flip"]]
    assert flags_of(first, sale(sale_date=date(2020, 12, 31), price=300_000.0)) == [[], []]
    assert flags_of(first, sale(sale_date=date(2021, 1, 1), price=300_001.0)) == [[], []]
    assert flags_of(first, sale(sale_date=date(2020, 12, 31))) == [[], ["same_price_resale"]]
    assert flags_of(first, sale(sale_date=date(2021, 1, 1))) == [[], []]


def test_one_deed_for_two_parcels_is_kept_and_a_repeated_row_is_a_duplicate() -> None:
    far = sale(parcel_id="2", lat=47.6)
    assert flags_of(sale(), far) == [["shared_date_price"], ["shared_date_price"]]
    assert flags_of(sale(), sale()) == [[], ["duplicate"]]
    assert not any("shared_date_price" in rule.flags for rule in MARKET.rules)


def test_a_second_price_on_one_day_is_no_duplicate_and_no_flip() -> None:
    dearer, dearest = sale(price=300_000.0), sale(price=900_000.0)
    assert flags_of(sale(), dearer, dearest) == [[], ["same_day_resale"], ["same_day_resale"]]
    assert flags_of(sale(), dearer, sale()) == [[], ["same_day_resale"], ["duplicate"]]


def test_two_homes_at_one_price_in_a_month_are_no_deed() -> None:
    rows = [{"tx_id": f"t{i}", "currency": "USD", "property_class": "house", "source": "test"} for i in range(2)]
    filled = fill_absent(pl.DataFrame([rows[0] | sale(), rows[1] | sale(parcel_id="2", lat=47.6)]))
    flagged = annotate(filled, declared={MONTH_ONLY: pl.lit(value=True)})
    assert flagged["flags"].to_list() == [[MONTH_ONLY], [MONTH_ONLY]]


def test_a_neighbour_at_no_distance_is_flagged() -> None:
    later = sale(parcel_id="2", sale_date=date(2020, 3, 1), price=1e5)
    again = sale(sale_date=date(2022, 1, 1), price=3e5)
    assert flags_of(sale(), later, again) == [[], ["zero_distance_neighbour"], ["zero_distance_neighbour"]]
    assert flags_of(sale(), again) == [[], []]
    nowhere = {"lat": None, "lng": None}
    assert flags_of(sale(**nowhere), later | nowhere) == [[], []]


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"price": 10_000.0}, "nominal_price"),
        ({"bedrooms": 33}, "impossible_value"),
        ({"bathrooms": -1.0}, "impossible_value"),
        ({"floor_area_m2": 3.0}, "impossible_value"),
        ({"year_built": 207}, "impossible_value"),
        ({"year_built": 2021}, "built_after_sale"),
        ({"floor_area_m2": 0.0}, "floor_area_not_positive"),
        ({"land_area_m2": -4.0}, "land_area_not_positive"),
        ({"lat": 91.0}, "coordinates_out_of_range"),
        ({"lat": -122.0, "lng": 47.5}, "coordinates_swapped"),
    ],
)
def test_odd_values_are_flagged(values: dict[str, Any], flag: str) -> None:
    assert flags_of(sale(**values)) == [[flag]]
    assert flag in FLAGS


def test_the_limits_themselves_are_not_odd() -> None:
    assert flags_of(sale(price=10_000.01, bedrooms=20, bathrooms=0.0, year_built=2020, floor_area_m2=10.0)) == [[]]


def test_bounds_find_what_the_globe_cannot() -> None:
    europe = Bounds(lat_min=46, lat_max=49, lng_min=9, lng_max=18)
    assert flags_of(sale(lat=16.4, lng=48.2), bounds=europe) == [["coordinates_swapped"]]
    assert flags_of(sale(lat=0.0, lng=0.0), bounds=europe) == [["coordinates_out_of_range"]]
    assert flags_of(sale(lat=48.2, lng=16.4), bounds=europe) == [[]]
