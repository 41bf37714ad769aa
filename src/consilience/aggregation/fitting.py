"""From validation answers to fitted roles: variances, scales and stacking weights, by pure arithmetic.

Only validation rows may come in here; who calls sees to that. A role that gave no answer to an item is absent from that
row: nothing is imputed for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from consilience.aggregation.fitted import FittedRole, StackWeights, stack_nnls, stack_simplex
from consilience.aggregation.location import FloatArray
from consilience.aggregation.numbers import MIN_ROWS, InverseVariance, Scale, to_working
from consilience.errors import DataError

BoolArray = npt.NDArray[np.bool_]

SMALL_ROWS: Final = 30
"""A variance from fewer rows than this is drawn towards the median of the roles' variances."""
PRIOR_ROWS: Final = 10
"""How many rows that median counts for."""
_DF: Final = 4.0


@dataclass(frozen=True)
class FittedNumbers:
    """What validation taught about a panel's numbers.

    Attributes:
        roles: By role; one that answered no item has no entry.
        items: Validation items with at least one answer.
        complete_rows: Items that every role in ``roles`` answered; the stacks rest on these alone.
        nnls_sum: Sum of the NNLS weights before they were normalised; None without complete rows.
        error_variance: Variance (ddof 1) of the pooled error over the complete rows, ``w' S w``, by rule (``mean`` for
            equal weights beside it); empty with fewer than two complete rows. In sample, so it flatters fitted weights.
        flags: ``no_complete_rows`` (stacks are equal weights), ``zero_solution`` (the NNLS stack is), and
            ``variance_shrunk`` where a role has few rows.
    """

    roles: dict[str, FittedRole]
    items: int
    complete_rows: int
    nnls_sum: float | None
    error_variance: dict[str, float]
    flags: tuple[str, ...]


def fit_numbers(
    *, points: FloatArray, present: BoolArray, truth: FloatArray, roles: tuple[str, ...], scale: Scale
) -> FittedNumbers:
    r"""Return what validation teaches about each role: variance and t scale of its errors, and its stacking weights.

    Errors are ``point - truth`` in the working space (logarithms on a ``log`` scale). The variance has ddof 1; with
    ``m < 30`` rows it becomes ``(m v + 10 v_med) / (m + 10)``, flagged. The scale is that of `t_scale`. The stacks are
    `stack_simplex` and `stack_nnls` over the rows that every role answered.

    Args:
        points: One row per item and one column per role; what is not ``present`` is not read.
        present: Where a role answered, same shape.
        truth: One per item; positive on a ``log`` scale.
        roles: Distinct names of the columns.
        scale: Of the questions.

    Reference: Bates & Granger 1969; Lange, Little & Taylor 1989; Breiman 1996. Degenerate: a role without a row has no
    entry; with one row it has no variance and no scale; without complete rows the stacks are equal weights, flagged.

    Raises:
        DataError: Shapes or names do not fit, a number is inadmissible, or nobody answered anything.

    Example:
        >>> truth = np.array([1.0, 2.0, 3.0])
        >>> points = np.column_stack([truth + [0.1, -0.1, 0.1], truth + [0.4, -0.4, 0.4]])
        >>> made = fit_numbers(points=points, present=np.ones((3, 2), dtype=bool), truth=truth, roles=("a", "b"),
        ...                    scale="linear")
        >>> made.complete_rows, round(made.roles["a"].stacking, 6)
        (3, 1.0)
    """
    _check(points, present, truth, roles)
    answered = [column for column in range(len(roles)) if present[:, column].any()]
    if not answered:
        raise DataError("no role answered a validation item", hint="Fit on a run whose members answered.")
    y = to_working(points=truth, scale=scale)
    errors = [
        to_working(points=points[present[:, column], column], scale=scale) - y[present[:, column]]
        for column in answered
    ]
    variances, shrunk = _variances(errors)
    complete = present[:, answered].all(axis=1)
    x = to_working(points=points[complete][:, answered], scale=scale)
    simplex, compat, flags = _stacks(x, y[complete])
    made = {
        roles[column]: FittedRole(
            rows=error.size,
            variance=variance,
            scale=t_scale(errors=error) if error.size > 1 else None,
            stacking=share,
            stacking_nnls=other,
        )
        for column, error, variance, share, other in zip(
            answered, errors, variances, simplex.weights, compat.weights, strict=True
        )
    }
    return FittedNumbers(
        roles=made,
        items=int(present.any(axis=1).sum()),
        complete_rows=int(complete.sum()),
        nnls_sum=compat.raw_sum if complete.any() else None,
        error_variance=_error_variance(x - y[complete][:, None], made),
        flags=(*flags, *(("variance_shrunk",) if shrunk else ())),
    )


def t_scale(*, errors: FloatArray) -> float:
    r"""Return the maximum-likelihood scale ``s`` of errors that follow a Student t with 4 degrees of freedom about 0.

    The root of ``mean((nu + 1) e^2 / (nu s^2 + e^2)) = 1``, which falls in ``s``. The location is 0 because an error is
    taken from the truth itself, so a bias counts as width.

    Reference: Lange, Little & Taylor 1989. Degenerate: 0 where four fifths of the errors or more are exactly 0 (the
    likelihood then has no maximum); the rule that uses it floors it.

    Raises:
        DataError: There are no errors, or one is not finite.

    Example:
        >>> round(t_scale(errors=np.array([-1.0, 1.0])), 12)
        1.0
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy is loaded where it is used

    if errors.size == 0 or not np.isfinite(errors).all():
        raise DataError(f"a scale of {errors.size} errors", hint="Give at least one error, all finite.")
    largest = float(np.abs(errors).max())
    if largest == 0.0:
        return 0.0
    squares = np.square(errors / largest)
    some = squares[squares > 0]
    excess = some.size / squares.size * (_DF + 1.0) - 1.0
    if excess <= 0.0:
        return 0.0

    def surplus(log_square: float) -> float:
        return math.fsum((_DF + 1.0) * some / (_DF * math.exp(log_square) + some)) / squares.size - 1.0

    # At the largest error the mean is at most 1, at this multiple of the smallest it is at least 1.
    lowest = math.log(float(some.min()) * excess / _DF) - 1e-9
    root: float = brentq(surplus, lowest, 1e-9, xtol=1e-14, rtol=1e-14)
    return largest * math.exp(root / 2.0)


def _check(points: FloatArray, present: BoolArray, truth: FloatArray, roles: tuple[str, ...]) -> None:
    if points.shape != (len(truth), len(roles)) or present.shape != points.shape or len(set(roles)) != len(roles):
        raise DataError(
            f"points {points.shape} and presence {present.shape} of {len(truth)} truths and roles {', '.join(roles)}",
            hint="Give one row per validation item and one column per role, names distinct.",
        )


def _variances(errors: list[FloatArray]) -> tuple[list[float | None], bool]:
    own = [float(error.var(ddof=1)) if error.size > 1 else None for error in errors]
    believed = [v for v, error in zip(own, errors, strict=True) if v is not None and error.size >= MIN_ROWS]
    if not believed:
        return own, False
    middle = float(np.median(believed))
    drawn = [v is not None and error.size < SMALL_ROWS for v, error in zip(own, errors, strict=True)]
    made = [
        (error.size * v + PRIOR_ROWS * middle) / (error.size + PRIOR_ROWS) if v is not None and few else v
        for v, error, few in zip(own, errors, drawn, strict=True)
    ]
    return made, any(drawn)


def _stacks(x: FloatArray, y: FloatArray) -> tuple[StackWeights, StackWeights, tuple[str, ...]]:
    if len(y) == 0:
        equal = StackWeights(weights=(1.0 / x.shape[1],) * x.shape[1], raw_sum=0.0)
        return equal, equal, ("no_complete_rows",)
    compat = stack_nnls(log_points=x, log_truth=y)
    return stack_simplex(log_points=x, log_truth=y), compat, compat.flags


def _error_variance(errors: FloatArray, made: dict[str, FittedRole]) -> dict[str, float]:
    if len(errors) < 2:
        return {}
    names = tuple(made)
    shares = InverseVariance()(points=np.zeros(len(names)), scale="linear", seats=names, weights=made).weights
    weights = {
        "mean": np.full(len(names), 1.0 / len(names)),
        "inverse_variance": np.array([shares[name] for name in names]),
        "stacking": np.array([role.stacking for role in made.values()]),
        "stacking_nnls": np.array([role.stacking_nnls for role in made.values()]),
    }
    return {rule: float((errors @ w).var(ddof=1)) for rule, w in weights.items()}
