"""House sales in King County, Washington, May 2014 to May 2015 (``kc_house_data.csv`` or its Parquet form)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import polars as pl

from consilience.experiments.parquet import read_parquet
from consilience.valuation.adapters.base import (
    M2_PER_SQFT,
    ROW_LIMIT,
    Adapter,
    distance_to_centres,
    fill_absent,
    parse,
    read_text_table,
    require_columns,
)
from consilience.valuation.flags import annotate
from consilience.valuation.schema import LINE, ROW, Bounds, Centre, Observation, RegionMap

CSV_NAMES = {"id": "parcel_id", "date": "sale_date", "long": "lon"}
SOURCE_NAMES = {
    "tx_id": "source_row",
    "municipality": "zipcode",
    "lng": "lon",
    "floor_area_m2": "sqft_living",
    "land_area_m2": "sqft_lot",
    "year_built": "yr_built",
    "storeys": "floors",
    "quality": "grade",
}
PUBLIC_NAMES = {"parcel_id": "id", "sale_date": "date", "lng": "long"}
WHOLE = ("bedrooms", "sqft_living", "sqft_lot", "condition", "grade", "yr_built", "yr_renovated")
DECIMAL = ("price", "bathrooms", "floors", "lat", "lon")
WANTED = ("parcel_id", "sale_date", "zipcode", *WHOLE, *DECIMAL)
REGION = RegionMap(
    municipality="zip code",
    region="county",
    centres=(Centre(name="Seattle", lat=47.6062, lng=-122.3321),),
    bounds=Bounds(lat_min=47.0, lat_max=47.9, lng_min=-122.6, lng_max=-121.0),
)
# The attributes are one later state of the assessor's file: no resold parcel differs between its sales.
LATER_SNAPSHOT = Observation(rule="snapshot", later_than_sale=True)
SNAPSHOT_COLUMNS = (
    "municipality",
    "region",
    "lat",
    "lng",
    "floor_area_m2",
    "land_area_m2",
    "year_built",
    "storeys",
    "bedrooms",
    "bathrooms",
    "condition",
    "quality",
    "distance_cbd_km",
)


class KingCounty(Adapter):
    """King County, Washington: one property class, no roll, no flood, transit or income data.

    ``tx_id`` is ``kc-`` and the row of the public csv, counted from 0, so that both forms give the same ids.
    """

    name: ClassVar[str] = "king_county"

    @property
    def region(self) -> RegionMap:
        """Zip codes in one county, with one centre."""
        return REGION

    @property
    def observations(self) -> Mapping[str, Observation]:
        """All attributes are one snapshot later than the sales, whose day the source does not state."""
        at_sale = Observation(rule="at_sale")
        return {
            "sale_date": at_sale,
            "price": at_sale,
            "property_class": at_sale,
            **dict.fromkeys(SNAPSHOT_COLUMNS, LATER_SNAPSHOT),
        }

    def read(self, path: Path, *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
        """Return the sales with ``parcel_id, sale_date, source_row`` and the assessor's columns."""
        if path.suffix.lower() == ".csv":
            return _read_csv(path, row_limit).select(*WANTED, "source_row", LINE)
        raw = read_parquet(path, row_limit=row_limit)
        require_columns(raw, (*WANTED, "source_row"), where=path.name)
        return raw.select(*WANTED, "source_row").with_row_index(ROW, offset=1)

    def names(self, raw: pl.DataFrame) -> Mapping[str, str]:
        """Return the names in the public csv or in its Parquet form."""
        return SOURCE_NAMES | PUBLIC_NAMES if LINE in raw.columns else SOURCE_NAMES

    def to_analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the analytic table of the sales."""
        frame = fill_absent(
            raw.select(
                pl.format("kc-{}", pl.col("source_row").cast(pl.String).str.zfill(5)).alias("tx_id"),
                "parcel_id",
                "sale_date",
                "price",
                "bedrooms",
                "bathrooms",
                "condition",
                "yr_renovated",
                "lat",
                currency=pl.lit("USD"),
                property_class=pl.lit("house"),
                municipality=pl.col("zipcode").cast(pl.String),
                region=pl.lit("King County"),
                lng="lon",
                floor_area_m2=pl.col("sqft_living") * M2_PER_SQFT,
                land_area_m2=pl.col("sqft_lot") * M2_PER_SQFT,
                year_built="yr_built",
                storeys="floors",
                quality="grade",
                source=pl.lit(self.name),
            ).with_columns(raw[name] for name in (LINE, ROW) if name in raw.columns),
            names=self.names(raw),
        )
        renovated = {"renovated_after_sale": pl.col("yr_renovated") > pl.col("sale_date").dt.year()}
        return annotate(frame, bounds=REGION.bounds, declared=renovated).with_columns(
            distance_cbd_km=distance_to_centres(REGION)
        )


def _read_csv(path: Path, row_limit: int) -> pl.DataFrame:
    text = read_text_table(path, row_limit=row_limit)
    public = {ours: theirs for theirs, ours in CSV_NAMES.items()}
    require_columns(text, [public.get(name, name) for name in WANTED], where=path.name)
    text = text.rename(CSV_NAMES)

    def read(name: str, values: pl.Expr, what: str) -> pl.Series:
        return parse(text, name, values, what, named=public.get(name))

    numbers = [read(name, pl.col(name).cast(pl.Int64, strict=False), "a whole number") for name in WHOLE]
    numbers += [read(name, pl.col(name).cast(pl.Float64, strict=False), "a number") for name in DECIMAL]
    day = pl.col("sale_date").str.slice(0, 8).str.to_date("%Y%m%d", strict=False)
    days = read("sale_date", day, "a day like 20141013")
    # The public file holds ids as integers, which lost their leading zeros.
    return text.with_columns(pl.col("parcel_id").str.zfill(10), days, *numbers).with_row_index("source_row")
