from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from consilience.errors import ConfigError, DataError
from consilience.experiments.parquet import write_parquet
from consilience.valuation.adapters import ADAPTERS
from consilience.valuation.splits import check_splits, prospective, read_splits, time_splits, write_splits

DAYS = [date(2020, 1, 11), date(2020, 1, 21), date(2020, 1, 26)]


def sales(days: list[date], parcels: list[str] | None = None, flags: list[list[str]] | None = None) -> pl.DataFrame:
    n = len(days)
    return pl.DataFrame(
        {
            "tx_id": [f"t{i}" for i in range(n)],
            "parcel_id": parcels or [f"p{i}" for i in range(n)],
            "sale_date": days,
            "flags": flags or [[] for _ in range(n)],
        },
        schema_overrides={"sale_date": pl.Date, "flags": pl.List(pl.String)},
    )


def month(n: int = 30) -> list[date]:
    return [date(2020, 1, 1) + timedelta(days=i) for i in range(n)]


def test_a_sale_on_a_boundary_belongs_to_the_later_split() -> None:
    made = time_splits(sales(month()), boundaries=DAYS)
    by_day = dict(zip(month(), made.frame["split"], strict=True))
    assert [by_day[day] for day in DAYS] == ["validation", "test", "holdout"]
    assert [by_day[day - timedelta(days=1)] for day in DAYS] == ["train", "validation", "test"]
    assert made.boundaries == tuple(DAYS)


def test_the_default_is_60_15_15_10_percent() -> None:
    made = time_splits(sales([date(2020, 1, 1) + timedelta(days=i) for i in range(100)]))
    assert made.counts() == {"train": 60, "validation": 15, "test": 15, "holdout": 10}


def test_the_default_divides_no_day() -> None:
    days = [day for day in month(20) for _ in range(7)]
    made = time_splits(sales(days))
    assert made.frame.with_columns(day=pl.Series(days)).group_by("day").agg(pl.col("split").n_unique())[
        "split"
    ].unique().to_list() == [1]


def test_a_parcel_that_sells_again_in_test_leaves_train_only_when_asked() -> None:
    parcels = [f"p{i}" for i in range(30)]
    parcels[0] = parcels[21]
    parcels[1] = parcels[27]
    parcels[2] = parcels[12]
    frame = sales(month(), parcels)
    assert time_splits(frame, boundaries=DAYS).moved == 0
    grouped = time_splits(frame, boundaries=DAYS, group_parcels=True)
    assert grouped.moved == 2
    assert grouped.moves.select("tx_id", "parcel_id", "sold_again_in").rows() == [
        ("t0", "p21", "test"),
        ("t1", "p27", "holdout"),
    ]
    assert grouped.frame["split"].to_list()[:3] == ["excluded", "excluded", "train"]


@pytest.mark.parametrize("days", [DAYS[:2], DAYS[::-1], [DAYS[0], DAYS[0], DAYS[1]], []])
def test_boundaries_are_three_rising_days(days: list[date]) -> None:
    with pytest.raises(ConfigError, match="are not three rising days"):
        time_splits(sales(month()), boundaries=days)


def test_empty_splits_are_refused() -> None:
    with pytest.raises(DataError, match="no sale falls into train"):
        time_splits(sales(month()), boundaries=[date(2019, 1, day) for day in (1, 2, 3)])
    with pytest.raises(DataError, match="no sale falls into train"):
        time_splits(sales([date(2020, 1, 1)] * 10))
    with pytest.raises(
        DataError, match="no sale falls into validation, test, holdout: all sales lie before 2999-01-01"
    ):
        time_splits(sales(month()), boundaries=[date(2999, 1, day) for day in (1, 2, 3)])
    with pytest.raises(DataError, match="there are no sales"):
        time_splits(sales([]))


def test_a_boundary_inside_a_month_only_sales_month_is_refused() -> None:
    frame = sales([date(2020, 1, 1), date(2020, 2, 1)], flags=[["month_only"], ["month_only"]])
    with pytest.raises(DataError, match='divides the month of sale "t0"'):
        time_splits(frame, boundaries=DAYS)
    whole = [date(2020, 2, 1), date(2020, 3, 1), date(2020, 4, 1)]
    assert time_splits(frame, boundaries=whole).frame["split"].to_list() == ["train", "validation"]


def test_splits_are_checked_against_their_table(tmp_path: Path) -> None:
    frame, path = sales(month()), tmp_path / "splits.parquet"
    made = time_splits(frame, boundaries=DAYS).frame
    write_splits(made, path, sales=frame)
    assert read_splits(path, sales=frame).equals(made)
    with pytest.raises(DataError, match="hold different sales"):
        read_splits(path, sales=frame.head(29))
    write_parquet(made.with_columns(split=pl.lit("tset")), path)
    with pytest.raises(DataError, match='Did you mean "test"'):
        read_splits(path, sales=frame)
    write_parquet(made.rename({"split": "part"}), path)
    with pytest.raises(DataError, match="They need tx_id and split"):
        read_splits(path, sales=frame)


def test_a_later_sale_in_train_than_in_test_is_refused() -> None:
    frame = sales([date(2020, 1, 1), date(2020, 1, 2)], ["p", "p"])
    with pytest.raises(DataError, match='sale "t1" is in train'):
        check_splits(pl.DataFrame({"tx_id": ["t0", "t1"], "split": ["test", "train"]}), sales=frame)


def test_prospective_takes_only_data_fetched_after_the_freeze() -> None:
    frozen = datetime(2026, 1, 1, tzinfo=UTC)
    later = prospective(sales(month()), fetched_at=frozen + timedelta(seconds=1), frozen_at=frozen)
    assert set(later["split"]) == {"prospective"}
    with pytest.raises(DataError, match="not after the freeze"):
        prospective(sales(month()), fetched_at=frozen, frozen_at=frozen)


@pytest.mark.shared_data
def test_king_county_split_at_the_reference_day(shared: Path) -> None:
    adapter = ADAPTERS["king_county"]
    table = adapter.to_analytic(adapter.read(shared / "data/avm/king_county_2014_2015.parquet"))
    days = [date(2015, 2, 15), date(2015, 6, 1), date(2015, 7, 1)]
    assert time_splits(table, boundaries=days).counts() == {"train": 16_156, "validation": 5_457}
    days = [date(2015, 2, 14), date(2015, 2, 15), date(2015, 7, 1)]
    counts = time_splits(table, boundaries=days).counts()
    assert counts["test"] == 5_457
    assert counts["train"] + counts["validation"] == 16_156
    default = time_splits(table).counts()
    assert [round(default[name] / table.height, 2) for name in ("train", "validation", "test", "holdout")] == [
        0.6,
        0.15,
        0.15,
        0.1,
    ]


@pytest.mark.shared_data
def test_king_county_grouped_by_parcel(shared: Path) -> None:
    adapter = ADAPTERS["king_county"]
    table = adapter.to_analytic(adapter.read(shared / "data/avm/king_county_2014_2015.parquet"))
    days = [date(2015, 2, 14), date(2015, 2, 15), date(2015, 7, 1)]
    grouped = time_splits(table, boundaries=days, group_parcels=True)
    before = time_splits(table, boundaries=days)
    assert (before.moved, before.counts().get("excluded")) == (0, None)
    assert grouped.counts()["excluded"] == grouped.moved
    sides = table.select("tx_id", "parcel_id").join(grouped.frame, on="tx_id")
    train, test = (set(sides.filter(pl.col("split") == name)["parcel_id"]) for name in ("train", "test"))
    assert not train & test
    assert grouped.moves["parcel_id"].n_unique() == 112
