"""D: windows that do not overlap, weights on the simplex, margins that hold on what nobody was fitted on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from baseline_cases import mdape, town_matrix
from consilience.errors import ConfigError, DataError
from consilience.scoring.summaries import share
from consilience.valuation.baselines.avm import Avm, FittedAvm
from consilience.valuation.baselines.boosting import Boosting
from consilience.valuation.baselines.stack import Stack, fit_stack, joined
from consilience.valuation.features import FeatureMatrix

QUICK = Avm(boosting=Boosting(leaves=(7,), folds=1, learning_rate=0.1), quantile_leaves=7, quantile_rounds=60)


@pytest.fixture(scope="module")
def town() -> FeatureMatrix:
    return town_matrix(1_500, 6)


@pytest.fixture(scope="module")
def fitted(town: FeatureMatrix) -> FittedAvm:
    return QUICK.fit(town.part("train"), town.part("validation"))


@pytest.mark.slow
def test_the_windows_of_validation_follow_each_other_and_hold_all_of_it(town: FeatureMatrix, fitted: FittedAvm) -> None:
    windows = list(fitted.windows.values())
    assert list(fitted.windows) == ["tuning", "stacking", "conformal"]
    assert windows[0]["until"] < windows[1]["from"] <= windows[1]["until"] < windows[2]["from"]
    assert sum(window["sales"] for window in windows) == len(town.part("validation"))
    assert fitted.margins[0].overall.rows == windows[2]["sales"]


@pytest.mark.slow
def test_the_stack_is_a_mean_on_the_simplex_and_meets_prices(town: FeatureMatrix, fitted: FittedAvm) -> None:
    assert sum(fitted.stack.weights.values()) == pytest.approx(1)
    assert set(fitted.parts) == {"A_hedonic", "A2_adjusted_comps", "B_hierarchical", "C_boosting"}
    test = town.part("test")
    said = fitted.predict(test.blind())
    assert mdape(said.point, test) < 9
    assert said.answered.all()
    assert 0 <= said.crossing_rate < 0.5
    assert (np.diff(said.quantiles, axis=1) >= 0).all()


def test_record_and_files_are_json_and_text(fitted: FittedAvm) -> None:
    assert json.loads(json.dumps(fitted.record(), allow_nan=False))["stack"]["rows"] == fitted.stack.rows
    names = ["C_boosting.txt", *(f"D_avm_q{tau}.txt" for tau in ("05", "25", "50", "75", "95"))]
    assert sorted(fitted.files()) == names
    assert all(text.startswith("tree") for text in fitted.files().values())


def test_what_cannot_work_is_refused(town: FeatureMatrix) -> None:
    with pytest.raises(ConfigError, match="shares"):
        Avm(stack_share=0.5, conformal_share=0.5)
    with pytest.raises(DataError, match="validation holds no sale"):
        QUICK.fit(town.part("train"), town.take(np.array([], dtype=np.int64)))


def test_a_part_that_seldom_answers_weighs_nothing_and_an_abstention_leaves_its_weight_to_others() -> None:
    truth = np.linspace(12, 14, 40)
    shy = np.where(np.arange(40) % 4 == 0, np.exp(truth), np.nan)
    once = np.where(np.arange(40) == 3, np.nan, np.exp(truth + 0.1))
    stack = fit_stack({"shy": shy, "once": once, "low": np.exp(truth - 0.1)}, truth)
    assert stack.weights["shy"] == 0
    assert stack.weights["once"] == pytest.approx(0.5, abs=1e-6)
    assert stack.rows == 39
    assert "shy answers 25%" in stack.notes[0]
    nobody = {"once": np.array([np.nan, np.nan]), "low": np.array([np.e, np.nan])}
    assert stack.combine(nobody).tolist()[0] == 1.0
    assert np.isnan(stack.combine(nobody)[1])


def test_a_stack_of_too_few_answers_is_refused() -> None:
    nothing = np.full(40, np.nan)
    with pytest.raises(DataError, match="0 sales are answered"):
        fit_stack({"a": nothing}, np.zeros(40))
    assert Stack({"a": 1.0}, rows=9).record()["weights"] == {"a": 1.0}


def test_joined_parts_are_the_rows_in_turn(town: FeatureMatrix) -> None:
    both = joined([town.part("validation"), town.part("train")])
    assert both.frame.equals(town.part("validation").frame.vstack(town.part("train").frame))
    assert len(both.truth()) == len(both.comparables.rows) == len(both)


@pytest.mark.slow
def test_the_intervals_cover_nine_tenths_of_the_true_town() -> None:
    town = town_matrix(24_000, 11)
    test = town.part("test")
    said = Avm().fit(town.part("train"), town.part("validation")).predict(test.blind())
    prices = np.exp(test.truth())
    found = share(hits=(said.quantiles[:, 0] <= prices) & (prices <= said.quantiles[:, 4]))
    assert found.n >= 3_000
    assert found.low <= 0.90 <= found.high
