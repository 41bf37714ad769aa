from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from baseline_cases import matrix_of, mdape, town_matrix, town_table
from consilience.errors import DataError
from consilience.valuation.adapters import ADAPTERS, build
from consilience.valuation.baselines.adjusted import ADJUSTED, AdjustedComps
from consilience.valuation.baselines.hedonic import Hedonic, days, fit_prices
from consilience.valuation.baselines.index import IndexedPrior
from consilience.valuation.baselines.regressors import HEDONIC, SMALL_CELL, attributes, features, fit_cells
from consilience.valuation.features import FeatureMatrix, build_feature_matrix
from consilience.valuation.synthetic import generate

PLANTED = {"ln_floor_area": 0.65, "ln_land_area": 0.10, "quality": 0.07, "storeys": 0.0, "n_dwellings": 0.0}
"""What the town pays for attributes; age is capped there, so that no straight line recovers it."""


@pytest.fixture(scope="module")
def matrix() -> FeatureMatrix:
    return town_matrix(2_500, 11)


def rejections(seeds: range, sales: int) -> int:
    """Return how often the planted prices are rejected at 1 %, all sales of a town being train."""
    rejected = 0
    for seed in seeds:
        table = town_table(generate(sales=sales, seed=seed))
        everything = build_feature_matrix(
            # No coordinates, no search for comparables: the regression needs none.
            table.with_columns(lat=pl.lit(None, pl.Float64), lng=pl.lit(None, pl.Float64)),
            table.select("tx_id", split=pl.lit("train")),
        )
        rejected += fit_prices(everything).fit.wald(PLANTED) < 0.01
    return rejected


@pytest.mark.slow
def test_the_planted_prices_are_recovered() -> None:
    assert rejections(range(10), 3_000) <= 1


@pytest.mark.slow
def test_the_planted_prices_are_rejected_in_at_most_five_of_a_hundred_towns() -> None:
    assert rejections(range(100), 6_000) <= 5


def test_nominal_prices_teach_nothing() -> None:
    table = town_table(generate(sales=1_500, seed=6))
    nominal = pl.int_range(pl.len()) % 100 == 7
    marked = table.with_columns(price=pl.when(nominal).then(1.0).otherwise("price"))
    train, left = matrix_of(marked).part("train"), matrix_of(table.filter(~nominal)).part("train")
    fit = fit_prices(train).fit
    assert fit.outlying >= 9
    assert np.allclose(fit.of(*PLANTED), fit_prices(left).fit.of(*PLANTED), atol=0.02)


def test_an_outlying_earlier_price_adds_nothing(matrix: FeatureMatrix) -> None:
    fitted = Hedonic().fit(matrix.part("train"), matrix.part("validation"))
    resold = matrix.part("test").where(pl.col("ln_prior_price").is_not_null())
    nominal = replace(resold, frame=resold.frame.with_columns(ln_prior_price=pl.lit(0.0)))
    none = replace(resold, frame=resold.frame.with_columns(ln_prior_price=pl.lit(None, pl.Float64)))
    assert fitted.points(nominal).tolist() == fitted.points(none).tolist()


def test_the_index_path_is_recovered() -> None:
    town = generate(sales=8_000, seed=4)
    matrix = matrix_of(town_table(town))
    path = fit_prices(matrix.part("train")).path(matrix.sales)
    months = town.index.filter(pl.col("month").is_between(date(2021, 3, 1), date(2023, 9, 1)))
    level = path.at(days(months["month"]), np.full(months.height, 10**6))
    gap = (level - level[0]) - (months["log_index"] - months["log_index"][0]).to_numpy()
    assert np.abs(gap).max() < 0.03
    assert np.sqrt(np.mean(gap**2)) < 0.012


def test_attributes_of_a_sale_are_those_of_its_features(matrix: FeatureMatrix) -> None:
    by_id = matrix.sales.join(matrix.frame.select("tx_id"), on="tx_id", how="right", maintain_order="right")
    assert np.array_equal(attributes(by_id, ADJUSTED), features(matrix.frame, ADJUSTED), equal_nan=True)


def test_small_and_new_places_take_the_effect_of_their_class_and_a_new_class_the_mean(matrix: FeatureMatrix) -> None:
    train = matrix.part("train")
    prices = fit_prices(train)
    cells = fit_cells(train.frame)
    sizes = train.frame.group_by("municipality", "property_class").len()
    small = sizes.filter(pl.col("len") < SMALL_CELL).height
    assert len(cells.labels) == sizes.height - small + (small > 0) * len(
        set(sizes.filter(pl.col("len") < SMALL_CELL)["property_class"])
    )
    place = train.frame[:2].with_columns(municipality=pl.lit("Nowhere"), property_class=pl.Series(["igloo", "igloo"]))
    assert cells.codes(place).tolist() == [-1, -1]
    expected = np.average(prices.fit.effects, weights=prices.fit.cell_sizes)
    assert prices.new_place == pytest.approx(expected)
    unseen = replace(
        matrix.part("test").take(np.arange(2)),
        frame=matrix.part("test").frame[:2].with_columns(property_class=pl.lit("igloo")),
    )
    notes = Hedonic().fit(train, matrix.part("validation")).predict(unseen).notes
    assert any("2 subjects lie in places of a class that train does not hold" in note for note in notes)


def test_unknown_attributes_take_the_median_of_their_class_and_are_told(matrix: FeatureMatrix) -> None:
    train = matrix.part("train")
    fitted = Hedonic().fit(train, matrix.part("validation"))
    test = matrix.part("test")
    condos = test.where((pl.col("property_class") == "condo") & pl.col("prior_years").is_null()).take(np.arange(1))
    blank = replace(condos, frame=condos.frame.with_columns(quality=pl.lit(None, pl.Float64)))
    median = train.frame.filter(pl.col("property_class") == "condo")["quality"].median()
    filled = replace(condos, frame=condos.frame.with_columns(quality=pl.lit(median)))
    flag = fitted.prices.fit.of("quality_unknown")[0]
    ratio = fitted.predict(blank).point / fitted.predict(filled).point
    assert ratio[0] == pytest.approx(np.exp(flag))
    assert any(note.startswith("quality is unknown for 1 of 1 subjects") for note in fitted.predict(blank).notes)


def test_a_prior_sale_pulls_towards_what_the_parcel_brought(matrix: FeatureMatrix) -> None:
    fitted = Hedonic().fit(matrix.part("train"), matrix.part("validation"))
    assert fitted.prior is not None
    rho = fitted.prior.fit.of("prior_surplus")[0]
    assert 0.1 < rho < 1
    resold = matrix.part("test").where(pl.col("ln_prior_price").is_not_null())
    dearer = replace(resold, frame=resold.frame.with_columns(pl.col("ln_prior_price") + 0.2))
    pulled = np.log(fitted.points(dearer) / fitted.points(resold))
    # Those whose earlier price becomes outlying lose the term.
    assert np.isclose(pulled, 0.2 * rho).mean() > 0.95


def test_baselines_are_near_the_truth_and_their_intervals_hold(matrix: FeatureMatrix) -> None:
    train, valid, test = (matrix.part(name) for name in ("train", "validation", "test"))
    truth = np.exp(test.truth())
    for baseline, most in ((Hedonic(), 9.0), (AdjustedComps(), 12.0)):
        predicted = baseline.fit(train, valid).predict(test.blind())
        assert mdape(predicted.point, test) < most
        low, high = predicted.quantiles[:, 0], predicted.quantiles[:, 4]
        covered = ((truth >= low) & (truth <= high))[predicted.answered].mean()
        assert 0.82 <= covered <= 0.97


def test_adjusted_comparables_stand_in_money_beside_what_was_paid(matrix: FeatureMatrix) -> None:
    fitted = AdjustedComps().fit(matrix.part("train"), matrix.part("validation"))
    test = matrix.part("test").where(pl.col("comp_count") >= 3)
    shown = fitted.adjust(test)
    rows = test.comparables.rows
    paid = test.sales["price"].to_numpy()[rows[0, 0]]
    assert shown.price[0, 0] == paid
    assert np.isnan(shown.price[rows < 0]).all()
    assert not np.isnan(shown.adjusted[rows >= 0]).any()
    assert np.allclose(fitted.points(test), np.exp(np.nanmedian(np.log(shown.adjusted), axis=1)))
    # A subject like its comparable in everything is worth the indexed price.
    own, sold = features(test.frame, ADJUSTED), attributes(test.sales, ADJUSTED)[rows]
    gap = np.where(np.isnan(own[:, None, :] - sold), 0.0, own[:, None, :] - sold) @ fitted.fit.of(*ADJUSTED)
    there = rows >= 0
    assert np.allclose(np.log(shown.adjusted / shown.indexed)[there], gap[there])


def test_a_subject_without_comparables_gets_no_prediction(matrix: FeatureMatrix) -> None:
    fitted = AdjustedComps().fit(matrix.part("train"), matrix.part("validation"))
    test = matrix.part("test").take(np.arange(4))
    none = replace(test.comparables, rows=np.full_like(test.comparables.rows, -1))
    lonely = replace(test, comparables=none)
    predicted = fitted.predict(lonely)
    assert not predicted.answered.any()
    assert np.isnan(predicted.quantiles).all()
    assert f"{len(lonely)} of {len(lonely)} subjects have no comparables" in predicted.notes[0]


def test_the_index_moves_prior_prices_only_where_there_are_some(matrix: FeatureMatrix) -> None:
    fitted = IndexedPrior().fit(matrix.part("train"), matrix.part("validation"))
    test = matrix.part("test")
    predicted = fitted.predict(test)
    assert predicted.answered.tolist() == test.frame["prior_sale_price"].is_not_null().to_list()
    assert "hit rate" in predicted.notes[0]
    path = fitted.prices.path(test.sales)
    row = int(np.argmax(predicted.answered))
    cutoff = days(test.frame["cutoff"])[[row]]
    moved = path.at_cutoff(cutoff) - path.at(days(test.frame["prior_sale_date"])[[row]], cutoff)
    assert predicted.point[row] == pytest.approx(test.frame["prior_sale_price"][row] * np.exp(moved[0]))


def test_few_resales_fit_no_prior_term_and_no_intervals(matrix: FeatureMatrix) -> None:
    first = ~pl.col("ln_prior_price").is_not_null()
    train, valid = matrix.part("train").where(first), matrix.part("validation").where(first)
    fitted = Hedonic().fit(train, valid)
    assert fitted.prior is None
    assert "fewer than 30 resales" in fitted.predict(matrix.part("test")).notes[-1]
    index = IndexedPrior().fit(train, valid)
    predicted = index.predict(matrix.part("test"))
    assert np.isnan(predicted.quantiles).all()
    assert predicted.answered.any()
    assert "no quantiles" in predicted.notes[-1]


def test_a_short_validation_is_refused(matrix: FeatureMatrix) -> None:
    with pytest.raises(DataError, match="validation holds 9 predicted sales"):
        Hedonic().fit(matrix.part("train"), matrix.part("validation").take(np.arange(9)))


def test_the_record_names_every_price_with_its_standard_error(matrix: FeatureMatrix) -> None:
    fitted = Hedonic().fit(matrix.part("train"), matrix.part("validation"))
    record = fitted.record()
    assert set(HEDONIC) < set(record["features"])
    assert record["prices"]["coefficients"]["ln_floor_area"]["standard_error"] > 0
    assert fitted.information_date == matrix.part("validation").frame["available_date"].max()


@pytest.mark.shared_data
@pytest.mark.slow
def test_king_county_bars_are_met_with_frozen_parameters(shared: Path) -> None:
    table = build(ADAPTERS["king_county"], shared / "data" / "avm" / "king_county_2014_2015.parquet").frame
    day = pl.col("sale_date")
    split = (
        pl.when(day < date(2014, 12, 17))
        .then(pl.lit("train"))
        .when(day < date(2015, 2, 15))
        .then(pl.lit("validation"))
        .otherwise(pl.lit("test"))
    )
    matrix = build_feature_matrix(table, table.select("tx_id", split=split))
    train, valid, test = (matrix.part(name) for name in ("train", "validation", "test"))
    assert mdape(Hedonic().fit(train, valid).predict(test.blind()).point, test) <= 11.3
    assert mdape(AdjustedComps().fit(train, valid).predict(test.blind()).point, test) <= 8.9
