from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from consilience.aggregation.fitted import FittedRole
from consilience.aggregation.fitting import FittedNumbers, fit_numbers, t_scale
from consilience.aggregation.location import FloatArray
from consilience.aggregation.numbers import POINT_RULES, Scale
from consilience.errors import DataError

ROLES = ("a", "b", "c", "d")


def study(rows: int = 40, seed: int = 7) -> tuple[FloatArray, FloatArray]:
    """Return points and truths of four roles with correlated log errors."""
    rng = np.random.default_rng(seed)
    truth = np.exp(12 + 0.5 * rng.standard_normal(rows))
    shared = 0.05 * rng.standard_normal((rows, 1))
    errors = (
        shared + np.array([0.02, 0.0, -0.05, 0.1]) + np.array([0.05, 0.1, 0.1, 0.3]) * rng.standard_normal((rows, 4))
    )
    return truth[:, None] * np.exp(errors), truth


def fit(points: FloatArray, truth: FloatArray, *, scale: Scale = "log", absent: Any = None) -> FittedNumbers:
    present = np.ones(points.shape, dtype=bool)
    if absent is not None:
        present[absent] = False
    return fit_numbers(points=points, present=present, truth=truth, roles=ROLES, scale=scale)


def test_variances_are_those_of_the_log_errors() -> None:
    points, truth = study()
    made = fit(points, truth)
    errors = np.log(points) - np.log(truth)[:, None]
    means = errors.sum(axis=0) / 40
    for column, role in enumerate(ROLES):
        by_hand = math.fsum((errors[:, column] - means[column]) ** 2) / 39
        assert made.roles[role].variance == pytest.approx(by_hand, rel=1e-12)
        assert made.roles[role].rows == 40
    assert (made.items, made.complete_rows, made.flags) == (40, 40, ())


def test_a_variance_of_few_rows_is_drawn_to_the_median_and_flagged() -> None:
    points, truth = study(rows=12)
    made = fit(points, truth)
    own = (np.log(points) - np.log(truth)[:, None]).var(axis=0, ddof=1)
    for column, role in enumerate(ROLES):
        assert made.roles[role].variance == pytest.approx((12 * own[column] + 10 * np.median(own)) / 22, rel=1e-12)
    assert made.flags == ("variance_shrunk",)


@pytest.mark.parametrize("seed", range(5))
def test_the_scale_is_where_the_t_likelihood_is_highest(seed: int) -> None:
    errors = np.random.default_rng(seed).standard_t(4, size=50) * 0.08 + 0.02

    def minus_log_likelihood(log_scale: float) -> float:
        s = math.exp(log_scale)
        return math.fsum(math.log(s) + 2.5 * np.log1p((errors / s) ** 2 / 4))

    best = minimize_scalar(minus_log_likelihood, bounds=(-10, 5), method="bounded", options={"xatol": 1e-10})
    assert t_scale(errors=errors) == pytest.approx(math.exp(best.x), rel=1e-6)
    assert t_scale(errors=errors * 1e6) == pytest.approx(t_scale(errors=errors) * 1e6, rel=1e-12)


def test_scales_at_the_edges() -> None:
    assert t_scale(errors=np.zeros(5)) == 0.0
    assert t_scale(errors=np.array([0.0, 0, 0, 0, 1])) == 0.0  # four fifths are exact: no maximum
    assert t_scale(errors=np.array([0.0, 0, 0, 1])) == pytest.approx(0.25, rel=1e-9)  # 5/4 = 4 s^2 + 1
    assert t_scale(errors=np.array([3.0])) == pytest.approx(3.0, rel=1e-12)
    # For many errors of a t law the scale is its scale, which its standard deviation over sqrt(2) is only near.
    many = np.random.default_rng(0).standard_t(4, size=200_000)
    assert t_scale(errors=many) == pytest.approx(1.0, abs=0.01)
    for nonsense in (np.array([]), np.array([np.nan])):
        with pytest.raises(DataError, match="a scale of"):
            t_scale(errors=nonsense)


@pytest.mark.parametrize("seed", range(8))
def test_stacking_is_the_minimum_on_the_simplex(seed: int) -> None:
    points, truth = study(seed=seed)
    made = fit(points, truth)
    errors = np.log(points) - np.log(truth)[:, None]
    found = minimize(
        lambda w: float(np.square(errors @ w).sum()),
        np.full(4, 0.25),
        jac=lambda w: 2 * errors.T @ (errors @ w),
        method="SLSQP",
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    w = np.array([made.roles[role].stacking for role in ROLES])
    assert w.sum() == pytest.approx(1.0, rel=1e-12)
    assert w == pytest.approx(found.x, abs=1e-4)
    assert np.square(errors @ w).sum() <= found.fun * (1 + 1e-8)
    # Karush-Kuhn-Tucker on the simplex: the gradient is lowest, and the same, wherever there is weight.
    gradient = errors.T @ (errors @ w)
    assert gradient[w > 1e-9] == pytest.approx(gradient.min(), rel=1e-5)
    assert (w >= 0).all()


def test_the_founding_stack_keeps_its_sum() -> None:
    points, truth = study()
    made = fit(points, truth)
    w = np.array([made.roles[role].stacking_nnls for role in ROLES])
    assert made.nnls_sum is not None
    free, _, _, _ = np.linalg.lstsq(np.log(points)[:, w > 0], np.log(truth), rcond=None)
    assert w[w > 0] * made.nnls_sum == pytest.approx(free, rel=1e-6)  # least squares on its own support
    assert made.nnls_sum == pytest.approx(1.0, abs=0.02)
    zero = fit(np.abs(points), -truth, scale="linear")
    assert (zero.flags, zero.nnls_sum) == (("zero_solution",), 0.0)
    assert {role.stacking_nnls for role in zero.roles.values()} == {0.25}


def test_an_absent_answer_is_not_read_and_its_row_is_no_complete_one() -> None:
    points, truth = study()
    spoilt = points.copy()
    spoilt[3, 1] = np.nan
    spoilt[5, 0] = -1.0
    absent = (np.array([3, 5]), np.array([1, 0]))
    made = fit(spoilt, truth, absent=absent)
    assert [made.roles[role].rows for role in ROLES] == [39, 39, 40, 40]
    assert (made.items, made.complete_rows) == (40, 38)
    kept = np.delete(np.arange(40), [3, 5])
    only = fit(points[kept], truth[kept])
    assert [made.roles[role].stacking for role in ROLES] == [only.roles[role].stacking for role in ROLES]
    errors = np.log(np.delete(points[:, 1], 3)) - np.log(np.delete(truth, 3))
    assert made.roles["b"].variance == pytest.approx(errors.var(ddof=1), rel=1e-12)
    assert made.roles["b"].scale == t_scale(errors=errors)


def test_a_role_without_a_row_has_no_entry_and_does_not_hinder_the_others() -> None:
    points, truth = study()
    made = fit(points, truth, absent=(slice(None), 3))
    assert list(made.roles) == ["a", "b", "c"]
    assert made.complete_rows == 40
    assert math.fsum(role.stacking for role in made.roles.values()) == pytest.approx(1.0)
    with pytest.raises(DataError, match="no fitted weights for d"):
        POINT_RULES["stacking"](points=points[0], scale="log", seats=ROLES, weights=made.roles)


def test_one_row_gives_no_variance_and_no_complete_rows_give_equal_stacks() -> None:
    points, truth = study(rows=4)
    made = fit(points, truth, absent=~np.eye(4, dtype=bool))
    assert set(made.roles.values()) == {
        FittedRole(rows=1, variance=None, scale=None, stacking=0.25, stacking_nnls=0.25)
    }
    assert (made.complete_rows, made.nnls_sum, made.error_variance, made.flags) == (0, None, {}, ("no_complete_rows",))


def test_the_variance_of_the_pool_is_told_beside_that_of_equal_weights() -> None:
    points, truth = study()
    made = fit(points, truth)
    errors = np.log(points) - np.log(truth)[:, None]
    sigma = np.cov(errors, rowvar=False, ddof=1)
    for rule in ("mean", "inverse_variance", "stacking", "stacking_nnls"):
        shares = POINT_RULES[rule](points=points[0], scale="log", seats=ROLES, weights=made.roles).weights
        w = np.array([shares[role] for role in ROLES])
        assert made.error_variance[rule] == pytest.approx(float(w @ sigma @ w), rel=1e-9)
    independent = 1 / math.fsum(1 / (role.variance or 1) for role in made.roles.values())
    assert made.error_variance["inverse_variance"] > independent  # the roles' errors are shared in part


@pytest.mark.parametrize(("scale", "power"), [("log", 0), ("linear", 1)])
def test_another_unit_changes_only_what_has_a_unit(scale: Scale, power: int) -> None:
    points, truth = study()
    made, other = fit(points, truth, scale=scale), fit(points * 1000, truth * 1000, scale=scale)
    for role in ROLES:
        before, after = made.roles[role], other.roles[role]
        assert before.variance is not None
        assert before.scale is not None
        assert after.variance == pytest.approx(before.variance * 1000 ** (2 * power), rel=1e-8)
        assert after.scale == pytest.approx(before.scale * 1000**power, rel=1e-8)
        assert after.stacking == pytest.approx(before.stacking, abs=1e-6)


def test_what_cannot_be_fitted_is_refused() -> None:
    points, truth = study(rows=6)
    with pytest.raises(DataError, match="no role answered"):
        fit(points, truth, absent=(slice(None), slice(None)))
    with pytest.raises(DataError, match="one row per validation item"):
        fit(points[:5], truth)
    with pytest.raises(DataError, match="inadmissible"):
        fit(-points, truth)
    with pytest.raises(DataError, match="inadmissible"):
        fit(points, -truth)
    with pytest.raises(DataError, match="distinct"):
        fit_numbers(
            points=points[:, :2], present=np.ones((6, 2), dtype=bool), truth=truth, roles=("a", "a"), scale="log"
        )
