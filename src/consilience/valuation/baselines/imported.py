"""``X_import``: predictions that somebody else made, as an arm with an information date of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl

from consilience.errors import ConfigError, DataError
from consilience.experiments.parquet import read_parquet
from consilience.experiments.predictions import QUANTILES
from consilience.registry import nearest
from consilience.valuation.adapters.base import ROW_LIMIT, file_sha256, parse, read_text_table, require_columns
from consilience.valuation.baselines.base import Baseline, FittedBaseline, Prediction
from consilience.valuation.features import FeatureMatrix
from consilience.valuation.schema import LINE, ROW, place

COLUMNS: Final = ("id", "point", *QUANTILES)


@dataclass(frozen=True)
class ImportedPredictions(Baseline):
    """A table of predictions from elsewhere: an automated model, an appraiser, a portal.

    Nothing is fitted. The table has the columns ``id`` (the sale's ``tx_id``), ``point`` and, all or none of them,
    ``q05, q25, q50, q75, q95``, in the table's currency. Sales it does not name get no prediction.

    Attributes:
        source: CSV (UTF-8, commas) or Parquet file.
        information: Latest day whose prices its maker could know; only the maker can say.
    """

    name: ClassVar[str] = "X_import"

    source: Path | None = None
    information: date | None = None

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedImport:
        """Return the table, checked; it is not fitted.

        Raises:
            ConfigError: No file or no information date was given.
            DataError: The file cannot be read, or a row breaks a rule; row and column are named.
        """
        del valid
        if self.source is None or self.information is None:
            raise ConfigError(
                "X_import needs a table and its information date", hint="Give the file and the latest day it knew."
            )
        table = read_predictions_table(self.source)
        stranger = table.filter(~pl.col("id").is_in(train.sales["tx_id"].implode()))
        if stranger.height:
            raise DataError(
                f'{self.source.name}, {place(stranger, 0)}, column "id": {stranger["id"][0]!r:.80} is no sale',
                hint="Give the tx_id of the sale in the analytic table.",
            )
        return FittedImport(table, self.source.name, file_sha256(self.source), self.information)


@dataclass(frozen=True)
class FittedImport(FittedBaseline):
    """A checked table of predictions.

    Attributes:
        table: ``id, point`` and the five quantiles, null where there are none.
        source: Name of the file.
        sha256: Hash of its bytes.
        information: Latest day its maker could know.
    """

    table: pl.DataFrame
    source: str
    sha256: str
    information: date

    @property
    def information_date(self) -> date:
        """The day its maker declared."""
        return self.information

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return the table's numbers for the subjects it names."""
        asked = subjects.frame.select(pl.col("tx_id").alias("id"), "cutoff")
        found = asked.join(self.table, on="id", how="left", maintain_order="left")
        point = found["point"].fill_null(float("nan")).to_numpy()
        hits = int(np.count_nonzero(~np.isnan(point)))
        notes = [f"{hits} of {len(point)} subjects are in {self.source}."]
        late = found.filter(pl.col("point").is_not_null() & (pl.col("cutoff") < self.information)).height
        if late:
            notes.append(f"{late} of them were valued before {self.information}, which the table's maker already knew.")
        quantiles = found.select(pl.col(QUANTILES).fill_null(float("nan"))).to_numpy()
        return Prediction(point=point, quantiles=quantiles, notes=tuple(notes))

    def record(self) -> dict[str, Any]:
        """Return where the table came from."""
        return {"features": [], "source": self.source, "source_sha256": self.sha256, "rows": self.table.height}


def read_predictions_table(path: Path) -> pl.DataFrame:
    """Return a table of predictions with all of `COLUMNS`, and where each row stands in the file.

    Raises:
        DataError: The file cannot be read, a column is missing or unknown, an id is empty or stands twice, a price is
            no number above 0, some quantiles are there without the others, or they fall; row and column are named.
    """
    if path.suffix.lower() == ".parquet":
        raw = read_parquet(path, row_limit=ROW_LIMIT).with_row_index(ROW, offset=1)
    else:
        raw = read_text_table(path)
    require_columns(raw, ("id", "point"), where=path.name)
    mark = ROW if ROW in raw.columns else LINE
    for name in raw.columns:
        if name not in COLUMNS and name != mark:
            raise DataError(f'{path.name} has an unknown column "{name}"', hint=nearest(name, COLUMNS))
    there = [name for name in QUANTILES if name in raw.columns]
    if there and len(there) < len(QUANTILES):
        missing = next(name for name in QUANTILES if name not in there)
        raise DataError(f'{path.name} has the column "{there[0]}" but not "{missing}"', hint="Give all five or none.")
    numbers = [parse(raw, name, pl.col(name).cast(pl.Float64, strict=False), "a number") for name in ("point", *there)]
    absent = [pl.lit(None, dtype=pl.Float64).alias(name) for name in QUANTILES if name not in there]
    table = raw.select(mark, pl.col("id").cast(pl.String)).with_columns(*numbers, *absent)
    _check(table, path.name)
    return table


def _check(table: pl.DataFrame, name: str) -> None:
    def refuse(column: str, bad: pl.Expr, what: str) -> None:
        found = table.filter(bad.fill_null(value=False))
        if found.height:
            value = found[column][0]
            raise DataError(
                f'{name}, {place(found, 0)}, column "{column}": {"empty" if value is None else repr(value)} {what}',
                hint="Mend the row or leave it out.",
            )

    refuse("id", pl.col("id").is_null(), "is no id")
    refuse("id", ~pl.col("id").is_first_distinct(), "stands twice")
    refuse("point", pl.col("point").is_null(), "is no price")
    for column in ("point", *QUANTILES):
        refuse(column, ~pl.col(column).is_finite() | (pl.col(column) <= 0), "is no price")
    some = pl.any_horizontal(pl.col(QUANTILES).is_not_null())
    for column in QUANTILES:
        refuse(column, some & pl.col(column).is_null(), "lacks its quantile while others are there")
    for low, high in pairwise(QUANTILES):
        refuse(high, pl.col(high) < pl.col(low), f"lies below {low}")
