"""A part of the sales with its rim gives its own sales what the whole table gives them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from consilience.valuation.comparables import ComparableIndex
from consilience.valuation.partitions import parts_of

N = 1_500


def sales(seed: int, *, lng: float) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    places = draw.uniform(-0.8, 0.8, (N, 2))
    lat = 47 + places[:, 0]
    lat[:5] = np.nan
    return {
        "dates": [date(2014, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 700, N)],
        "lat": lat,
        "lng": (lng + places[:, 1] + 180) % 360 - 180,
        "area": draw.choice([80.0, 100.0, 120.0], N),
        "year_built": draw.choice([1950.0, 1980.0], N),
        "parcel": [f"p{number}" for number in draw.integers(0, N // 2, N)],
        "klass": [str(kind) for kind in draw.choice(["house", "flat"], N)],
    }


def some(columns: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: [column[row] for row in rows] for name, column in columns.items()}


def found(index: ComparableIndex, columns: dict[str, Any], row: int) -> Any:
    place = [None if np.isnan(columns[name][row]) else float(columns[name][row]) for name in ("lat", "lng")]
    return index.query(
        lat=place[0],
        lng=place[1],
        area=float(columns["area"][row]),
        year_built=float(columns["year_built"][row]),
        parcel=columns["parcel"][row],
        klass=columns["klass"][row],
        cutoff=columns["dates"][row],
    )


@pytest.mark.parametrize(("side_km", "lng"), [(15.0, 8.0), (60.0, -122.0), (40.0, 180.0)])
def test_parts_give_what_the_whole_gives(side_km: float, lng: float) -> None:
    columns = sales(int(side_km), lng=lng)
    whole = ComparableIndex(**columns)
    seen = []
    for part in parts_of(columns["lat"], columns["lng"], side_km=side_km):
        index = ComparableIndex(**some(columns, part.held))
        for row in part.own.tolist():
            alone, together = found(index, columns, row), found(whole, columns, row)
            assert part.held[alone.rows].tolist() == together.rows.tolist()
            assert alone.scores.tolist() == together.scores.tolist()
            assert (alone.radius_km, alone.n_candidates) == (together.radius_km, together.n_candidates)
            seen.append(row)
    assert sorted(seen) == list(range(N))
