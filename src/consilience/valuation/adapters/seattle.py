"""House and townhouse sales in Seattle, 2010 to 2016 (``seattle_sales`` of the R package hpiR, as csv or Parquet)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import polars as pl

from consilience.valuation.adapters.base import M2_PER_SQFT, ROW_LIMIT, Adapter, distance_to_centres, fill_absent
from consilience.valuation.adapters.columns import Column, read_columns, source_names
from consilience.valuation.flags import annotate
from consilience.valuation.schema import LINE, ROW, Bounds, Centre, Observation, RegionMap

COLUMNS = (
    Column("parcel_id", "text", "pinx"),
    Column("sale_id", "text"),
    Column("sale_date", "day"),
    Column("price", "number", "sale_price"),
    Column("use_type", "text"),
    Column("area", "whole"),
    Column("lot_sf", "number"),
    Column("bldg_grade", "whole"),
    Column("tot_sf", "number"),
    Column("beds", "whole"),
    Column("baths", "number"),
    Column("age", "whole"),
    Column("lon", "number", "longitude"),
    Column("lat", "number", "latitude"),
)
SOURCE_NAMES = {
    "tx_id": "sale_id",
    "property_class": "use_type",
    "municipality": "area",
    "land_area_m2": "lot_sf",
    "quality": "bldg_grade",
    "floor_area_m2": "tot_sf",
    "bedrooms": "beds",
    "bathrooms": "baths",
    "year_built": "age",
    "lng": "lon",
}
PARCEL_DIGITS = 10
REGION = RegionMap(
    municipality="assessor's area",
    region="city",
    centres=(Centre(name="Seattle", lat=47.6062, lng=-122.3321),),
    bounds=Bounds(lat_min=47.45, lat_max=47.78, lng_min=-122.46, lng_max=-122.22),
)
# The age counts back from each sale to one year built, and nothing else changes between the sales of one parcel.
LATER_SNAPSHOT = Observation(rule="snapshot", later_than_sale=True)
SNAPSHOT_COLUMNS = (
    *("property_class", "municipality", "region", "lat", "lng", "floor_area_m2", "land_area_m2", "year_built"),
    *("bedrooms", "bathrooms", "quality", "distance_cbd_km"),
)


class Seattle(Adapter):
    """Seattle, Washington: houses (``sfr``) and townhouses, no roll, no flood, transit or income data.

    ``tx_id`` is the source's sale id, whose two dots keep it from being read as a number; the property class is the
    use type. Prices below about 150,000 were filtered out by the source.
    """

    name: ClassVar[str] = "seattle"

    @property
    def region(self) -> RegionMap:
        """The assessor's areas in one city, with one centre."""
        return REGION

    @property
    def observations(self) -> Mapping[str, Observation]:
        """All attributes are one snapshot later than the sales, whose day the source does not state."""
        at_sale = Observation(rule="at_sale")
        return {"sale_date": at_sale, "price": at_sale, **dict.fromkeys(SNAPSHOT_COLUMNS, LATER_SNAPSHOT)}

    def read(self, path: Path, *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
        """Return the sales' columns under their Parquet names."""
        return read_columns(path, COLUMNS, row_limit=row_limit)

    def names(self, raw: pl.DataFrame) -> Mapping[str, str]:
        """Return the names in the package's table or in its Parquet form."""
        return source_names(COLUMNS, raw, SOURCE_NAMES)

    def to_analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the analytic table of the sales."""
        frame = fill_absent(
            raw.select(
                # The package guards parcel ids like sale ids, by two dots ahead.
                pl.col("parcel_id").str.strip_prefix("..").str.zfill(PARCEL_DIGITS),
                "sale_date",
                "price",
                "lat",
                tx_id="sale_id",
                currency=pl.lit("USD"),
                property_class="use_type",
                municipality=pl.format("area {}", pl.col("area").cast(pl.Int64)),
                region=pl.lit("Seattle"),
                lng="lon",
                floor_area_m2=pl.col("tot_sf") * M2_PER_SQFT,
                land_area_m2=pl.col("lot_sf") * M2_PER_SQFT,
                year_built=pl.col("sale_date").dt.year() - pl.col("age"),
                bedrooms="beds",
                bathrooms="baths",
                quality="bldg_grade",
                source=pl.lit(self.name),
            ).with_columns(raw[name] for name in (LINE, ROW) if name in raw.columns),
            names=self.names(raw),
        )
        return annotate(frame, bounds=REGION.bounds).with_columns(distance_cbd_km=distance_to_centres(REGION))
