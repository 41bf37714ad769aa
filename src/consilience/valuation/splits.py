"""Splits by time: parameters are fitted on the past, and every later period is judged apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import polars as pl

from consilience.errors import ConfigError, DataError
from consilience.experiments.parquet import read_parquet, write_parquet
from consilience.registry import nearest
from consilience.valuation.schema import MONTH_ONLY, available_date

PERIODS = ("train", "validation", "test", "holdout")
JUDGED = ("test", "holdout")
EXCLUDED = "excluded"
PROSPECTIVE = "prospective"
SPLITS = (*PERIODS, PROSPECTIVE, EXCLUDED)
SHARES = (0.60, 0.15, 0.15, 0.10)
SPLIT_SCHEMA = pl.Schema({"tx_id": pl.String(), "split": pl.String()})


@dataclass(frozen=True)
class TimeSplits:
    """Which sale belongs to which split.

    Attributes:
        frame: ``tx_id, split``, one row per sale in the table's order.
        boundaries: First days of validation, test and holdout.
        moves: The sales taken out of train (now ``excluded``) because their parcel sells again in test or holdout:
            ``tx_id, parcel_id, sale_date`` and ``sold_again_in``, the first of the two in which it does.
    """

    frame: pl.DataFrame
    boundaries: tuple[date, date, date]
    moves: pl.DataFrame

    @property
    def moved(self) -> int:
        """How many sales were taken out of train."""
        return self.moves.height

    def empty(self) -> tuple[str, ...]:
        """Return the periods that no sale falls into, in the order of time."""
        return tuple(name for name in PERIODS if name not in self.counts())

    def counts(self) -> dict[str, int]:
        """Return the number of sales per split, in the order of time."""
        found = dict(self.frame["split"].value_counts().iter_rows())
        return {name: found[name] for name in SPLITS if name in found}


def time_splits(
    sales: pl.DataFrame, *, boundaries: Sequence[date] | None = None, group_parcels: bool = False
) -> TimeSplits:
    """Return the splits of an analytic table by sale date.

    A sale on a boundary belongs to the later split, so no day is divided.

    Args:
        sales: The analytic table.
        boundaries: First days of validation, test and holdout; by default the days on which 60, 75 and 90 % of the
            sales are reached.
        group_parcels: Take every train sale whose parcel sells again in test or holdout out of train; it becomes
            ``excluded`` and remains a comparable for others.

    Raises:
        ConfigError: The boundaries are not three rising days.
        DataError: Train or all that comes after it would be empty, a default split would be empty, or a sale of which
            only the month is known would be known to others only after its split has ended.

    Example:
        >>> sales = pl.DataFrame({"tx_id": ["a", "b", "c", "d"], "parcel_id": ["1", "2", "3", "1"],
        ...     "sale_date": [date(2020, month, 1) for month in (1, 2, 3, 4)], "flags": [[]] * 4},
        ...     schema_overrides={"flags": pl.List(pl.String)})
        >>> days = [date(2020, 2, 1), date(2020, 3, 1), date(2020, 4, 1)]
        >>> time_splits(sales, boundaries=days, group_parcels=True).counts()
        {'validation': 1, 'test': 1, 'holdout': 1, 'excluded': 1}
    """
    edges = _checked(boundaries) if boundaries is not None else _default_boundaries(sales)
    for edge in edges:
        late = sales.filter(
            pl.col("flags").list.contains(MONTH_ONLY), pl.col("sale_date") < edge, available_date() >= edge
        )
        if late.height:
            raise DataError(
                f'the boundary {edge} divides the month of sale "{late["tx_id"][0]}", whose day is unknown',
                hint="Set boundaries on the first of a month.",
            )
    day = pl.col("sale_date")
    split = (
        pl.when(day < edges[0])
        .then(pl.lit("train"))
        .when(day < edges[1])
        .then(pl.lit("validation"))
        .when(day < edges[2])
        .then(pl.lit("test"))
        .otherwise(pl.lit("holdout"))
    )
    frame = sales.select("tx_id", "parcel_id", "sale_date", split=split)
    found = set(frame["split"])
    wanted = ("train",) if boundaries is not None else PERIODS
    for name in wanted:
        if name not in found:
            raise DataError(f"no sale falls into {name}", hint="Give boundaries inside the period of the sales.")
    if found == {"train"}:
        raise DataError(
            f"no sale falls into {', '.join(PERIODS[1:])}: all sales lie before {edges[0]}",
            hint="Give boundaries inside the period of the sales.",
        )
    _assert_order(frame)
    found_in = [(pl.col("split") == name).any().over("parcel_id") for name in JUDGED]
    again = pl.when(found_in[0]).then(pl.lit(JUDGED[0])).when(found_in[1]).then(pl.lit(JUDGED[1]))
    frame = frame.with_columns(sold_again_in=again)
    out = (pl.col("split") == "train") & pl.col("sold_again_in").is_not_null() & group_parcels
    return TimeSplits(
        frame=frame.select("tx_id", split=pl.when(out).then(pl.lit(EXCLUDED)).otherwise(pl.col("split"))),
        boundaries=edges,
        moves=frame.filter(out).drop("split"),
    )


def prospective(sales: pl.DataFrame, *, fetched_at: datetime, frozen_at: datetime) -> pl.DataFrame:
    """Return ``tx_id, split`` with every sale ``prospective``.

    Args:
        sales: Sales fetched after the freeze.
        fetched_at: When they were fetched, with time zone.
        frozen_at: When the protocol was frozen, with time zone.

    Raises:
        DataError: The sales were fetched at or before the freeze.

    Example:
        >>> from datetime import timezone
        >>> frozen, fetched = (datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2))
        >>> prospective(pl.DataFrame({"tx_id": ["a"]}), fetched_at=fetched, frozen_at=frozen)["split"].to_list()
        ['prospective']
    """
    if fetched_at <= frozen_at:
        raise DataError(
            f"these sales were fetched at {fetched_at}, not after the freeze of {frozen_at}",
            hint="A prospective split takes only data fetched after the freeze; use time splits for older data.",
        )
    return sales.select("tx_id", split=pl.lit(PROSPECTIVE))


def write_splits(frame: pl.DataFrame, path: Path, *, sales: pl.DataFrame) -> None:
    """Check and write ``splits.parquet``.

    Raises:
        DataError: The splits break their schema or do not cover the sales exactly.
    """
    write_parquet(check_splits(frame, sales=sales), path)


def read_splits(path: Path, *, sales: pl.DataFrame) -> pl.DataFrame:
    """Read ``splits.parquet`` and check it against its table.

    Raises:
        DataError: The file is missing or unreadable, breaks its schema, or does not cover the sales exactly.
    """
    return check_splits(read_parquet(path), sales=sales)


def check_splits(frame: pl.DataFrame, *, sales: pl.DataFrame) -> pl.DataFrame:
    """Return the splits, having checked columns, names, coverage of the sales and the order of each parcel's sales.

    Raises:
        DataError: One of these does not hold.
    """
    if frame.schema != SPLIT_SCHEMA:
        raise DataError(f"the splits have columns {dict(frame.schema)}", hint="They need tx_id and split, both text.")
    for name in frame["split"].unique(maintain_order=True):
        if name not in SPLITS:
            raise DataError(f'unknown split "{name}"', hint=nearest(str(name), SPLITS))
    if frame.height != sales.height or set(frame["tx_id"]) != set(sales["tx_id"]):
        raise DataError("the splits and the table hold different sales", hint="Make the splits again.")
    _assert_order(sales.select("tx_id", "parcel_id", "sale_date").join(frame, on="tx_id", how="left"))
    return frame


def _checked(boundaries: Sequence[date]) -> tuple[date, date, date]:
    if len(boundaries) != 3 or list(boundaries) != sorted(set(boundaries)):
        days = ", ".join(str(day) for day in boundaries)
        raise ConfigError(f"boundaries {days or '(none)'} are not three rising days", hint="Give D1,D2,D3.")
    return (boundaries[0], boundaries[1], boundaries[2])


def _default_boundaries(sales: pl.DataFrame) -> tuple[date, date, date]:
    days = sales["sale_date"].sort()
    if not len(days):
        raise DataError("there are no sales to split", hint="Build the table from a source that holds sales.")
    reached = (SHARES[0], SHARES[0] + SHARES[1], 1 - SHARES[3])
    first, second, third = (days[math.floor(round(share * len(days), 9))] for share in reached)
    return (first, second, third)


def _assert_order(frame: pl.DataFrame) -> None:
    """Raise where a parcel has its later sale in train and an earlier one in test or holdout."""
    judged = pl.when(pl.col("split").is_in(JUDGED)).then(pl.col("sale_date")).min().over("parcel_id")
    wrong = frame.filter((pl.col("split") == "train") & (pl.col("sale_date") > judged))
    if wrong.height:
        raise DataError(
            f'sale "{wrong["tx_id"][0]}" is in train although its parcel was sold earlier in test',
            hint="Make the splits again from the sale dates.",
        )
