"""What a vote can be worth: accuracy of majorities of voters of known competence, and the weights that are best.

All of it holds for two options of which one is right. Members of one panel err together, so the figures under
independence are a ceiling (Ladha 1992).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from consilience.aggregation.tallies import Score
from consilience.errors import DataError

Tie = Literal["half", "lost"]


def log_odds_weights(competence: Sequence[float]) -> tuple[float, ...]:
    """Return the weights under which a weighted majority of independent voters is most often right.

    They are log(p / (1 - p)), divided by the sum of their absolute values; a voter worse than chance has a negative
    one (Nitzan & Paroush 1982, Shapley & Grofman 1984).

    Args:
        competence: Each voter's probability of being right, in (0, 1).

    Raises:
        DataError: A competence lies outside (0, 1), or all are 1/2.

    Example:
        >>> [round(weight, 3) for weight in log_odds_weights([0.9, 0.9, 0.6, 0.6, 0.6])]
        [0.392, 0.392, 0.072, 0.072, 0.072]
    """
    if not all(0 < p < 1 for p in competence):
        raise DataError(f"competences {list(competence)} do not lie in (0, 1)", hint="Shrink 0 and 1 towards 1/2.")
    odds = [math.log(p) - math.log1p(-p) for p in competence]
    whole = math.fsum(map(abs, odds))
    if whole == 0:
        raise DataError("no voter is better or worse than chance", hint="No weights can be told apart.")
    return tuple(value / whole for value in odds)


def weighted_majority_accuracy(competence: Sequence[float], weights: Sequence[Score]) -> float:
    """Return how often a weighted majority of independent voters is right; an exact tie counts half.

    Every outcome is enumerated by the weight on the right side, exactly: at most 2^n sums, far fewer where weights
    repeat.

    Args:
        competence: Each voter's probability of being right, in [0, 1].
        weights: One per voter, at least 0; a float stands for exactly the number it stores.

    Raises:
        DataError: Numbers do not fit each other or their range.

    Example:
        >>> round(weighted_majority_accuracy([0.9, 0.9, 0.6, 0.6, 0.6], [3, 3, 1, 1, 1]), 5)
        0.92664
    """
    if len(competence) != len(weights) or not competence:
        raise DataError(f"{len(weights)} weights for {len(competence)} voters", hint="Give one weight per voter.")
    if not all(0 <= p <= 1 for p in competence) or not all(0 <= weight < math.inf for weight in weights):
        raise DataError("a competence is no probability, or a weight no number from 0", hint="Mend the inputs.")
    exact = [Fraction(weight) for weight in weights]
    sums: dict[Fraction, float] = {Fraction(0): 1.0}
    for p, weight in zip(competence, exact, strict=True):
        after: defaultdict[Fraction, float] = defaultdict(float)
        for right, mass in sums.items():
            after[right + weight] += mass * p
            after[right] += mass * (1 - p)
        sums = after
    half = sum(exact, Fraction(0)) / 2
    return math.fsum(mass * (1.0 if right > half else 0.5) for right, mass in sums.items() if right >= half)


def jury_accuracy(*, p: float, n: int, rho: float = 0.0, tie: Tie = "half") -> float:
    """Return how often a majority of n equally competent voters is right (Condorcet 1785).

    Independent voters: the upper tail of a binomial law. With correlation: of the beta-binomial law of the same mean,
    where two voters' votes correlate by ``rho`` (Ladha 1992).

    Args:
        p: Probability that one voter is right, in [0, 1].
        n: Number of voters, at least 1.
        rho: Correlation between two voters, in [0, 1]; at 1 all vote alike.
        tie: What a tie of an even number is worth: ``half``, which equals n - 1 voters when independent, or ``lost``.

    Raises:
        DataError: A number is out of its range.

    Example:
        >>> round(jury_accuracy(p=0.6, n=3), 6), round(jury_accuracy(p=0.6, n=101, rho=0.2), 6)
        (0.648, 0.669804)
    """
    if not (0 <= p <= 1 and 0 <= rho <= 1 and n >= 1):
        raise DataError(f"p {p}, rho {rho}, n {n}: out of range", hint="p and rho lie in [0, 1]; n is at least 1.")
    if rho == 1 or p in {0.0, 1.0}:
        return float(p)
    right, wrong, any_ = (_log_chances(share, rho, n) for share in (p, 1 - p, 1.0))
    chance = [
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + right[k] + wrong[n - k] - any_[n])
        for k in range(n + 1)
    ]
    level = chance[n // 2] / 2 if n % 2 == 0 and tie == "half" else 0.0
    return math.fsum([level, *chance[n // 2 + 1 :]])


def _log_chances(share: float, rho: float, n: int) -> list[float]:
    """Return the logarithm of the product of share (1 - rho) + i rho over i < k, for k = 0 to n (Polya's urn)."""
    return list(accumulate((math.log(share * (1 - rho) + i * rho) for i in range(n)), initial=0.0))
