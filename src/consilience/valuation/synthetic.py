"""A made-up town whose true values are known, so that leaks, calibration and coverage can be tested against truth.

ln true value = base + municipality + 0.65·ln(area/120) + 0.10·ln(land/400) + class + 0.07·(quality − 3.5)
+ 0.06·condition − 0.0025·min(age, 80) − 0.012·km to centre + 0.004·transit stops − flood + 0.10·ln(income/55,000)
+ renovation + index(day); price = true value × e^noise. Condition is never observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.errors import ConfigError
from consilience.experiments.parquet import write_parquet
from consilience.valuation.schema import ANALYTIC, Bounds, Centre, RegionMap

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CURRENCY = "CAD"
MARKET_SALE = "open_market"
SALE_TYPES = (MARKET_SALE, "family_transfer", "nominal_transfer")
RAW_SCHEMA = pl.Schema(
    {name: dtype for name, dtype in ANALYTIC.items() if name != "flags"} | {"sale_type": pl.String()}
)
"""Columns of the raw table: the analytic ones without flags, and the sort of sale."""

REGION = RegionMap(
    municipality="municipality",
    region="shore",
    borough="quarter",
    centres=(Centre(name="Old Harbour", lat=45.50, lng=-73.60), Centre(name="Northgate", lat=45.56, lng=-73.54)),
    bounds=Bounds(lat_min=43.5, lat_max=47.5, lng_min=-76.5, lng_max=-70.5),
)
NOISE_SD = 0.08
ROLL_ERROR_SD = 0.12
KM_PER_DEGREE = 111.195
ORIGIN = (45.50, -73.60)
FIRST_NAMES = ("Alder", "Birch", "Cedar", "Dunmore", "Elm", "Fair", "Glen", "Hazel", "Iron", "Juniper")
LAST_NAMES = ("bridge", "bury", "field", "ford", "haven", "mere", "mont", "side", "vale", "wick")
CLASSES = ("house", "condo", "plex")
SUBTYPES = ("detached", "semi_detached", "row", "low_rise", "high_rise", "duplex", "triplex", "fourplex")
FLOOD = ("outside", "100_year", "20_year")
MISSING = {
    "floor_area_m2": 0.02,
    "land_area_m2": 0.02,
    "year_built": 0.03,
    "storeys": 0.03,
    "bedrooms": 0.06,
    "bathrooms": 0.06,
    "quality": 0.05,
    "flood_zone": 0.06,
    "transit_stops_1km": 0.02,
    "da_median_income": 0.02,
}


@dataclass(frozen=True)
class Town:
    """A generated town.

    Attributes:
        sales: The raw table (`RAW_SCHEMA`), sorted by sale date and parcel.
        truth: ``tx_id, true_value, log_index, noise, condition, market``: the value on the sale's day, the index it
            holds, ln(price / true value), the unobserved condition, and whether it was an open-market sale.
        index: ``month, log_index``: the true price level at each month's start, 0 at the first month of sales.
    """

    sales: pl.DataFrame
    truth: pl.DataFrame
    index: pl.DataFrame


def generate(*, sales: int, seed: int, start: date = date(2021, 1, 1), years: int = 3) -> Town:
    """Return a town with this many sales; the same arguments give the same bytes.

    About a fifth of the sales are resales, some of them flips after a renovation; 2 % are no market sales. The roll in
    force changes every three years and reflects values 18 months before, with an error of each parcel.

    Args:
        sales: At least 1.
        seed: Any integer of at least 0.
        start: First day of sales, the first of a month.
        years: Length of the period, at least 1.

    Raises:
        ConfigError: An argument is out of range.

    Example:
        >>> generate(sales=50, seed=1).sales.height
        50
    """
    if sales < 1 or seed < 0 or years < 1 or start.day != 1:
        raise ConfigError(
            f"no town of {sales} sales, seed {seed}, {years} years from {start}",
            hint="Give at least one sale and one year, a seed of at least 0, and a start on the first of a month.",
        )
    rng = np.random.default_rng(seed)
    index = _index_path(rng, start, years)
    parcels = _parcels(rng, max(1, round(0.8 * sales)), start, years)
    drawn = _sales(rng, sales, parcels, index, start, years)
    frame = _table(rng, parcels, drawn, seed).sort("sale_date", "parcel_id", "tx_id")
    truth = frame.select("tx_id", "true_value", "log_index", "noise", pl.col("latent").alias("condition"), "market")
    return Town(sales=frame.select(RAW_SCHEMA.names()), truth=truth, index=index)


def write_town(town: Town, path: Path) -> None:
    """Write the raw table to ``path`` and truth and index beside it, as ``*.truth.parquet`` and ``*.index.parquet``.

    Raises:
        DataError: The folder cannot be written.
    """
    write_parquet(town.truth, path.with_suffix(".truth.parquet"))
    write_parquet(town.index, path.with_suffix(".index.parquet"))
    write_parquet(town.sales, path)


def _index_path(rng: np.random.Generator, start: date, years: int) -> pl.DataFrame:
    before = 72  # the oldest roll in force at the start looks back less than six years
    months = np.arange(-before, 12 * years + 1)
    walk = np.cumsum(0.004 + rng.normal(0, 0.006, len(months)))
    season = 0.02 * np.cos(2 * np.pi * (months + start.month - 7) / 12)
    level = walk + season
    days = pl.date_range(
        date(start.year - before // 12, start.month, 1), date(start.year + years, start.month, 1), "1mo", eager=True
    )
    return pl.DataFrame({"month": days, "log_index": level - level[before]})


def _days_since_epoch(days: pl.Series) -> Floats:
    return days.cast(pl.Int32).to_numpy().astype(np.float64)


@dataclass(frozen=True)
class _Parcels:
    """Parcel attributes as columns, and what of the true value belongs to the parcel alone."""

    frame: pl.DataFrame
    log_value: Floats
    year_built: Ints
    latent: Floats


def _parcels(rng: np.random.Generator, n: int, start: date, years: int) -> _Parcels:
    place, effect = _places(rng, n)
    kind = rng.choice(3, n, p=[0.60, 0.25, 0.15])
    extra = rng.integers(0, 3, n)
    subtype = np.where(kind == 0, extra, np.where(kind == 1, 3 + extra % 2, 5 + extra))
    area = np.array([150.0, 80.0, 260.0])[kind] * np.exp(rng.normal(0, 0.28, n))
    land = np.array([500.0, 400.0, 350.0])[kind] * np.exp(rng.normal(0, 0.45, n))
    land_term = np.where(kind == 1, 0.0, 0.10 * np.log(land / 400))
    built = np.maximum(1880, start.year - 1 - rng.exponential(38, n)).astype(np.int64)
    built = np.where(rng.random(n) < 0.04, start.year + rng.integers(-1, years, n), built)
    quality = np.clip(np.round(rng.normal(3.5, 1, n)), 1, 6)
    latent = rng.normal(0, 1, n)
    storeys = np.where(kind == 0, 1 + extra / 2, np.where(kind == 1, 1, 2 + extra // 2))
    bedrooms = np.clip(np.round(area / 45 + rng.normal(0, 0.7, n)), 1, 12)
    bathrooms = np.clip(np.round(2 * (area / 90 + rng.normal(0, 0.3, n))) / 2, 1, 6)
    log_value = (
        12.55
        + effect
        + 0.65 * np.log(area / 120)
        + land_term
        + np.array([0.0, -0.10, 0.10])[kind]
        + 0.07 * (quality - 3.5)
        + 0.06 * latent
    )
    frame = place.with_columns(
        parcel_id=pl.format("p{}", pl.int_range(n).cast(pl.String).str.zfill(7)),
        property_class=pl.Series(CLASSES).gather(kind),
        property_subtype=pl.Series(SUBTYPES).gather(subtype),
        floor_area_m2=np.where(rng.random(n) < 0.002, 0.0, np.round(area, 1)),
        land_area_m2=pl.when(pl.Series(kind != 1)).then(pl.Series(np.round(land, 1))),
        year_built=built,
        storeys=storeys,
        n_dwellings=np.where(kind == 2, 2 + extra, 1),
        bedrooms=bedrooms,
        bathrooms=bathrooms,
        quality=quality,
    )
    gaps = {name: pl.Series(rng.random(n) >= share) for name, share in MISSING.items()}
    frame = frame.with_columns(pl.when(there).then(pl.col(name)).alias(name) for name, there in gaps.items())
    placed = pl.Series(rng.random(n) >= 0.01)
    frame = frame.with_columns(pl.when(placed).then(pl.col("lat", "lng", "distance_cbd_km")))
    return _Parcels(frame=frame, log_value=log_value, year_built=built, latent=latent)


def _places(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, Floats]:
    """Return the place columns of ``n`` parcels and what the place adds to ln value."""
    towns = int(np.clip(round(np.sqrt(n) / 5), 4, 400))
    step = np.arange(towns)
    # A sunflower of municipalities: evenly spread whatever their number.
    radius, angle = 2.5 * np.sqrt(step + 0.5), step * 2.399963
    weight = 1 / np.sqrt(step + 1)
    town = rng.choice(towns, n, p=weight / weight.sum())
    dx, dy = rng.normal(0, 1.0, n), rng.normal(0, 1.0, n)
    x, y = radius[town] * np.cos(angle[town]) + dx, radius[town] * np.sin(angle[town]) + dy
    lat = np.round(ORIGIN[0] + y / KM_PER_DEGREE, 6)
    lng = np.round(ORIGIN[1] + x / (KM_PER_DEGREE * np.cos(np.radians(ORIGIN[0]))), 6)
    distance = _nearest_centre_km(lat, lng)
    cells = rng.normal(0, 1, (4096, 2))
    cell = (np.floor(x).astype(np.int64) * 73_856_093 ^ np.floor(y).astype(np.int64) * 19_349_663) % 4096
    density = np.round(6_000 * np.exp(-distance / 8 + 0.3 * cells[cell, 0]))
    income = np.round(55_000 * np.exp(0.2 * cells[cell, 1]), -2)
    stops = rng.poisson(8 * np.exp(-distance / 6))
    river = np.abs(y - 1.5 * np.sin(x / 4))
    flood = (river < 0.5).astype(np.int64) + (river < 0.2)
    effect = (
        rng.normal(0, 0.15, towns)[town]
        - 0.012 * distance
        + 0.004 * stops
        - np.array([0.0, 0.04, 0.10])[flood]
        + 0.10 * np.log(income / 55_000)
    )
    names = [
        FIRST_NAMES[i % 10] + LAST_NAMES[(i // 10 + i) % 10] + (f" {i // 100 + 1}" if i >= 100 else "") for i in step
    ]
    quarter = 2 * (dy > 0).astype(np.int64) + (dx > 0)
    frame = pl.DataFrame(
        {
            "municipality": pl.Series(names).gather(town),
            "quarter": pl.Series(("South-West", "South-East", "North-West", "North-East")).gather(quarter),
            "region": pl.Series(("South Shore", "North Shore")).gather((y > 0).astype(np.int64)),
            "lat": lat,
            "lng": lng,
            "flood_zone": pl.Series(FLOOD).gather(flood),
            "transit_stops_1km": stops,
            "da_population_density": density,
            "da_median_income": income,
            "distance_cbd_km": np.round(distance, 3),
        }
    )
    return frame.with_columns(borough=pl.format("{} {}", "municipality", "quarter")).drop("quarter"), effect


def _nearest_centre_km(lat: Floats, lng: Floats) -> Floats:
    squeeze = np.cos(np.radians(ORIGIN[0]))
    degrees = [np.hypot(lat - centre.lat, (lng - centre.lng) * squeeze) for centre in REGION.centres]
    nearest: Floats = KM_PER_DEGREE * np.minimum.reduce(degrees)
    return nearest


@dataclass(frozen=True)
class _Sales:
    """One entry per sale, in no order."""

    parcel: Ints
    day: Ints
    true_value: Floats
    log_index: Floats
    price: Floats
    sale_type: Ints
    market: npt.NDArray[np.bool_]
    assessment: Floats
    land_share: Floats
    roll_reference: Ints


def _sales(rng: np.random.Generator, n: int, parcels: _Parcels, index: pl.DataFrame, start: date, years: int) -> _Sales:
    n_parcels = len(parcels.log_value)
    first_day = (start - date(1970, 1, 1)).days
    length = (date(start.year + years, start.month, 1) - start).days
    season = 1 + 0.35 * np.cos(2 * np.pi * (np.arange(length) - 150) / 365.25)
    parcel = np.concatenate([np.arange(n_parcels), rng.integers(0, n_parcels, n - n_parcels)])
    offset = rng.choice(length, n, p=season / season.sum())
    # A flip is a resale 90 to 300 days after the parcel's first drawn sale; the renovation stays in later sales.
    flipped = offset[parcel] + rng.integers(90, 301, n)
    is_flip = (np.arange(n) >= n_parcels) & (rng.random(n) < 0.12) & (flipped < length)
    offset = np.where(is_flip, flipped, offset)
    renovated_from = np.full(n_parcels, length)
    np.minimum.at(renovated_from, parcel[is_flip], offset[is_flip])
    day = first_day + offset
    months, level = _days_since_epoch(index["month"]), index["log_index"].to_numpy()
    log_index = np.interp(day, months, level)
    year = (day.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64)) + 1970
    age = np.clip(year - parcels.year_built[parcel], 0, 80)
    structure = parcels.log_value[parcel] - 0.0025 * age
    renovation = np.where(offset >= renovated_from[parcel], 0.55, 0.0)
    true_value = np.exp(structure + renovation + log_index)
    sort_of_sale = rng.random(n)
    sale_type = (sort_of_sale < 0.015).astype(np.int64) + (sort_of_sale < 0.005)
    distressed = (sort_of_sale >= 0.015) & (sort_of_sale < 0.02)  # no market sale, and the source does not say so
    market = (sale_type == 0) & ~distressed
    factor = np.exp(np.where(market, rng.normal(0, NOISE_SD, n), np.log(rng.uniform(0.3, 0.8, n))))
    price = np.where(sale_type == 2, 1.0, np.round(true_value * factor))
    roll_year = year - year % 3
    roll = (roll_year - roll_year.min()) // 3
    error = rng.normal(0, ROLL_ERROR_SD, (int(roll.max()) + 1, n_parcels))[roll, parcel]
    july = (roll_year - 1970 - 2).astype("datetime64[Y]").astype("datetime64[M]") + np.timedelta64(6, "M")
    reference = july.astype("datetime64[D]").astype(np.int64)
    level_then = np.interp(reference, months, level)
    # Rolls flatten: dear houses are assessed at a smaller part of their value.
    flat = -0.08 * (structure - parcels.log_value.mean())
    land_share = rng.uniform(0.25, 0.45, n_parcels)[parcel]
    return _Sales(
        parcel=parcel,
        day=day,
        true_value=true_value,
        log_index=log_index,
        price=price,
        sale_type=sale_type,
        market=market,
        assessment=np.round(np.exp(structure + level_then + flat + error), -2),
        land_share=land_share,
        roll_reference=reference,
    )


def _table(rng: np.random.Generator, parcels: _Parcels, drawn: _Sales, seed: int) -> pl.DataFrame:
    n = len(drawn.parcel)
    assessed = pl.Series(rng.random(len(parcels.log_value)) >= 0.03).gather(drawn.parcel)
    land = np.round(drawn.assessment * drawn.land_share, -2)
    year = drawn.day.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
    # Numbers in random order: neither an id nor its rank says when or for how much a property sold.
    number = pl.Series(rng.permutation(n)).cast(pl.String).str.zfill(7)
    frame = parcels.frame[drawn.parcel].with_columns(
        tx_id=pl.format("syn{}-{}", pl.lit(seed), number),
        sale_date=pl.Series(drawn.day.astype(np.int32)).cast(pl.Date),
        price=drawn.price,
        currency=pl.lit(CURRENCY),
        source=pl.lit("synthetic"),
        condition=pl.lit(None, dtype=pl.Float64),
        new_construction=year - parcels.year_built[drawn.parcel] <= 1,
        assessment_land=land,
        assessment_building=drawn.assessment - land,
        assessment_total=drawn.assessment,
        roll_reference_date=pl.Series(drawn.roll_reference.astype(np.int32)).cast(pl.Date),
        sale_type=pl.Series(SALE_TYPES).gather(drawn.sale_type),
        true_value=drawn.true_value,
        log_index=drawn.log_index,
        noise=np.log(drawn.price / drawn.true_value),
        market=drawn.market,
        latent=parcels.latent[drawn.parcel],
    )
    roll = ("assessment_land", "assessment_building", "assessment_total", "roll_reference_date")
    return frame.with_columns(
        *(pl.when(assessed).then(pl.col(name)).alias(name) for name in roll),
        *(pl.col(name).cast(dtype) for name, dtype in RAW_SCHEMA.items() if name not in roll),
    )
