"""Formulas on single probabilities and their odds, free of seats and records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consilience.errors import DataError

LOGIT_CLIP: Final = 0.005
"""Before a logarithm of odds a probability is held this far from 0 and 1: a single certain member would veto all."""
BOUNDS: Final = (0.01, 0.99)
MAX_FACTOR: Final = 3.0
_TIE: Final = 1e-12


def logit(p: float) -> float:
    """Return the log-odds ``ln(p / (1 - p))`` of a probability in [0, 1]; those of 0 and 1 are infinite.

    Raises:
        DataError: Not a probability.

    Example:
        >>> logit(0.5), logit(0.0)
        (0.0, -inf)
    """
    if not 0 <= p <= 1:
        raise DataError(f"{p} is no probability", hint="Give a number in [0, 1].")
    if p in {0.0, 1.0}:
        return math.inf if p else -math.inf
    return math.log(p) - math.log1p(-p)


def expit(x: float) -> float:
    """Return the probability ``1 / (1 + exp(-x))`` of log-odds, infinite ones included.

    Example:
        >>> expit(0.0), expit(-1e4)
        (0.5, 0.0)
    """
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    odds = math.exp(x)
    return odds / (1.0 + odds)


def clipped(p: float, *, eps: float = LOGIT_CLIP) -> float:
    """Return a probability held inside ``[eps, 1 - eps]``; whoever calls counts what moved.

    Example:
        >>> clipped(0.0), clipped(0.4)
        (0.005, 0.4)
    """
    return min(max(p, eps), 1.0 - eps)


def scale_odds(p: float, *, exponent: float, factor: float = 1.0) -> float:
    """Return the probability whose odds are ``factor * odds(p) ** exponent``: the slope and level of Platt's map.

    An exponent over 1 moves away from one half, below 1 towards it; 0 and 1 stay (for an exponent over 0).

    Raises:
        DataError: Not a probability, or exponent or factor is not finite and positive.

    Example:
        >>> round(scale_odds(0.7, exponent=1.5), 6), scale_odds(0.0, exponent=2)
        (0.780905, 0.0)
    """
    if not (0 < exponent < math.inf and 0 < factor < math.inf):
        raise DataError(f"odds to the power {exponent} times {factor}", hint="Give finite numbers above 0.")
    return expit(exponent * logit(p) + math.log(factor))


def mean_logit(p: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Return the mean of log-odds, whose probability is the geometric mean of odds.

    Args:
        p: Probabilities inside (0, 1); clip before.
        weights: Non-negative, of any sum; None weighs all alike.

    Reference: Genest & Zidek 1986; Satopää et al. 2014.

    Raises:
        DataError: As `logit`, or the weights do not fit or are all zero.

    Example:
        >>> round(expit(mean_logit([0.1, 0.2, 0.4, 0.5])), 6)
        0.269483
    """
    shares = normalised(weights, n=len(p))
    return math.fsum(share * logit(x) for share, x in zip(shares, p, strict=True) if share)


def normalised(weights: Sequence[float] | None, *, n: int) -> tuple[float, ...]:
    """Return weights with sum 1, however large or small they are; equal ones for None.

    Raises:
        DataError: Nothing to weigh, another number of weights, or they are negative, not finite or all zero.

    Example:
        >>> normalised([1, 3], n=2)
        (0.25, 0.75)
        >>> normalised([1e308, 1e308, 5e-324], n=3)
        (0.5, 0.5, 0.0)
    """
    given = (1.0,) * n if weights is None else tuple(weights)
    if n == 0 or len(given) != n or not all(0 <= w < math.inf for w in given) or not any(given):
        raise DataError(f"weights {list(given)} for {n} probabilities", hint="Give one each, >= 0, not all zero.")
    _, exponent = math.frexp(max(given))
    near_one = [math.ldexp(w, -exponent) for w in given]  # exact, and the sum cannot overflow
    total = math.fsum(near_one)
    return tuple(w / total for w in near_one)


def projective_factor(n: float) -> float:
    r"""Return the Neyman-Roughgarden factor ``d(n) = n (sqrt(3n^2 - 3n + 1) - 2) / (n^2 - n - 1)``.

    It grows from 1 at n = 1 to sqrt(3). The theorem is about arithmetic means and projective substitutes; on log-odds
    it is a heuristic. n may be an effective number and need not be whole.

    Reference: Neyman & Roughgarden 2021; on log-odds, Sevilla 2021.

    Raises:
        DataError: n is below 1 or not finite.

    Example:
        >>> projective_factor(1), round(projective_factor(2), 4)
        (1.0, 1.2915)
    """
    if not 1 <= n < math.inf:
        raise DataError(f"an extremising factor for {n} members", hint="Give a number of at least 1.")
    # The quotient by n^2 - n - 1 is 0/0 at the golden ratio; this is the same fraction without its common factor.
    root = math.sqrt(3 * n * n - 3 * n + 1)
    return 3 * n / (root + 2)


def effective_number(n: float, *, rho: float) -> float:
    """Return ``n / (1 + (n - 1) rho)``: how many independent members are worth n whose errors correlate by rho.

    Reference: Kish 1965. Degenerate: n = 1 gives 1, rho = 1 gives 1.

    Raises:
        DataError: n is below 1, rho above 1, or so negative that no n errors can correlate so.

    Example:
        >>> effective_number(3, rho=0.3), effective_number(8, rho=1.0)
        (1.875, 1.0)
    """
    if not (n >= 1 and rho <= 1 and 1 + (n - 1) * rho > 0):
        raise DataError(f"an effective number of {n} members with correlation {rho}", hint="Measure rho again.")
    return n / (1 + (n - 1) * rho)


@dataclass(frozen=True)
class SqrtNeff:
    """A mean moved away from a base by the root of the effective number.

    Attributes:
        value: Inside the bounds.
        unclamped: Before they applied; may lie outside [0, 1].
        mean: Weighted mean of the probabilities.
        n_weighted: ``1 / sum(w^2)``: the number of equal weights that are as even as these.
        n_eff: Effective number, not clamped.
        factor: What the distance from the base was multiplied by, in [1, 3].
    """

    value: float
    unclamped: float
    mean: float
    n_weighted: float
    n_eff: float
    factor: float


def sqrt_neff(
    p: Sequence[float],
    *,
    rho: float,
    weights: Sequence[float] | None = None,
    base: float = 0.5,
    factor: float | None = None,
    bounds: tuple[float, float] = BOUNDS,
) -> SqrtNeff:
    r"""Return ``clamp(b + d (m - b))`` with ``d = clamp(sqrt(n_eff), 1, 3)`` around the mean m of probabilities.

    ``n_eff = n_w / (1 + (n_w - 1) rho)`` with ``n_w = 1 / sum(w^2)``, which is n for equal weights.

    Args:
        p: Probabilities.
        rho: Correlation of the members' errors, at most 1.
        weights: Non-negative, of any sum; None weighs all alike.
        base: What the mean is moved away from.
        factor: Given, it stands for ``d`` and nothing is derived.
        bounds: Of the result.

    Raises:
        DataError: As `normalised` and `effective_number`.

    Example:
        >>> made = sqrt_neff([0.65, 0.65, 0.65], rho=0.3)
        >>> round(made.value, 4), made.n_eff, sqrt_neff([0.2, 0.9], rho=0.3, weights=[1, 0]).value
        (0.7054, 1.875, 0.2)
    """
    shares = normalised(weights, n=len(p))
    mean = math.fsum(share * x for share, x in zip(shares, p, strict=True))
    n_weighted = float(len(p)) if weights is None else max(1.0, 1.0 / math.fsum(share * share for share in shares))
    n_eff = effective_number(n_weighted, rho=rho)
    d = min(max(math.sqrt(n_eff), 1.0), MAX_FACTOR) if factor is None else factor
    unclamped = mean if d == 1 else base + d * (mean - base)
    value = min(max(unclamped, bounds[0]), bounds[1])
    return SqrtNeff(value=value, unclamped=unclamped, mean=mean, n_weighted=n_weighted, n_eff=n_eff, factor=d)


def extremity(p: float) -> float:
    """Return ``2 |p - 1/2|``: how far a probability is from saying nothing, in [0, 1].

    Example:
        >>> extremity(0.5), extremity(0.0)
        (0.0, 1.0)
    """
    return 2.0 * abs(p - 0.5)


def log_odds_gap(p: float, q: float) -> float:
    """Return ``|logit p - logit q|``: the distance that tells .08 from .04 as far apart and .52 from .48 as near.

    Degenerate: two equal certainties are 0 apart; a certainty is infinitely far from anything else.

    Raises:
        DataError: Not a probability.

    Example:
        >>> round(log_odds_gap(0.08, 0.04), 4), round(log_odds_gap(0.52, 0.48), 4)
        (0.7357, 0.1601)
    """
    first, second = logit(p), logit(q)
    return 0.0 if first == second else abs(first - second)


def halved_farthest(p: Sequence[float]) -> float:
    """Return the mean in which the member farthest from the median has half its weight, spread over the others.

    Kept for comparison with published panels. Of members that are as far on both sides the lowest counts as farthest,
    so it is no rule of ours: read for the other answer it may differ.

    Reference: Halawi et al. 2024. Degenerate: up to two members give the mean.

    Raises:
        DataError: No probabilities.

    Example:
        >>> round(halved_farthest([0.03, 0.03, 0.03, 0.05, 0.06]), 4)
        0.0375
    """
    values, n = sorted(p), len(p)
    if n == 0:
        raise DataError("a mean of no probabilities", hint="Leave the item out and count it.")
    if n <= 2:
        return math.fsum(values) / n
    middle = (values[(n - 1) // 2] + values[n // 2]) / 2
    far = max(abs(x - middle) for x in values)
    chosen = next(i for i, x in enumerate(values) if abs(x - middle) >= far - _TIE)
    rest = (1.0 - 0.5 / n) / (n - 1)
    return math.fsum((0.5 / n if i == chosen else rest) * x for i, x in enumerate(values))
