"""The synthetic town as a source, read from the raw table that the generator wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import polars as pl

from consilience.experiments.parquet import read_parquet
from consilience.valuation.adapters.base import ROW_LIMIT, Adapter, fill_absent, require_columns
from consilience.valuation.flags import annotate
from consilience.valuation.schema import ROW, Observation, RegionMap
from consilience.valuation.synthetic import MARKET_SALE, RAW_SCHEMA, REGION

AT_ROLL = ("assessment_land", "assessment_building", "assessment_total", "roll_reference_date")
UNOBSERVED = ("condition",)


class SyntheticTown(Adapter):
    """A made-up town whose true values are known; every column but condition is observed."""

    name: ClassVar[str] = "synthetic"

    @property
    def region(self) -> RegionMap:
        """Municipalities, boroughs and two regions around one centre each."""
        return REGION

    @property
    def observations(self) -> Mapping[str, Observation]:
        """The roll at its reference date, everything else at the sale, condition never."""
        return {
            name: Observation(rule="at_roll_reference" if name in AT_ROLL else "at_sale")
            for name in RAW_SCHEMA.names()
            if name not in UNOBSERVED
        }

    def read(self, path: Path, *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
        """Return the raw table."""
        raw = read_parquet(path, row_limit=row_limit)
        require_columns(raw, RAW_SCHEMA.names(), where=path.name)
        return raw.select(RAW_SCHEMA.names()).with_row_index(ROW, offset=1)

    def to_analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the analytic table of the town."""
        declared = {"declared_non_market": pl.col("sale_type") != MARKET_SALE}
        return annotate(fill_absent(raw), bounds=REGION.bounds, declared=declared)
