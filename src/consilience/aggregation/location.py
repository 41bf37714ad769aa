"""Location of a few numbers: the raw statistics behind the point rules, free of seats and records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError

FloatArray = npt.NDArray[np.float64]

VARIANCE_FLOOR: Final = 1e-6
SCALE_FLOOR: Final = 1e-4
T4_UPPER_QUARTILE: Final = 0.7406970841
"""Upper quartile of Student's t with 4 df: a median absolute deviation divided by it estimates the t scale."""
SECOND_MODE_RATIO: Final = 0.1
_TIE: Final = 1e-9
_STEPS: Final = 500


def trimmed_mean(*, x: FloatArray, proportion: float) -> float:
    r"""Return the mean of what is left after cutting ``int(proportion * n)`` values at each end.

    The floor is that of floating-point multiplication (scipy's convention): ``int(0.29 * 100)`` is 28.

    Reference: Tukey & McLaughlin 1963. Degenerate: with ``int(proportion * n) == 0`` it is the plain mean.

    Raises:
        DataError: No values, or the proportion is outside [0, 0.5).

    Example:
        >>> trimmed_mean(x=np.array([1.0, 2, 3, 4, 100]), proportion=0.2)
        3.0
    """
    if x.size == 0:
        raise DataError("a trimmed mean of no values", hint="Leave the item out and count it.")
    cut = trim_count(n=x.size, proportion=proportion)
    kept = np.sort(x)[cut : x.size - cut]
    return math.fsum(kept) / kept.size


def trim_count(*, n: int, proportion: float) -> int:
    """Return how many values are cut at each end; 0 means that trimming is inactive.

    Raises:
        DataError: The proportion is outside [0, 0.5).

    Example:
        >>> trim_count(n=4, proportion=0.2), trim_count(n=12, proportion=0.2)
        (0, 2)
    """
    if not 0 <= proportion < 0.5:
        raise DataError(f"a trim of {proportion} at each end", hint="Choose a proportion in [0, 0.5).")
    return int(proportion * n)


@dataclass(frozen=True)
class InverseVariancePool:
    """A pool weighted by precision.

    Attributes:
        value: The weighted mean.
        weights: Non-negative, sum 1, in the order given.
        pooled_variance: ``1 / sum(1/v)``: the variance of ``value`` if errors are independent, which a panel's are not.
        floored: Whether a variance was lifted to the floor.
    """

    value: float
    weights: tuple[float, ...]
    pooled_variance: float
    floored: bool


def inverse_variance_pool(*, x: FloatArray, variance: FloatArray, floor: float = VARIANCE_FLOOR) -> InverseVariancePool:
    r"""Return ``sum w_i x_i`` with ``w_i`` proportional to ``1/v_i``.

    Variances are floored at ``max(floor, 1e-3 * median(v))``, so that no member is trusted without bound. Biases are
    not removed.

    Reference: Bates & Granger 1969; fixed-effect meta-analysis. Degenerate: all variances zero → equal weights.

    Raises:
        DataError: No values, shapes differ, or a variance is negative or not finite.

    Example:
        >>> inverse_variance_pool(x=np.array([10.0, 12]), variance=np.array([1.0, 4])).value
        10.4
    """
    if x.size == 0 or x.shape != variance.shape:
        raise DataError(f"{x.shape} values with {variance.shape} variances", hint="Give one variance per value.")
    if not (np.isfinite(variance).all() and (variance >= 0).all()):
        raise DataError("a variance is negative or not finite", hint="Fit the weights again on validation errors.")
    lowest = max(floor, 1e-3 * float(np.median(variance)))
    precision = 1.0 / np.maximum(variance, lowest)
    total = math.fsum(precision)
    return InverseVariancePool(
        value=math.fsum(precision * x) / total,
        weights=tuple((precision / total).tolist()),
        pooled_variance=1.0 / total,
        floored=bool((variance < lowest).any()),
    )


@dataclass(frozen=True)
class StudentTLocation:
    """Where a Student-t likelihood of the location is highest.

    Attributes:
        value: The chosen mode.
        weights: Normalised weights of the values at that mode (what the mode is a mean of).
        modes: All local maxima, best first.
        second_mode: The best other mode when its likelihood is over a tenth of the best: the panel is split.
        floored: Whether a scale was lifted to the floor.
    """

    value: float
    weights: tuple[float, ...]
    modes: tuple[float, ...]
    second_mode: float | None
    floored: bool


def student_t_location(
    *, x: FloatArray, scale: FloatArray | float, df: float = 4.0, floor: float = SCALE_FLOOR
) -> StudentTLocation:
    r"""Return the maximum-likelihood location of ``x_i ~ t_df(mu, s_i)`` with known scales.

    Iteratively reweighted means with ``w_i = (df + 1) / (df + ((x_i - mu)/s_i)^2) / s_i^2``, started from the median
    and from every value, because the likelihood has several modes when groups lie more than ``2 sqrt(df) s`` apart (the
    median can then be a stationary minimum). Highest likelihood wins; a tie (within 1e-9) goes to the mode nearest the
    median, then to the lower one.

    Reference: Lange, Little & Taylor 1989. Degenerate: zero scales are floored; equal values give that value.

    Raises:
        DataError: No values, or a scale is negative or not finite.

    Example:
        >>> split = student_t_location(x=np.array([10.0, 10, 11, 11]), scale=0.05)
        >>> round(split.value, 4), [round(m, 4) for m in split.modes]
        (10.0101, [10.0101, 10.9899])
    """
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), x.shape)
    if x.size == 0 or not (np.isfinite(scales).all() and (scales >= 0).all()):
        raise DataError("a Student-t location needs values and finite scales >= 0", hint="Check the fitted scales.")
    s = np.maximum(scales, floor)
    centre = float(np.median(x))
    offsets = x - centre  # centred: the iteration then loses no digits to the level
    found = _stationary(offsets, s, df)
    chosen = _ranked(found, offsets, s, df)
    height = _log_likelihood(chosen, offsets, s, df)
    close = [m for m, h in zip(chosen[1:], height[1:], strict=True) if h - height[0] > math.log(SECOND_MODE_RATIO)]
    final = _weights(chosen[:1], offsets, s, df)[0]
    return StudentTLocation(
        value=centre + float(chosen[0]),
        weights=tuple((final / math.fsum(final)).tolist()),
        modes=tuple(centre + float(m) for m in chosen),
        second_mode=centre + float(close[0]) if close else None,
        floored=bool((scales < floor).any()),
    )


def _weights(mu: FloatArray, x: FloatArray, s: FloatArray, df: float) -> FloatArray:
    weights: FloatArray = (df + 1.0) / (df + ((x - mu[:, None]) / s) ** 2) / s**2
    return weights


def _log_likelihood(mu: FloatArray, x: FloatArray, s: FloatArray, df: float) -> FloatArray:
    total: FloatArray = -0.5 * (df + 1.0) * np.log1p(((x - mu[:, None]) / s) ** 2 / df).sum(axis=1)
    return total


def _stationary(x: FloatArray, s: FloatArray, df: float) -> FloatArray:
    mu = np.unique(np.append(x, 0.0))
    tolerance = 1e-13 * float(s.min())
    for _ in range(_STEPS):
        w = _weights(mu, x, s, df)
        moved = (w * x).sum(axis=1) / w.sum(axis=1)
        done = bool((np.abs(moved - mu) <= tolerance).all())
        mu = moved
        if done:
            break
    return mu


def _ranked(found: FloatArray, x: FloatArray, s: FloatArray, df: float) -> FloatArray:
    """Return the distinct local maxima among stationary points, best first."""
    squared = (x - found[:, None]) ** 2
    spread = df * s**2
    curvature = ((df + 1.0) * (squared - spread) / (squared + spread) ** 2).sum(axis=1)
    maxima = found[curvature < 0] if (curvature < 0).any() else found
    maxima = np.sort(maxima)
    distinct = maxima[np.append(True, np.diff(maxima) > 1e-3 * float(s.min()))]
    height = _log_likelihood(distinct, x, s, df)
    order = np.argsort(-height, kind="stable")
    tied = order[height[order] >= height[order[0]] - _TIE]
    distance = np.abs(distinct[tied])
    nearest = tied[distance <= distance.min() + _TIE * float(s.max())].min()
    ranked: FloatArray = distinct[np.append(nearest, order[order != nearest])]
    return ranked
