from __future__ import annotations

from consilience.valuation.geo import GEO_COLUMNS, geographic_context


def test_nothing_known_is_no_context() -> None:
    assert geographic_context(dict.fromkeys(GEO_COLUMNS)) is None
    assert geographic_context({}) is None


def test_a_place_off_the_flood_map_is_unmapped_and_without_a_map_unknown() -> None:
    place = {"transit_stops_1km": 0}
    assert geographic_context(place) == {
        "flood_zone": "unmapped",
        "transit_stops_1km": 0,
        "da_population_density": None,
        "da_median_income": None,
        "distance_cbd_km": None,
    }
    without_map = geographic_context(place, flood_mapped=False)
    assert without_map is not None
    assert without_map["flood_zone"] is None


def test_numbers_are_rounded() -> None:
    place = {
        "flood_zone": "AE",
        "da_population_density": 1234.56,
        "da_median_income": 61234.5,
        "distance_cbd_km": 12.3456,
    }
    assert geographic_context(place) == {
        "flood_zone": "AE",
        "transit_stops_1km": None,
        "da_population_density": 1235,
        "da_median_income": 61234,
        "distance_cbd_km": 12.35,
    }
