"""Sales cut into parts by place, each with a rim around it, so that a part alone gives its sales their comparables.

A search never looks farther than 25 km, so a part that holds all sales within 25 km of its own gives them what the
whole table would: the same rows in the same order, since ties are broken by date, parcel and order of input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from consilience.valuation.comparables import EARTH_RADIUS_KM, EXTENDED_RADIUS_KM, Floats, Ints

SIDE_KM = 200.0
_RIM_KM = EXTENDED_RADIUS_KM * (1 + 1e-6)  # rounding may lose nobody


@dataclass(frozen=True)
class Part:
    """One part of a table of sales.

    Attributes:
        own: Positions of the sales that the part is about, ascending.
        held: Positions of those and of all sales within 25 km of any of them, ascending.
    """

    own: Ints
    held: Ints


def parts_of(lat: Floats, lng: Floats, *, side_km: float = SIDE_KM) -> Iterator[Part]:
    """Yield the parts of a table; every sale is one part's own. Sales without coordinates are a part by themselves.

    Space is cut into cubes in earth-centred coordinates, so that neither poles nor the date line are special. A chord
    is never longer than its arc, so whoever is within 25 km along the ground is within 25 km of the cube.

    Args:
        lat: Latitude in degrees; NaN where unknown.
        lng: Longitude in degrees; NaN where unknown.
        side_km: Side of a cube.

    Example:
        >>> sorted(part.held.tolist() for part in parts_of(np.array([47.0, 47.1, 60.0]), np.array([8.0, 8.0, 8.0])))
        [[0, 1], [2]]
    """
    located = np.flatnonzero(np.isfinite(lat) & np.isfinite(lng))
    unplaced = np.flatnonzero(~(np.isfinite(lat) & np.isfinite(lng)))
    phi, lam = np.radians(lat[located]), np.radians(lng[located])
    at = np.column_stack((np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi))) * EARTH_RADIUS_KM
    cells = np.floor(at / side_km)
    for cell in np.unique(cells, axis=0) if located.size else ():
        own = np.all(cells == cell, axis=1)
        held = np.all((at >= cell * side_km - _RIM_KM) & (at <= (cell + 1) * side_km + _RIM_KM), axis=1)
        yield Part(located[own], located[held])
    if unplaced.size:
        yield Part(unplaced, unplaced)
