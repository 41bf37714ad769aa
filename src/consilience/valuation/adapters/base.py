"""What every adapter offers: a source read within limits and brought to the analytic table."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import polars as pl
from polars.exceptions import PolarsError

from consilience.errors import ConfigError, DataError
from consilience.experiments.parquet import refuse_rows
from consilience.registry import nearest
from consilience.valuation.exclusions import KEEP_ALL, ExclusionSet, exclude
from consilience.valuation.flags import flag_counts
from consilience.valuation.schema import ANALYTIC, IDENTITY, LINE, Manifest, Observation, RegionMap, place, validate

ROW_LIMIT = 10_000_000
BYTE_LIMIT = 4 * 1024**3
EARTH_RADIUS_KM = 6371.0088
M2_PER_SQFT = 0.09290304
ABSENT = Observation(rule="absent")


class Adapter(ABC):
    """One source of sales.

    Attributes:
        name: What it is registered as; stands in the table's ``source`` column.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def region(self) -> RegionMap:
        """What the place columns mean."""

    @property
    @abstractmethod
    def observations(self) -> Mapping[str, Observation]:
        """When the columns were observed; a column that is not named is absent."""

    @abstractmethod
    def read(self, path: Path, *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
        """Return the source as it is, with the place of every row as `LINE` or `ROW` where it has one.

        Raises:
            DataError: The file is missing, unreadable, over a limit, or lacks a column.
        """

    @abstractmethod
    def to_analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Return the source as the analytic table, flagged, sorted by sale date and parcel; places are kept.

        Raises:
            DataError: A value breaks the schema.
        """

    def names(self, raw: pl.DataFrame) -> Mapping[str, str]:
        """Return analytic column → column of the source, where they differ, for messages."""
        del raw
        return {}

    def configure(self, mapping: Path | None) -> Self:
        """Return the adapter for one mapping file; only an adapter without columns of its own takes one.

        Raises:
            ConfigError: A mapping is given and this adapter takes none, or none is given and it needs one.
        """
        if mapping is not None:
            raise ConfigError(f'adapter "{self.name}" takes no mapping', hint='Use adapter "csv" for mapped columns.')
        return self


@dataclass(frozen=True)
class Built:
    """An analytic table and its manifest, ready for `consilience.valuation.schema.write_analytic`."""

    frame: pl.DataFrame
    manifest: Manifest


def build(adapter: Adapter, path: Path, *, row_limit: int = ROW_LIMIT, exclusions: ExclusionSet = KEEP_ALL) -> Built:
    """Read a source and return its analytic table with its manifest.

    Args:
        adapter: A configured adapter.
        path: The source file.
        row_limit: Most rows admitted.
        exclusions: The declared set of rules that leave sales out; by default oddities are flagged and kept.

    Raises:
        DataError: The source cannot be read, holds no sale or several currencies, or breaks the schema; or no sale is
            left.
    """
    raw = adapter.read(path, row_limit=row_limit)
    if not raw.height:
        raise DataError(f"{path.name} holds no sales", hint="Give a file with a row per sale.")
    try:
        frame = adapter.to_analytic(raw)
    except PolarsError as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path.name} does not fit: {reason}", hint="Check the types of its columns.") from error
    excluded = exclude(validate(frame, names=adapter.names(raw)), exclusions)
    if not excluded.kept.height:
        raise DataError(f'no sale of {path.name} is left by the exclusions "{exclusions.name}"', hint="Exclude less.")
    currencies = excluded.kept["currency"].unique().sort().to_list()
    if len(currencies) != 1:
        found = ", ".join(currencies)
        raise DataError(f"{path.name} must hold sales in one currency, found: {found}", hint="Split or convert it.")
    manifest = Manifest(
        adapter=adapter.name,
        source_file=os.fsencode(path.name).decode("utf-8", "replace"),  # the locale may not know its letters
        source_sha256=file_sha256(path),
        rows=excluded.kept.height,
        currency=currencies[0],
        region=adapter.region,
        observations={
            name: adapter.observations.get(name, ABSENT) for name in ANALYTIC.names() if name not in IDENTITY
        },
        flag_counts=flag_counts(excluded.kept),
        exclusion_set=exclusions.name,
        exclusion_rules={rule.name: rule.flags for rule in exclusions.rules},
        exclusions=excluded.counts,
    )
    return Built(frame=excluded.kept, manifest=manifest)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text_table(
    path: Path, *, delimiter: str = ",", encoding: str = "utf-8", row_limit: int = ROW_LIMIT
) -> pl.DataFrame:
    """Return a delimited text file with every column as text, so that ids keep leading zeros; empty is null.

    `LINE` says in which line of the file a row begins; the first is line 1, which usually holds the header.

    Raises:
        DataError: The file is missing, over a limit, not in its encoding, or no table.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}", hint="Check the path.")
    size = path.stat().st_size
    if size > BYTE_LIMIT:
        raise DataError(f"{path} has {size:,} bytes", hint=f"At most {BYTE_LIMIT:,} are read; store it as Parquet.")
    try:
        text = path.read_bytes().decode(encoding).removeprefix("\ufeff")
        frame = pl.read_csv(text.encode(), separator=delimiter, infer_schema=False, n_rows=row_limit + 1)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not {encoding} (byte {error.start})", hint="Name its encoding, such as cp1252."
        ) from error
    except (PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is no table: {reason}", hint="Check delimiter and quotes.") from error
    refuse_rows(path, frame.height, row_limit)
    return frame.with_columns(_lines(frame, text))


def _lines(frame: pl.DataFrame, text: str) -> pl.Expr:
    """Return the line in which each row begins; quoted values may hold line ends, and empty lines may come first."""
    ahead = text[: len(text) - len(text.lstrip("\r\n"))].count("\n")
    header = 1 + ahead + sum(name.count("\n") for name in frame.columns)
    if text.count("\n") <= header + frame.height:
        return pl.int_range(header + 1, header + 1 + pl.len()).alias(LINE)
    inside = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).cast(pl.Int64).fill_null(0))
    return (header + (inside + 1).cum_sum() - inside).alias(LINE)


def require_columns(frame: pl.DataFrame, wanted: Sequence[str], *, where: str) -> None:
    """Raise where a column is missing.

    Raises:
        DataError: It is; the nearest column of the source is named. A source without any column holds no sales.

    Example:
        >>> require_columns(pl.DataFrame({"price": [1]}), ["price"], where="sales.csv")
    """
    there = [name for name in frame.columns if name != LINE]
    if not there:
        raise DataError(f"{where} holds no sales: it has no columns", hint="Give a file with a row per sale.")
    for name in wanted:
        if name not in there:
            raise DataError(f'{where} has no column "{name}"', hint=nearest(name, there))


def parse(frame: pl.DataFrame, column: str, values: pl.Expr, what: str, *, named: str | None = None) -> pl.Series:
    """Return the parsed values of a text column; null stays null.

    Args:
        frame: The source.
        column: The column that is parsed.
        values: The parsed column, null where it cannot be read.
        what: What it should be, such as ``a number``.
        named: The source's name for the column, where it has another.

    Raises:
        DataError: A value that is there cannot be read; names place and column.

    Example:
        >>> parse(pl.DataFrame({"n": ["1", None]}), "n", pl.col("n").cast(pl.Int32, strict=False), "a number").to_list()
        [1, None]
    """
    parsed = frame.select(values).to_series()
    unread = (parsed.is_null() & frame[column].is_not_null()).arg_true()
    if len(unread):
        row = int(unread[0])
        raise DataError(
            f'{place(frame, row)}, column "{named or column}": {frame[column][row]!r:.80} is not {what}',
            hint="Mend or empty the value.",
        )
    return parsed


def fill_absent(frame: pl.DataFrame, *, names: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Return the frame with every analytic column but ``flags`` in its type; columns it lacks are null.

    Args:
        frame: Some of the columns.
        names: Analytic column → the source's name for it, where it has another.

    Raises:
        DataError: A count is no whole number.

    Example:
        >>> fill_absent(pl.DataFrame({"price": [1]})).schema["price"]
        Float64
    """
    typed = []
    for name, dtype in ANALYTIC.items():
        if name not in frame.columns:
            typed.append(pl.lit(None, dtype=dtype).alias(name))
        elif dtype == pl.Int32:
            value = pl.col(name)
            whole = pl.when(value == value.round()).then(value).cast(dtype, strict=False).alias(name)
            typed.append(pl.lit(parse(frame, name, whole, "a whole number", named=(names or {}).get(name))))
        else:
            typed.append(pl.col(name).cast(dtype))
    return frame.with_columns(column for column, name in zip(typed, ANALYTIC, strict=True) if name != "flags")


def distance_to_centres(region: RegionMap) -> pl.Expr:
    """Return km from ``lat, lng`` to the nearest centre (haversine, sphere of 6371.0088 km); null without either.

    Example:
        >>> from consilience.valuation.schema import Centre
        >>> home = RegionMap(municipality="town", region="county", centres=(Centre(name="c", lat=0, lng=0),))
        >>> round(pl.DataFrame({"lat": [0.0], "lng": [1.0]}).select(distance_to_centres(home)).item(), 3)
        111.195
    """
    lat, lng = pl.col("lat").radians(), pl.col("lng").radians()
    distances = []
    for centre in region.centres:
        there_lat, there_lng = pl.lit(centre.lat).radians(), pl.lit(centre.lng).radians()
        half_chord = ((lat - there_lat) / 2).sin().pow(2) + lat.cos() * there_lat.cos() * (
            (lng - there_lng) / 2
        ).sin().pow(2)
        distances.append(2 * EARTH_RADIUS_KM * half_chord.clip(0, 1).sqrt().arcsin())
    return pl.min_horizontal(distances) if distances else pl.lit(None, dtype=pl.Float64)
