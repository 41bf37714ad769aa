from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy.optimize import minimize

from consilience.aggregation.location import FloatArray
from consilience.aggregation.recalibration import Recalibration
from consilience.aggregation.resolved import (
    FittedProbabilities,
    error_correlation,
    fit_probabilities,
    stack_logits,
)
from consilience.errors import DataError

SEATS = ("a", "b", "c")


def panel(n: int = 120, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Three seats: a knows most, b knows little, c is noise."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=n) * 2
    outcomes = (rng.random(n) < 1 / (1 + np.exp(-true))).astype(np.float64)
    logits = np.column_stack([true + rng.normal(size=n) * 0.3, 0.4 * true + rng.normal(size=n), rng.normal(size=n)])
    return 1 / (1 + np.exp(-logits)), outcomes


def everywhere(p: FloatArray) -> Any:
    return np.ones(p.shape, dtype=bool)


@pytest.mark.parametrize("seed", range(4))
def test_stacking_weights_are_the_optimum_that_scipy_finds(seed: int) -> None:
    p, y = panel(60, seed)
    logits = np.log(p / (1 - p))
    found = np.array(stack_logits(logits=logits, outcomes=y))
    s = 1 / (1 + np.exp(-logits.mean(axis=1)))
    pull = 10 * float((logits**2 * (s * (1 - s))[:, None]).sum()) / logits.size

    def loss(w: FloatArray) -> float:
        x = logits @ w
        return float((np.logaddexp(0, x) - y * x).sum() + pull / 2 * ((w - 1 / 3) ** 2).sum())

    best = minimize(loss, np.full(3, 1 / 3), method="L-BFGS-B", bounds=[(0, None)] * 3, options={"ftol": 1e-15})
    assert loss(found) <= best.fun + 1e-9
    assert found == pytest.approx(best.x, abs=1e-4)
    assert (found >= 0).all()


def test_who_knows_more_weighs_more_and_few_questions_move_little() -> None:
    p, y = panel(400)
    logits = np.log(p / (1 - p))
    a, b, c = stack_logits(logits=logits, outcomes=y)
    assert a > 0.6
    assert max(b, c) < 0.2
    drawn, free = (stack_logits(logits=logits[:5], outcomes=y[:5], prior_items=k) for k in (10, 0.1))
    assert sum((w - 1 / 3) ** 2 for w in drawn) < sum((w - 1 / 3) ** 2 for w in free)
    assert stack_logits(logits=np.zeros((5, 2)), outcomes=np.ones(5)) == pytest.approx([0.5, 0.5])


def test_a_seat_that_errs_always_gets_nothing() -> None:
    p, y = panel(400)
    logits = np.log(p / (1 - p))
    wrong = np.column_stack([logits[:, 1], -logits[:, 0]])
    assert stack_logits(logits=wrong, outcomes=y)[1] == 0.0


def test_everything_is_learnt_from_resolved_questions() -> None:
    p, y = panel()
    made = fit_probabilities(probabilities=p, present=everywhere(p), outcomes=y, seats=SEATS)
    expected = np.asarray(np.corrcoef((p - y[:, None]).T))[np.triu_indices(3, 1)].mean()
    assert made.rho == pytest.approx(float(expected), abs=1e-12)
    assert made.base_rate == pytest.approx((y.sum() + 1) / 122)
    assert (made.n_items, made.complete_rows, made.flags) == (120, 120, ())
    assert made.stacking is not None
    assert set(made.stacking) == set(SEATS)
    assert TypeAdapter(FittedProbabilities).validate_json(json.dumps(asdict(made))) == made


def test_what_is_absent_is_not_read() -> None:
    p, y = panel()
    present = everywhere(p)
    present[:10, 2] = False
    present[10:15] = False
    holes = np.where(present, p, np.nan)
    made = fit_probabilities(probabilities=holes, present=present, outcomes=y, seats=SEATS)
    assert (made.n_items, made.complete_rows) == (115, 105)
    rest = present.all(axis=1)
    whole = fit_probabilities(probabilities=p[rest], present=everywhere(p[rest]), outcomes=y[rest], seats=SEATS)
    assert made.stacking == whole.stacking


def test_a_correlation_needs_thirty_shared_questions() -> None:
    p, y = panel(30)
    assert fit_probabilities(probabilities=p, present=everywhere(p), outcomes=y, seats=SEATS).rho is not None
    few = fit_probabilities(probabilities=p[:29], present=everywhere(p[:29]), outcomes=y[:29], seats=SEATS)
    assert (few.rho, few.flags) == (None, ("rho_unmeasured",))
    present = everywhere(p)
    present[0, 2] = False
    some = fit_probabilities(probabilities=p, present=present, outcomes=y, seats=SEATS)
    assert some.rho == pytest.approx(float(np.asarray(np.corrcoef((p - y[:, None])[:, :2].T))[0, 1]))
    alike = np.full((30, 2), 0.1)
    assert error_correlation(errors=alike, present=everywhere(alike)) is None
    same = (p - y[:, None])[:, [0, 0]]
    assert error_correlation(errors=same, present=everywhere(same)) == pytest.approx(1.0)


def test_without_complete_rows_there_is_no_stacking() -> None:
    present = np.array([[True, False], [False, True]])
    made = fit_probabilities(
        probabilities=np.array([[0.2, 0.0], [0.0, 0.7]]), present=present, outcomes=np.array([0.0, 1]), seats=("a", "b")
    )
    assert (made.stacking, made.flags) == (None, ("no_complete_rows", "rho_unmeasured"))


def test_an_artefact_is_carried_along_never_fitted_on_the_way() -> None:
    p, y = panel()
    artefact = Recalibration("platt", (0.0, 0.8), (), "median", 500, "3")
    plain = fit_probabilities(probabilities=p, present=everywhere(p), outcomes=y, seats=SEATS)
    made = fit_probabilities(probabilities=p, present=everywhere(p), outcomes=y, seats=SEATS, recalibration=artefact)
    assert plain.recalibration is None
    assert made.recalibration == artefact
    assert TypeAdapter(FittedProbabilities).validate_json(json.dumps(asdict(made))) == made


@pytest.mark.parametrize(
    "changed",
    [
        {"stacking": {"a": -0.1}},
        {"stacking": {"a": float("inf")}},
        {"rho": 1.5},
        {"base_rate": 0.0},
        {"n_items": 3, "complete_rows": 4},
    ],
)
def test_unsound_fits_are_refused(changed: dict[str, Any]) -> None:
    sound: dict[str, Any] = {"stacking": None, "rho": None, "base_rate": None, "n_items": 3, "complete_rows": 0}
    with pytest.raises(DataError, match="fitted probabilities with"):
        FittedProbabilities(**{**sound, **changed})


def test_what_does_not_fit_together_is_refused() -> None:
    p, y = panel(10)
    there = everywhere(p)
    with pytest.raises(DataError, match="of 9 outcomes and 3 seats"):
        fit_probabilities(probabilities=p, present=there, outcomes=y[:9], seats=SEATS)
    with pytest.raises(DataError, match="share a name"):
        fit_probabilities(probabilities=p, present=there, outcomes=y, seats=("a", "a", "b"))
    silent = there.copy()
    silent[:, 1] = False
    with pytest.raises(DataError, match="answered nothing"):
        fit_probabilities(probabilities=p, present=silent, outcomes=y, seats=SEATS)
    with pytest.raises(DataError, match="inadmissible"):
        fit_probabilities(probabilities=p + 1, present=there, outcomes=y, seats=SEATS)
    with pytest.raises(DataError, match="a stack of log-odds"):
        stack_logits(logits=p, outcomes=y[:3])
