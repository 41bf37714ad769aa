"""The analytic table: the one set of columns that every valuation data set is brought to, and its manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Literal, Self

import polars as pl
from pydantic import Field, ValidationError, model_validator

from consilience.core.question import ID_PATTERN, UNFIT_ID_PATTERN, Strict
from consilience.errors import DataError, reason
from consilience.experiments.parquet import read_parquet, write_parquet
from consilience.experiments.storage import write_whole
from consilience.registry import nearest

ANALYTIC: pl.Schema = pl.Schema(
    {
        "tx_id": pl.String(),
        "parcel_id": pl.String(),
        "sale_date": pl.Date(),
        "price": pl.Float64(),
        "currency": pl.String(),
        "property_class": pl.String(),
        "property_subtype": pl.String(),
        "municipality": pl.String(),
        "borough": pl.String(),
        "region": pl.String(),
        "lat": pl.Float64(),
        "lng": pl.Float64(),
        "floor_area_m2": pl.Float64(),
        "land_area_m2": pl.Float64(),
        "year_built": pl.Int32(),
        "storeys": pl.Float64(),
        "n_dwellings": pl.Int32(),
        "bedrooms": pl.Int32(),
        "bathrooms": pl.Float64(),
        "condition": pl.Float64(),
        "quality": pl.Float64(),
        "new_construction": pl.Boolean(),
        "assessment_land": pl.Float64(),
        "assessment_building": pl.Float64(),
        "assessment_total": pl.Float64(),
        "roll_reference_date": pl.Date(),
        "flood_zone": pl.String(),
        "transit_stops_1km": pl.Int32(),
        "da_population_density": pl.Float64(),
        "da_median_income": pl.Float64(),
        "distance_cbd_km": pl.Float64(),
        "source": pl.String(),
        "flags": pl.List(pl.String()),
    }
)
"""Columns and types of the analytic table, in order. Unknown is null, never 0 or NaN."""

REQUIRED = ("tx_id", "parcel_id", "sale_date", "price", "currency", "property_class", "source", "flags")
"""Columns that are never null."""

IDENTITY = ("tx_id", "parcel_id", "currency", "source", "flags")
"""Columns that are no observation of the world."""

MONTH_ONLY = "month_only"
"""Flag of a sale whose day is unknown: ``sale_date`` is the month's first day, at which it is valued."""

AREAS = ("floor_area_m2", "land_area_m2")

MOST_PRICE = 1e15
LONGEST_TEXT = 2_000
"""No home in any currency costs more; a price above it is a mistake in the source."""

LINE, ROW = "(line)", "(row)"
"""Columns that an adapter may keep beside its table: the 1-based line of a text file, header included, or the 1-based
row of another source. Errors name sales by them; no table is stored with them."""

ObservationRule = Literal["at_sale", "at_roll_reference", "snapshot", "absent"]


class Observation(Strict):
    """When a column's values were true.

    Attributes:
        rule: ``at_sale``, ``at_roll_reference``, ``snapshot`` (one later or earlier state for all sales) or ``absent``
            (the source does not hold it).
        as_of: The snapshot's day; None where the source does not state it.
        later_than_sale: Declares that a snapshot may be later than the sale; every report prints it.

    Raises:
        ValueError: ``as_of`` or ``later_than_sale`` without a snapshot, or an undated snapshot not declared later.

    Example:
        >>> Observation(rule="snapshot", later_than_sale=True).as_of is None
        True
    """

    rule: ObservationRule
    as_of: date | None = None
    later_than_sale: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.rule != "snapshot" and (self.as_of is not None or self.later_than_sale):
            raise ValueError("as_of and later_than_sale belong to snapshots")
        if self.rule == "snapshot" and self.as_of is None and not self.later_than_sale:
            raise ValueError("an undated snapshot is not before the sale: declare later_than_sale")
        return self


class Centre(Strict):
    """A centre to which distances are measured, in degrees (WGS 84)."""

    name: str = Field(min_length=1)
    lat: float = Field(ge=-90, le=90)
    lng: float = Field(ge=-180, le=180)


class Bounds(Strict):
    """The box in which a data set's coordinates must lie, in degrees."""

    lat_min: float = Field(ge=-90, le=90)
    lat_max: float = Field(ge=-90, le=90)
    lng_min: float = Field(ge=-180, le=180)
    lng_max: float = Field(ge=-180, le=180)


class RegionMap(Strict):
    """What the place columns mean in one data set.

    Attributes:
        municipality: What a municipality is there, such as ``zip code``.
        region: What a region is there, such as ``county``.
        borough: What a borough is there; None where there is none.
        centres: The centres whose nearest one ``distance_cbd_km`` is measured to.
        bounds: Where coordinates must lie; None checks only that they are coordinates.
    """

    municipality: str
    region: str
    borough: str | None = None
    centres: tuple[Centre, ...] = Field(default=(), strict=False)
    bounds: Bounds | None = None


class Manifest(Strict):
    """What stands beside an analytic table: its source and how each column was observed.

    Attributes:
        adapter: Name of the adapter that built the table.
        source_file: File name of the source, without its folder.
        source_sha256: SHA-256 of the source's bytes.
        rows: Sales in the table.
        currency: Currency of all prices and assessments.
        region: What the place columns mean.
        observations: One rule for every column that is an observation.
        flag_counts: Sales per flag.
        exclusion_set: Name of the declared set of rules that chose the sales.
        exclusion_rules: The set's rules in their order: name → the flags that drop a sale.
        exclusions: Sales dropped per rule, each sale under the first that drops it; empty where there are no rules.

    Raises:
        ValueError: A column has no observation rule, or a rule names no column.
    """

    adapter: str
    source_file: str
    source_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    rows: int = Field(ge=0)
    currency: str
    region: RegionMap
    observations: dict[str, Observation]
    flag_counts: dict[str, int] = Field(default_factory=dict)
    exclusion_set: str = "keep_all"
    exclusion_rules: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    exclusions: dict[str, int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        expected = set(ANALYTIC.names()) - set(IDENTITY)
        odd = expected.symmetric_difference(self.observations)
        if odd:
            raise ValueError(f"observation rules and columns differ in: {', '.join(sorted(odd))}")
        return self

    def later_snapshots(self) -> tuple[str, ...]:
        """Return the columns declared to come from a snapshot later than the sale; every report prints them."""
        return tuple(name for name, rule in sorted(self.observations.items()) if rule.later_than_sale)


def available_date() -> pl.Expr:
    """Return the day a sale became known: the month's last day where only the month is known, else the sale's day.

    Comparables and market figures compare this day with a cutoff; the subject itself is valued at ``sale_date``.

    Example:
        >>> frame = pl.DataFrame({"sale_date": [date(2010, 2, 1)], "flags": [[MONTH_ONLY]]})
        >>> frame.select(available_date()).item()
        datetime.date(2010, 2, 28)
    """
    month_only = pl.col("flags").list.contains(MONTH_ONLY)
    return (
        pl.when(month_only)
        .then(pl.col("sale_date").dt.month_end())
        .otherwise(pl.col("sale_date"))
        .alias("available_date")
    )


def validate(frame: pl.DataFrame, *, names: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Return the frame with its columns in the order of `ANALYTIC`, having checked every rule of the table.

    Args:
        frame: The table, maybe with `LINE` or `ROW` beside it.
        names: Analytic column → the source's name for it, where it has another.

    Raises:
        DataError: A column is unknown (the nearest valid one is named), missing or of another type; a required value
            is null; a ``tx_id`` occurs twice or cannot be an item id; a price is not finite, positive and at most
            `MOST_PRICE`; another number is not finite; a text is longer than
            `LONGEST_TEXT`; an area is not positive. Place and column are named as the
            source has them.

    Example:
        >>> validate(pl.DataFrame(schema=ANALYTIC)).height
        0
    """
    for name in frame.columns:
        if name not in ANALYTIC and name not in {LINE, ROW}:
            raise DataError(f'unknown column "{name}" in the analytic table', hint=nearest(name, ANALYTIC.names()))
    for name, dtype in ANALYTIC.items():
        if name not in frame.columns:
            raise DataError(f'column "{name}" is missing from the analytic table', hint=f"Add it as {dtype}.")
        if frame.schema[name] != dtype:
            raise DataError(
                f'column "{name}" of the analytic table has type {frame.schema[name]}', hint=f"It must be {dtype}."
            )
    _check_values(frame, names or {})
    return frame.select(ANALYTIC.names())


def _check_values(frame: pl.DataFrame, names: Mapping[str, str]) -> None:
    def refuse(column: str, bad: pl.Expr, what: str, hint: str) -> None:
        row = _first(frame, bad)
        if row is not None:
            value = frame[column][row]
            shown = "there" if value is None else repr(value)
            shown = shown if len(shown) <= 80 else shown[:77] + "…"
            raise DataError(f'{place(frame, row)}, column "{names.get(column, column)}": {shown} {what}', hint=hint)

    for name in REQUIRED:
        refuse(name, pl.col(name).is_null(), "is no value", "Every sale needs a value here.")
    twice = pl.col("tx_id").is_first_distinct().not_()
    if (row := _first(frame, twice)) is not None:
        other = place(frame, frame["tx_id"].index_of(frame["tx_id"][row]) or 0)
        refuse("tx_id", twice, f"stands in {other} too", "Every sale needs an id of its own.")
    unfit = pl.col("tx_id").str.contains(ID_PATTERN).not_() | pl.col("tx_id").str.contains(UNFIT_ID_PATTERN)
    refuse(
        "tx_id",
        unfit,
        "cannot name an item",
        "Use 1 to 128 letters, digits, dashes, underscores or dots, no dot first, and no device's name such as con.",
    )
    price = pl.col("price")
    unpriced = price.is_finite().not_() | (price <= 0) | (price > MOST_PRICE)
    refuse("price", unpriced, "is not a price", f"It must be above 0 and at most {MOST_PRICE:,.0f}.")
    for name, dtype in ANALYTIC.items():
        if dtype == pl.String:
            long = pl.col(name).str.len_bytes() > LONGEST_TEXT
            refuse(name, long, "is too long", f"A text of a sale has at most {LONGEST_TEXT:,} bytes.")
        if dtype == pl.Float64:
            refuse(name, pl.col(name).is_finite().not_(), "is not finite", "Unknown is null, never NaN.")
    for name in AREAS:
        refuse(name, pl.col(name) <= 0, "is not an area", "Make it null and flag the sale.")
    holed = pl.col("flags").list.eval(pl.element().is_null()).list.any()
    refuse("flags", holed, "holds a null", "Drop the null.")


def _first(frame: pl.DataFrame, bad: pl.Expr) -> int | None:
    row: int | None = frame.select(bad.fill_null(value=False).arg_true().first()).item()
    return row


def place(frame: pl.DataFrame, row: int) -> str:
    """Return where a row stands in its source: by `LINE` or `ROW` where the frame has one, else its own 1-based row.

    Example:
        >>> place(pl.DataFrame({"n": [5, 6], LINE: [2, 4]}), 1), place(pl.DataFrame({"n": [5, 6]}), 1)
        ('line 4', 'row 2')
    """
    for column, word in ((LINE, "line"), (ROW, "row")):
        if column in frame.columns:
            return f"{word} {frame[column][row]}"
    return f"row {row + 1}"


def manifest_path(path: Path) -> Path:
    """Return where the manifest of a table lies.

    Example:
        >>> manifest_path(Path("data/processed/analytic.parquet")).name
        'analytic.manifest.json'
    """
    return path.with_suffix(".manifest.json")


def write_analytic(frame: pl.DataFrame, path: Path, manifest: Manifest) -> None:
    """Check the table against schema and manifest and write both, each whole or not at all.

    Raises:
        DataError: The table breaks its schema, the manifest counts other rows, a dated snapshot is later than a sale
            without being declared so, or the folder cannot be written.
    """
    frame = validate(frame)
    if manifest.rows != frame.height:
        raise DataError(
            f"the manifest counts {manifest.rows} sales and the table holds {frame.height}", hint="Build it again."
        )
    first = frame["sale_date"].min()
    for name, rule in manifest.observations.items():
        if rule.as_of is not None and not rule.later_than_sale and isinstance(first, date) and rule.as_of > first:
            raise DataError(
                f'column "{name}" is a snapshot of {rule.as_of}, later than the sale of {first}',
                hint="Declare later_than_sale, so that every report says it, or leave the column null.",
            )
    text = json.dumps(manifest.model_dump(mode="json"), indent=2) + "\n"
    write_parquet(frame, path)
    write_whole(manifest_path(path), lambda target: target.write_text(text, encoding="utf-8"))


def read_analytic(path: Path) -> pl.DataFrame:
    """Read an analytic table and check it again.

    Raises:
        DataError: The file is missing, no readable Parquet, or breaks the schema.
    """
    frame = read_parquet(path)
    try:
        return validate(frame)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from error


def read_manifest(path: Path) -> Manifest:
    """Read the manifest that lies beside the analytic table ``path``.

    Raises:
        DataError: It is missing or no manifest.
    """
    source = manifest_path(path)
    try:
        return Manifest.model_validate_json(source.read_bytes())
    except OSError as error:
        raise DataError(
            f"the manifest {source} cannot be read: {error.strerror}", hint="Build the table again."
        ) from error
    except ValidationError as error:
        raise DataError(f"{source} is no manifest: {reason(error)}", hint="Build the table again.") from error
