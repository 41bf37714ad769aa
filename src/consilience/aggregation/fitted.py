"""Weights learnt from validation: what a fitted role carries, and the least-squares problems behind it.

The target and holdout never enter here; an artefact is fitted once and applied unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consilience.aggregation.location import FloatArray
from consilience.errors import ConsilienceError, DataError

RIDGE = 1e-9
"""Ridge of `stack_simplex` relative to the trace of E'E: enough to split duplicates, too little to shrink the rest."""


@dataclass(frozen=True)
class FittedRole:
    """What validation taught about one seat's role.

    Attributes:
        rows: Validation rows the role answered.
        variance: Variance (ddof 1) of its errors in the working space (log errors on a log scale, bias not removed from
            later points); None with fewer than two rows.
        scale: Student-t scale of the same errors; None where it could not be fitted.
        stacking: Weight of the simplex stack, >= 0.
        stacking_nnls: Normalised weight of the NNLS stack, >= 0.

    Raises:
        DataError: A weight, variance or scale is negative or not finite.

    Example:
        >>> FittedRole(rows=40, variance=0.01, scale=0.07, stacking=0.4, stacking_nnls=0.5).rows
        40
    """

    rows: int
    variance: float | None
    scale: float | None
    stacking: float
    stacking_nnls: float

    def __post_init__(self) -> None:
        for field in ("variance", "scale", "stacking", "stacking_nnls"):
            value = getattr(self, field)
            if value is not None and not (np.isfinite(value) and value >= 0):
                raise DataError(f"fitted {field} is {value}", hint="Fit the weights again; they must be finite, >= 0.")


@dataclass(frozen=True)
class StackWeights:
    """Weights of a stack, one per role in the order of the columns.

    Attributes:
        weights: Non-negative, sum 1.
        raw_sum: Sum before normalising; 1 for the simplex form.
        flags: ``zero_solution`` when NNLS found nothing and equal weights stand in.
    """

    weights: tuple[float, ...]
    raw_sum: float
    flags: tuple[str, ...] = ()


def nnls(*, matrix: FloatArray, target: FloatArray) -> tuple[FloatArray, float]:
    r"""Return the non-negative least-squares solution and its residual norm, checked.

    Equation: ``argmin_{x >= 0} ||A x - b||``. The solver's word is not taken: with gradient ``g = A'(b - A x)``,
    Karush-Kuhn-Tucker demands ``g = 0`` where ``x > 0`` and ``g <= 0`` elsewhere.

    Reference: Lawson & Hanson 1974. Degenerate: the zero vector is a valid answer.

    Raises:
        DataError: The arrays do not fit together or are not finite.
        ConsilienceError: The solver did not converge or its answer is no minimum.

    Example:
        >>> x, rnorm = nnls(matrix=np.array([[1.0, 0], [1, 0], [0, 1]]), target=np.array([2.0, 1, 1]))
        >>> [round(float(v), 9) for v in x], round(rnorm, 6)
        ([1.5, 1.0], 0.707107)
    """
    from scipy.optimize import nnls as solve  # noqa: PLC0415 - scipy is loaded where it is used

    if matrix.ndim != 2 or target.shape != matrix.shape[:1] or matrix.size == 0:
        raise DataError(
            f"least squares with matrix {matrix.shape} and target {target.shape}",
            hint="The matrix has one row per target value and at least one column.",
        )
    if not (np.isfinite(matrix).all() and np.isfinite(target).all()):
        raise DataError("least squares over numbers that are not finite", hint="Leave out rows with a missing answer.")
    try:
        solution, _ = solve(matrix, target)
    except RuntimeError as error:
        raise ConsilienceError(
            f"nnls did not converge: {error}", hint="Check the columns for extreme sizes."
        ) from error
    residual = target - matrix @ solution
    gradient = matrix.T @ residual
    norms = np.linalg.norm(matrix, axis=0)
    tolerance = 1e-9 * (np.linalg.norm(target) + float(norms @ solution)) * norms + 1e-300
    if (gradient > tolerance).any() or (np.abs(gradient) > tolerance)[solution > 0].any() or (solution < 0).any():
        raise ConsilienceError("nnls returned a point that is no minimum", hint="Upgrade scipy and fit again.")
    return solution.astype(np.float64), float(np.linalg.norm(residual))


def stack_simplex(*, log_points: FloatArray, log_truth: FloatArray, ridge: float = RIDGE) -> StackWeights:
    r"""Return the simplex weights that minimise squared error: ``min ||E w||^2, w >= 0, 1'w = 1``.

    Solved as one NNLS problem: rows of errors ``E = log_points - log_truth``, one row of ones with target 1, and ridge
    rows ``sqrt(ridge * trace(E'E)) (I - 11'/n)`` that split duplicate roles equally; then normalised. With
    ``w = s u, 1'u = 1`` the optimum over ``s`` grows with ``||E u||^2``, so the minimiser is the simplex one, and the
    zero solution is impossible.

    Args:
        log_points: Validation points in the working space, shape (rows, roles).
        log_truth: Truths in the same space, shape (rows,).
        ridge: Relative to the trace of E'E; larger shrinks towards equal weights.

    Reference: Wolpert 1992; Breiman 1996. Degenerate: all errors zero → equal weights; one role → weight 1.

    Raises:
        DataError: Shapes do not fit or a number is not finite.

    Example:
        >>> truth = np.array([1.0, 2.0, 3.0])
        >>> found = stack_simplex(log_points=np.column_stack([truth + 0.1, truth - 0.1]), log_truth=truth)
        >>> [round(w, 6) for w in found.weights]
        [0.5, 0.5]
    """
    _check_stack(log_points, log_truth)
    errors = log_points - log_truth[:, None]
    roles = errors.shape[1]
    trace = float((errors**2).sum())
    shrink = np.sqrt(ridge * trace if trace > 0 else 1.0) * (np.eye(roles) - 1.0 / roles)
    matrix = np.vstack([errors, np.ones((1, roles)), shrink])
    target = np.zeros(len(matrix))
    target[len(errors)] = 1.0
    solution, _ = nnls(matrix=matrix, target=target)
    return StackWeights(weights=tuple((solution / solution.sum()).tolist()), raw_sum=1.0)


def stack_nnls(*, log_points: FloatArray, log_truth: FloatArray) -> StackWeights:
    r"""Return NNLS weights of log truth on the roles' log points, normalised to sum 1.

    Kept for comparison with `stack_simplex`: normalising moves every prediction's level by ``1/raw_sum``.

    Args:
        log_points: Validation points in the working space, shape (rows, roles).
        log_truth: Truths in the same space, shape (rows,).

    Degenerate: an all-zero solution → equal weights, ``raw_sum`` 0 and the flag ``zero_solution``.

    Raises:
        DataError: Shapes do not fit or a number is not finite.

    Example:
        >>> stack_nnls(log_points=np.array([[1.0], [2.0]]), log_truth=np.array([-1.0, -2.0])).flags
        ('zero_solution',)
    """
    _check_stack(log_points, log_truth)
    solution, _ = nnls(matrix=log_points, target=log_truth)
    total = float(solution.sum())
    if total == 0.0:
        roles = log_points.shape[1]
        return StackWeights(weights=(1.0 / roles,) * roles, raw_sum=0.0, flags=("zero_solution",))
    return StackWeights(weights=tuple((solution / total).tolist()), raw_sum=total)


def _check_stack(log_points: FloatArray, log_truth: FloatArray) -> None:
    if log_points.ndim != 2 or log_truth.shape != log_points.shape[:1] or log_points.size == 0:
        raise DataError(
            f"a stack of points {log_points.shape} on truths {log_truth.shape}",
            hint="Give one row per validation item and one column per role.",
        )
