"""What each member adds to the panel's answer: without it, and shared out fairly over all panels it could sit on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError
from consilience.inference.effective import FloatArray

EXACT_MEMBERS: Final = 15
"""Up to 2^15 panels are valued one by one."""
EMPTY: Final = "a member drawn at random"
"""What the panel without members is worth: the mean loss of single members, so that its value is 0."""

Value = Callable[[tuple[int, ...]], float]
Rule = Literal["mean", "median"]


@dataclass(frozen=True)
class Influence:
    """What members are worth.

    Attributes:
        shapley: Share of each in ``total``; below 0 it makes the panel worse. They sum to ``total``.
        se: Standard error of each share; None where all panels were valued.
        leave_one_out: What the panel loses without the member; copies get 0, and they do not sum to ``total``.
        total: Value of the whole panel, over ``empty``.
        empty: What the empty coalition stands for.
        exact: All panels were valued.
    """

    shapley: tuple[float, ...]
    se: tuple[float, ...] | None
    leave_one_out: tuple[float, ...]
    total: float
    empty: str
    exact: bool


def influence(
    *,
    errors: FloatArray,
    rule: Rule = "mean",
    rng: np.random.Generator | None = None,
    n_pairs: int = 500,
) -> Influence:
    r"""Return what each member adds to the panel under squared error.

    ``v(S) = mean_i MSE_i - MSE(rule of S)``: what panel S gains over a member drawn at random, so ``v(empty) = 0``.
    Shares are exact up to 15 members; above, from random orders of the members, each taken forwards and backwards.

    Args:
        errors: Errors on the scale the rule works on (logarithms), no gaps, shape (items, members).
        rule: How a panel combines its members.
        rng: Consumed; above 15 members only.
        n_pairs: Pairs of orders above 15 members, >= 2.

    Reference: Shapley 1953; Castro et al. 2009; Rozemberczki et al. 2022.

    Degenerate: one member is worth 0.

    Raises:
        DataError: The errors are no finite matrix of at least one item and member, or random numbers are missing.

    Example:
        >>> made = influence(errors=np.array([[0.1, -0.1, 0.3], [0.2, 0.0, -0.1]]))
        >>> [round(share, 6) for share in made.shapley], round(made.total, 6)
        ([0.005579, 0.023079, -0.007546], 0.021111)
    """
    if errors.ndim != 2 or errors.size == 0 or not np.isfinite(errors).all():
        raise DataError(
            f"errors of shape {errors.shape} are no finite matrix of items by members",
            hint="Leave out items that a member did not answer, and count them.",
        )
    members = errors.shape[1]
    alone = float((errors**2).mean())

    def value(panel: tuple[int, ...]) -> float:
        if not panel:
            return 0.0
        combined = errors[:, panel].mean(axis=1) if rule == "mean" else np.median(errors[:, panel], axis=1)
        return alone - float((combined**2).mean())

    whole = tuple(range(members))
    total = value(whole)
    without = tuple(total - value(whole[:at] + whole[at + 1 :]) for at in whole)
    if members <= EXACT_MEMBERS:
        table = _mean_table(errors, alone) if rule == "mean" else value_table(n=members, value=value)
        shares = shapley(values=table)
        return Influence(tuple(shares.tolist()), None, without, total, EMPTY, exact=True)
    if rng is None:
        raise DataError(
            f"{members} members make too many panels to value each, and no random orders were offered",
            hint="Give rng, from analysis_rng.",
        )
    drawn = sampled_shapley(n=members, value=value, rng=rng, n_pairs=n_pairs)
    return Influence(*drawn, without, total, EMPTY, exact=False)


def value_table(*, n: int, value: Value) -> FloatArray:
    """Return the value of every coalition; bit i of an index says whether member i is in it.

    Raises:
        DataError: There are no members or more than 15.

    Example:
        >>> value_table(n=2, value=lambda panel: float(len(panel))).tolist()
        [0.0, 1.0, 1.0, 2.0]
    """
    if not 1 <= n <= EXACT_MEMBERS:
        raise DataError(f"{n} members", hint=f"Value all coalitions of 1 to {EXACT_MEMBERS} members; else sample.")
    return np.array([value(tuple(at for at in range(n) if mask >> at & 1)) for mask in range(1 << n)])


def shapley(*, values: FloatArray) -> FloatArray:
    r"""Return the Shapley value of each member, from the value of every coalition.

    ``phi_i = sum_{S without i} |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))``; they sum to ``v(all) - v(empty)``.

    Args:
        values: Of each coalition, as `value_table`, shape (2^n,).

    Reference: Shapley 1953.

    Raises:
        DataError: The values are not 2^n finite ones, n from 1 to 15.

    Example:
        >>> glove = value_table(n=3, value=lambda panel: float(2 in panel and len(panel) > 1))
        >>> shapley(values=glove).round(9).tolist()
        [0.166666667, 0.166666667, 0.666666667]
    """
    n = values.size.bit_length() - 1
    if values.shape != (1 << n,) or not 1 <= n <= EXACT_MEMBERS or not np.isfinite(values).all():
        raise DataError(f"{values.shape} values of coalitions", hint="Give 2^n finite ones, n from 1 to 15.")
    masks = np.arange(1 << n)
    sizes = _bits(n).sum(axis=1)
    weight = np.array([1 / (n * math.comb(n - 1, size)) for size in range(n)])
    shares = np.empty(n)
    for at in range(n):
        without = masks[masks >> at & 1 == 0]
        shares[at] = weight[sizes[without]] @ (values[without | 1 << at] - values[without])
    return shares


def sampled_shapley(
    *, n: int, value: Value, rng: np.random.Generator, n_pairs: int = 500
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return estimated Shapley values and their standard errors, from random orders of the members.

    Members join one by one in each order and in its reverse, which cancels much of the noise; a pair is one draw.

    Args:
        n: Members, >= 1.
        value: Of a coalition, its members in ascending order.
        rng: Consumed.
        n_pairs: Pairs of orders, >= 2.

    Reference: Castro et al. 2009; Mitchell et al. 2022.

    Raises:
        DataError: There are no members or fewer than two pairs.

    Example:
        >>> shares, errors = sampled_shapley(n=3, value=lambda panel: float(len(panel)), rng=np.random.default_rng(1))
        >>> shares, errors
        ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    """
    if n < 1 or n_pairs < 2:
        raise DataError(f"{n_pairs} pairs of orders of {n} members", hint="Give at least one member and two pairs.")
    known: dict[tuple[int, ...], float] = {}

    def worth(panel: Sequence[int]) -> float:
        key = tuple(sorted(panel))
        if key not in known:
            known[key] = value(key)
        return known[key]

    gains = np.zeros((n_pairs, n))
    for pair in range(n_pairs):
        order = rng.permutation(n).tolist()
        for line in (order, order[::-1]):
            before = worth(())
            for place, member in enumerate(line, start=1):
                now = worth(line[:place])
                gains[pair, member] += (now - before) / 2
                before = now
    errors = gains.std(axis=0, ddof=1) / math.sqrt(n_pairs)
    return tuple(gains.mean(axis=0).tolist()), tuple(errors.tolist())


def _mean_table(errors: FloatArray, alone: float) -> FloatArray:
    """Return the value of every panel that takes its mean, from the products of errors alone."""
    bits = _bits(errors.shape[1]).astype(np.float64)
    products = errors.T @ errors / len(errors)
    sizes = bits.sum(axis=1)
    sizes[0] = 1.0
    values: FloatArray = alone - ((bits @ products) * bits).sum(axis=1) / sizes**2
    values[0] = 0.0
    return values


def _bits(n: int) -> npt.NDArray[np.int64]:
    return np.arange(1 << n)[:, None] >> np.arange(n)[None, :] & 1
