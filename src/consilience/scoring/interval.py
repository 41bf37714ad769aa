"""Scores of one central interval against the truth; each returns one number per case."""

from __future__ import annotations

import numpy as np

from consilience.errors import DataError
from consilience.scoring.point import BoolArray, FloatArray


def covered(*, lower: FloatArray, upper: FloatArray, outcome: FloatArray) -> BoolArray:
    """Return whether the outcome lies in the closed interval.

    Raises:
        DataError: Shapes differ, a number is not finite, or an interval is upside down.

    Example:
        >>> covered(lower=np.array([1.0, 1.0]), upper=np.array([2.0, 2.0]), outcome=np.array([2.0, 3.0])).tolist()
        [True, False]
    """
    _sound(lower, upper)
    _same(lower, outcome)
    return (lower <= outcome) & (outcome <= upper)


def width(*, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return ``upper - lower``, >= 0; of logarithms it is the width relative to the price.

    Raises:
        DataError: Shapes differ, a number is not finite, or an interval is upside down.

    Example:
        >>> width(lower=np.array([1.0]), upper=np.array([2.5])).tolist()
        [1.5]
    """
    _sound(lower, upper)
    return upper - lower


def interval_score(*, lower: FloatArray, upper: FloatArray, outcome: FloatArray, alpha: float) -> FloatArray:
    r"""Return the interval score ``(u - l) + 2/alpha ((l - y)+ + (y - u)+)``; 0 is best.

    Args:
        lower: The alpha/2 quantile.
        upper: The 1 - alpha/2 quantile.
        outcome: What happened.
        alpha: Probability outside a nominal interval, in (0, 1).

    Range: [0, inf), in the unit of the outcome. Proper.

    Reference: Gneiting & Raftery 2007.

    Raises:
        DataError: Shapes differ, a number is not finite, an interval is upside down, or alpha is outside (0, 1).

    Example:
        >>> interval_score(lower=np.array([0.0]), upper=np.array([2.0]), outcome=np.array([3.0]), alpha=0.5).tolist()
        [6.0]
    """
    if not 0 < alpha < 1:
        raise DataError(f"an interval with alpha {alpha}", hint="Alpha lies strictly between 0 and 1.")
    _sound(lower, upper)
    _same(lower, outcome)
    miss = np.maximum(lower - outcome, 0) + np.maximum(outcome - upper, 0)
    return (upper - lower) + 2.0 / alpha * miss


def _same(first: FloatArray, second: FloatArray) -> None:
    if first.shape != second.shape or not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise DataError(
            f"arrays {first.shape} and {second.shape} do not fit or are not finite",
            hint="Leave out cases without an answer and count them by kind.",
        )


def _sound(lower: FloatArray, upper: FloatArray) -> None:
    _same(lower, upper)
    if (lower > upper).any():
        raise DataError("an interval's lower end lies above its upper", hint="Sort fitted quantiles and report it.")
