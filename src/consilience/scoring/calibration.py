"""Whether stated probabilities come true as often as they say.

Every binned or smoothed calibration error is above 0 for a perfect forecaster in a finite sample, so the summaries
here carry what a perfect forecaster would get: the mean over outcomes drawn from the stated probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.scoring.point import FloatArray
from consilience.scoring.probability import IntArray, check_binary, pav, width_bins

Scheme = Literal["width", "mass"]

_SMOOTH_GRID: Final = 1024
_SMOOTH_STEPS: Final = 24


@dataclass(frozen=True)
class BinnedError:
    """Distances of what was stated from what was seen, over bins.

    Attributes:
        ece: Mean absolute distance, each bin weighing its cases; 0 is best.
        mce: Largest distance.
        rmsce: Root mean square distance.
        debiased: Root of the mean squared distance less its sampling noise, held at 0; undefined where a bin holds a
            single case, whose noise cannot be told.
        n_bins: Bins that hold a case.
    """

    ece: float
    mce: float
    rmsce: float
    debiased: float | Undefined
    n_bins: int


def binned_error(*, p: FloatArray, y: FloatArray, bins: int = 10, scheme: Scheme = "width") -> BinnedError:
    r"""Return the expected calibration error and its relatives. Never report it without its null: see `calibration`.

    Equation: ``ece = sum_b n_b/n |mean p - mean y|``; debiased: ``sum_b n_b/n ((mean p - mean y)^2 - m(1-m)/(n_b-1))``.

    Args:
        p: Stated probabilities, shape (n,).
        y: Outcomes.
        bins: How many.
        scheme: ``width``: equal-width bins ``(a, b]``, the first closed at 0. ``mass``: as many cases in each, as far
            as equal values, which are never parted, allow.

    Reference: Naeini, Cooper & Hauskrecht 2015; debiased, Kumar, Liang & Ma 2019.

    Raises:
        DataError: No cases, shapes differ, a number is no probability, an outcome neither 0 nor 1, or no bins.

    Example:
        >>> made = binned_error(p=np.array([0.2, 0.2, 0.8, 0.8]), y=np.array([0.0, 1, 1, 1]), bins=5)
        >>> round(made.ece, 3), round(made.mce, 3)
        (0.25, 0.3)
    """
    _check(p, y)
    codes, counts = _bins(p, bins, scheme)
    return _over_bins(p, y, codes, counts)


def _bins(p: FloatArray, bins: int, scheme: Scheme) -> tuple[IntArray, IntArray]:
    if scheme == "width":
        raw = width_bins(p=p, bins=bins)
    else:
        if bins < 1:
            raise DataError(f"{bins} bins", hint="Ask for at least one; 10 is usual.")
        # Each distinct value goes where the middle of its cases falls.
        _, at, sizes = np.unique(p, return_inverse=True, return_counts=True)
        raw = (((np.cumsum(sizes) - sizes / 2) * bins) // p.size).astype(np.intp)[at]
    _, codes, counts = np.unique(raw, return_inverse=True, return_counts=True)
    return codes, counts


def _over_bins(p: FloatArray, y: FloatArray, codes: IntArray, counts: IntArray) -> BinnedError:
    share, seen = counts / p.size, np.bincount(codes, weights=y) / counts
    gap = np.abs(np.bincount(codes, weights=p) / counts - seen)
    debiased: float | Undefined = Undefined("a bin holds a single case")
    if counts.min() > 1:
        noise = seen * (1 - seen) / (counts - 1)
        debiased = float(np.sqrt(max(float((share * (gap**2 - noise)).sum()), 0.0)))
    return BinnedError(
        ece=float((share * gap).sum()),
        mce=float(gap.max()),
        rmsce=float(np.sqrt((share * gap**2).sum())),
        debiased=debiased,
        n_bins=counts.size,
    )


def smooth_error(*, p: FloatArray, y: FloatArray) -> float:
    r"""Return the smooth calibration error: free of bins, continuous in what was stated; 0 is best.

    Equation: with the residuals ``y - p`` smoothed by a Gaussian of width s, reflected at 0 and 1, ``E(s)`` is the
    integral of the absolute result, and the error is the s at which ``E(s) = s``. Smoothing is done on a grid of 1,024
    cells, so widths below about 0.001 are not told apart.

    Reference: Błasiok & Nakkiran 2024.

    Raises:
        DataError: No cases, shapes differ, a number is no probability, or an outcome is neither 0 nor 1.

    Example:
        >>> round(smooth_error(p=np.full(100, 0.5), y=np.ones(100)), 2)
        0.5
    """
    _check(p, y)
    # Each residual is shared by the two cells whose middles it lies between; beyond the outer middles it has one.
    at = np.clip(p * _SMOOTH_GRID - 0.5, 0, _SMOOTH_GRID - 1)
    cell = np.minimum(at.astype(np.intp), _SMOOTH_GRID - 2)
    residuals = np.bincount(cell, weights=(y - p) * (cell + 1 - at), minlength=_SMOOTH_GRID) / p.size
    residuals += np.bincount(cell + 1, weights=(y - p) * (at - cell), minlength=_SMOOTH_GRID) / p.size
    # Reflected at both ends the residuals are even and periodic, so Gaussian smoothing multiplies their frequencies.
    spectrum = np.fft.rfft(np.concatenate([residuals, residuals[::-1]]))
    squares = (np.pi * np.arange(spectrum.size)) ** 2 / 2
    low, high = 0.0, 1.0
    for _ in range(_SMOOTH_STEPS):
        width = (low + high) / 2
        smoothed = np.fft.irfft(spectrum * np.exp(-squares * width**2), n=2 * _SMOOTH_GRID)
        low, high = (width, high) if np.abs(smoothed[:_SMOOTH_GRID]).sum() > width else (low, width)
    return (low + high) / 2


def null_mean(
    *,
    p: FloatArray,
    statistic: Callable[[FloatArray], float],
    rng: np.random.Generator,
    n_resamples: int = 1000,
) -> float:
    """Return what a statistic is on average when the stated probabilities are exactly right.

    Args:
        p: Stated probabilities, shape (n,).
        statistic: From outcomes, 0 or 1, shape (n,), to a number.
        rng: Draws the outcomes.
        n_resamples: How many samples of outcomes, >= 1.

    Raises:
        DataError: A number is no probability, or there are no cases or samples.

    Example:
        >>> share = lambda y: float(y.mean())
        >>> made = null_mean(p=np.full(50, 0.5), statistic=share, rng=np.random.default_rng(1), n_resamples=100)
        >>> round(made, 1)
        0.5
    """
    _check(p, np.zeros_like(p))
    if n_resamples < 1:
        raise DataError(f"a null mean of {n_resamples} samples", hint="Draw at least one; 1,000 is usual.")
    total = 0.0
    for _ in range(n_resamples):
        total += statistic((rng.random(p.size) < p).astype(np.float64))
    return total / n_resamples


@dataclass(frozen=True)
class Beside:
    """A number that is never 0, beside what a perfect forecaster gets.

    Attributes:
        value: In the sample.
        null: Its mean when the stated probabilities are exactly right.
    """

    value: float
    null: float


@dataclass(frozen=True)
class Calibration:
    """Calibration errors with their nulls; 0 is best, and no worse than the null is as good as a sample can tell.

    Attributes:
        n: Cases.
        n_resamples: Samples behind each null.
        ece: Expected calibration error over equal-width bins.
        ece_mass: The same over bins of equally many cases.
        mce: Largest distance over equal-width bins.
        smooth: Smooth calibration error.
        mcb: Miscalibration of the CORP decomposition.
        debiased: Debiased root mean square distance over bins of equally many cases; its null is 0 by construction.
    """

    n: int
    n_resamples: int
    ece: Beside
    ece_mass: Beside
    mce: Beside
    smooth: Beside
    mcb: Beside
    debiased: float | Undefined


def calibration(
    *, p: FloatArray, y: FloatArray, rng: np.random.Generator, bins: int = 10, n_resamples: int = 1000
) -> Calibration:
    """Return the calibration errors of a forecaster, each beside its null from the same draws of outcomes.

    Args:
        p: Stated probabilities, shape (n,).
        y: Outcomes.
        rng: Draws outcomes from the stated probabilities.
        bins: Of the binned errors.
        n_resamples: Samples behind each null, >= 1.

    Reference: Bröcker & Smith 2007.

    Raises:
        DataError: As `binned_error`, or there are no samples.

    Example:
        >>> p = np.tile([0.2, 0.8], 25)
        >>> made = calibration(p=p, y=p.round(), rng=np.random.default_rng(1), n_resamples=50)
        >>> round(made.ece.value, 2), made.ece.null < 0.1
        (0.2, True)
    """
    _check(p, y)
    if n_resamples < 1:
        raise DataError(f"nulls of {n_resamples} samples", hint="Draw at least one; 1,000 is usual.")
    by_width, by_mass = _bins(p, bins, "width"), _bins(p, bins, "mass")
    _, codes, counts = np.unique(p, return_inverse=True, return_counts=True)

    def every(outcomes: FloatArray) -> tuple[float, ...]:
        wide, even = _over_bins(p, outcomes, *by_width), _over_bins(p, outcomes, *by_mass)
        recalibrated = pav(y=outcomes, codes=codes, counts=counts)[codes]
        mcb = float(((p - outcomes) ** 2 - (recalibrated - outcomes) ** 2).mean())
        return wide.ece, even.ece, wide.mce, smooth_error(p=p, y=outcomes), mcb

    drawn = [every((rng.random(p.size) < p).astype(np.float64)) for _ in range(n_resamples)]
    nulls = np.array(drawn).mean(axis=0).tolist()
    ece, ece_mass, mce, smooth, mcb = (Beside(*pair) for pair in zip(every(y), nulls, strict=True))
    return Calibration(
        n=p.size,
        n_resamples=n_resamples,
        ece=ece,
        ece_mass=ece_mass,
        mce=mce,
        smooth=smooth,
        mcb=mcb,
        debiased=_over_bins(p, y, *by_mass).debiased,
    )


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: what was seen for each stated probability, and the band of a perfect forecaster.

    Attributes:
        stated: The distinct stated probabilities, rising.
        count: Cases that stated each.
        seen: Share that came true, smoothed to rise: the isotonic regression.
        low: Lower end of the consistency band around the diagonal.
        high: Upper end.
        level: Pointwise coverage of the band.
        n_resamples: Samples behind it.
    """

    stated: FloatArray
    count: IntArray
    seen: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    n_resamples: int


def reliability(
    *, p: FloatArray, y: FloatArray, rng: np.random.Generator, level: float = 0.9, n_resamples: int = 1000
) -> Reliability:
    """Return the CORP reliability diagram with its consistency band.

    The band holds the regression of outcomes drawn from the stated probabilities themselves: a curve inside it is
    what a perfect forecaster's looks like. It is no confidence band of the curve.

    Args:
        p: Stated probabilities, shape (n,).
        y: Outcomes.
        rng: Draws outcomes from the stated probabilities.
        level: Pointwise coverage of the band, in (0, 1).
        n_resamples: Samples behind the band, >= 1.

    Reference: Dimitriadis, Gneiting & Jordan 2021.

    Raises:
        DataError: As `binned_error`, the level is outside (0, 1), or there are no samples.

    Example:
        >>> p = np.tile([0.2, 0.8], 25)
        >>> made = reliability(p=p, y=p.round(), rng=np.random.default_rng(1), n_resamples=50)
        >>> made.seen.tolist(), bool((made.high < 1).all())
        ([0.0, 1.0], True)
    """
    _check(p, y)
    if not 0 < level < 1 or n_resamples < 1:
        raise DataError(f"a band at level {level} from {n_resamples} samples", hint="Levels lie in (0, 1).")
    stated, codes, counts = np.unique(p, return_inverse=True, return_counts=True)
    drawn = np.array(
        [pav(y=(rng.random(p.size) < p).astype(np.float64), codes=codes, counts=counts) for _ in range(n_resamples)]
    )
    low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return Reliability(
        stated=stated,
        count=counts,
        seen=pav(y=y, codes=codes, counts=counts),
        low=low,
        high=high,
        level=level,
        n_resamples=n_resamples,
    )


def _check(p: FloatArray, y: FloatArray) -> None:
    check_binary(p, y)
    if p.size == 0:
        raise DataError("the calibration of no cases", hint="Report that no case was answered instead.")
