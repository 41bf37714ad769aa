"""Scores of quantiles against the truth; give logarithms of both for prices. Each returns one number per case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from consilience.core.answers import LEVELS
from consilience.errors import DataError
from consilience.scoring.point import FloatArray

_SYMMETRIC: Final = 1e-12


def pinball(*, quantile: FloatArray, outcome: FloatArray, level: float) -> FloatArray:
    r"""Return the pinball loss of a quantile, ``max(t (y - q), (t - 1)(y - q))``; 0 is best.

    Range: [0, inf), in the unit of the outcome. Proper: its expectation is least at the true quantile.

    Reference: Koenker & Bassett 1978.

    Raises:
        DataError: Shapes differ, a number is not finite, or the level is outside (0, 1).

    Example:
        >>> pinball(quantile=np.array([8.0, 10.0]), outcome=np.array([10.0, 10.0]), level=0.5).tolist()
        [1.0, 0.0]
    """
    if not 0 < level < 1:
        raise DataError(f"a quantile at level {level}", hint="Levels lie strictly between 0 and 1.")
    _fit(quantile, outcome, outcome.shape)
    miss = outcome - quantile
    return level * np.maximum(miss, 0) + (1 - level) * np.maximum(-miss, 0)


@dataclass(frozen=True)
class WeightedIntervalScore:
    """The weighted interval score of each case and what it consists of.

    Attributes:
        score: ``dispersion + overprediction + underprediction``; 0 is best.
        dispersion: Cost of width.
        overprediction: Cost of outcomes below the intervals.
        underprediction: Cost of outcomes above the intervals.
    """

    score: FloatArray
    dispersion: FloatArray
    overprediction: FloatArray
    underprediction: FloatArray


def wis5(*, quantiles: FloatArray, outcome: FloatArray, levels: tuple[float, ...] = LEVELS) -> WeightedIntervalScore:
    r"""Return the weighted interval score over five quantiles, decomposed. It is not the CRPS and never called so.

    ``WIS = 1/(K + 1/2) (1/2 |y - m| + sum_k alpha_k/2 IS_k)`` over K = 2 central intervals, which equals the mean over
    the levels of twice the pinball loss. The cost of each pair of quantiles falls into its width, the outcome's
    distance below it (overprediction) or above it (underprediction).

    Args:
        quantiles: Non-decreasing rows, shape (n, 2K+1); logarithms for prices.
        outcome: Shape (n,), in the same space.
        levels: Symmetric about the median, which is among them.

    Range: [0, inf), in the unit of the outcome.

    Reference: Bracher et al. 2021, scored on logs after Bosse et al. 2023.

    Raises:
        DataError: Shapes do not fit, a number is not finite, quantiles cross, or the levels are not symmetric.

    Example:
        >>> one = wis5(quantiles=np.array([[-1.0, 0, 1, 2, 3]]), outcome=np.array([1.0]),
        ...            levels=(0.1, 0.25, 0.5, 0.75, 0.9))
        >>> round(float(one.score[0]), 9), float(one.overprediction[0])
        (0.36, 0.0)
    """
    tau = np.array(levels)
    half = tau.size // 2
    if tau.size % 2 == 0 or np.abs(tau + tau[::-1] - 1).max() > _SYMMETRIC or (np.diff(tau) <= 0).any():
        raise DataError(f"levels {levels} are not symmetric about 0.5", hint="Score central intervals and a median.")
    _fit(quantiles, outcome, (*outcome.shape, tau.size))
    if (np.diff(quantiles, axis=1) < 0).any():
        raise DataError("quantiles cross", hint="Sort fitted quantiles first and report the rate.")
    y = outcome[:, None]
    lower, median, upper = quantiles[:, :half], quantiles[:, half], quantiles[:, :half:-1]
    share = 2.0 / tau.size
    dispersion = share * (tau[:half] * (upper - lower)).sum(axis=1)
    over = share * (np.maximum(lower - y, 0).sum(axis=1) + 0.5 * np.maximum(median - outcome, 0))
    under = share * (np.maximum(y - upper, 0).sum(axis=1) + 0.5 * np.maximum(outcome - median, 0))
    return WeightedIntervalScore(
        score=dispersion + over + under, dispersion=dispersion, overprediction=over, underprediction=under
    )


def _fit(quantiles: FloatArray, outcome: FloatArray, shape: tuple[int, ...]) -> None:
    if quantiles.shape != shape or not (np.isfinite(quantiles).all() and np.isfinite(outcome).all()):
        raise DataError(
            f"quantiles {quantiles.shape} and outcomes {outcome.shape} do not fit or are not finite",
            hint="Give one row of quantiles per outcome; leave out cases without an answer and count them.",
        )
