"""No baseline's prediction moves with a price that its fit and its subject's cutoff must not know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from consilience.core.canonical import canonical_json
from consilience.valuation.baselines import BASELINES, Baseline, FittedBaseline, Prediction
from consilience.valuation.baselines.base import information_date
from consilience.valuation.features import FeatureMatrix, build_feature_matrix
from leak_cases import (
    CHANGES,
    TOWN_EDGES,
    Change,
    Source,
    days_of,
    deleted,
    judged,
    known_from,
    make_town,
    raw_ids,
    repriced,
)

LONG = {"C_boosting", "D_avm"}
"""They grow many trees, so they wait for the slow suite."""
FITTED = [
    pytest.param(entry, marks=pytest.mark.slow) if entry.name in LONG else entry
    for entry in BASELINES
    if entry.name != "X_import"  # what is imported is fitted elsewhere
]


@dataclass(frozen=True)
class Pair:
    """The same sales before and after a change, and the subjects that must not notice it."""

    before: FeatureMatrix
    after: FeatureMatrix
    subjects: pl.Expr


def matrix_of(source: Source, raw: pl.DataFrame) -> FeatureMatrix:
    table = source.analytic(raw)
    return build_feature_matrix(table, source.splits(table))


def changed_from(source: Source, before: FeatureMatrix, change: Change) -> Pair:
    """Change or delete prices from a day of test on; subjects are those of test valued by that day."""
    day = days_of(source)[1]
    sales = known_from(source, source.raw)
    future = sales.filter(pl.col("known") >= day)["tx_id"]
    raw = source.raw
    if change is deleted:  # a deleted sale is no subject: those valued by the day are repriced instead
        kept = sales.filter(pl.col("valued") <= day)["tx_id"]
        raw = repriced(raw, raw_ids(source).is_in(future.implode()))
        future = future.filter(~future.is_in(kept.implode()))
    raw = change(raw, raw_ids(source).is_in(future.implode()))
    until = pl.col("split").is_in(["test", "holdout"]) & (pl.col("sale_date") <= day)
    return Pair(before, matrix_of(source, raw), until)


@dataclass(frozen=True)
class Cases:
    """Changes of the future, by name, and of single own prices."""

    future: dict[str, Pair]
    own: tuple[Pair, ...]


@pytest.fixture(scope="module")
def cases() -> Cases:
    source = make_town()
    before = matrix_of(source, source.raw)
    own = (
        Pair(before, matrix_of(source, repriced(source.raw, raw_ids(source) == tx_id, 4.0)), pl.col("tx_id") == tx_id)
        for tx_id in judged(source)
    )
    future = {change.__name__: changed_from(source, before, change) for change in CHANGES}
    return Cases(future=future, own=tuple(own))


def fitted(baseline: Baseline, matrix: FeatureMatrix) -> FittedBaseline:
    return baseline.fit(matrix.part("train"), matrix.part("validation"))


def written(prediction: Prediction) -> tuple[bytes, bytes]:
    return prediction.point.tobytes(), prediction.quantiles.tobytes()


def the_future_moves_no_prediction(pair: Pair, baseline: Baseline) -> None:
    """Fit anew on the changed sales: what was fitted, and what was predicted of the subjects, stays."""
    first, second = fitted(baseline, pair.before), fitted(baseline, pair.after)
    subjects, same = (matrix.where(pair.subjects) for matrix in (pair.before, pair.after))
    assert len(subjects) > 50
    assert subjects.frame["tx_id"].equals(same.frame["tx_id"])
    assert canonical_json(first.record()) == canonical_json(second.record())
    assert first.files() == second.files()
    assert first.information_date == second.information_date < TOWN_EDGES[1]
    assert written(first.predict(subjects)) == written(second.predict(same))


def the_own_price_moves_no_prediction(pairs: tuple[Pair, ...], baseline: Baseline) -> None:
    """Change, or withhold, the price of one subject outside train and validation: its prediction stays."""
    model = fitted(baseline, pairs[0].before)
    for pair in pairs:
        one, same = (matrix.where(pair.subjects) for matrix in (pair.before, pair.after))
        assert one.truth() != same.truth()
        assert written(model.predict(one)) == written(model.predict(same)) == written(model.predict(one.blind()))


@pytest.mark.parametrize("entry", FITTED)
@pytest.mark.parametrize("change", ["repriced", "deleted"])
@pytest.mark.slow
def test_the_future_moves_no_prediction(cases: Cases, entry: type[Baseline], change: str) -> None:
    the_future_moves_no_prediction(cases.future[change], entry())


@pytest.mark.parametrize("entry", FITTED)
@pytest.mark.slow
def test_the_own_price_moves_no_prediction(cases: Cases, entry: type[Baseline]) -> None:
    the_own_price_moves_no_prediction(cases.own, entry())


# Planted leaks: small baselines with one mistake each.


@dataclass(frozen=True)
class Level(FittedBaseline):
    """One price for all, times what a mistake adds."""

    price: float
    day: date
    look: Callable[[FeatureMatrix], Any]

    @property
    def information_date(self) -> date:
        return self.day

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        point = np.full(len(subjects), self.price) * self.look(subjects)
        return Prediction(point=point, quantiles=np.repeat(point[:, None], 5, axis=1))

    def record(self) -> dict[str, Any]:
        return {"price": self.price}


def nothing(subjects: FeatureMatrix) -> Any:
    return np.ones(len(subjects))


def own_price(subjects: FeatureMatrix) -> Any:
    return np.ones(len(subjects)) if subjects.log_price is None else np.exp(subjects.log_price)


def own_price_among_the_sales(subjects: FeatureMatrix) -> Any:
    price = dict(subjects.sales.select("tx_id", "price").iter_rows())
    return np.array([price[tx_id] for tx_id in subjects.frame["tx_id"]])


@dataclass(frozen=True)
class Honest(Baseline):
    name: ClassVar[str] = "honest"

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> Level:
        return Level(float(np.exp(np.mean(train.truth()))), information_date(train, valid), nothing)


@dataclass(frozen=True)
class Peeking(Honest):
    look: Callable[[FeatureMatrix], Any] = own_price

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> Level:
        return replace(super().fit(train, valid), look=self.look)


@dataclass(frozen=True)
class FittedOnAllSales(Honest):
    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> Level:
        return replace(super().fit(train, valid), price=float(np.median(train.sales["price"].to_numpy())))


@dataclass(frozen=True)
class FittedOnAllSalesInSecret(Honest):
    """Its record does not tell."""

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> Level:
        price = float(np.mean(np.log(train.sales["price"].to_numpy())))
        return replace(super().fit(train, valid), look=lambda subjects: np.full(len(subjects), price))


def test_an_honest_level_passes(cases: Cases) -> None:
    the_own_price_moves_no_prediction(cases.own, Honest())
    for pair in cases.future.values():
        the_future_moves_no_prediction(pair, Honest())


@pytest.mark.parametrize("look", [own_price, own_price_among_the_sales])
def test_a_baseline_that_sees_the_own_price_is_caught(cases: Cases, look: Callable[[FeatureMatrix], Any]) -> None:
    with pytest.raises(AssertionError):
        the_own_price_moves_no_prediction(cases.own, Peeking(look))
    with pytest.raises(AssertionError):
        the_future_moves_no_prediction(cases.future["repriced"], Peeking(look))


@pytest.mark.parametrize("baseline", [FittedOnAllSales(), FittedOnAllSalesInSecret()])
@pytest.mark.parametrize("change", ["repriced", "deleted"])
def test_parameters_fitted_on_all_sales_are_caught(cases: Cases, baseline: Baseline, change: str) -> None:
    with pytest.raises(AssertionError):
        the_future_moves_no_prediction(cases.future[change], baseline)
