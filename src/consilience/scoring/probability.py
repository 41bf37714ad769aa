"""Scores of a probability of yes against what happened; one number per case, and what a mean score is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.scoring.point import FloatArray

IntArray = npt.NDArray[np.intp]

LOG_CLIP: Final = 1e-6
"""Before a logarithm a probability is held this far from 0 and 1: one certain mistake would be infinitely bad."""


def brier(*, p: FloatArray, y: FloatArray) -> FloatArray:
    r"""Return the Brier score ``(p - y)^2`` of each case; 0 is best, always saying one half scores 0.25.

    Range: [0, 1]. Proper.

    Reference: Brier 1950.

    Raises:
        DataError: Shapes differ, a number is no probability, or an outcome is neither 0 nor 1.

    Example:
        >>> brier(p=np.array([0.5, 1.0]), y=np.array([1.0, 0.0])).tolist()
        [0.25, 1.0]
    """
    check_binary(p, y)
    return (p - y) ** 2


def brier_index(score: float) -> float:
    r"""Return ``100 (1 - sqrt(score))`` of a mean Brier score: 100 is best, always saying one half gives 50.

    Example:
        >>> brier_index(0.25)
        50.0
    """
    return 100.0 * (1.0 - float(np.sqrt(score)))


@dataclass(frozen=True)
class LogScores:
    """The log score of each case, and how many probabilities had to be moved for it.

    Attributes:
        each: ``-ln`` of what was given to the outcome, shape (n,).
        n_clipped: Probabilities held at ``eps`` or ``1 - eps``.
        eps: The bound.
    """

    each: FloatArray
    n_clipped: int
    eps: float


def log_score(*, p: FloatArray, y: FloatArray, eps: float = LOG_CLIP) -> LogScores:
    r"""Return the log score ``-ln P(outcome)`` of each case; 0 is best, always saying one half scores 0.693.

    Range: [0, -ln eps]. Proper but for the clip, which is counted.

    Reference: Good 1952.

    Raises:
        DataError: As `brier`, or eps is outside (0, 1/2).

    Example:
        >>> made = log_score(p=np.array([0.9, 0.0]), y=np.array([1.0, 1.0]))
        >>> made.each.round(3).tolist(), made.n_clipped
        ([0.105, 13.816], 1)
    """
    check_binary(p, y)
    if not 0 < eps < 0.5:
        raise DataError(f"a log score clipped at {eps}", hint="Clip at a number in (0, 0.5).")
    held = np.clip(p, eps, 1 - eps)
    each: FloatArray = -np.log(np.where(y == 1, held, 1 - held))
    return LogScores(each=each, n_clipped=int((held != p).sum()), eps=eps)


def baseline_score(*, log_scores: LogScores) -> FloatArray:
    r"""Return the tournament baseline score ``100 (1 + log2 P(outcome))``: 100 is best, one half scores 0.

    Range: (-inf, 100]; bounded below by the clip of the log scores.

    Reference: the public scoring rules of Metaculus.

    Example:
        >>> half = log_score(p=np.array([0.5]), y=np.array([1.0]))
        >>> baseline_score(log_scores=half).tolist()
        [0.0]
    """
    scores: FloatArray = 100.0 * (1.0 - log_scores.each / np.log(2.0))
    return scores


def peer_score(*, own: FloatArray, others: FloatArray) -> FloatArray:
    r"""Return the peer score ``100 (ln P(outcome) - mean of the others' ln P(outcome))``; positive beats the others.

    Args:
        own: Log scores of one forecaster, shape (n,).
        others: Mean log score of everybody else who answered each case, shape (n,).

    Range: any real number; over all forecasters of a case the sum is 0.

    Reference: the public scoring rules of Metaculus.

    Raises:
        DataError: Shapes differ, or a number is not finite.

    Example:
        >>> peer_score(own=np.array([0.25]), others=np.array([0.5])).tolist()
        [25.0]
    """
    if own.shape != others.shape or not (np.isfinite(own).all() and np.isfinite(others).all()):
        raise DataError(
            f"{others.shape} scores of peers for {own.shape}", hint="Leave out cases that nobody else answered."
        )
    peers: FloatArray = 100.0 * (others - own)
    return peers


@dataclass(frozen=True)
class Corp:
    """A mean Brier score in three parts: ``score = mcb - dsc + unc`` exactly.

    Attributes:
        score: Mean Brier score.
        mcb: Miscalibration: what recalibration would gain; 0 is best. A perfect forecaster's is above 0 in a sample.
        dsc: Discrimination: how much better the recalibrated forecast is than the base rate; higher is better.
        unc: Uncertainty: the score of always saying the base rate; nobody's merit.
    """

    score: float
    mcb: float
    dsc: float
    unc: float


def corp(*, p: FloatArray, y: FloatArray) -> Corp:
    r"""Return the CORP decomposition of the mean Brier score, free of bins.

    Equation: with ``q`` the isotonic regression of y on p and ``r`` the base rate, ``mcb = S(p) - S(q)``,
    ``dsc = S(r) - S(q)``, ``unc = S(r)``.

    Reference: Dimitriadis, Gneiting & Jordan 2021.

    Raises:
        DataError: As `brier`, or there are no cases.

    Example:
        >>> made = corp(p=np.array([0.1, 0.4, 0.6, 0.9]), y=np.array([0.0, 1, 0, 1]))
        >>> round(made.mcb, 4), made.dsc, made.unc
        (0.06, 0.125, 0.25)
    """
    score = float(_some(p, y).mean())
    _, codes, counts = np.unique(p, return_inverse=True, return_counts=True)
    recalibrated = pav(y=y, codes=codes, counts=counts)[codes]
    best = float(((recalibrated - y) ** 2).mean())
    unc = float(y.mean() * (1 - y.mean()))
    return Corp(score=score, mcb=score - best, dsc=unc - best, unc=unc)


def pav(*, y: FloatArray, codes: IntArray, counts: IntArray) -> FloatArray:
    """Return for each group the rising values nearest to outcomes in squared error, by pooling adjacent violators.

    Args:
        y: Outcomes, shape (n,).
        codes: Group of each outcome; groups are counted from 0 in order of what was stated, ties in one group.
        counts: Cases in each group, each at least 1.

    Reference: Ayer et al. 1955.

    Example:
        >>> y, codes = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0, 1, 2, 2])
        >>> pav(y=y, codes=codes, counts=np.array([1, 1, 2])).tolist()
        [0.5, 0.5, 1.0]
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - scipy is loaded where it is used

    weights = counts.astype(np.float64)
    fitted: FloatArray = isotonic_regression(np.bincount(codes, weights=y) / weights, weights=weights).x
    return fitted


@dataclass(frozen=True)
class Murphy:
    """A mean Brier score in five parts: ``score = rel - res + unc + wbv - wbc`` exactly.

    Attributes:
        score: Mean Brier score.
        rel: Reliability: squared distance of stated means from observed shares; 0 is best.
        res: Resolution: squared distance of observed shares from the base rate; higher is better.
        unc: Uncertainty: ``r (1 - r)`` of the base rate.
        wbv: Variance of what was stated within bins; 0 when each bin holds one value.
        wbc: Twice the covariance of stated and observed within bins; 0 when each bin holds one value.
    """

    score: float
    rel: float
    res: float
    unc: float
    wbv: float
    wbc: float


def murphy(*, p: FloatArray, y: FloatArray, bins: int | None = None) -> Murphy:
    r"""Return Murphy's decomposition of the mean Brier score.

    Without bins the groups are the distinct stated values: then ``score = rel - res + unc`` (three terms). In bins of
    several values that does not hold, and the variance and covariance within bins complete it.

    Args:
        p: Stated probabilities, shape (n,).
        y: Outcomes.
        bins: Equal-width bins ``(a, b]``, the first closed at 0; None groups by distinct values.

    Reference: Murphy 1973; Stephenson, Coelho & Jolliffe 2008. Degenerate: values that are all distinct are their own
    groups, so rel and res say nothing; use `corp`.

    Raises:
        DataError: As `brier`, there are no cases, or fewer than one bin is asked for.

    Example:
        >>> made = murphy(p=np.array([0.2, 0.2, 0.8, 0.8]), y=np.array([0.0, 1, 1, 1]))
        >>> round(made.rel, 4), round(made.res, 4), made.unc, made.wbv
        (0.065, 0.0625, 0.1875, 0.0)
    """
    score = float(_some(p, y).mean())
    codes = np.unique(p, return_inverse=True)[1] if bins is None else width_bins(p=p, bins=bins)
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    share = counts / p.size
    stated, seen = np.bincount(codes, weights=p) / counts, np.bincount(codes, weights=y) / counts
    if bins is None:
        stated = np.unique(p)
    base = float(y.mean())
    off, hit = p - stated[codes], y - seen[codes]
    return Murphy(
        score=score,
        rel=float((share * (stated - seen) ** 2).sum()),
        res=float((share * (seen - base) ** 2).sum()),
        unc=base * (1 - base),
        wbv=float((off**2).mean()),
        wbc=float(2 * (off * hit).mean()),
    )


def width_bins(*, p: FloatArray, bins: int) -> IntArray:
    """Return the equal-width bin ``(a, b]`` of each probability, counted from 0; the first is closed at 0.

    Raises:
        DataError: Fewer than one bin.

    Example:
        >>> width_bins(p=np.array([0.0, 0.1, 0.3, 1.0]), bins=10).tolist()
        [0, 0, 2, 9]
    """
    if bins < 1:
        raise DataError(f"{bins} bins", hint="Ask for at least one; 10 is usual.")
    # Edges are the floats nearest to i / bins, so that 0.3 counts as an edge although 3 * 0.1 exceeds it.
    found: IntArray = np.searchsorted(np.arange(1, bins) / bins, p, side="left")
    return found


def sharpness(*, p: FloatArray) -> FloatArray:
    r"""Return how far each probability is from saying nothing, ``|p - 1/2|``; worth having only with calibration.

    Range: [0, 0.5].

    Raises:
        DataError: A number is no probability.

    Example:
        >>> sharpness(p=np.array([0.5, 0.0])).tolist()
        [0.0, 0.5]
    """
    check_binary(p, np.zeros_like(p))
    return np.abs(p - 0.5)


def skill(*, score: float, reference: float) -> float | Undefined:
    r"""Return ``1 - score / reference`` of mean losses on the same cases: 1 is best, 0 equals the reference.

    Range: (-inf, 1]. Degenerate: undefined where the reference is perfect.

    Raises:
        DataError: A score is negative or not finite.

    Example:
        >>> skill(score=0.1, reference=0.2), skill(score=0.1, reference=0.0).reason
        (0.5, 'the reference makes no error')
    """
    if not (0 <= score < np.inf and 0 <= reference < np.inf):
        raise DataError(f"a skill of {score} against {reference}", hint="Give mean losses, finite and not negative.")
    return Undefined("the reference makes no error") if reference == 0 else 1.0 - score / reference


def check_binary(p: FloatArray, y: FloatArray) -> None:
    """Raise where these are not probabilities and their outcomes.

    Raises:
        DataError: Shapes differ or are no rows, a number is no probability, or an outcome is neither 0 nor 1.

    Example:
        >>> check_binary(np.array([0.5]), np.array([1.0]))
    """
    if p.ndim != 1 or p.shape != y.shape:
        raise DataError(f"{p.shape} probabilities for {y.shape} outcomes", hint="Give one outcome per probability.")
    bad = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if bad.size:
        raise DataError(
            f"the number in row {bad[0]} is {p[bad[0]]}, no probability",
            hint="Leave out cases without an answer and count them by kind.",
        )
    bad = np.flatnonzero(~np.isin(y, (0.0, 1.0)))
    if bad.size:
        raise DataError(
            f"the outcome in row {bad[0]} is {y[bad[0]]}, neither 0 nor 1", hint="Leave out what has not resolved."
        )


def _some(p: FloatArray, y: FloatArray) -> FloatArray:
    if p.size == 0:
        raise DataError("a summary of no cases", hint="Report that no case was answered instead.")
    return brier(p=p, y=y)
