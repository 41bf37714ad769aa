"""House sales in Lucas County, Ohio, 1993 to 1998 (``house`` of the R package spData, brought to WGS 84)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import polars as pl

from consilience.valuation.adapters.base import M2_PER_SQFT, ROW_LIMIT, Adapter, distance_to_centres, fill_absent
from consilience.valuation.adapters.columns import Column, read_columns, read_words, source_names
from consilience.valuation.flags import annotate
from consilience.valuation.schema import LINE, ROW, Bounds, Centre, Observation, RegionMap

# `age_1999_x100` is left out on purpose: it counts from 1999 for every sale, a day after all of them.
COLUMNS = (
    Column("location_key", "text"),
    Column("sale_date", "day"),
    Column("price", "number"),
    Column("assessed_value", "number"),
    Column("lat", "number"),
    Column("lon", "number"),
    Column("yrbuilt", "whole"),
    Column("stories", "text"),
    Column("living_area_sqft", "number"),
    Column("beds", "whole"),
    Column("baths", "number"),
    Column("halfbaths", "number"),
    Column("lot_sqft", "number"),
    Column("source_row", "whole"),
)
SOURCE_NAMES = {
    "tx_id": "source_row",
    "parcel_id": "location_key",
    "assessment_total": "assessed_value",
    "lng": "lon",
    "year_built": "yrbuilt",
    "storeys": "stories",
    "floor_area_m2": "living_area_sqft",
    "bedrooms": "beds",
    "bathrooms": "baths",
    "land_area_m2": "lot_sqft",
}
# A split level has no number of storeys that compares with the others.
STOREYS = {"one": 1.0, "one+half": 1.5, "two": 2.0, "two+half": 2.5, "three": 3.0, "bilevel": None, "multilvl": None}
REGION = RegionMap(
    municipality="not in the source",
    region="county",
    centres=(Centre(name="Toledo", lat=41.6528, lng=-83.5379),),
    bounds=Bounds(lat_min=41.35, lat_max=41.80, lng_min=-83.95, lng_max=-83.10),
)
LATER_SNAPSHOT = Observation(rule="snapshot", later_than_sale=True)
SNAPSHOT_COLUMNS = (
    *("region", "lat", "lng", "floor_area_m2", "land_area_m2", "year_built", "storeys", "bedrooms", "bathrooms"),
    *("distance_cbd_km", "assessment_total"),
)


class Lucas(Adapter):
    """Lucas County, Ohio: one class of house, no municipality, a parcel per place, no repeat sale.

    The assessed value is one roll for all six years, as its ratio to prices falls steadily with the market: it was not
    the roll in force at every sale and is declared a later snapshot. The source kept only sales whose ratio of
    assessment to price lies between 0.5 and 1.5, so ratio figures of this set flatter.
    """

    name: ClassVar[str] = "lucas"

    @property
    def region(self) -> RegionMap:
        """One county, with one centre and no municipalities."""
        return REGION

    @property
    def observations(self) -> Mapping[str, Observation]:
        """All attributes and the assessment are one snapshot, maybe later than the sale."""
        at_sale = Observation(rule="at_sale")
        return {
            **dict.fromkeys(("sale_date", "price", "property_class"), at_sale),
            **dict.fromkeys(SNAPSHOT_COLUMNS, LATER_SNAPSHOT),
        }

    def read(self, path: Path, *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
        """Return the sales' columns; the R file itself, which is projected and no table, is not read."""
        return read_columns(path, COLUMNS, row_limit=row_limit)

    def names(self, raw: pl.DataFrame) -> Mapping[str, str]:
        """Return the source's names."""
        return source_names(COLUMNS, raw, SOURCE_NAMES)

    def to_analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the analytic table of the sales.

        Raises:
            DataError: A count of storeys is an unknown word.
        """
        storeys = read_words(raw, "stories", STOREYS)
        frame = fill_absent(
            raw.select(
                pl.format("luc-{}", pl.col("source_row").cast(pl.Int64).cast(pl.String).str.zfill(5)).alias("tx_id"),
                "sale_date",
                "price",
                "lat",
                parcel_id="location_key",
                currency=pl.lit("USD"),
                property_class=pl.lit("house"),
                region=pl.lit("Lucas County"),
                lng="lon",
                floor_area_m2=pl.col("living_area_sqft") * M2_PER_SQFT,
                land_area_m2=pl.col("lot_sqft") * M2_PER_SQFT,
                year_built="yrbuilt",
                storeys=pl.lit(storeys),
                bedrooms="beds",
                bathrooms=pl.col("baths") + 0.5 * pl.col("halfbaths"),
                assessment_total=pl.when(pl.col("assessed_value") > 0).then(pl.col("assessed_value")),
                source=pl.lit(self.name),
            ).with_columns(raw[name] for name in (LINE, ROW) if name in raw.columns),
            names=self.names(raw),
        )
        return annotate(frame, bounds=REGION.bounds).with_columns(distance_cbd_km=distance_to_centres(REGION))
