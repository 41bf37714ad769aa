"""Geographic context (G1): what is known of a place apart from its sales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

GEO_COLUMNS = ("flood_zone", "transit_stops_1km", "da_population_density", "da_median_income", "distance_cbd_km")


def geographic_context(place: Mapping[str, Any], *, flood_mapped: bool = True) -> dict[str, JsonValue] | None:
    """Return the content of G1, or None when nothing is known of the place.

    Args:
        place: A row of the analytic table.
        flood_mapped: Whether the data set has a flood map at all. Where it has one, a place without a zone is
            ``"unmapped"``; where it has none, the zone is unknown (None).

    Returns:
        ``flood_zone``, ``transit_stops_1km``, ``da_population_density`` (per km²) and ``da_median_income`` of the
        dissemination area, and ``distance_cbd_km`` to the nearest of the region's centres.

    Example:
        >>> geographic_context({"distance_cbd_km": 7.4321}, flood_mapped=False)["distance_cbd_km"]
        7.43
        >>> geographic_context({"flood_zone": None}) is None
        True
    """
    if all(place.get(column) is None for column in GEO_COLUMNS):
        return None
    density, income, distance = (place.get(column) for column in GEO_COLUMNS[2:])
    flood = place.get("flood_zone")
    return {
        "flood_zone": "unmapped" if flood is None and flood_mapped else flood,
        "transit_stops_1km": place.get("transit_stops_1km"),
        "da_population_density": None if density is None else round(density),
        "da_median_income": None if income is None else round(income),
        "distance_cbd_km": None if distance is None else round(distance, 2),
    }
