"""A source's columns as an adapter declares them: read from its public text form or from Parquet, typed and placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from consilience.errors import DataError
from consilience.experiments.parquet import read_parquet
from consilience.valuation.adapters.base import ROW_LIMIT, parse, read_text_table, require_columns
from consilience.valuation.schema import LINE, ROW

Sort = Literal["text", "whole", "number", "day"]
WORDS: dict[Sort, str] = {"text": "text", "whole": "a whole number", "number": "a number", "day": "a day"}
TEXT_SUFFIXES = frozenset({".csv", ".tsv", ".txt"})
UNKNOWN = ("", "NA")
"""What R and pandas write where nothing is known."""


@dataclass(frozen=True)
class Column:
    """One column of a source.

    Attributes:
        name: Its name in the Parquet form, by which the adapter speaks of it.
        sort: What it holds.
        public: Its name in the public text form; None where it is the same.
    """

    name: str
    sort: Sort
    public: str | None = None


def is_text_form(path: Path) -> bool:
    """Return whether a file is read as delimited text: ``.csv``, ``.tsv`` or ``.txt``.

    Example:
        >>> is_text_form(Path("AmesHousing.csv")), is_text_form(Path("ames.parquet"))
        (True, False)
    """
    return path.suffix.lower() in TEXT_SUFFIXES


def read_columns(path: Path, columns: Sequence[Column], *, row_limit: int = ROW_LIMIT) -> pl.DataFrame:
    """Return a source's declared columns under their Parquet names, with `LINE` (text) or `ROW` (Parquet) beside them.

    In text, blanks around values are cut, `UNKNOWN` is null, days read 2016-12-28, and ``.csv`` is cut at commas,
    ``.tsv`` and ``.txt`` at tabs.

    Raises:
        DataError: The file is missing, unreadable or over the limit, lacks a column (the nearest is named), or a column
            or value is not of its sort; names place and column.
    """
    if is_text_form(path):
        return _from_text(path, columns, row_limit)
    raw = read_parquet(path, row_limit=row_limit)
    require_columns(raw, [column.name for column in columns], where=path.name)
    for column in columns:
        dtype = raw.schema[column.name]
        fits = {
            "text": dtype == pl.String,
            "whole": dtype.is_numeric(),
            "number": dtype.is_numeric(),
            "day": dtype == pl.Date,
        }
        if not fits[column.sort]:
            raise DataError(
                f'{path.name}, row 1 on, column "{column.name}": its type is {dtype}, not {WORDS[column.sort]}',
                hint="Store the column in its own type.",
            )
    frame = raw.select(column.name for column in columns).with_row_index(ROW, offset=1)
    for column in columns:
        if column.sort == "whole" and raw.schema[column.name].is_float():
            value = pl.col(column.name)
            whole = pl.when(value == value.round()).then(value).cast(pl.Int64, strict=False)
            frame = frame.with_columns(parse(frame, column.name, whole, WORDS["whole"]))
    return frame


def _from_text(path: Path, columns: Sequence[Column], row_limit: int) -> pl.DataFrame:
    delimiter = "," if path.suffix.lower() == ".csv" else "\t"
    text = read_text_table(path, delimiter=delimiter, row_limit=row_limit)
    require_columns(text, [column.public or column.name for column in columns], where=path.name)
    trimmed = {column.name: pl.col(column.public or column.name).str.strip_chars() for column in columns}
    text = text.select(
        *(pl.when(~value.is_in(UNKNOWN)).then(value).alias(name) for name, value in trimmed.items()), LINE
    )
    return text.with_columns(
        parse(text, column.name, _read(column), WORDS[column.sort], named=column.public)
        for column in columns
        if column.sort != "text"
    )


def _read(column: Column) -> pl.Expr:
    text = pl.col(column.name)
    if column.sort == "day":
        return text.str.to_date("%Y-%m-%d", strict=False)
    number = text.cast(pl.Float64, strict=False)
    number = pl.when(number.is_finite()).then(number)
    if column.sort == "number":
        return number
    return pl.when(number == number.round()).then(number).cast(pl.Int64, strict=False)


def source_names(columns: Sequence[Column], raw: pl.DataFrame, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return analytic column → the source's own name for it, for messages.

    Args:
        columns: The declared columns.
        raw: What `read_columns` returned; its places tell which form was read.
        renamed: Analytic column → Parquet name, where they differ.

    Example:
        >>> price = Column("price", "number", "SalePrice")
        >>> source_names([price], pl.DataFrame({"price": [1.0], LINE: [2]}), {})
        {'price': 'SalePrice'}
    """
    if LINE not in raw.columns:
        return dict(renamed)
    ours = {theirs: analytic for analytic, theirs in renamed.items()}
    public = {ours.get(column.name, column.name): column.public or column.name for column in columns}
    return dict(renamed) | public


def read_words(
    raw: pl.DataFrame, column: str, meaning: Mapping[str, float | str | None], *, named: str | None = None
) -> pl.Series:
    """Return what a column's words mean; null stays null, and a word may mean null.

    Args:
        raw: The source.
        column: The column of words.
        meaning: Word → its meaning.
        named: The source's name for the column, where it has another.

    Raises:
        DataError: A word is not among the known ones; names place and column.

    Example:
        >>> read_words(pl.DataFrame({"n": ["one", None]}), "n", {"one": 1.0}).to_list()
        [1.0, None]
    """
    known = pl.when(pl.col(column).is_in(list(meaning))).then(pl.col(column))
    words = parse(raw, column, known, f"one of {', '.join(meaning)}", named=named)
    sort = pl.String() if any(isinstance(value, str) for value in meaning.values()) else pl.Float64()
    return words.replace_strict(meaning, default=None, return_dtype=sort)
