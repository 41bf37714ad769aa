"""Elementary scores, of which every proper score is a mixture; each returns one number per case for one threshold.

Whoever must act as soon as the truth lies above a threshold, and acts on the forecast, loses exactly the elementary
score of that threshold. A forecaster who loses less at every one of them is better under every proper score; where two
curves cross, the score that was chosen decides who is ahead.
"""

from __future__ import annotations

import math

import numpy as np

from consilience.errors import DataError
from consilience.scoring.point import FloatArray
from consilience.scoring.probability import check_binary


def elementary_probability(*, p: FloatArray, y: FloatArray, threshold: float) -> FloatArray:
    r"""Return the elementary score of each probability at a threshold; 0 is best.

    ``S_t(p, y) = t`` where ``p > t`` and ``y = 0`` (acted for nothing), ``1 - t`` where ``p <= t`` and ``y = 1`` (did
    not act), else 0: the loss of who acts above t, when acting costs t and pays 1.

    Range: [0, 1]; below t where y = 0 and at most 1 - t where y = 1. Proper. Twice its integral over t in (0, 1) is the
    Brier score, its integral weighted by ``1 / (t (1 - t))`` the log score.

    Degenerate: a probability equal to the threshold does not act.

    Reference: Schervish 1989; Ehm, Gneiting, Jordan & Krüger 2016, twice their score of the mean at level 1/2.

    Args:
        p: Stated probabilities, shape (n,).
        y: Outcomes, 0 or 1.
        threshold: t, in (0, 1).

    Raises:
        DataError: As `brier`, or the threshold is outside (0, 1).

    Example:
        >>> p, y = np.array([0.9, 0.9, 0.1, 0.1]), np.array([1.0, 0.0, 1.0, 0.0])
        >>> elementary_probability(p=p, y=y, threshold=0.25).tolist()
        [0.0, 0.25, 0.75, 0.0]
    """
    check_binary(p, y)
    if not 0 < threshold < 1:
        raise DataError(f"an elementary score at {threshold}", hint="Probabilities have thresholds in (0, 1).")
    acts = p > threshold
    return np.where(acts & (y == 0), threshold, 0.0) + np.where(~acts & (y == 1), 1 - threshold, 0.0)


def elementary_quantile(*, quantile: FloatArray, outcome: FloatArray, level: float, threshold: float) -> FloatArray:
    r"""Return the elementary score of each quantile at a threshold; 0 is best.

    ``S_t(q, y) = 1 - level`` where ``y <= t < q``, ``level`` where ``q <= t < y``, else 0. At level 1/2 it is half the
    question whether forecast and truth lie on different sides of t.

    Range: {0, level, 1 - level}. Proper. Its integral over all t is the pinball loss. Both sides and t may be put
    through one rising function, such as the logarithm, without any change.

    Degenerate: the threshold is not above itself, so a quantile or an outcome that equals it lies below.

    Reference: Ehm, Gneiting, Jordan & Krüger 2016.

    Args:
        quantile: Stated quantiles, shape (n,).
        outcome: What happened, in the same unit.
        level: Of the quantile, in (0, 1).
        threshold: t, in the same unit.

    Raises:
        DataError: Shapes differ, a number is not finite, or the level is outside (0, 1).

    Example:
        >>> said, paid = np.array([120.0, 80.0, 120.0]), np.array([90.0, 110.0, 130.0])
        >>> elementary_quantile(quantile=said, outcome=paid, level=0.5, threshold=100.0).tolist()
        [0.5, 0.5, 0.0]
    """
    if not 0 < level < 1:
        raise DataError(f"a quantile at level {level}", hint="Levels lie strictly between 0 and 1.")
    numbers = np.isfinite(quantile).all() and np.isfinite(outcome).all() and math.isfinite(threshold)
    if quantile.shape != outcome.shape or not numbers:
        raise DataError(
            f"quantiles {quantile.shape}, outcomes {outcome.shape} and the threshold {threshold} do not fit or are not "
            "finite",
            hint="Leave out cases without an answer and count them.",
        )
    above, true = quantile > threshold, outcome > threshold
    return np.where(above & ~true, 1 - level, 0.0) + np.where(~above & true, level, 0.0)
