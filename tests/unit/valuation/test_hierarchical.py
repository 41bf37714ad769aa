"""B: pooling by place, the weight of a prior sale, intervals, and what no later price may change."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.valuation.adapters import ADAPTERS, build
from consilience.valuation.baselines import BASELINES
from consilience.valuation.baselines.hierarchical import FittedHierarchical, Hierarchical
from consilience.valuation.baselines.places import Homes
from consilience.valuation.baselines.resales import PriorWeight, estimates
from consilience.valuation.exclusions import MARKET
from consilience.valuation.features import FeatureMatrix, build_feature_matrix
from consilience.valuation.splits import time_splits
from consilience.valuation.synthetic import generate, write_town

Floats = npt.NDArray[np.float64]


def table_of(folder: Path, *, sales: int, seed: int) -> pl.DataFrame:
    path = folder / "town.parquet"
    write_town(generate(sales=sales, seed=seed), path)
    return build(ADAPTERS["synthetic"], path, exclusions=MARKET).frame


def ape(point: Floats, log_price: Floats) -> float:
    return float(np.median(np.abs(point / np.exp(log_price) - 1)))


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return table_of(tmp_path_factory.mktemp("town"), sales=3_000, seed=5)


@pytest.fixture(scope="module")
def matrix(town: pl.DataFrame) -> FeatureMatrix:
    return build_feature_matrix(town, time_splits(town))


@pytest.fixture(scope="module")
def fitted(matrix: FeatureMatrix) -> FittedHierarchical:
    return Hierarchical().fit(matrix.part("train"), matrix.part("validation"))


def test_it_stands_in_the_registry() -> None:
    assert BASELINES["B_hierarchical"] is Hierarchical


def test_it_values_the_town(matrix: FeatureMatrix, fitted: FittedHierarchical) -> None:
    test = matrix.part("test", "holdout")
    found = fitted.predict(test.blind())
    log_price = test.truth()
    comparables = np.exp(test.frame["comp_ln_price"].fill_null(strategy="mean").to_numpy())
    assert ape(found.point, log_price) < 0.75 * ape(comparables, log_price)
    inside = (found.quantiles[:, 0] <= np.exp(log_price)) & (np.exp(log_price) <= found.quantiles[:, 4])
    assert 0.82 < inside.mean() < 0.97
    assert found.answered.all()
    assert (test.frame["sale_date"] > fitted.information_date).all()


def test_the_same_sales_give_the_same_record(matrix: FeatureMatrix, fitted: FittedHierarchical) -> None:
    again = Hierarchical().fit(matrix.part("train"), matrix.part("validation"))
    assert json.dumps(again.record(), allow_nan=False) == json.dumps(fitted.record(), allow_nan=False)
    assert fitted.record()["converged"]


def test_few_sales_pull_a_place_further_to_its_neighbours(matrix: FeatureMatrix, fitted: FittedHierarchical) -> None:
    train = matrix.part("train")
    hedonic = fitted.hedonic
    own = np.array(hedonic.model.effects["borough"])
    rest = train.truth() - hedonic.structure(Homes.at_sale(train.frame))
    names = train.frame.select(pl.concat_str("municipality", "borough", separator=" / ")).to_series()
    code = np.array([hedonic.places["borough"].get(name, -1) for name in names])
    raw = np.array([own[k] + rest[code == k].mean() - rest.mean() for k in range(len(own))])
    share = hedonic.model.variances["borough"] / hedonic.model.residual
    counts = np.bincount(code[code >= 0], minlength=len(own))
    # The months' walk and the wider places differ a little within a borough, so this is near and not exact.
    assert own == pytest.approx(raw * counts * share / (counts * share + 1), abs=0.02)
    assert np.abs(own).sum() < np.abs(raw).sum()


def test_an_unknown_place_or_attribute_is_still_valued(matrix: FeatureMatrix, fitted: FittedHierarchical) -> None:
    test = matrix.part("test")
    bare = test.frame.with_columns(
        *(pl.lit(None, dtype=pl.Float64).alias(name) for name in ("ln_floor_area", "age", "quality", "bathrooms")),
        municipality=pl.lit("Nowhere"),
        borough=pl.lit(None, dtype=pl.String),
    )
    other = FeatureMatrix(bare, None, test.comparables, test.sales, test.as_of)
    assert np.isfinite(fitted.predict(other).point).all()


def test_a_prior_sale_moves_the_value_by_its_weight(tmp_path: Path) -> None:
    # Ten years, so that enough parcels are held for a year and sold again.
    path = tmp_path / "town.parquet"
    write_town(generate(sales=4_000, seed=3, start=date(2012, 1, 1), years=10), path)
    table = build(ADAPTERS["synthetic"], path, exclusions=MARKET).frame
    matrix = build_feature_matrix(table, time_splits(table))
    fitted = Hierarchical().fit(matrix.part("train"), matrix.part("validation"))
    weight = fitted.resales.weights["held"]
    assert weight is not None
    test = matrix.part("test", "holdout")
    dearer = test.frame.with_columns(pl.col("ln_prior_price") + 0.1)
    before = fitted.predict(test).point
    after = fitted.predict(FeatureMatrix(dearer, None, test.comparables, test.sales, test.as_of)).point
    years = test.frame["prior_years"].fill_null(0.0).to_numpy()
    held = years > 366 / 365.25
    assert held.sum() > 50
    assert np.log(after / before)[held] == pytest.approx(0.1 * weight.of(years[held]), abs=1e-9)
    assert (after[years == 0] == before[years == 0]).all()
    both = estimates(test, fitted.hedonic, fitted.resales.index)
    mixed, hedonic, prior = (
        ape(x[held], test.truth()[held]) for x in (before, np.exp(both.hedonic), np.exp(both.prior))
    )
    assert mixed < min(hedonic, prior)


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(-0.9, 0.9), st.floats(0, 1))
def test_no_other_weight_is_more_precise(hedonic: float, prior: float, correlation: float, other: float) -> None:
    shared = correlation * float(np.sqrt(hedonic * prior))
    weight = PriorWeight(99, 0, hedonic, prior, 0.0, 2.0, shared, 0.0)

    def variance(w: float) -> float:
        return (1 - w) ** 2 * hedonic + w**2 * prior + 2 * w * (1 - w) * shared

    best = float(weight.of(np.array([2.0]))[0])
    assert 0 <= best <= 1
    assert variance(best) <= variance(other) + 1e-12


def test_longer_holding_weighs_less_where_values_drift() -> None:
    weights = PriorWeight(99, 0, 0.04, 0.03, 0.005, 3.0, 0.01, 0.0).of(np.array([1.0, 3.0, 9.0]))
    assert (np.diff(weights) < 0).all()


def test_prices_from_a_day_on_change_no_earlier_value(
    town: pl.DataFrame, matrix: FeatureMatrix, fitted: FittedHierarchical
) -> None:
    splits = time_splits(town)
    day = matrix.part("test").frame["sale_date"].quantile(0.5, "nearest")
    later = pl.col("sale_date") >= day
    changed = town.with_columns(price=pl.when(later).then(pl.col("price") * 3).otherwise(pl.col("price")))
    other = build_feature_matrix(changed, splits)
    again = Hierarchical().fit(other.part("train"), other.part("validation"))
    assert again.record() == fitted.record()
    subjects = pl.col("sale_date") <= day
    first, second = (m.part("test").where(subjects).blind() for m in (matrix, other))
    assert len(first) > 50
    assert fitted.predict(first).quantiles.tobytes() == again.predict(second).quantiles.tobytes()


def test_prices_that_are_none_teach_nothing(town: pl.DataFrame, fitted: FittedHierarchical) -> None:
    nominal = pl.int_range(pl.len()) % 50 == 0
    spoilt = town.with_columns(price=pl.when(nominal).then(1.0).otherwise(pl.col("price")))
    other = build_feature_matrix(spoilt, time_splits(town))
    again = Hierarchical().fit(other.part("train"), other.part("validation"))
    assert again.hedonic.outlying >= 0.02 * len(other.part("train")) - 1
    assert again.hedonic.model.residual == pytest.approx(fitted.hedonic.model.residual, rel=0.1)
    assert any("too far from all others" in note for note in again.predict(other.part("test")).notes)


def test_without_sales_there_is_no_model(matrix: FeatureMatrix) -> None:
    empty = matrix.where(pl.lit(value=False))
    with pytest.raises(DataError, match="train holds no sale"):
        Hierarchical().fit(empty, matrix.part("validation"))
    with pytest.raises(DataError, match="validation holds no sale"):
        Hierarchical().fit(matrix.part("train"), empty)


@pytest.mark.slow
@pytest.mark.shared_data
def test_seattle_resales_are_valued_better_than_by_prior_price_and_index(shared: Path) -> None:
    table = build(ADAPTERS["seattle"], shared / "data" / "avm" / "seattle_sales_2010_2016.parquet").frame
    # Half of the zones keep the test fast.
    zones = table["municipality"].unique().sort()
    table = table.filter(pl.col("municipality").is_in(zones[::2].to_list()))
    days = [date(2015, 11, 2), date(2016, 1, 1), date(2017, 1, 1)]
    matrix = build_feature_matrix(table, time_splits(table, boundaries=days))
    train, valid, test = (matrix.part(name) for name in ("train", "validation", "test"))
    held = (test.frame["prior_years"] >= 1).fill_null(value=False).to_numpy()
    log_price = test.truth()[held]
    ours = Hierarchical().fit(train, valid).predict(test.blind()).point[held]
    theirs = BASELINES["D_index"]().fit(train, valid).predict(test.blind()).point[held]
    assert held.sum() > 400
    assert ape(ours, log_price) < ape(theirs, log_price)


@pytest.mark.slow
@pytest.mark.shared_data
def test_king_county_is_valued_as_well_as_by_a_hedonic(shared: Path) -> None:
    table = build(ADAPTERS["king_county"], shared / "data" / "avm" / "king_county_2014_2015.parquet").frame
    days = [date(2014, 12, 17), date(2015, 2, 15), date(2016, 1, 1)]
    matrix = build_feature_matrix(table, time_splits(table, boundaries=days))
    test = matrix.part("test")
    found = Hierarchical().fit(matrix.part("train"), matrix.part("validation")).predict(test.blind())
    assert ape(found.point, test.truth()) <= 0.113
    # No parcel was held for a year here: there is no index to bring a prior price to the day.
    assert any("no repeat sale held for a year" in note for note in found.notes)
