"""C: trees above the level of the day are the same every time and follow a market they never saw."""

from __future__ import annotations

import builtins
import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from baseline_cases import mdape, town_matrix
from consilience.errors import ConfigError, DataError, PlanError
from consilience.valuation.baselines.boosting import CALENDAR, Boosting, FittedBoosting
from consilience.valuation.baselines.trees import Trees, grown, lightgbm, rounds_of
from consilience.valuation.features import FeatureMatrix

QUICK = Boosting(leaves=(7, 15), folds=2, learning_rate=0.1)


@pytest.fixture(scope="module")
def town() -> FeatureMatrix:
    return town_matrix(1_500, 5)


@pytest.fixture(scope="module")
def fitted(town: FeatureMatrix) -> FittedBoosting:
    return QUICK.fit(town.part("train"), town.part("validation"))


def test_the_same_sales_give_the_same_trees(town: FeatureMatrix, fitted: FittedBoosting) -> None:
    again = QUICK.fit(town.part("train"), town.part("validation"))
    assert again.files() == fitted.files()
    assert json.dumps(again.record(), allow_nan=False) == json.dumps(fitted.record(), allow_nan=False)


def test_tuning_tries_the_declared_grid_and_keeps_the_least_loss(fitted: FittedBoosting) -> None:
    losses = fitted.choice.losses
    assert list(losses) == ["7", "15"]
    assert losses[str(fitted.choice.leaves)] == min(losses.values())
    assert rounds_of(fitted.model) == fitted.choice.rounds


def test_a_test_price_is_met_within_the_noise_of_the_town(town: FeatureMatrix, fitted: FittedBoosting) -> None:
    test = town.part("test")
    said = fitted.predict(test.blind())
    assert mdape(said.point, test) < 10
    assert (np.diff(said.quantiles, axis=1) >= 0).all()
    assert fitted.information_date == town.part("validation").frame["sale_date"].max()


def test_money_enters_relative_to_the_level_and_the_calendar_not_at_all(
    town: FeatureMatrix, fitted: FittedBoosting
) -> None:
    test = town.part("test")
    values, level = fitted.columns.of(test)
    assert not set(CALENDAR) & set(fitted.columns.names)
    at = fitted.columns.names.index("comp_ln_price")
    expected = test.frame["comp_ln_price"].to_numpy() - level
    np.testing.assert_allclose(values[:, at], expected)
    plain = fitted.columns.names.index("ln_floor_area")
    np.testing.assert_array_equal(values[:, plain], test.frame["ln_floor_area"].to_numpy())


def test_a_class_that_train_lacks_is_unknown(town: FeatureMatrix, fitted: FittedBoosting) -> None:
    test = town.part("test")
    castle = replace(test, frame=test.frame.with_columns(property_class=pl.lit("castle")))
    values, _ = fitted.columns.of(castle)
    assert np.isnan(values[:, -1]).all()
    assert fitted.predict(castle.blind()).answered.all()


def test_a_kept_choice_is_not_tuned_again(town: FeatureMatrix, fitted: FittedBoosting) -> None:
    kept = QUICK.kept(fitted)
    again = kept.fit_points(town.part("train"), town.part("validation"))
    assert again.choice == fitted.choice
    assert again.model == fitted.model
    assert np.isnan(again.predict(town.part("test").blind()).quantiles).all()
    assert kept.fit(town.part("train"), town.part("validation")).model == fitted.model


def test_what_cannot_work_is_refused(town: FeatureMatrix) -> None:
    with pytest.raises(ConfigError, match="leaves"):
        Boosting(leaves=(1,))
    with pytest.raises(DataError, match="train holds 0 sales"):
        QUICK.fit(town.take(np.array([], dtype=np.int64)), town.part("validation"))


@pytest.mark.parametrize(
    ("error", "told"), [(ImportError("no module"), "not installed"), (OSError("libgomp.so.1: missing"), "cannot be")]
)
def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch, error: Exception, told: str) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name == "lightgbm":
            raise error
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(PlanError, match=told) as caught:
        lightgbm()
    assert "nstall the" in caught.value.hint


def test_a_quantile_tree_leaves_its_share_below() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(4_000, 2))
    target = values[:, 0] + rng.normal(size=4_000)
    text = Trees(7, 80, 0.1, level=0.25).grow(values[:3_000], target[:3_000])
    assert (target[3_000:] < grown(text, values[3_000:])).mean() == pytest.approx(0.25, abs=0.05)
    assert grown(text, values[:0]).shape == (0,)
