"""Sales to look for leaks in: raw tables with odd sales, all that is said of them, and ways to change prices."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from consilience.core.canonical import canonical_json
from consilience.valuation.adapters.base import Adapter
from consilience.valuation.adapters.king_county import KingCounty
from consilience.valuation.adapters.synthetic import SyntheticTown
from consilience.valuation.features import FeatureMatrix, build_feature_matrix
from consilience.valuation.market import MarketHistory
from consilience.valuation.packets import PacketBuilder
from consilience.valuation.schema import (
    ANALYTIC,
    IDENTITY,
    MONTH_ONLY,
    Manifest,
    Observation,
    RegionMap,
    available_date,
)
from consilience.valuation.synthetic import generate

TOWN_EDGES = (date(2022, 10, 1), date(2023, 4, 1), date(2023, 9, 1))
COUNTY_EDGES = (date(2014, 12, 17), date(2015, 2, 15), date(2015, 4, 20))
PACKETS = 25


@dataclass(frozen=True)
class Source:
    """A raw table, what brings it to the analytic one, and the first days of validation, test and holdout."""

    raw: pl.DataFrame
    adapter: Adapter
    edges: tuple[date, date, date]

    def analytic(self, raw: pl.DataFrame) -> pl.DataFrame:
        table = self.adapter.to_analytic(raw)
        # In one of five sales only the month is known.
        month_only = table["tx_id"].hash(7) % 5 == 0
        if self.adapter.name != "synthetic":
            return table
        marked = pl.concat_list("flags", pl.lit(MONTH_ONLY))
        return table.with_columns(
            sale_date=pl.when(month_only).then(pl.col("sale_date").dt.month_start()).otherwise("sale_date"),
            flags=pl.when(month_only).then(marked).otherwise("flags"),
        )

    def splits(self, table: pl.DataFrame) -> pl.DataFrame:
        number = sum((pl.col("sale_date") >= day).cast(pl.Int8) for day in self.edges)
        names = pl.Series(["train", "validation", "test", "holdout"])
        return table.select("tx_id", split=pl.lit(names.gather(table.select(number).to_series())))


def make_town() -> Source:
    """A town in which some homes change hands twice on one day or two, share a place, or lie nowhere."""
    raw = generate(sales=600, seed=5).sales
    again = raw[::60].with_columns(tx_id=pl.format("{}-again", "tx_id"), price=pl.col("price") * 1.1)
    beside = raw[5::60].with_columns(
        tx_id=pl.format("{}-beside", "tx_id"), parcel_id=pl.format("{}-beside", "parcel_id")
    )
    eve = raw[7::15].with_columns(
        tx_id=pl.format("{}-eve", "tx_id"), sale_date=pl.col("sale_date") - pl.duration(days=1)
    )
    near = eve.with_columns(tx_id=pl.format("{}-near", "tx_id"), parcel_id=pl.format("{}-near", "parcel_id"))
    return Source(pl.concat([raw, again, beside, eve, near]), SyntheticTown(), TOWN_EDGES)


def make_county(shared: Path) -> Source:
    """King County's northern half, read as it is."""
    raw = KingCounty().read(shared / "data" / "avm" / "king_county_2014_2015.parquet")
    return Source(raw.filter(pl.col("lat") > 47.72), KingCounty(), COUNTY_EDGES)


def manifest(table: pl.DataFrame) -> Manifest:
    return Manifest(
        adapter="csv",
        source_file="s",
        source_sha256="0" * 64,
        rows=table.height,
        currency=table["currency"][0],
        region=RegionMap(municipality="town", region="county"),
        observations={name: Observation(rule="at_sale") for name in ANALYTIC if name not in IDENTITY},
    )


def digest(lines: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def rows_of(matrix: FeatureMatrix, tx_ids: list[str]) -> FeatureMatrix:
    where = {tx_id: row for row, tx_id in enumerate(matrix.frame["tx_id"])}
    return matrix.take(np.array([where[tx_id] for tx_id in tx_ids], dtype=np.int64))


class Said:
    """All that is said of the sales of a raw table."""

    def __init__(self, source: Source, raw: pl.DataFrame) -> None:
        table = source.analytic(raw)
        self.matrix = build_feature_matrix(table, source.splits(table))
        self.history = MarketHistory(table.with_columns(available_date()))
        self.builder = PacketBuilder(table, manifest(table), declare_condition=True)

    def of(self, tx_ids: list[str]) -> dict[str, str]:
        """Return hashes of the features and comparables of some subjects, and of contexts and packets of fewer."""
        chosen = rows_of(self.matrix, tx_ids)
        rows, scores = chosen.comparables.rows.ravel(), chosen.comparables.scores.ravel()
        sold = chosen.sales.select("tx_id", "price", "available_date")[np.maximum(rows, 0)]
        shown = sold.with_columns(row=pl.Series(rows), score=pl.Series(scores)).filter(pl.col("row") >= 0).drop("row")
        step = max(1, len(tx_ids) // PACKETS)
        places = chosen.frame.select("lat", "lng", "municipality", "region", "property_class", "cutoff")[::step]
        return {
            "features": digest([chosen.frame.write_ndjson().encode()]),
            "comparables": digest([shown.write_ndjson().encode()]),
            "contexts": digest(canonical_json(self.history.context(**row)) for row in places.iter_rows(named=True)),
            "packets": digest(
                canonical_json(self.builder.build(tx_id).model_dump(mode="json")) for tx_id in tx_ids[::step]
            ),
        }


Change = Callable[[pl.DataFrame, pl.Expr], pl.DataFrame]


def repriced(raw: pl.DataFrame, hit: pl.Expr, factor: float = 3.0) -> pl.DataFrame:
    price = (pl.col("price") * factor).cast(raw.schema["price"])
    return raw.with_columns(price=pl.when(hit).then(price).otherwise("price"))


def shuffled(raw: pl.DataFrame, hit: pl.Expr) -> pl.DataFrame:
    rows = raw.select(hit.arg_true()).to_series().to_numpy()
    prices = raw["price"].to_numpy().copy()
    prices[rows] = np.random.default_rng(4).permutation(prices[rows])
    return raw.with_columns(price=pl.Series(prices))


def deleted(raw: pl.DataFrame, hit: pl.Expr) -> pl.DataFrame:
    return raw.filter(~hit)


CHANGES: tuple[Change, ...] = (repriced, shuffled, deleted)


def known_from(source: Source, raw: pl.DataFrame) -> pl.DataFrame:
    """Return ``tx_id, valued, known`` of the sales of a raw table."""
    return (
        source.analytic(raw).with_columns(available_date()).select("tx_id", valued="sale_date", known="available_date")
    )


def raw_ids(source: Source) -> pl.Expr:
    if isinstance(source.adapter, KingCounty):
        return pl.format("kc-{}", pl.col("source_row").cast(pl.String).str.zfill(5))
    return pl.col("tx_id")


def days_of(source: Source) -> list[date]:
    """Three days on which sales are valued, with some known the day before: one in train, validation and test."""
    sales = known_from(source, source.raw)
    known = set(sales["known"])
    valued = [day for day in sales["valued"].unique().sort() if day.day > 1 and day - timedelta(days=1) in known]
    ends = (*source.edges, source.edges[-1] + timedelta(days=30))
    return [max(day for day in valued if day < end) for end in (ends[0], ends[2], ends[3])]


def eves(source: Source) -> list[date]:
    """Some days of test and later with a subject whose parcel sold the day before; any days where there are none."""
    sales = source.analytic(source.raw).filter(pl.col("sale_date") == available_date())
    gap = pl.col("sale_date") - pl.col("sale_date").shift(1).over("parcel_id")
    days = sales.filter(gap == timedelta(days=1), pl.col("sale_date") >= source.edges[1])["sale_date"].unique().sort()
    return days.gather_every(max(1, len(days) // 3)).to_list() or days_of(source)


def judged(source: Source) -> list[str]:
    """Some subjects outside train and validation, those of parcels with several sales first."""
    sales = source.analytic(source.raw).filter(pl.col("sale_date") >= source.edges[1])
    again = sales.filter(pl.len().over("parcel_id") > 1)["tx_id"]
    return [*again[:2], *sales["tx_id"].gather_every(max(1, sales.height // 2))[:2]]
