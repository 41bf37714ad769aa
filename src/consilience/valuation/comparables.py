"""Comparable sales: which earlier sales stand beside a subject, and in what order.

Two things make the search fast in plain numpy. The sales are sorted by date, so the admissible ones are a contiguous
slice found by bisection. And space is cut into cubes (earth-centred coordinates, so neither poles nor the date line
are special): the sales around one cube are gathered at its first use and kept in date order, after which one product
of unit vectors discards nearly all of them and only the few left get the haversine formula.
"""

from __future__ import annotations

import itertools
import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError

EARTH_RADIUS_KM = 6371.0088
WINDOW_DAYS = 540
RADII_KM = (1.0, 3.0, 10.0)
EXTENDED_RADIUS_KM = 25.0
ENOUGH = 3
MOST = 12

HELD = 2_000_000
"""Sales held in gathered tiles (about 40 bytes each) before they are let go: memory stays bounded on any table."""

# Scores nearer than this are equal: unit conversions and the order of additions move a score by about 1e-15, and a
# tie that mathematics makes must not be broken by them.
TIE = 1e-11

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Comparables:
    """The comparables of one subject, best first.

    Attributes:
        rows: Positions in the table the index was built from, at most 12.
        scores: Score of each; lower is better.
        distances_km: Great-circle distance of each.
        radius_km: The radius at which the search stopped; None when no sale qualified.
        n_candidates: Sales that qualified within that radius.
        extended: Whether the search went past 10 km because fewer than 3 sales qualified there.
        missing_terms: Score terms (``distance``, ``floor_area``, ``year_built``) that were unknown for the subject or
            for some candidate. An unknown ``distance`` (subject without coordinates) means no comparables.
    """

    rows: Ints
    scores: Floats
    distances_km: Floats
    radius_km: float | None
    n_candidates: int
    extended: bool
    missing_terms: tuple[str, ...] = ()


_NO_ROWS: Ints = np.empty(0, dtype=np.int64)
_NO_NUMBERS: Floats = np.empty(0)


class Tile(NamedTuple):
    """The sales around one cube, in (date, parcel) order."""

    days: array[int]
    members: Ints
    unit: Floats


class SaleTiles:
    """Sales by place and date, searched by radius and date window.

    Args:
        days: Day numbers, ascending.
        lat: Latitude in degrees, same order; all finite.
        lng: Longitude in degrees; all finite.
        radius_km: The radius that every search uses.

    Example:
        >>> tiles = SaleTiles(np.array([1, 2]), np.array([47.0, 47.5]), np.array([-122.0, -122.0]), radius_km=3.0)
        >>> members, distances = tiles.within(47.001, -122.0, first=0, last=9)
        >>> members.tolist(), distances.round(3).tolist()
        ([0], [0.111])
    """

    def __init__(self, days: Ints, lat: Floats, lng: Floats, *, radius_km: float) -> None:
        self.radius_km = radius_km
        self._days = days
        self._phi = np.radians(lat)
        self._lambda = np.radians(lng)
        self._cos = np.cos(self._phi)
        self._unit = np.column_stack(
            (self._cos * np.cos(self._lambda), self._cos * np.sin(self._lambda), np.sin(self._phi))
        )
        # A hair wider than the radius: rounding in the product may lose nobody, the haversine then decides.
        self._cosine = math.cos(radius_km * (1 + 1e-6) / EARTH_RADIUS_KM)
        self._side = 2 * radius_km / EARTH_RADIUS_KM
        self._tiles: dict[tuple[int, int, int], Tile] = {}
        self._held = 0
        cells = np.floor(self._unit / self._side).astype(np.int64)
        order = np.lexsort((cells[:, 2], cells[:, 1], cells[:, 0]))
        starts = (
            np.flatnonzero(np.r_[True, np.any(np.diff(cells[order], axis=0) != 0, axis=1)]) if order.size else order
        )
        blocks = np.split(order, starts[1:]) if order.size else []
        self._blocks = {tuple(cells[block[0]].tolist()): block for block in blocks}

    def _tile(self, cell: tuple[int, int, int]) -> Tile:
        found = [
            block
            for step in itertools.product((-1, 0, 1), repeat=3)
            if (block := self._blocks.get((cell[0] + step[0], cell[1] + step[1], cell[2] + step[2]))) is not None
        ]
        members = np.sort(np.concatenate(found)) if found else _NO_ROWS
        # Chord <= arc, so whoever is within the radius of some point of the cube is within half a side of the cube.
        offset = self._unit[members] / self._side - cell
        members = members[np.all((offset >= -0.501) & (offset <= 1.501), axis=1)]
        tile = Tile(array("i", self._days[members].tolist()), members, self._unit[members])
        self._held += members.size
        if self._held > HELD:
            self._tiles.clear()
            self._held = members.size
        self._tiles[cell] = tile
        return tile

    def within(self, lat: float, lng: float, *, first: int, last: int) -> tuple[Ints, Floats]:
        """Return the sales within the radius dated ``first``…``last`` (day numbers, inclusive), with distances in km.

        Members come in ascending order. Distance is the haversine on a sphere of 6371.0088 km.
        """
        phi, lam = math.radians(lat), math.radians(lng)
        cos = math.cos(phi)
        x, y, z = cos * math.cos(lam), cos * math.sin(lam), math.sin(phi)
        side = self._side
        cell = (math.floor(x / side), math.floor(y / side), math.floor(z / side))
        tile = self._tiles.get(cell) or self._tile(cell)
        low = bisect_left(tile.days, first)
        high = bisect_right(tile.days, last, low)
        near = (tile.unit[low:high].dot(np.array((x, y, z))) >= self._cosine).nonzero()[0]
        if not near.size:
            return _NO_ROWS, _NO_NUMBERS
        members = tile.members[low:high].take(near)
        half_phi = np.sin((self._phi.take(members) - phi) * 0.5)
        half_lambda = np.sin((self._lambda.take(members) - lam) * 0.5)
        half_phi *= half_phi
        half_lambda *= half_lambda
        half_lambda *= self._cos.take(members)
        half_lambda *= cos
        half_phi += half_lambda
        distance = np.arcsin(np.sqrt(half_phi))
        distance *= 2 * EARTH_RADIUS_KM
        inside = distance <= self.radius_km
        if inside.all():
            return members, distance
        return members[inside], distance[inside]


@dataclass
class _ClassSales:
    """The sales of one property class with coordinates, in (date, parcel, input) order."""

    days: Ints
    rows: Ints
    lat: Floats
    lng: Floats
    log_area: Floats
    year_built: Floats
    parcel: Ints

    def __post_init__(self) -> None:
        self.sold: Floats = self.days.astype(np.float64)
        self.areas_known = bool(np.isfinite(self.log_area).all())
        self.years_known = bool(np.isfinite(self.year_built).all())
        self._tiles: dict[float, SaleTiles] = {}

    def tiles(self, radius_km: float) -> SaleTiles:
        tiles = self._tiles.get(radius_km)
        if tiles is None:
            tiles = self._tiles[radius_km] = SaleTiles(self.days, self.lat, self.lng, radius_km=radius_km)
        return tiles


def middle(values: Floats) -> float:
    """Return the median of at least one finite value: that of `numpy.median`, at a fifth of its cost for short arrays.

    Example:
        >>> middle(np.array([4.0, 1.0, 2.0])), middle(np.array([4.0, 1.0]))
        (2.0, 2.5)
    """
    half = values.size // 2
    if values.size % 2:
        return float(np.partition(values, half)[half])
    upper = np.partition(values, (half - 1, half))
    return float((upper[half - 1] + upper[half]) / 2)


def _filled(term: Floats) -> Floats:
    """Put the median of the known values where the term is unknown; a term nobody knows counts 0 for everyone."""
    known = term[np.isfinite(term)]
    return np.where(np.isfinite(term), term, middle(known) if known.size else 0.0)


def day_numbers(dates: npt.ArrayLike | Sequence[date]) -> Ints:
    """Return days since 1970-01-01 for dates.

    Example:
        >>> day_numbers([date(1970, 1, 2)]).tolist()
        [1]
    """
    return np.asarray(dates, dtype="datetime64[D]").astype(np.int64)


class ComparableIndex:
    """All sales, ready to give any subject its comparables.

    Candidates have the subject's property class, another parcel, and a date before the cutoff by 1 to 540 days. The
    radius grows 1, 3, 10 km and stops at the first with at least 3 candidates, else 25 km is searched and said so.
    The 12 with the lowest score are kept::

        score = km / radius + 1.5 |Δ ln area| + 0.5 |Δ year built| / 50 + 0.5 (cutoff - sale date) / 540

    where a term that is unknown counts its median over the candidates. Equal scores stand in order of (sale date,
    parcel), then of input. The unit of area cancels.

    Args:
        dates: Sale dates, any order.
        lat: Latitude in degrees; NaN where unknown (such a sale is never a candidate).
        lng: Longitude in degrees; NaN where unknown.
        area: Floor area, any one unit; NaN where unknown.
        year_built: Year built; NaN where unknown.
        parcel: Parcel ids; None where unknown, which equals no other parcel.
        klass: Property classes; None where unknown (never a candidate).

    Raises:
        DataError: The columns differ in length, or an area is not above 0.

    Example:
        >>> from datetime import timedelta
        >>> day = date(2015, 1, 1)
        >>> index = ComparableIndex(
        ...     dates=[day, day + timedelta(days=9)], lat=[47.0, 47.0], lng=[-122.0, -122.001], area=[90, 100],
        ...     year_built=[1950, 1960], parcel=["a", "b"], klass=["house", "house"])
        >>> found = index.query(lat=47.0, lng=-122.0, area=100, year_built=1960, parcel="z", klass="house",
        ...                     cutoff=date(2015, 2, 1))
        >>> found.rows.tolist(), found.n_candidates, found.radius_km, found.extended
        ([1, 0], 2, 25.0, True)
    """

    def __init__(
        self,
        *,
        dates: npt.ArrayLike | Sequence[date],
        lat: npt.ArrayLike,
        lng: npt.ArrayLike,
        area: npt.ArrayLike,
        year_built: npt.ArrayLike,
        parcel: Sequence[str | None],
        klass: Sequence[str | None],
    ) -> None:
        days = day_numbers(dates)
        numbers = [np.asarray(column, dtype=np.float64) for column in (lat, lng, area, year_built)]
        lengths = {len(days), len(parcel), len(klass), *map(len, numbers)}
        if len(lengths) != 1:
            raise DataError(f"columns differ in length: {sorted(lengths)}", hint="Pass one value per sale in each.")
        bad = np.flatnonzero(numbers[2] <= 0)
        if bad.size:
            raise DataError(f"floor area is not above 0 in row {bad[0]}", hint="Pass NaN where the area is unknown.")
        codes = {name: code for code, name in enumerate(sorted({p for p in parcel if p is not None}))}
        code = np.array([-1 if p is None else codes[p] for p in parcel], dtype=np.int64)
        order = np.lexsort((code, days))
        located = np.isfinite(numbers[0]) & np.isfinite(numbers[1])
        kinds = np.array(klass, dtype=object)
        self._codes = codes
        self._days_of: dict[str, list[int]] = {}
        for name, day in zip(parcel, days.tolist(), strict=True):
            if name is not None:
                self._days_of.setdefault(name, []).append(day)
        self._classes: dict[str, _ClassSales] = {}
        for kind in sorted({k for k in klass if k is not None}):
            rows = order[(kinds[order] == kind) & located[order]]
            self._classes[kind] = _ClassSales(
                days=days[rows],
                rows=rows,
                lat=numbers[0][rows],
                lng=numbers[1][rows],
                log_area=np.log(numbers[2][rows]),
                year_built=numbers[3][rows],
                parcel=code[rows],
            )

    def _candidates(
        self, sales: _ClassSales, place: tuple[float, float], parcel: str | None, day: int
    ) -> tuple[Ints, Floats, float]:
        first, last = day - WINDOW_DAYS, day - 1
        resold = parcel is not None and any(first <= sold <= last for sold in self._days_of.get(parcel, ()))
        members, distance, radius = _NO_ROWS, _NO_NUMBERS, EXTENDED_RADIUS_KM
        for radius in (*RADII_KM, EXTENDED_RADIUS_KM):
            members, distance = sales.tiles(radius).within(*place, first=first, last=last)
            if resold and parcel is not None:
                other = sales.parcel[members] != self._codes[parcel]
                members, distance = members[other], distance[other]
            if members.size >= ENOUGH:
                break
        return members, distance, radius

    def query(
        self,
        *,
        lat: float | None,
        lng: float | None,
        area: float | None,
        year_built: float | None,
        parcel: str | None,
        klass: str | None,
        cutoff: date,
    ) -> Comparables:
        """Return the comparables of a subject, which need not be in the table, as of a cutoff.

        Args:
            lat: Latitude in degrees, None where unknown: then nothing is comparable.
            lng: Longitude in degrees, None where unknown.
            area: Floor area in the unit of the index, above 0; None where unknown.
            year_built: Year built; None where unknown.
            parcel: The subject's parcel, whose own sales never count; None where unknown.
            klass: The subject's property class; None where unknown: then nothing is comparable.
            cutoff: Comparables are dated strictly before this day.
        """
        sales = self._classes.get(klass) if klass is not None else None
        if lat is None or lng is None:
            return Comparables(_NO_ROWS, _NO_NUMBERS, _NO_NUMBERS, None, 0, extended=False, missing_terms=("distance",))
        if sales is None:
            return Comparables(_NO_ROWS, _NO_NUMBERS, _NO_NUMBERS, None, 0, extended=False)
        day = cutoff.toordinal() - _EPOCH
        members, distance, radius = self._candidates(sales, (lat, lng), parcel, day)
        extended = radius == EXTENDED_RADIUS_KM
        if not members.size:
            return Comparables(_NO_ROWS, _NO_NUMBERS, _NO_NUMBERS, None, 0, extended=extended)
        missing = []
        score = (day - sales.sold.take(members)) * (0.5 / WINDOW_DAYS)
        score += distance / radius
        term = np.abs(sales.log_area.take(members) - (math.nan if area is None else math.log(area)))
        if area is None or not (sales.areas_known or np.isfinite(term).all()):
            term = _filled(term)
            missing.append("floor_area")
        score += term * 1.5
        term = np.abs(sales.year_built.take(members) - (math.nan if year_built is None else year_built))
        if year_built is None or not (sales.years_known or np.isfinite(term).all()):
            term = _filled(term)
            missing.append("year_built")
        score += term * (0.5 / 50)
        best = _best(score)
        return Comparables(
            rows=sales.rows.take(members.take(best)),
            scores=score.take(best),
            distances_km=distance.take(best),
            radius_km=radius,
            n_candidates=members.size,
            extended=extended,
            missing_terms=tuple(missing),
        )


_EPOCH = date(1970, 1, 1).toordinal()


def _best(score: Floats) -> Ints:
    """Return the positions of the 12 lowest scores, equal ones in order of position."""
    positions: Ints | None = None
    if score.size > MOST:
        positions = (score <= np.partition(score, MOST - 1)[MOST - 1] + TIE).nonzero()[0]
        score = score.take(positions)
    order = score.argsort(kind="stable")
    ranked = score.take(order)
    apart = ranked[1:] - ranked[:-1] > TIE
    if not apart.all():
        group = np.zeros(order.size, dtype=np.int64)
        np.cumsum(apart, out=group[1:])
        order = order[np.lexsort((order, group))]
    order = order[:MOST]
    return order if positions is None else positions.take(order)
