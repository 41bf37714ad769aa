"""Summaries of scores over cases; every one says over how many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consilience.errors import DataError
from consilience.scoring.point import BoolArray, FloatArray, absolute_percentage_error, log_error, within


@dataclass(frozen=True)
class PointSummary:
    """How good a set of estimates was.

    Attributes:
        n: Cases.
        mdape: Median absolute percentage error (an even number of cases averages the two middle ones); 0 is best.
        ppe10: Share of cases within 10 %; 1 is best.
        ppe20: Share of cases within 20 %; 1 is best.
        rmse_log: Root mean square log error; 0 is best.
        mae_log: Mean absolute log error; 0 is best.
        bias: Mean log error; 0 is best, positive is too high.
    """

    n: int
    mdape: float
    ppe10: float
    ppe20: float
    rmse_log: float
    mae_log: float
    bias: float


def summarise_points(*, estimate: FloatArray, truth: FloatArray) -> PointSummary:
    """Return the point summary of the cases that have an answer; non-answers are counted elsewhere, by kind.

    Raises:
        DataError: No cases, shapes differ, or a number is not finite and positive.

    Example:
        >>> round(summarise_points(estimate=np.array([110.0, 100.0]), truth=np.array([100.0, 100.0])).mdape, 9)
        0.05
    """
    if estimate.size == 0:
        raise DataError("a summary of no cases", hint="Report that no case was answered instead.")
    ape = absolute_percentage_error(estimate=estimate, truth=truth)
    error = log_error(estimate=estimate, truth=truth)
    return PointSummary(
        n=estimate.size,
        mdape=float(np.median(ape)),
        ppe10=float(within(ape=ape, limit=0.10).mean()),
        ppe20=float(within(ape=ape, limit=0.20).mean()),
        rmse_log=float(np.sqrt((error**2).mean())),
        mae_log=float(np.abs(error).mean()),
        bias=float(error.mean()),
    )


@dataclass(frozen=True)
class Share:
    """A share of cases with its interval.

    Attributes:
        value: ``k / n``.
        k: Cases that have the property.
        n: Cases.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    value: float
    k: int
    n: int
    low: float
    high: float


def share(*, hits: BoolArray, level: float = 0.95) -> Share:
    """Return a share, such as coverage, with the Wilson interval of independent cases.

    Raises:
        DataError: No cases, or the level is outside (0, 1).

    Example:
        >>> found = share(hits=np.array([True, True, False, True]))
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (0.75, 0.301, 0.954)
    """
    k, n = int(hits.sum()), int(hits.size)
    low, high = wilson(k=k, n=n, level=level)
    return Share(value=k / n, k=k, n=n, low=low, high=high)


def wilson(*, k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    r"""Return Wilson's score interval of a share: the shares that a score test at ``level`` would not reject.

    Reference: Wilson 1927; Brown, Cai & DasGupta 2001. Degenerate: k = 0 gives a lower end of 0, k = n an upper of 1.

    Raises:
        DataError: Not ``0 <= k <= n`` with n >= 1, or the level is outside (0, 1).

    Example:
        >>> [round(end, 4) for end in wilson(k=81, n=263)]
        [0.2553, 0.3662]
    """
    from scipy.special import ndtri  # noqa: PLC0415 - scipy is loaded where it is used

    _check_counts(k, n, level)
    z = float(ndtri(0.5 + level / 2))
    centre = (k + z * z / 2) / (n + z * z)
    half = z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


def clopper_pearson(*, k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    r"""Return the exact binomial interval of a share, which never covers less than ``level``: for audits.

    Reference: Newcombe 1998. Degenerate: k = 0 gives a lower end of 0, k = n an upper of 1.

    Raises:
        DataError: Not ``0 <= k <= n`` with n >= 1, or the level is outside (0, 1).

    Example:
        >>> [round(end, 4) for end in clopper_pearson(k=0, n=20)]
        [0.0, 0.1684]
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - scipy is loaded where it is used

    _check_counts(k, n, level)
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high


def _check_counts(k: int, n: int, level: float) -> None:
    if not (n >= 1 and 0 <= k <= n and 0 < level < 1):
        raise DataError(f"an interval for {k} of {n} cases at level {level}", hint="Count at least one case.")
