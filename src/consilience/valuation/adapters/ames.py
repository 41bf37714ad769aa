"""House sales in Ames, Iowa, 2006 to 2010 (``AmesHousing`` as delimited text, or with coordinates as Parquet)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import polars as pl

from consilience.valuation.adapters.base import (
    M2_PER_SQFT,
    ROW_LIMIT,
    Adapter,
    distance_to_centres,
    fill_absent,
    parse,
)
from consilience.valuation.adapters.columns import Column, is_text_form, read_columns, read_words, source_names
from consilience.valuation.flags import annotate
from consilience.valuation.schema import LINE, MONTH_ONLY, ROW, Bounds, Centre, Observation, RegionMap

COLUMNS = (
    Column("parcel_id", "text", "PID"),
    Column("price", "number", "SalePrice"),
    Column("sale_type", "text", "Sale Type"),
    Column("sale_condition", "text", "Sale Condition"),
    Column("lot_area", "number", "Lot Area"),
    Column("neighborhood", "text", "Neighborhood"),
    Column("bldg_type", "text", "Bldg Type"),
    Column("house_style", "text", "House Style"),
    Column("overall_qual", "whole", "Overall Qual"),
    Column("overall_cond", "whole", "Overall Cond"),
    Column("year_built", "whole", "Year Built"),
    Column("year_remod_add", "whole", "Year Remod/Add"),
    Column("gr_liv_area", "number", "Gr Liv Area"),
    Column("full_bath", "number", "Full Bath"),
    Column("half_bath", "number", "Half Bath"),
    Column("bedroom_abvgr", "whole", "Bedroom AbvGr"),
    Column("garage_yr_blt", "whole", "Garage Yr Blt"),
    Column("mo_sold", "whole", "Mo Sold"),
    Column("yr_sold", "whole", "Yr Sold"),
)
PLACED = (Column("lat", "number"), Column("lon", "number"))
SOURCE_NAMES = {
    "tx_id": "parcel_id",
    "sale_date": "yr_sold",
    "municipality": "neighborhood",
    "lng": "lon",
    "floor_area_m2": "gr_liv_area",
    "land_area_m2": "lot_area",
    "bedrooms": "bedroom_abvgr",
    "bathrooms": "full_bath",
    "quality": "overall_qual",
    "condition": "overall_cond",
}
PARCEL_DIGITS = 10
CLASSES = {
    "1Fam": "house",
    "2fmCon": "two-family",
    "Duplex": "two-family",
    "TwnhsE": "townhouse",
    "Twnhs": "townhouse",
    "TwnhsI": "townhouse",
}
STOREYS = {
    "1Story": 1.0,
    "1.5Fin": 1.5,
    "1.5Unf": 1.5,
    "2Story": 2.0,
    "2.5Fin": 2.5,
    "2.5Unf": 2.5,
    # A split level or split foyer has no number of storeys that compares with the others.
    "SFoyer": None,
    "SLvl": None,
}
NON_MARKET = ("Abnorml", "AdjLand", "Alloca", "Family")
INCOMPLETE = "Partial"
CONDITIONS = {name: name for name in ("Normal", INCOMPLETE, *NON_MARKET)}
NEWLY_BUILT = "New"
LAST_YEAR = 2010
REGION = RegionMap(
    municipality="neighbourhood",
    region="city",
    centres=(Centre(name="Ames", lat=42.0254, lng=-93.6130),),
    bounds=Bounds(lat_min=41.95, lat_max=42.10, lng_min=-93.75, lng_max=-93.50),
)
LATER_SNAPSHOT = Observation(rule="snapshot", later_than_sale=True)
AT_SALE = ("sale_date", "price", "new_construction")
SNAPSHOT_COLUMNS = (
    *("property_class", "property_subtype", "municipality", "region", "lat", "lng", "floor_area_m2", "land_area_m2"),
    *("year_built", "storeys", "n_dwellings", "bedrooms", "bathrooms", "condition", "quality", "distance_cbd_km"),
)


class Ames(Adapter):
    """Ames, Iowa: only the month of sale is known; the source tells sales that were not at arm's length.

    A sale is valued on its month's first day and known to others on the last. Of the columns read, ``NA`` stands in the
    garage's year alone, where it means no garage. The text form holds no coordinates, so they and all that rests on
    them are null there.
    """

    name: ClassVar[str] = "ames"

    @property
    def region(self) -> RegionMap:
        """Neighbourhoods in one city, with one centre."""
        return REGION

    @property
    def observations(self) -> Mapping[str, Observation]:
        """Attributes are the assessor's later file, in which houses are rebuilt after their sale."""
        return {
            **dict.fromkeys(AT_SALE, Observation(rule="at_sale")),
            **dict.fromkeys(SNAPSHOT_COLUMNS, LATER_SNAPSHOT),
        }

    def read(self, path: Path, *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
        """Return the sales' columns under their Parquet names, blanks around words cut."""
        if is_text_form(path):
            nowhere = (pl.lit(None, dtype=pl.Float64).alias(column.name) for column in PLACED)
            return read_columns(path, COLUMNS, row_limit=row_limit).with_columns(nowhere)
        raw = read_columns(path, (*COLUMNS, *PLACED), row_limit=row_limit)
        return raw.with_columns(pl.col(pl.String).str.strip_chars())

    def names(self, raw: pl.DataFrame) -> Mapping[str, str]:
        """Return the names in the public table or in its Parquet form."""
        return source_names((*COLUMNS, *PLACED), raw, SOURCE_NAMES)

    def to_analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the analytic table of the sales.

        Raises:
            DataError: A month is none, or a building type, house style or sale condition is an unknown word.
        """
        public = {column.name: column.public for column in COLUMNS if LINE in raw.columns}
        classes = read_words(raw, "bldg_type", CLASSES, named=public.get("bldg_type"))
        storeys = read_words(raw, "house_style", STOREYS, named=public.get("house_style"))
        condition = read_words(raw, "sale_condition", CONDITIONS, named=public.get("sale_condition"))
        month = pl.when(pl.col("mo_sold").is_between(1, 12)).then(pl.date("yr_sold", "mo_sold", 1))
        frame = fill_absent(
            raw.select(
                "price",
                "year_built",
                "lat",
                "year_remod_add",
                "garage_yr_blt",
                parcel_id=pl.col("parcel_id").str.zfill(PARCEL_DIGITS),
                tx_id=pl.format("ames-{}", pl.col("parcel_id").str.zfill(PARCEL_DIGITS)),
                sale_date=pl.lit(parse(raw, "mo_sold", month, "a month from 1 to 12", named=public.get("mo_sold"))),
                currency=pl.lit("USD"),
                property_class=pl.lit(classes),
                property_subtype="bldg_type",
                municipality="neighborhood",
                region=pl.lit("Ames"),
                lng="lon",
                floor_area_m2=pl.col("gr_liv_area") * M2_PER_SQFT,
                land_area_m2=pl.col("lot_area") * M2_PER_SQFT,
                storeys=pl.lit(storeys),
                n_dwellings=pl.when(pl.lit(classes) == "two-family")
                .then(2)
                .when(pl.lit(classes).is_not_null())
                .then(1),
                bedrooms="bedroom_abvgr",
                bathrooms=pl.col("full_bath") + 0.5 * pl.col("half_bath"),
                quality="overall_qual",
                condition="overall_cond",
                new_construction=pl.col("sale_type") == NEWLY_BUILT,
                sale_condition=pl.lit(condition),
                source=pl.lit(self.name),
            ).with_columns(raw[name] for name in (LINE, ROW) if name in raw.columns),
            names=self.names(raw),
        )
        declared = {
            MONTH_ONLY: pl.lit(value=True),
            "declared_non_market": pl.col("sale_condition").is_in(NON_MARKET),
            "incomplete_when_assessed": pl.col("sale_condition") == INCOMPLETE,
            "renovated_after_sale": pl.col("year_remod_add") > pl.col("sale_date").dt.year(),
            # A garage's year has no column of its own, but one such as 2207 casts doubt on the row.
            "impossible_value": pl.col("garage_yr_blt") > LAST_YEAR,
        }
        return annotate(frame, bounds=REGION.bounds, declared=declared).with_columns(
            distance_cbd_km=distance_to_centres(REGION)
        )
