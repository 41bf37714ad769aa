"""The repeat-sales index: closed forms, a known path, refused weights, and the counts of another package."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.valuation.baselines.repeat_sales import (
    IndexNote,
    fit_repeat_index,
    repeat_pairs,
)


def pairs_of(*rows: tuple[int, int, float]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "first_month": [row[0] for row in rows],
            "second_month": [row[1] for row in rows],
            "days": [round((row[1] - row[0]) * 30.4375) for row in rows],
            "log_ratio": [row[2] for row in rows],
            "short": [row[1] - row[0] < 12 for row in rows],
        },
        schema_overrides={
            "first_month": pl.Int64,
            "second_month": pl.Int64,
            "log_ratio": pl.Float64,
            "short": pl.Boolean,
        },
    )


def town(rng: np.random.Generator, *, parcels: int, noise: float, drift: float) -> tuple[pl.DataFrame, np.ndarray]:
    """Parcels sold twice on a known path; the variance of a pair is 2·noise² + drift · years."""
    path = np.cumsum(rng.normal(0.004, 0.02, 72))
    path -= path[0]
    first = rng.integers(0, 48, parcels)
    second = np.minimum(first + rng.integers(13, 60, parcels), 71)
    second = np.maximum(second, first + 13)
    days = [
        (date(2010 + m // 12, m % 12 + 1, 15), date(2010 + n // 12, n % 12 + 1, 15))
        for m, n in zip(first, second, strict=True)
    ]
    years = (second - first) / 12
    ratio = path[second] - path[first] + rng.normal(0, np.sqrt(2 * noise**2 + drift * years))
    level = rng.normal(13, 0.5, parcels)
    ids = [f"p{i}" for i in range(parcels)]
    sales = pl.DataFrame(
        {
            "parcel_id": ids * 2,
            "sale_date": [pair[0] for pair in days] + [pair[1] for pair in days],
            "price": np.exp(np.concatenate([level, level + ratio])),
        }
    )
    return sales, path


def test_three_dates_are_the_closed_form_of_least_squares() -> None:
    index = fit_repeat_index(pairs_of((0, 12, 0.10), (0, 24, 0.30), (12, 24, 0.14)), weighted=False, least_pairs=1)
    # Of a triangle, a level is 2/3 of the direct difference and 1/3 of the way around.
    assert index.levels[12] == pytest.approx(2 / 3 * 0.10 + (0.30 - 0.14) / 3, abs=1e-12)
    assert index.levels[24] == pytest.approx(2 / 3 * 0.30 + (0.10 + 0.14) / 3, abs=1e-12)
    assert index.noise == pytest.approx(3 * 0.02**2, abs=1e-12)
    assert index.drift == 0


def test_pairs_between_two_dates_give_their_mean() -> None:
    index = fit_repeat_index(pairs_of((0, 12, 0.1), (0, 12, 0.2), (0, 12, 0.6)), weighted=False, least_pairs=1)
    assert index.levels[12] == pytest.approx(0.3)
    assert index.change(np.array([0, 12]), np.array([12, 0])) == pytest.approx([0.3, -0.3])


def test_the_third_stage_is_weighted_least_squares_with_the_fitted_line() -> None:
    rows = [(0, 12, 0.1), (0, 12, 0.2), (12, 48, 0.3), (12, 48, 0.45), (0, 48, 0.4), (0, 48, 0.58)]
    pairs = pairs_of(*rows)
    index = fit_repeat_index(pairs, least_pairs=2)
    design = np.array([[(m == 12) * -1.0 + (n == 12), 1.0 * (n == 48)] for m, n, _ in rows])
    ratio = pairs["log_ratio"].to_numpy()
    years = pairs["days"].to_numpy() / 365.25
    plain = np.linalg.lstsq(design, ratio, rcond=None)[0]
    line = np.linalg.lstsq(np.column_stack([np.ones(6), years]), (ratio - design @ plain) ** 2, rcond=None)[0]
    root = 1 / np.sqrt(line[0] + line[1] * years)
    weighted = np.linalg.lstsq(design * root[:, None], ratio * root, rcond=None)[0]
    assert (index.noise, index.drift) == pytest.approx(tuple(line), rel=1e-9)
    assert (index.levels[12], index.levels[48]) == pytest.approx(tuple(weighted), rel=1e-9)
    assert IndexNote.WEIGHTS_REFUSED not in index.notes


def test_a_known_path_and_its_variances_are_recovered() -> None:
    sales, path = town(np.random.default_rng(7), parcels=20_000, noise=0.08, drift=0.01)
    index = fit_repeat_index(repeat_pairs(sales))
    known = np.array([level for level in index.levels if level is not None])
    assert len(known) == 72
    # The base month has an error too, which shifts all the others: levels are compared around their means.
    assert np.abs(known - known.mean() - path + path.mean()).max() < 0.025
    assert index.noise == pytest.approx(2 * 0.08**2, rel=0.15)
    assert index.drift == pytest.approx(0.01, rel=0.1)


def test_weights_are_refused_where_longer_holdings_vary_less() -> None:
    rows = [(0, 12, 0.5), (0, 12, -0.3), (12, 48, 0.21), (12, 48, 0.2), (0, 48, 0.3), (0, 48, 0.31)]
    index = fit_repeat_index(pairs_of(*rows), least_pairs=2)
    plain = fit_repeat_index(pairs_of(*rows), least_pairs=2, weighted=False)
    assert index.notes[IndexNote.WEIGHTS_REFUSED] == 6
    assert index.levels == plain.levels
    assert index.drift == 0
    assert index.variance([365, 3650]).tolist() == [index.noise] * 2


def test_short_holdings_teach_nothing_and_are_counted() -> None:
    rows = [(0, 12, 0.1), (0, 12, 0.2)]
    index = fit_repeat_index(pairs_of(*rows, (3, 9, 2.0)), weighted=False, least_pairs=1)
    assert index.notes[IndexNote.SHORT_PAIRS_EXCLUDED] == 1
    assert index.levels == fit_repeat_index(pairs_of(*rows), weighted=False, least_pairs=1).levels


def test_sparse_months_share_a_level_and_are_counted() -> None:
    index = fit_repeat_index(pairs_of((0, 14, 0.1), (0, 15, 0.2), (0, 15, 0.2)), weighted=False, least_pairs=3)
    # Months 1 to 15 together hold three ends, the last of them in month 15.
    assert index.levels[1] == index.levels[14] == index.levels[15] == pytest.approx(0.5 / 3)
    assert index.notes[IndexNote.MONTHS_POOLED] == 15


def test_what_no_chain_of_pairs_links_has_no_level() -> None:
    index = fit_repeat_index(pairs_of((0, 24, 0.1), (0, 24, 0.1), (12, 36, 0.4)), weighted=False, least_pairs=1)
    assert index.levels[0] == 0
    assert index.levels[24] == pytest.approx(0.1)
    assert index.levels[36] is None
    assert index.notes[IndexNote.MONTHS_UNLINKED] == 24
    assert math.isnan(index.change(np.array([0]), np.array([36]))[0])


@pytest.mark.parametrize("rows", [(), ((0, 6, 0.1),), ((0, 12, 0.1),)])
def test_without_pairs_across_two_periods_there_is_no_index(rows: tuple[tuple[int, int, float], ...]) -> None:
    with pytest.raises(DataError, match="held for a year"):
        fit_repeat_index(pairs_of(*rows), least_pairs=5)


def test_pairs_follow_the_dates_of_a_parcel() -> None:
    days = [date(2012, 2, 29), date(2012, 2, 29), date(2012, 2, 1), date(2013, 2, 27), date(2014, 2, 28)]
    sales = pl.DataFrame({"parcel_id": ["a"] * 5, "sale_date": days, "price": [90.0, 100.0, 95.0, 110.0, 121.0]})
    pairs = repeat_pairs(sales)
    # Three sales of one month count once, at the dearest price: a resale on the same day is no holding.
    assert pairs["days"].to_list() == [364, 366]
    assert pairs["short"].to_list() == [True, False]
    assert pairs["log_ratio"].to_list() == pytest.approx([math.log(1.1)] * 2)
    assert repeat_pairs(sales, every=True)["days"].to_list() == [364, 730, 366]


def test_the_record_is_json_with_unknown_levels_null() -> None:
    index = fit_repeat_index(pairs_of((0, 24, 0.1), (0, 24, 0.1), (12, 36, 0.4)), least_pairs=1)
    record = json.loads(json.dumps(index.record(), allow_nan=False))
    assert record["levels"][36] is None
    assert record["notes"]["months_unlinked"] == 24


@given(st.integers(0, 2**32 - 1), st.floats(-2, 2))
def test_order_and_units_of_the_sales_do_not_matter(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    days = [date(2010, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 2_000, 60)]
    prices = np.exp(rng.normal(12, 0.4, 60))
    sales = pl.DataFrame({"parcel_id": [f"p{i}" for i in rng.integers(0, 20, 60)], "sale_date": days, "price": prices})
    pairs = repeat_pairs(sales)
    other = repeat_pairs(sales.sample(fraction=1, shuffle=True, seed=1).with_columns(pl.col("price") * math.exp(shift)))
    assert other["log_ratio"].to_list() == pytest.approx(pairs["log_ratio"].to_list(), abs=1e-9)
    assert other["second_date"].to_list() == pairs["second_date"].to_list()


@pytest.mark.shared_data
def test_seattle_has_the_pairs_that_another_package_counts(shared: Path) -> None:
    sales = pl.read_parquet(shared / "data" / "avm" / "seattle_sales_2010_2016.parquet")
    sales = sales.select("parcel_id", "sale_date", pl.col("price").cast(pl.Float64))
    pairs = repeat_pairs(sales)
    months = pairs["second_month"] - pairs["first_month"]
    assert repeat_pairs(sales, every=True).height == 5_102
    assert (pairs.height, int((months >= 12).sum())) == (4_823, 3_795)
    index = fit_repeat_index(pairs)
    assert index.pairs == 3_750  # held 365 days or more, which 45 pairs of 12 calendar months are not
    assert index.notes[IndexNote.SHORT_PAIRS_EXCLUDED] == 4_823 - 3_750
    # What was held longer does not vary more here: flips and rebuilding weigh on the shorter holdings.
    assert index.notes[IndexNote.WEIGHTS_REFUSED] == 3_750
