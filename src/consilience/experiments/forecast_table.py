"""Tables of forecasts and outcomes from elsewhere, in long form, as one matrix of what was said and what happened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.exceptions import PolarsError

from consilience.errors import ConfigError, DataError
from consilience.experiments.parquet import read_parquet
from consilience.registry import nearest
from consilience.scoring.point import BoolArray, FloatArray

Texts = npt.NDArray[np.str_]

ROW_LIMIT: Final = 10_000_000
ALIASES: Final = {
    "question": "question_id",
    "target": "resolution_date",
    "probability": "prob",
    "as_of": "forecast_due_date",
    "market_price": "market_prob",
}
"""Other names of columns; where both are there the other name counts, as ``question`` is then its text."""
FORECAST_COLUMNS: Final = ("question", "target", "forecaster", "probability", "as_of", "submitted")
OUTCOME_COLUMNS: Final = ("question", "target", "outcome", "market_price", "as_of")
COLUMNS: Final = tuple(dict.fromkeys((*FORECAST_COLUMNS, *OUTCOME_COLUMNS)))
_NEEDED: Final = ({"question", "forecaster", "probability"}, {"question", "outcome"})
ROW: Final = "__row"
"""Column that numbers the rows of a file."""
_KEY: Final = ["question", "target"]
_ZONED: Final = re.compile(r"\d{2}:?\d{2}.*(?:Z|[+-]\d{2}(?::?\d{2})?)$")
"""How texts end that name an hour and its zone."""
_TRUE, _FALSE = ("true", "1", "1.0", "yes"), ("false", "0", "0.0", "no")


@dataclass(frozen=True)
class ForecastTable:
    """What forecasters said about targets that have resolved to yes or no.

    An item is a target of a question as seen at one date of forecast.

    Attributes:
        question: Question of each item, shape (n,).
        target: Which target of the question; empty where questions have one.
        as_of: Date of the forecast; empty where unknown.
        outcome: 0 or 1.
        price: Market price; read only where ``priced``.
        priced: Where there is a market price.
        names: Forecasters, sorted.
        probability: One row per item and one column per forecaster; read only where ``present``.
        present: Where a forecaster gave a probability.
        unsubmitted: Where a probability is there although its maker never submitted it.
        n_unresolved: Targets whose outcome is neither yes nor no; they are left out.
        n_unknown: Forecasts about targets that the outcomes do not name; they are left out.
    """

    question: Texts
    target: Texts
    as_of: Texts
    outcome: FloatArray
    price: FloatArray
    priced: BoolArray
    names: tuple[str, ...]
    probability: FloatArray
    present: BoolArray
    unsubmitted: BoolArray
    n_unresolved: int
    n_unknown: int


def read_forecasts(
    forecasts: Path,
    outcomes: Path,
    *,
    columns: Mapping[str, str] | None = None,
    forecasters: Sequence[str] | None = None,
) -> ForecastTable:
    """Read forecasts and outcomes from CSV, JSONL or Parquet files.

    Args:
        forecasts: ``question, forecaster, probability`` and where there are ``target, as_of, submitted``.
        outcomes: ``question, outcome`` and where there are ``target, market_price, as_of``. An outcome that is neither
            0 nor 1 is no outcome.
        columns: Column by name, where the file calls it otherwise.
        forecasters: Whom to read; None reads all.

    Raises:
        ConfigError: A name in ``columns`` or a forecaster is unknown, or the format is.
        DataError: A file or cell cannot be read, a column is missing, a probability lies outside [0, 1], a forecast or
            an outcome stands twice, or nothing has resolved; file and row are named.
    """
    chosen = dict(columns or {})
    for name in chosen:
        if name not in COLUMNS:
            raise ConfigError(f'--columns: unknown name "{name}"', hint=nearest(name, COLUMNS))
    raw_said, raw_told = read_table(forecasts), read_table(outcomes)
    _refuse_absent(chosen, {forecasts: raw_said, outcomes: raw_told})
    said = _named(raw_said, FORECAST_COLUMNS, _NEEDED[0], chosen, forecasts)
    told = _named(raw_told, OUTCOME_COLUMNS, _NEEDED[1], chosen, outcomes)
    said, told = _keyed(said, forecasts), _keyed(told, outcomes)
    said = said.with_columns(_probability(said, "probability", forecasts), _submitted(said, forecasts))
    told = told.with_columns(_outcome(told), _probability(told, "market_price", outcomes))
    if forecasters is not None:
        known = set(said["forecaster"].unique())
        for name in forecasters:
            if name not in known:
                raise ConfigError(f'{forecasts.name} has no forecaster "{name}"', hint=nearest(name, known))
        said = said.filter(pl.col("forecaster").is_in(list(forecasters)))
    _refuse_twice(told, _KEY, outcomes)
    _refuse_twice(said, [*_KEY, "as_of", "forecaster"], forecasts)
    return _joined(said, told, forecasts, outcomes)


def _refuse_absent(chosen: Mapping[str, str], frames: Mapping[Path, pl.DataFrame]) -> None:
    """Raise where a chosen column is in no file that is read for its name: another one would be read in silence."""
    for name, column in chosen.items():
        of = (FORECAST_COLUMNS, OUTCOME_COLUMNS)
        read = {path: frame for (path, frame), names in zip(frames.items(), of, strict=True) if name in names}
        if all(column not in frame.columns for frame in read.values()):
            known = {one for frame in read.values() for one in frame.columns} - {ROW}
            where = " and ".join(path.name for path in read)
            raise ConfigError(
                f'--columns: no column "{column}" in {where}, where {name} is read', hint=nearest(column, known)
            )


def _joined(said: pl.DataFrame, told: pl.DataFrame, forecasts: Path, outcomes: Path) -> ForecastTable:
    matched = said.join(told.rename({"as_of": "told_as_of"}).drop(ROW), on=_KEY, how="left")
    unknown = said.join(told, on=_KEY, how="anti").height
    if unknown == said.height:
        raise DataError(
            f"no forecast in {forecasts.name} is about a target in {outcomes.name}",
            hint="Questions and targets must be written alike in both files; name their columns with --columns.",
        )
    matched = matched.with_columns(
        pl.when(pl.col("as_of") == "")
        .then(pl.col("told_as_of").fill_null(""))
        .otherwise(pl.col("as_of"))
        .alias("as_of")
    )
    resolved = told.filter(pl.col("outcome").is_not_null()).select(*_KEY, "outcome", "market_price")
    if not resolved.height:
        raise DataError(f"no target in {outcomes.name} has resolved to 0 or 1", hint="Give outcomes of 0 and 1.")
    key = [*_KEY, "as_of"]
    asked = matched.filter(pl.col("outcome").is_not_null())
    # A resolved target that nobody forecast has no date of forecast; it counts as missing for everybody.
    unasked = resolved.join(asked.select(_KEY).unique(), on=_KEY, how="anti").with_columns(as_of=pl.lit(""))
    items = pl.concat(
        [asked.select(*key, "outcome", "market_price").unique(key), unasked.select(*key, "outcome", "market_price")]
    )
    items = items.sort(key).with_row_index("item")
    names = tuple(sorted(said["forecaster"].unique()))
    rows = asked.join(items.select("item", *key), on=key).filter(pl.col("probability").is_not_null())
    shape = (items.height, len(names))
    probability, present, unsubmitted = np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    at = (rows["item"].to_numpy(), np.searchsorted(np.array(names), rows["forecaster"].to_numpy().astype(str)))
    probability[at], present[at] = rows["probability"].to_numpy(), True
    unsubmitted[at] = ~rows["submitted"].fill_null(value=True).to_numpy()
    return ForecastTable(
        question=items["question"].to_numpy().astype(str),
        target=items["target"].to_numpy().astype(str),
        as_of=items["as_of"].to_numpy().astype(str),
        outcome=items["outcome"].to_numpy(),
        price=items["market_price"].fill_null(0.0).to_numpy(),
        priced=items["market_price"].is_not_null().to_numpy(),
        names=names,
        probability=probability,
        present=present,
        unsubmitted=unsubmitted,
        n_unresolved=told.height - resolved.height,
        n_unknown=unknown,
    )


def read_table(path: Path) -> pl.DataFrame:
    """Return a table with the number of each row, from 1, in the column ``ROW``.

    Raises:
        ConfigError: The ending of the name is unknown.
        DataError: The file is missing, cannot be read, or holds no rows.
    """
    ending = path.suffix.lower()
    if ending == ".parquet":
        frame = read_parquet(path, row_limit=ROW_LIMIT)
    elif not path.is_file():
        raise DataError(f"there is no file {path}", hint="Check the path.")
    else:
        readers = {
            ".csv": lambda: pl.read_csv(path.read_bytes(), infer_schema=False),
            ".jsonl": lambda: pl.read_ndjson(path.read_bytes(), infer_schema_length=None),
        }
        if ending not in readers:
            raise ConfigError(f"{path} has no known ending", hint="Tables are read from .csv, .jsonl and .parquet.")
        try:
            frame = readers[ending]()
        except (PolarsError, OSError) as error:
            raise DataError(
                f"{path} is no table: {str(error).splitlines()[0]}", hint="Export it again, in UTF-8."
            ) from error
    if not frame.height:
        raise DataError(f"{path} holds no rows", hint="Give a file with a row per forecast or outcome.")
    return frame.with_row_index(ROW, offset=1)


def _named(
    frame: pl.DataFrame, names: Sequence[str], needed: set[str], chosen: Mapping[str, str], path: Path
) -> pl.DataFrame:
    """Return the columns that are known, under our names; those that may lack and do are null."""
    found: list[pl.Expr] = [pl.col(ROW)]
    for name in names:
        candidates = (chosen.get(name), ALIASES.get(name), name)
        column = next((one for one in candidates if one is not None and one in frame.columns), None)
        if column is not None:
            kind = frame.schema[column]
            if kind.is_nested() or kind in {pl.Binary(), pl.Object()}:
                raise DataError(
                    f'{path.name}, column "{column}": it holds {kind}, and {name} is one value a row',
                    hint="Give one text or number per cell.",
                )
            found.append(pl.col(column).alias(name))
        elif name in needed:
            there = [one for one in frame.columns if one != ROW]
            raise DataError(
                f'{path.name} has no column "{name}"', hint=f"{nearest(name, there)} Name it: --columns {name}=COLUMN."
            )
        else:
            found.append(pl.lit(None, dtype=pl.String).alias(name))
    return frame.select(found)


def _keyed(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    for name in ("question", "forecaster"):
        if name in frame.columns and frame[name].null_count():
            row = frame.filter(pl.col(name).is_null())[ROW][0]
            raise DataError(f"{path.name}, row {row}: no {name}", hint="Every row needs one.")
    texts = [name for name in ("question", "target", "forecaster", "as_of") if name in frame.columns]
    frame = frame.with_columns(pl.col(name).cast(pl.String).fill_null("") for name in texts)
    for name in texts:
        bare = frame[name].str.strip_chars()
        bad = ((bare == "") & (name in {"question", "forecaster"})) | (bare != frame[name])
        if bad.any():
            row = int(bad.arg_true()[0])
            told = f"{frame[name][row]!r:.40} is no {name}" if bare[row] == "" else f"{frame[name][row]!r:.40}"
            raise DataError(
                f'{path.name}, row {frame[ROW][row]}, column "{name}": {told}',
                hint="Every row needs one, without blanks around it: they would make two names of one.",
            )
    moments = [name for name in ("target", "as_of") if name in frame.columns]
    return frame.with_columns(_universal(frame[name]) for name in moments)


def moment(text: str) -> datetime | None:
    """Return the instant that a text names, in UTC where no zone is told, at midnight where only a day is; else None.

    Example:
        >>> moment("2025-04-01T00:30:00+02:00").isoformat(), moment("2025-04-01").isoformat(), moment("soon")
        ('2025-03-31T22:30:00+00:00', '2025-04-01T00:00:00+00:00', None)
    """
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _universal(texts: pl.Series) -> pl.Series:
    """Return texts of which those that name an instant in a zone are written in UTC: one instant is one text."""
    zoned = {text: at for text in texts.unique() if _ZONED.search(text) and (at := moment(text)) is not None}
    return texts.replace({text: at.isoformat() for text, at in zoned.items()}) if zoned else texts


def _probability(frame: pl.DataFrame, name: str, path: Path) -> pl.Series:
    read = frame[name].cast(pl.Float64, strict=False)
    bad = (frame[name].is_not_null() & ~read.is_between(0, 1).fill_null(value=False)).arg_true()
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f'{path.name}, row {frame[ROW][row]}, column "{name}": {frame[name][row]!r:.40} is no probability',
            hint="Probabilities lie in [0, 1]; leave the cell empty where there is none.",
        )
    return read


def _outcome(frame: pl.DataFrame) -> pl.Series:
    """Return 0, 1, or null for what is neither."""
    text = frame["outcome"].cast(pl.String).str.strip_chars().str.to_lowercase()
    yes, no = text.is_in(_TRUE).fill_null(value=False), text.is_in(_FALSE).fill_null(value=False)
    return pl.select(pl.when(yes).then(1.0).when(no).then(0.0).alias("outcome")).to_series()


def _submitted(frame: pl.DataFrame, path: Path) -> pl.Series:
    text = frame["submitted"].cast(pl.String).str.to_lowercase()
    yes, no = text.is_in(_TRUE).fill_null(value=False), text.is_in(_FALSE).fill_null(value=False)
    bad = (text.is_not_null() & ~yes & ~no).arg_true()
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f'{path.name}, row {frame[ROW][row]}, column "submitted": {text[row]!r:.40} is no truth value',
            hint="Give true or false, or leave the cell empty where it is unknown.",
        )
    return pl.select(pl.when(yes).then(statement=True).when(no).then(statement=False).alias("submitted")).to_series()


def _refuse_twice(frame: pl.DataFrame, key: list[str], path: Path) -> None:
    again = frame.filter(pl.struct(key).is_duplicated())
    if again.height:
        told = ", ".join(str(again[name][0]) for name in key if again[name][0])
        raise DataError(
            f"{path.name}, row {again[ROW][0]}: {told} stands twice", hint="Keep one row; as_of tells dates apart."
        )
