"""Any delimited text file, its columns mapped to the analytic table by a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

import polars as pl
from pydantic import Field, field_validator, model_validator

from consilience.config import load_yaml
from consilience.core.question import Strict
from consilience.errors import ConfigError
from consilience.registry import nearest
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
from consilience.valuation.schema import ANALYTIC, AREAS, IDENTITY, LINE, MONTH_ONLY, Observation, RegionMap

AreaUnit = Literal["m2", "sqft", "acre", "ha"]
M2_PER_UNIT: dict[str, float] = {"m2": 1.0, "sqft": M2_PER_SQFT, "acre": 43_560 * M2_PER_SQFT, "ha": 10_000.0}
NEEDED = ("parcel_id", "sale_date", "price")
NEEDED_SOMEHOW = ("currency", "property_class")
MAPPABLE = tuple(name for name in ANALYTIC.names() if name not in {"source", "flags"})
TRUE, FALSE = ("true", "yes", "y", "1"), ("false", "no", "n", "0")
AT_ROLL = ("assessment_land", "assessment_building", "assessment_total", "roll_reference_date")


class CsvMapping(Strict):
    """How one file's columns become the analytic table's.

    Attributes:
        columns: Analytic column → column of the file. ``parcel_id``, ``sale_date`` and ``price`` are needed; without
            ``tx_id`` sales are named by their line in the file, the header being line 1.
        constants: Analytic text column → the one value it has, such as ``currency: EUR``.
        observed: When attributes were true, unless ``observations`` says otherwise. Sale date and price are of the
            sale and assessments of the roll without being named.
        observations: Analytic column → its own rule.
        region: What the place columns mean, centres and bounds.
        delimiter: One ASCII character.
        decimal_comma: Numbers read ``1,5``.
        encoding: Name of the text encoding.
        null_values: Texts that mean "unknown", beside the empty one.
        date_format: ``strftime`` pattern of all dates.
        month_only: Only the month of sale is known: valued at its start, known to others at its end.
        floor_area: Unit of the floor area.
        land_area: Unit of the land area.
        sale_type: Column of the file that holds the sort of sale.
        market_sale_types: Values of it that are open-market sales; all others are flagged.

    Raises:
        ValueError: An analytic column is unknown (the nearest is named), needed and missing, or given twice.

    Example:
        >>> CsvMapping(columns={"parcel_id": "id", "sale_date": "date", "price": "euro"},
        ...     constants={"currency": "EUR", "property_class": "house"}, observed=Observation(rule="at_sale"),
        ...     region=RegionMap(municipality="town", region="province")).delimiter
        ','
    """

    columns: dict[str, str]
    constants: dict[str, str] = Field(default_factory=dict)
    observed: Observation
    observations: dict[str, Observation] = Field(default_factory=dict)
    region: RegionMap
    delimiter: str = Field(default=",", pattern=r"^[\t -~]$")
    decimal_comma: bool = False
    encoding: str = "utf-8"
    null_values: tuple[str, ...] = Field(default=("NA",), strict=False)
    date_format: str = "%Y-%m-%d"
    month_only: bool = False
    floor_area: AreaUnit = "m2"
    land_area: AreaUnit = "m2"
    sale_type: str | None = None
    market_sale_types: tuple[str, ...] = Field(default=(), strict=False)

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str) -> str:
        try:
            "a".encode(value)
        except LookupError:
            raise ValueError(f'unknown encoding "{value}"; such as utf-8, cp1252, latin-1') from None
        return value

    @model_validator(mode="after")
    def _names_known(self) -> Self:
        for name in (*self.columns, *self.constants, *self.observations):
            if name not in MAPPABLE:
                raise ValueError(f'unknown analytic column "{name}". {nearest(name, MAPPABLE)}')
        for name in self.constants:
            if ANALYTIC[name] != pl.String or name in {"tx_id", "parcel_id"}:
                raise ValueError(f'"{name}" cannot be a constant')
            if name in self.columns:
                raise ValueError(f'"{name}" is both a column and a constant')
        return self

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for name in NEEDED:
            if name not in self.columns:
                raise ValueError(f'columns must name "{name}"')
        for name in NEEDED_SOMEHOW:
            if name not in self.columns and name not in self.constants:
                raise ValueError(f'"{name}" must be a column or a constant')
        if (self.sale_type is None) != (not self.market_sale_types):
            raise ValueError("sale_type and market_sale_types go together")
        return self


@dataclass(frozen=True)
class CsvAdapter(Adapter):
    """A delimited text file under a mapping; ``configure`` binds the mapping.

    Attributes:
        mapping: Which column is which; None until it is bound.
    """

    name: ClassVar[str] = "csv"
    mapping: CsvMapping | None = None

    def configure(self, mapping: Path | None) -> CsvAdapter:
        """Return the adapter for one mapping file.

        Raises:
            ConfigError: No mapping is given or it does not fit; an unknown key names the nearest valid one.
        """
        if mapping is None:
            raise ConfigError('adapter "csv" needs a mapping', hint="Give a YAML file that maps the columns.")
        return CsvAdapter(mapping=load_yaml(mapping, CsvMapping))

    @property
    def _bound(self) -> CsvMapping:
        if self.mapping is None:
            raise ConfigError('adapter "csv" has no mapping', hint="Call configure with a YAML file first.")
        return self.mapping

    @property
    def region(self) -> RegionMap:
        """What the mapping says."""
        return self._bound.region

    @property
    def observations(self) -> Mapping[str, Observation]:
        """What the mapping says; sale date and price at the sale, assessments at the roll."""
        mapping = self._bound
        known = {name for name in (*mapping.columns, *mapping.constants) if name not in IDENTITY}
        if mapping.region.centres and {"lat", "lng"} <= known:
            known.add("distance_cbd_km")
        rules = dict.fromkeys(sorted(known), mapping.observed)
        rules |= dict.fromkeys(("sale_date", "price"), Observation(rule="at_sale"))
        rules |= dict.fromkeys(known.intersection(AT_ROLL), Observation(rule="at_roll_reference"))
        return rules | mapping.observations

    def read(self, path: Path, *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
        """Return the file's mapped columns as text, blanks around values cut, unknown values null."""
        mapping = self._bound
        text = read_text_table(path, delimiter=mapping.delimiter, encoding=mapping.encoding, row_limit=row_limit)
        wanted = list(dict.fromkeys([*mapping.columns.values(), *([mapping.sale_type] if mapping.sale_type else [])]))
        require_columns(text, wanted, where=path.name)
        trimmed = pl.col(wanted).str.strip_chars()
        return text.select(pl.when(~trimmed.is_in(["", *mapping.null_values])).then(trimmed), LINE)

    def names(self, raw: pl.DataFrame) -> Mapping[str, str]:
        """Return the mapping's columns."""
        del raw
        return self._bound.columns

    def to_analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the analytic table of the file.

        Raises:
            DataError: A value is not what its column needs; names line and column of the file.
        """
        mapping = self._bound
        columns = {name: self._column(raw, name, source) for name, source in mapping.columns.items()}
        frame = pl.DataFrame({**columns, LINE: raw[LINE]}).with_columns(
            pl.lit(self.name).alias("source"), *(pl.lit(value).alias(name) for name, value in mapping.constants.items())
        )
        if "tx_id" not in columns:
            frame = frame.with_columns(tx_id=pl.format("line-{}", pl.col(LINE).cast(pl.String).str.zfill(7)))
        units = zip(AREAS, (mapping.floor_area, mapping.land_area), strict=True)
        frame = frame.with_columns(pl.col(name) * M2_PER_UNIT[unit] for name, unit in units if name in columns)
        declared = {MONTH_ONLY: pl.lit(mapping.month_only)}
        if mapping.sale_type is not None:
            # Unknown is not declared: only a type that is there and no market type flags the sale.
            frame = frame.with_columns(raw[mapping.sale_type].alias("sale_type"))
            declared["declared_non_market"] = ~pl.col("sale_type").is_in(mapping.market_sale_types)
        analytic = annotate(fill_absent(frame), bounds=mapping.region.bounds, declared=declared)
        if "distance_cbd_km" in columns:
            return analytic
        return analytic.with_columns(distance_cbd_km=distance_to_centres(mapping.region))

    def _column(self, raw: pl.DataFrame, name: str, source: str) -> pl.Series:
        text, dtype = pl.col(source), ANALYTIC[name]
        if dtype == pl.Date:
            return parse(raw, source, self._day(text, name), f"a date like {self._bound.date_format}")
        if dtype == pl.Boolean:
            word = text.str.to_lowercase()
            truth = pl.when(word.is_in(TRUE)).then(pl.lit(True)).when(word.is_in(FALSE)).then(pl.lit(False))
            return parse(raw, source, truth, "yes or no")
        if dtype == pl.String:
            return raw[source]
        number = text.str.replace(",", ".", literal=True) if self._bound.decimal_comma else text
        value = number.cast(pl.Float64, strict=False)
        value = pl.when(value.is_finite()).then(value)
        if dtype == pl.Int32:
            whole = pl.when(value == value.round()).then(value)
            return parse(raw, source, whole.cast(pl.Int32, strict=False), "a whole number")
        return parse(raw, source, value, "a number")

    def _day(self, text: pl.Expr, name: str) -> pl.Expr:
        pattern = self._bound.date_format
        if "%d" not in pattern and self._bound.month_only:
            text, pattern = pl.lit("01 ") + text, "%d " + pattern
        day = text.str.to_date(pattern, strict=False)
        return day.dt.month_start() if name == "sale_date" and self._bound.month_only else day
