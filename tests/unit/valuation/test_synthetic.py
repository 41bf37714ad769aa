from __future__ import annotations

import time
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from consilience.errors import ConfigError
from consilience.valuation.adapters import ADAPTERS, build
from consilience.valuation.schema import ANALYTIC
from consilience.valuation.splits import time_splits
from consilience.valuation.synthetic import RAW_SCHEMA, Town, generate, write_town


@pytest.fixture(scope="module")
def town() -> Town:
    return generate(sales=4_000, seed=3)


@pytest.fixture(scope="module")
def joined(town: Town) -> pl.DataFrame:
    return town.sales.drop("condition").join(town.truth, on="tx_id")


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_town(generate(sales=500, seed=11), tmp_path / f"{name}.parquet")
    for suffix in (".parquet", ".truth.parquet", ".index.parquet"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert not generate(sales=500, seed=12).sales.equals(generate(sales=500, seed=11).sales)


def test_two_thousand_sales_take_less_than_two_seconds() -> None:
    begun = time.process_time()
    assert generate(sales=2_000, seed=1).sales.height == 2_000
    assert time.process_time() - begun < 2


def test_price_is_true_value_times_noise(joined: pl.DataFrame) -> None:
    market = joined.filter("market")
    rebuilt = market["true_value"].to_numpy() * np.exp(market["noise"].to_numpy())
    np.testing.assert_allclose(market["price"].to_numpy(), rebuilt, rtol=1e-9)
    assert abs(market["noise"].to_numpy().mean()) < 0.01
    assert market["noise"].to_numpy().std() == pytest.approx(0.08, abs=0.005)


def test_the_index_of_the_truth_is_the_path_on_the_sales_day(town: Town, joined: pl.DataFrame) -> None:
    at_start = dict(zip(town.index["month"], town.index["log_index"], strict=True))
    on_first = joined.filter(pl.col("sale_date").dt.day() == 1)
    expected = [at_start[day] for day in on_first["sale_date"]]
    np.testing.assert_allclose(on_first["log_index"].to_numpy(), expected, atol=1e-12)
    assert at_start[date(2021, 1, 1)] == 0


def test_truth_stays_out_of_the_table(town: Town) -> None:
    assert town.sales.schema == RAW_SCHEMA
    assert not {"true_value", "noise", "log_index", "market"} & set(town.sales.columns)
    assert town.sales["condition"].is_null().all()
    assert town.truth["condition"].to_numpy().std() == pytest.approx(1, abs=0.05)


def test_ids_say_nothing_about_time_or_price(joined: pl.DataFrame) -> None:
    ordered = joined.sort("tx_id").with_columns(rank=pl.int_range(pl.len()), day=pl.col("sale_date").cast(pl.Int32))
    assert abs(ordered.select(pl.corr("rank", "day")).item()) < 0.06
    assert abs(ordered.select(pl.corr("rank", "price")).item()) < 0.06


def test_the_roll_lags_and_errs(joined: pl.DataFrame) -> None:
    roll = joined.filter(pl.col("assessment_total").is_not_null())
    lag = roll.select((pl.col("sale_date") - pl.col("roll_reference_date")).dt.total_days().min()).item()
    assert lag >= 365
    assert set(roll["roll_reference_date"].dt.strftime("%m-%d")) == {"07-01"}
    error = np.log(roll["assessment_total"].to_numpy() / roll["true_value"].to_numpy())
    assert 0.08 < error.std() < 0.3
    total = roll["assessment_land"] + roll["assessment_building"]
    assert total.equals(roll["assessment_total"].alias(total.name))
    per_roll = roll.group_by("parcel_id", "roll_reference_date").agg(n=pl.len()).filter(pl.col("n") > 1)
    assert per_roll.height > 50


def test_the_town_has_everything_that_real_data_have(town: Town, tmp_path: Path) -> None:
    path = tmp_path / "town.parquet"
    write_town(town, path)
    made = build(ADAPTERS["synthetic"], path)
    expected = {"flip", "declared_non_market", "nominal_price", "built_after_sale", "floor_area_not_positive"}
    assert expected <= set(made.manifest.flag_counts)
    nulls = dict(made.frame.null_count().unpivot().iter_rows())
    assert nulls["condition"] == made.frame.height
    assert made.manifest.observations["condition"].rule == "absent"
    assert made.manifest.observations["assessment_total"].rule == "at_roll_reference"
    shares = {name: count / made.frame.height for name, count in nulls.items() if name != "condition"}
    assert max(shares.values()) < 0.35  # land of condominiums
    assert all(shares[name] < 0.1 for name in ANALYTIC if name not in {"condition", "land_area_m2"})
    assert made.frame["parcel_id"].n_unique() < 0.85 * made.frame.height
    split = time_splits(made.frame, group_parcels=True)
    assert split.moved > 0
    assert split.counts()["holdout"] == pytest.approx(400, abs=20)


def test_flips_are_dearer_because_they_were_renovated(joined: pl.DataFrame) -> None:
    resold = joined.filter("market").sort("parcel_id", "sale_date")
    change = resold.with_columns(
        gap=(pl.col("sale_date") - pl.col("sale_date").shift(1).over("parcel_id")).dt.total_days(),
        change=(pl.col("true_value") / pl.col("true_value").shift(1).over("parcel_id")).log(),
    ).drop_nulls(["gap", "change"])
    flips = change.filter(pl.col("change") > 0.4)
    assert flips.height > 20
    assert change.filter(pl.col("change") <= 0.4)["change"].to_numpy().std() < 0.1


@pytest.mark.parametrize("bad", [{"sales": 0}, {"seed": -1}, {"years": 0}, {"start": date(2020, 1, 2)}])
def test_arguments_out_of_range_are_refused(bad: dict[str, object]) -> None:
    arguments: dict[str, object] = {"sales": 10, "seed": 1} | bad
    with pytest.raises(ConfigError, match="no town of"):
        generate(**arguments)  # type: ignore[arg-type]


def test_one_sale_makes_a_town() -> None:
    assert generate(sales=1, seed=0).sales.height == 1
