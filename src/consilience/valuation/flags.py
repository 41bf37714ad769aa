"""What is odd about a sale, said beside it and never acted on: leaving sales out is a declared rule's affair."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from consilience.valuation.schema import ANALYTIC, AREAS, LINE, MONTH_ONLY, ROW, Bounds

NOMINAL_PRICE = 10_000
WINDOW_DAYS = 365
FLIP_RATIO = 1.5
MOST_ROOMS = 20
SMALLEST_AREA_M2 = 10
EARLIEST_YEAR = 1500

FLAGS: dict[str, str] = {
    "declared_non_market": "the source's own sale type says that this was no open-market sale",
    "nominal_price": "the price is at most 10,000",
    "same_price_resale": "the parcel sold at exactly this price 1 to 365 days before",
    "duplicate": "the parcel has an earlier row with this date and price",
    "same_day_resale": "the parcel has an earlier row with this date and another price: their order is unknown",
    "shared_date_price": "another parcel sold on this day at this price: perhaps one deed for several parcels; kept",
    "flip": "the parcel sold 1 to 365 days before and the price rose by more than half",
    "built_after_sale": "the year built is later than the year of sale",
    "renovated_after_sale": "the year renovated is later than the year of sale",
    "incomplete_when_assessed": "the source says that the home was not finished when it was last assessed",
    "impossible_value": "more than 20 bedrooms or bathrooms, a negative count, under 10 m2, or a year out of reason",
    "floor_area_not_positive": "the source gives a floor area of 0 or less; null here",
    "land_area_not_positive": "the source gives a land area of 0 or less; null here",
    "coordinates_out_of_range": "the coordinates lie outside the data set's bounds; null here",
    "coordinates_swapped": "latitude and longitude are exchanged in the source; null here",
    "zero_distance_neighbour": "another parcel with an earlier row lies at exactly these coordinates",
    MONTH_ONLY: "only the month of sale is known: valued at its start, known to others at its end",
}
"""Every flag and what it means."""


def flag_counts(frame: pl.DataFrame) -> dict[str, int]:
    """Return the number of sales per flag that occurs, by name.

    Example:
        >>> flag_counts(pl.DataFrame({"flags": [["flip"], []]}, schema={"flags": pl.List(pl.String)}))
        {'flip': 1}
    """
    counts = frame.select(pl.col("flags").explode().drop_nulls().value_counts()).unnest("flags").sort("flags")
    return dict(counts.iter_rows())


def annotate(
    frame: pl.DataFrame, *, bounds: Bounds | None = None, declared: Mapping[str, pl.Expr] | None = None
) -> pl.DataFrame:
    """Return the analytic table of a frame that has all its columns but ``flags``.

    Rows come sorted by sale date, then parcel, equals in the order given. Areas that are not positive and coordinates
    that cannot be right become null, with a flag. A flag looks only at its own row and at rows that stand before it or
    share its day, so a later sale never changes what is said about an earlier one. Flags of price (``nominal_price``,
    ``flip``…) know the sale's own price: they are for excluding and grouping, never for a packet.

    Args:
        frame: The columns of `ANALYTIC` without ``flags``, plus any that ``declared`` reads; `LINE` or `ROW` is kept.
        bounds: Where coordinates must lie.
        declared: Flags that only the source can tell, each with the condition for it; a flag that is also found here
            is set where either condition holds.
    """
    box = bounds or Bounds(lat_min=-90, lat_max=90, lng_min=-180, lng_max=180)
    lat, lng = pl.col("lat"), pl.col("lng")
    placed = lat.is_not_null() & lng.is_not_null()
    lost = placed & ~_inside(lat, lng, box)
    swapped = lost & _inside(lng, lat, box)
    conditions: dict[str, pl.Expr] = {
        "floor_area_not_positive": pl.col("floor_area_m2") <= 0,
        "land_area_not_positive": pl.col("land_area_m2") <= 0,
        "coordinates_swapped": swapped,
        "coordinates_out_of_range": lost & ~swapped,
        "nominal_price": pl.col("price") <= NOMINAL_PRICE,
        "impossible_value": _impossible(),
        "built_after_sale": pl.col("year_built") > pl.col("sale_date").dt.year(),
        **_from_other_sales(),
    }
    for name, told in (declared or {}).items():
        conditions[name] = told | conditions[name] if name in conditions else told
    if MONTH_ONLY in conditions:
        # Two homes at one price in a month are no sign of one deed.
        conditions["shared_date_price"] &= ~conditions[MONTH_ONLY]
    ordered = frame.sort("sale_date", "parcel_id", maintain_order=True)
    # A missing coordinate says nothing about its partner, so both go together.
    cleaned = ordered.with_columns(
        *(pl.when(pl.col(name) > 0).then(pl.col(name)).alias(f"_{name}") for name in AREAS),
        *(pl.when(placed & ~lost).then(pl.col(name)).alias(f"_{name}") for name in ("lat", "lng")),
    )
    names = [name for name in FLAGS if name in conditions]
    named = [pl.when(conditions[name]).then(pl.lit(name)) for name in names]
    return cleaned.select(
        *(
            pl.col(f"_{name}").alias(name) if f"_{name}" in cleaned.columns else pl.col(name)
            for name in ANALYTIC
            if name != "flags"
        ),
        pl.concat_list(named).list.drop_nulls().alias("flags"),
        *(name for name in (LINE, ROW) if name in frame.columns),
    )


def _inside(lat: pl.Expr, lng: pl.Expr, box: Bounds) -> pl.Expr:
    return lat.is_between(box.lat_min, box.lat_max) & lng.is_between(box.lng_min, box.lng_max)


def _impossible() -> pl.Expr:
    return (
        pl.any_horizontal(~pl.col(name).is_between(0, MOST_ROOMS) for name in ("bedrooms", "bathrooms"))
        | pl.any_horizontal(pl.col(name) < 0 for name in ("storeys", "n_dwellings", "transit_stops_1km"))
        | pl.col("floor_area_m2").is_between(0, SMALLEST_AREA_M2, closed="none")
        | (pl.col("year_built") < EARLIEST_YEAR)
    )


def _from_other_sales() -> dict[str, pl.Expr]:
    day, price, parcel = pl.col("sale_date"), pl.col("price"), pl.col("parcel_id")
    gap = (day - day.shift(1).over("parcel_id")).dt.total_days()
    gap_same_price = (day - day.shift(1).over("parcel_id", "price")).dt.total_days()
    place = ("lat", "lng")
    parcels_so_far = pl.struct(*place, "parcel_id").is_first_distinct().cast(pl.Int32).cum_sum().over(*place)
    return {
        "duplicate": gap_same_price == 0,
        "same_day_resale": (gap == 0) & (gap_same_price == 0).fill_null(value=False).not_(),
        "same_price_resale": gap_same_price.is_between(1, WINDOW_DAYS),
        "flip": gap.is_between(1, WINDOW_DAYS) & (price > FLIP_RATIO * price.shift(1).over("parcel_id")),
        # Rows are sorted by parcel within a day, so one parcel's rows are first and last of their group.
        "shared_date_price": parcel.first().over("sale_date", "price") != parcel.last().over("sale_date", "price"),
        "zero_distance_neighbour": pl.all_horizontal(pl.col(name).is_not_null() for name in place)
        & (parcels_so_far > 1),
    }
