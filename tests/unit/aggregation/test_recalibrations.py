from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy.optimize import isotonic_regression, minimize

from consilience.aggregation.location import FloatArray
from consilience.aggregation.recalibration import (
    Recalibration,
    fit_beta,
    fit_isotonic,
    fit_platt,
    fit_recalibration,
    newton_logistic,
    pool_violators,
)
from consilience.errors import DataError

RNG = np.random.default_rng(20250101)
P = np.clip(RNG.beta(1.5, 2.0, 400), 0.01, 0.99)
Y = (RNG.random(400) < P**1.4).astype(np.float64)


def loss(w: FloatArray, features: FloatArray, targets: FloatArray) -> float:
    x = features @ w
    return float((np.logaddexp(0, x) - targets * x).sum())


@pytest.mark.parametrize("seed", range(5))
def test_newton_finds_what_scipy_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(60), rng.normal(size=(60, 2)) * rng.uniform(0.1, 5, 2)])
    targets = rng.random(60)  # fractions
    found = newton_logistic(features=features, targets=targets)
    best = minimize(loss, np.zeros(3), args=(features, targets), method="BFGS", options={"gtol": 1e-9})
    assert found == pytest.approx(best.x, abs=1e-5)
    assert loss(found, features, targets) <= best.fun + 1e-9


def test_outcomes_that_a_threshold_tells_apart() -> None:
    scores, outcomes = np.array([-2.0, -1, 1, 2]), np.array([0.0, 0, 1, 1])
    with pytest.raises(DataError, match="no finite optimum"):
        fit_platt(scores=scores, outcomes=outcomes, smoothed=False)
    nearly = np.array([-2.0, 0, 0, 2])  # only the middle overlaps
    with pytest.raises(DataError, match="no finite optimum"):
        fit_platt(scores=nearly, outcomes=outcomes, smoothed=False)
    with pytest.raises(DataError, match="no finite optimum"):
        newton_logistic(features=np.ones((4, 2)), targets=np.array([0.0, 1, 0, 1]))
    intercept, slope = fit_platt(scores=scores, outcomes=outcomes)
    assert intercept == pytest.approx(0.0, abs=1e-9)
    assert 0 < slope < 5


def test_platt_undoes_a_known_distortion() -> None:
    rng = np.random.default_rng(1)
    true = rng.normal(size=20_000) * 1.5
    outcomes = (rng.random(true.size) < 1 / (1 + np.exp(-true))).astype(np.float64)
    intercept, slope = fit_platt(scores=(true - 0.4) / 0.5, outcomes=outcomes)
    assert (intercept, slope) == pytest.approx((0.4, 0.5), abs=0.05)


def test_a_beta_map_finds_what_scipy_finds() -> None:
    columns = np.column_stack([np.log(P), -np.log1p(-P), np.ones(P.size)])
    bounds = [(0, None), (0, None), (None, None)]
    found = fit_beta(probabilities=P, outcomes=Y)
    best = minimize(loss, np.ones(3), args=(columns, Y), method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15})
    assert loss(np.array(found), columns, Y) <= best.fun + 1e-9
    assert found == pytest.approx(best.x, abs=2e-3)


def test_a_beta_map_never_falls() -> None:
    p = np.array([0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.3])
    outcomes = np.array([0.0, 1, 1, 0, 0, 1, 1, 0])
    a, b, _ = fit_beta(probabilities=p, outcomes=outcomes)
    assert min(a, b) == 0.0
    assert max(a, b) > 0.0
    with pytest.raises(DataError, match="falls as p rises"):
        fit_beta(probabilities=P, outcomes=1 - Y)


def test_isotonic_regression_is_scipys_once_ties_are_pooled() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        x = rng.integers(0, 12, 60) / 12
        y = (rng.random(60) < x).astype(np.float64)
        at, value = pool_violators(x=x, y=y)
        means = np.array([y[x == one].mean() for one in at])
        counts = np.array([(x == one).sum() for one in at])
        assert value == pytest.approx(isotonic_regression(means, weights=counts).x, abs=1e-12)


def test_an_isotonic_map_is_straight_between_knots_and_level_beyond() -> None:
    knots = fit_isotonic(probabilities=np.array([0.2, 0.4, 0.8]), outcomes=np.array([0.0, 0, 1]))
    assert knots == ((0.2, 0.2), (0.4, 0.2), (0.8, 0.8))
    made = Recalibration("isotonic", (), knots, "median", 3, "1")
    assert [made(p) for p in (0.0, 0.3, 0.6, 1.0)] == pytest.approx([0.2, 0.2, 0.5, 0.8])


@pytest.mark.parametrize("method", ["platt", "isotonic", "beta"])
def test_an_artefact_rises_and_survives_json(method: Any) -> None:
    made = fit_recalibration(method=method, probabilities=P, outcomes=Y, pool="geometric_odds", version="7")
    values = [made(p) for p in np.linspace(0, 1, 101)]
    assert values == sorted(values)
    assert 0 < values[0] < values[-1] < 1
    assert made.n == 400
    assert TypeAdapter(Recalibration).validate_json(json.dumps(asdict(made))) == made
    # Stated too high, and no longer after the map.
    assert np.mean([made(p) for p in P]) == pytest.approx(Y.mean(), abs=0.02)


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "spline"},
        {"parameters": (0.1,)},
        {"parameters": (0.1, -0.5)},
        {"parameters": (0.1, 0.0)},
        {"parameters": (float("nan"), 0.5)},
        {"method": "isotonic", "parameters": ()},
        {"method": "isotonic", "parameters": (), "knots": ((0.2, 0.5), (0.4, 0.3))},
        {"method": "isotonic", "parameters": (), "knots": ((0.2, 0.5), (0.2, 0.6))},
        {"method": "isotonic", "parameters": (), "knots": ((0.2, 0.0), (0.4, 0.6))},
        {"version": ""},
        {"n": 0},
    ],
)
def test_an_unsound_artefact_is_refused(changed: dict[str, Any]) -> None:
    sound: dict[str, Any] = {"method": "platt", "parameters": (0.1, 0.5), "knots": (), "pool": "mean", "n": 9}
    with pytest.raises(DataError):
        Recalibration(**{**sound, "version": "1", **changed})


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(DataError, match=r"numbers to .* outcomes"):
        fit_platt(scores=np.array([0.1, 0.2]), outcomes=np.array([0.5, 1]))
    with pytest.raises(DataError, match="no probability"):
        fit_recalibration(method="platt", probabilities=P + 1, outcomes=Y, pool="mean", version="1")
    unknown: Any = "spline"
    with pytest.raises(DataError, match='unknown recalibration "spline"'):
        fit_recalibration(method=unknown, probabilities=P, outcomes=Y, pool="mean", version="1")
    with pytest.raises(DataError, match="logistic regression of"):
        newton_logistic(features=np.ones((2, 1)), targets=np.array([0.5, 1.5]))
    with pytest.raises(DataError, match="isotonic regression of"):
        pool_violators(x=np.empty(0), y=np.empty(0))
    with pytest.raises(DataError, match="2 is no probability"):
        Recalibration("platt", (0.0, 1.0), (), "mean", 5, "1")(2)
