from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from consilience.aggregation.fitted import FittedRole, nnls, stack_nnls, stack_simplex
from consilience.errors import ConsilienceError, DataError


def test_simplex_weights_beat_every_other_point_of_a_grid() -> None:
    rng = np.random.default_rng(5)
    truth = 12 + rng.standard_normal(30)
    points = truth[:, None] + rng.standard_normal((30, 3)) * np.array([0.1, 0.2, 0.3]) + 0.05
    found = stack_simplex(log_points=points, log_truth=truth)
    errors = points - truth[:, None]
    best = float(np.square(errors @ np.array(found.weights)).sum())
    steps = np.linspace(0, 1, 41)
    grid = [(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1]
    assert best <= min(float(np.square(errors @ np.array(w)).sum()) for w in grid) + 1e-9
    assert sum(found.weights) == pytest.approx(1.0, rel=1e-12)


def test_degenerate_stacks() -> None:
    truth = np.array([1.0, 2.0])
    perfect = stack_simplex(log_points=np.column_stack([truth, truth]), log_truth=truth)
    assert perfect.weights == pytest.approx((0.5, 0.5))
    assert stack_simplex(log_points=truth[:, None] + 1, log_truth=truth).weights == (1.0,)
    assert stack_nnls(log_points=-truth[:, None], log_truth=truth).flags == ("zero_solution",)


def test_a_wrong_minimiser_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, target = np.eye(2), np.array([1.0, 2.0])
    monkeypatch.setattr(scipy.optimize, "nnls", lambda a, b: (np.array([1.0, 1.0]), 0.0 * a.sum() * b.sum()))
    with pytest.raises(ConsilienceError, match="no minimum"):
        nnls(matrix=matrix, target=target)


def test_a_solver_that_gives_up_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(a: object, b: object) -> None:
        del a, b
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(scipy.optimize, "nnls", give_up)
    with pytest.raises(ConsilienceError, match="did not converge"):
        nnls(matrix=np.eye(2), target=np.ones(2))


def test_shapes_and_numbers_are_checked() -> None:
    with pytest.raises(DataError, match="matrix"):
        nnls(matrix=np.eye(2), target=np.ones(3))
    with pytest.raises(DataError, match="not finite"):
        nnls(matrix=np.array([[np.nan]]), target=np.ones(1))
    with pytest.raises(DataError, match="stack"):
        stack_simplex(log_points=np.ones((2, 2)), log_truth=np.ones(3))
    with pytest.raises(DataError, match="stack"):
        stack_nnls(log_points=np.ones((0, 2)), log_truth=np.ones(0))
    with pytest.raises(DataError, match="variance is -1"):
        FittedRole(rows=9, variance=-1.0, scale=None, stacking=0.0, stacking_nnls=0.0)
