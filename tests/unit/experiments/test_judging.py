from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from consilience.errors import PlanError
from consilience.experiments.evaluate import NOTHING, evaluate
from consilience.experiments.evaluation import Evaluation
from consilience.experiments.predictions import predictions_frame

N = 24
ITEMS = [f"q{k:02d}" for k in range(N)]


def row(item: str, arm: str, rule: str, **changed: Any) -> dict[str, Any]:
    told = {"item_id": item, "arm": arm, "committee": "c", "aggregation": rule, "run_id": f"_{arm}", "cost_usd": 0.5}
    return told | {"status": "answered", "n_answered": 3, "n_seats": 3, "exposure": "unknown"} | changed


def yes_no() -> list[dict[str, Any]]:
    told = []
    for k, item in enumerate(ITEMS):
        for arm, sure in (("E_single", 0.6), ("F_independent", 0.8)):
            p = sure if k % 2 else 1 - sure
            told += [row(item, arm, rule, p=p) for rule in ("mean", "geometric_odds")]
    return told


def choices() -> list[dict[str, Any]]:
    told = []
    for k, item in enumerate(ITEMS):
        wrong = {"option:a": 0.0, "option:b": 1.0}
        right = {"option:a": 2 / 3, "option:b": 1 / 3}
        told.append(row(item, "E_single", "plurality", **(wrong if k % 3 else right)))
        told.append(row(item, "F_independent", "plurality", **right))
    told[0] |= {"option:a": 0.5, "option:b": 0.5}
    return told


def run(told: list[dict[str, Any]], true: dict[str, Any], **options: Any) -> Evaluation:
    return evaluate(predictions_frame(told), pl.DataFrame(true), **({"n_resamples": 200} | options))


RESOLVED = {"item_id": ITEMS, "truth": [float(k % 2) for k in range(N)]}
CHOSEN = {"item_id": ITEMS, "truth": [None] * N, "option": ["a"] * N}


def test_probabilities_are_scored_apart_under_the_declared_rule() -> None:
    found = run(yes_no(), RESOLVED)
    assert found.overall == NOTHING
    assert found.contrasts is None
    assert found.probabilities is not None
    told = {(one.arm, one.aggregation): one for one in found.probabilities.results}
    assert [key for key, one in told.items() if one.primary] == [
        ("E_single", "geometric_odds"),
        ("F_independent", "geometric_odds"),
    ]
    panel = told["F_independent", "geometric_odds"]
    assert panel.brier is not None
    assert panel.corp is not None
    assert panel.calibration is not None
    assert panel.brier.value == pytest.approx(0.04)
    assert panel.corp.mcb - panel.corp.dsc + panel.corp.unc == pytest.approx(0.04)
    assert panel.skill == pytest.approx(1 - 0.04 / 0.25)
    assert panel.calibration.ece.value == pytest.approx(0.2)
    assert panel.calibration.ece.null > 0
    assert panel.difference is not None
    assert panel.difference.point == pytest.approx(0.04 - 0.16)
    assert (panel.n, panel.n_items, panel.cost_usd) == (N, N, 0.5 * N)
    assert told["F_independent", "mean"].calibration is None
    assert told["E_single", "geometric_odds"].difference is None
    assert found.probabilities.resampling is not None
    assert found.probabilities.resampling.n_items == N


def test_choices_are_scored_by_their_leading_option_and_ties_are_not_right() -> None:
    found = run(choices(), CHOSEN)
    assert found.choices is not None
    single, panel = found.choices.results
    assert single.accuracy is not None
    assert panel.accuracy is not None
    assert (single.accuracy.k, single.n, single.n_tied) == (7, N, 1)
    assert panel.accuracy.k == N
    assert panel.agreement == pytest.approx(2 / 3)
    assert panel.given_to_truth == pytest.approx(2 / 3)
    assert panel.difference is not None
    assert panel.difference.point == pytest.approx(1 - 7 / N)


def test_choices_without_a_truth_still_agree() -> None:
    found = run(choices(), {"item_id": ITEMS[:1], "truth": [None], "option": [None]})
    assert found.choices is not None
    panel = found.choices.results[1]
    assert (panel.n, panel.accuracy, panel.difference) == (0, None, None)
    assert panel.agreement == pytest.approx(2 / 3)


def test_items_that_nobody_answered_belong_to_what_their_run_asked() -> None:
    told = yes_no()
    lost = {"p": None, "status": "failed", "n_answered": 0}
    told = [one | lost if one["item_id"] == "q00" else one for one in told]
    found = run(told, RESOLVED)
    assert found.probabilities is not None
    assert [one.outcomes["failed"] for one in found.probabilities.results] == [1] * 4
    assert {one.n for one in found.probabilities.results} == {N - 1}
    mute = [one | dict.fromkeys(("option:a", "option:b")) | lost for one in choices()]
    mute = [{name: value for name, value in one.items() if name != "p"} for one in mute]
    unheard = run(mute, CHOSEN)
    assert unheard.choices is not None
    assert [(one.n, one.agreement) for one in unheard.choices.results] == [(0, None)] * 2


def test_kinds_of_one_study_are_compared_side_by_side() -> None:
    numbers = [row(f"n{k}", arm, "median", point=100.0) for k in range(3) for arm in ("E_single", "F_independent")]
    true = {"item_id": [*ITEMS, "n0", "n1", "n2"], "truth": [float(k % 2) for k in range(N)] + [110.0] * 3}
    found = run([*yes_no(), *numbers], true)
    assert [one.n_items for one in found.overall.arms] == [3, 3]
    assert found.probabilities is not None
    assert {one.n_items for one in found.probabilities.results} == {N}
    assert json.dumps(found.record(), allow_nan=False)


def test_the_baseline_must_be_there_for_any_kind() -> None:
    with pytest.raises(PlanError, match='no run has the arm "E_single"'):
        run([one for one in yes_no() if one["arm"] != "E_single"], RESOLVED)
