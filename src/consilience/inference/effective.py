"""How many independent members a panel is worth: named definitions, which differ, over one matrix of errors.

Values are items by members, without gaps: rows that lack a member are left out by the caller, so every matrix is
positive semi-definite as it stands. What cannot be computed is `Undefined` with its reason, never a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consilience.core.kinds import compact
from consilience.core.undefined import Undefined as Undefined  # noqa: PLC0414 - its older address stays valid
from consilience.errors import DataError

FloatArray = npt.NDArray[np.float64]

LEAST_ITEMS: Final = 3
"""Fewer items give no correlation worth the name: two points always lie on a line."""
RIDGE: Final = 1e-10
"""Added to the diagonal before inverting, as a share of the mean variance."""
_CONSTANT: Final = 1e-12
_NULL: Final = 1e-9


@dataclass(frozen=True)
class EffectiveNumbers:
    """The effective number of members under every definition.

    Attributes:
        n_members: Members n.
        n_items: Items the values come from.
        rho: Mean Pearson correlation over pairs of members.
        rank_rho: Mean Spearman correlation over pairs.
        equicorrelated: ``n / (1 + (n - 1) rho)``.
        equal_weight: The headline: how much smaller the variance of the members' mean is than a member's.
        optimal_weight: The same under the best weights; in the sample itself, so optimistic.
        participation_ratio: Number of directions the correlations span.
        mean_square: Mean squared error of a member over that of the mean; the only one that counts a shared bias.
    """

    n_members: int
    n_items: int
    rho: float | Undefined
    rank_rho: float | Undefined
    equicorrelated: float | Undefined
    equal_weight: float | Undefined
    optimal_weight: float | Undefined
    participation_ratio: float | Undefined
    mean_square: float | Undefined

    def record(self) -> dict[str, Any]:
        """Return all numbers as JSON values, to six digits; what is undefined is null, with its reason beside."""
        every = dict(vars(self))
        return {
            **{name: None if isinstance(value, Undefined) else compact(value) for name, value in every.items()},
            "undefined": {name: value.reason for name, value in every.items() if isinstance(value, Undefined)},
        }


def effective_numbers(
    *, values: FloatArray, errors: bool, centred: bool = True, n_items: int | None = None
) -> EffectiveNumbers:
    """Return the effective number of members under every definition, from errors or answers.

    Shared difficulty of a question is dependence, so no item means are removed.

    Args:
        values: Errors (or answers) on one scale, shape (items, members), no gaps.
        errors: Whether the values are errors; of answers there is no mean square.
        centred: False where 0 already means "nothing said", as for probabilities of options less ``1/k``.
        n_items: How many items the rows come from, where an item has several; the number of rows by default.

    Degenerate: fewer than 3 items leave everything undefined but the counts; one member has no correlation.

    Raises:
        DataError: The values are no finite matrix of at least one member.

    Example:
        >>> alike = np.tile(np.array([[0.1], [-0.3], [0.2], [0.4]]), (1, 3))
        >>> round(effective_numbers(values=alike, errors=True).equal_weight, 9)
        1.0
    """
    _check(values)
    members, items = values.shape[1], len(values) if n_items is None else n_items
    if items < LEAST_ITEMS:
        few = Undefined(f"{items} items; at least {LEAST_ITEMS} are needed")
        return EffectiveNumbers(members, items, few, few, few, few, few, few, few)
    size = float(np.abs(values).max(initial=0.0))
    values = values / size if size > 0 else values  # all definitions are free of scale; squares stay finite
    around = _around(values, centred=centred)
    covariance = around.T @ around / len(values)
    pearson = correlation_matrix(values=values, centred=centred)
    ranks: FloatArray | Undefined = Undefined("answers over options have no ranks")
    if centred:
        ranks = correlation_matrix(values=np.column_stack([_ranks(column) for column in values.T]))
    rho = _mean_pair(pearson)
    return EffectiveNumbers(
        n_members=members,
        n_items=items,
        rho=rho,
        rank_rho=_mean_pair(ranks),
        equicorrelated=_of_rho(members, rho),
        equal_weight=equal_weight(covariance=covariance),
        optimal_weight=optimal_weight(covariance=covariance)
        if items > members
        else Undefined(f"{items} items do not determine the best weights of {members} members"),
        participation_ratio=pearson if isinstance(pearson, Undefined) else participation_ratio(covariance=pearson),
        mean_square=mean_square_ratio(errors=values) if errors else Undefined("needs the truth"),
    )


def _of_rho(members: int, rho: float | Undefined) -> float | Undefined:
    if members == 1:
        return 1.0
    return rho if isinstance(rho, Undefined) else equicorrelated(n=members, rho=rho)


def equicorrelated(*, n: int, rho: float) -> float | Undefined:
    r"""Return ``n / (1 + (n - 1) rho)``: the number of independent members with the same variance of the mean.

    Range: 1 at ``rho = 1``, n at 0, above n for negative correlation. Reference: Kish 1965.

    Degenerate: ``rho <= -1/(n - 1)`` is undefined: n members cannot be that opposed on average, or cancel fully.

    Raises:
        DataError: ``n < 1`` or ``rho`` is outside [-1, 1].

    Example:
        >>> equicorrelated(n=5, rho=0.5)
        1.6666666666666667
        >>> equicorrelated(n=3, rho=-0.5).reason
        'a mean correlation of -0.5 is not above -1/(n - 1) for 3 members'
    """
    if n < 1 or not -1 <= rho <= 1:
        raise DataError(f"{n} members with a correlation of {rho}", hint="Give n >= 1 and rho in [-1, 1].")
    inflation = 1 + (n - 1) * rho
    if inflation <= _CONSTANT * n:
        return Undefined(f"a mean correlation of {rho:.6g} is not above -1/(n - 1) for {n} members")
    return n / inflation


def equal_weight(*, covariance: FloatArray) -> float | Undefined:
    r"""Return ``n^2 * mean variance / (1' S 1)``: what the plain mean really gains. The headline.

    Range: from 1 for copies; n for independent members of equal variance; more for errors that cancel.

    Degenerate: undefined when nothing varies, or when the errors cancel in the mean.

    Raises:
        DataError: The matrix is not square, finite and symmetric.

    Example:
        >>> equal_weight(covariance=np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]]))
        1.8
    """
    n = _check_square(covariance)
    trace, total = float(np.trace(covariance)), math.fsum(covariance.ravel().tolist())
    if trace <= 0:
        return Undefined("no member's values vary")
    if total <= _CONSTANT * n * trace:
        return Undefined("the members' values cancel in their mean")
    return n * trace / total


def optimal_weight(*, covariance: FloatArray, ridge: float = RIDGE) -> float | Undefined:
    r"""Return ``mean variance * 1' S^{-1} 1``: what the best weights that sum to 1 would gain.

    Range: at least `equal_weight`. A ridge of ``ridge * mean variance`` is added to the diagonal first.

    Degenerate: undefined when nothing varies, or when some weights leave no variance at all.

    Raises:
        DataError: The matrix is not square, finite and symmetric, or the ridge is negative.

    Example:
        >>> round(optimal_weight(covariance=np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]])), 8)
        1.91011236
    """
    n = _check_square(covariance)
    if ridge < 0:
        raise DataError(f"a ridge of {ridge}", hint="Give a share of the mean variance from 0 up.")
    scale = float(np.trace(covariance)) / n
    if scale <= 0:
        return Undefined("no member's values vary")
    variances, directions = np.linalg.eigh(covariance / scale)
    shares = directions.sum(axis=0) ** 2
    if bool((shares[variances <= _NULL * n] > _NULL * n).any()):
        return Undefined("some weights leave no variance")
    kept = variances > _NULL * n  # the others add nothing, as no weights that sum to 1 touch them
    return float((shares[kept] / (variances[kept] + ridge)).sum())


def participation_ratio(*, covariance: FloatArray) -> float | Undefined:
    r"""Return ``(sum l)^2 / sum l^2`` over the eigenvalues ``l``: how many directions carry the variance.

    Range: [1, n]. It says nothing of signs: two members that oppose each other span one direction, as copies do.

    Degenerate: undefined when nothing varies.

    Raises:
        DataError: The matrix is not square, finite and symmetric.

    Example:
        >>> round(participation_ratio(covariance=np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]])), 9)
        2.083333333
    """
    _check_square(covariance)
    squares = math.fsum((covariance**2).ravel().tolist())  # sum l^2 of a symmetric matrix
    if squares <= 0:
        return Undefined("no member's values vary")
    return float(np.trace(covariance)) ** 2 / squares


def mean_square_ratio(*, errors: FloatArray) -> float | Undefined:
    r"""Return the members' mean squared error over that of their mean; a bias they share is counted.

    Range: at least 1 (Krogh & Vedelsby 1995); n for independent errors without bias.

    Degenerate: undefined when the mean is right on every item.

    Raises:
        DataError: The errors are no finite matrix of at least one item and member.

    Example:
        >>> mean_square_ratio(errors=np.array([[1.0, -1.0, 1.0], [2.0, 0.0, 1.0]]))
        2.4
    """
    _check(errors)
    if len(errors) == 0:
        raise DataError("errors of no items", hint="Report that no item was answered instead.")
    of_mean = float((errors.mean(axis=1) ** 2).mean())
    of_members = float((errors**2).mean())
    if of_mean <= _CONSTANT**2 * of_members or of_members == 0:
        return Undefined("the members' mean is right on every item")
    return of_members / of_mean


def correlation_matrix(*, values: FloatArray, centred: bool = True) -> FloatArray | Undefined:
    """Return the correlations between members over items (Pearson; of ranks, it is Spearman's).

    Args:
        values: Shape (items, members), no gaps.
        centred: False compares directions from 0 instead of from the members' means.

    Degenerate: undefined below 3 rows, and when a member's values do not vary; it is named by its column.

    Raises:
        DataError: The values are no finite matrix of at least one member.

    Example:
        >>> correlation_matrix(values=np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])).round(9).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    _check(values)
    if len(values) < LEAST_ITEMS:
        return Undefined(f"{len(values)} rows; at least {LEAST_ITEMS} are needed")
    around = _around(values, centred=centred)
    reach = np.abs(around).max(axis=0, initial=0.0)
    still = np.flatnonzero(reach == 0)
    if still.size:
        return Undefined(f"the values of member {int(still[0]) + 1} do not vary")
    unit = around / reach  # so that the squares of tiny values do not vanish
    unit = unit / np.sqrt((unit**2).sum(axis=0))
    matrix: FloatArray = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _around(values: FloatArray, *, centred: bool) -> FloatArray:
    """Return values less their members' means; a member that varies by rounding only is exactly 0."""
    if not centred:
        return values
    around = values - values.mean(axis=0)
    moving = np.abs(around).max(axis=0, initial=0.0) > _CONSTANT * np.abs(values).max(axis=0, initial=0.0)
    return np.where(moving, around, 0.0)


def _mean_pair(matrix: FloatArray | Undefined) -> float | Undefined:
    if isinstance(matrix, Undefined):
        return matrix
    n = len(matrix)
    if n == 1:
        return Undefined("one member has nobody to correlate with")
    return math.fsum(matrix[np.triu_indices(n, 1)].tolist()) / (n * (n - 1) / 2)


def _ranks(column: FloatArray) -> FloatArray:
    """Return ranks from 1, ties sharing their mean."""
    _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
    shared = np.cumsum(counts) - (counts - 1) / 2
    ranks: FloatArray = shared[places]
    return ranks


def _check(values: FloatArray) -> None:
    if values.ndim != 2 or values.shape[1] == 0 or not np.isfinite(values).all():
        raise DataError(
            f"values of shape {values.shape} are no finite matrix of items by members",
            hint="Leave out items that a member did not answer, and count them.",
        )


def _check_square(matrix: FloatArray) -> int:
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0 and bool(np.isfinite(matrix).all())
    if not square or not np.allclose(matrix, matrix.T):
        raise DataError(
            f"a matrix of shape {matrix.shape} is no covariance", hint="Give a square, finite, symmetric matrix."
        )
    return len(matrix)
