"""Rules that make five quantiles out of many seats' five quantiles.

Two products, not two opinions: `MedianOfQuantiles` keeps the seats' own width, `Mixture` adds what they disagree about.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from consilience.aggregation.location import FloatArray
from consilience.aggregation.numbers import Scale, to_working
from consilience.core.answers import LEVELS
from consilience.errors import DataError, QuorumError
from consilience.registry import Registry

_Curve = Callable[[FloatArray], FloatArray]
_Lines = tuple[FloatArray, FloatArray, FloatArray]
Interpolation = Literal["normal_score", "probability"]

_STEPS: Final = 100
_SQRT_TAU: Final = math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class IntervalAggregate:
    """Five quantiles made of several seats' five.

    Attributes:
        quantiles: At levels 0.05, 0.25, 0.50, 0.75, 0.95, never decreasing, on the question's own scale.
        flags: ``single_agent``; ``point_mass`` when all five are equal.
    """

    quantiles: tuple[float, float, float, float, float]
    flags: tuple[str, ...]


class IntervalRule(ABC):
    """A rule over the quantiles of the seats that answered.

    The declared properties mean what they mean for a point rule, level by level.
    """

    kinds: ClassVar[tuple[str, ...]] = ("estimate",)
    order_invariant: ClassVar[bool] = True
    unanimity: ClassVar[bool] = True
    within_range: ClassVar[bool] = True
    unit_equivariant: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry and in every prediction row."""

    @abstractmethod
    def _combine(self, q: FloatArray) -> FloatArray:
        """Return five quantiles of rows in the working space."""

    def __call__(self, *, quantiles: FloatArray, scale: Scale) -> IntervalAggregate:
        """Return the aggregate quantiles.

        Args:
            quantiles: One row of five non-decreasing finite numbers per seat, shape (n, 5); positive on a ``log``
                scale. Crossing rows are a seat's contract failure and were refused before; those of a fitted model go
                through `fix_crossing` first.
            scale: Of the question.

        Raises:
            QuorumError: No seat answered.
            DataError: A row crosses, is not finite, or is inadmissible on the scale.
        """
        # Rows in value order before any arithmetic: which seat stands where cannot change a bit.
        shown = quantiles[np.lexsort(quantiles.T[::-1])] if quantiles.ndim == 2 else quantiles
        working = _checked(shown, scale)
        if (working == working[0]).all():
            made = shown[0].astype(np.float64)
        else:
            found = self._combine(working)
            made = np.maximum.accumulate(_shown(found, working, shown) if scale == "log" else found)
        flags = (("single_agent",) if len(working) == 1 else ()) + (("point_mass",) if made[0] == made[-1] else ())
        q05, q25, q50, q75, q95 = made.tolist()
        return IntervalAggregate(quantiles=(q05, q25, q50, q75, q95), flags=flags)


def _checked(quantiles: FloatArray, scale: Scale) -> FloatArray:
    if quantiles.ndim != 2 or quantiles.shape[1] != len(LEVELS):
        raise DataError(f"quantiles of shape {quantiles.shape}", hint="Give one row of five quantiles per seat.")
    if len(quantiles) == 0:
        raise QuorumError("an interval of no answers", hint="Ask more members or lower what may fail.")
    working = to_working(points=quantiles, scale=scale)
    if (np.diff(working, axis=1) < 0).any():
        raise DataError("a seat's quantiles cross", hint="Refuse the reply; sort only fitted or imported quantiles.")
    return working


def _shown(found: FloatArray, working: FloatArray, shown: FloatArray) -> FloatArray:
    """Return log results on the price scale; one that is a number given is that number, not a rounded exp(log(x))."""
    logs, prices = np.sort(working, axis=None), np.sort(shown, axis=None)
    at = np.minimum(np.searchsorted(logs, found), logs.size - 1)
    back: FloatArray = np.where(logs[at] == found, prices[at], np.exp(found))
    return back


def fix_crossing(*, quantiles: FloatArray) -> tuple[FloatArray, bool]:
    """Return fitted or imported quantiles sorted, and whether they crossed; keep the raw ones beside.

    Never for a seat: there a crossing is a contract failure. Sorting never raises the pinball error.

    Args:
        quantiles: One row of quantiles or many, shape (…, 5).

    Reference: Chernozhukov, Fernandez-Val & Galichon 2010.

    Raises:
        DataError: A number is not finite.

    Example:
        >>> fixed, crossed = fix_crossing(quantiles=np.array([100.0, 160, 150, 260, 240]))
        >>> fixed.tolist(), crossed
        ([100.0, 150.0, 160.0, 240.0, 260.0], True)
    """
    if not np.isfinite(quantiles).all():
        raise DataError("a quantile is not finite", hint="Drop the row and count it.")
    return np.sort(quantiles, axis=-1), bool((np.diff(quantiles, axis=-1) < 0).any())


def quantile_average_log(*, quantiles: FloatArray) -> FloatArray:
    """Return the mean of the log quantiles, level by level, converted back (Vincent averaging).

    Not a registered rule: it is what `Mixture` must differ from.

    Reference: Vincent 1912; Lichtendahl, Grushka-Cockayne & Winkler 2013.

    Raises:
        QuorumError: No rows.
        DataError: A row crosses or holds a number that is not positive and finite.

    Example:
        >>> rows = np.array([[1.0, 1, 1, 1, 1], [4, 4, 4, 4, 4]])
        >>> quantile_average_log(quantiles=rows).round(9).tolist()
        [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    working = _checked(quantiles, "log")
    averaged: FloatArray = np.exp(np.array([math.fsum(column) / len(working) for column in working.T]))
    return averaged


@dataclass(frozen=True)
class MedianOfQuantiles(IntervalRule):
    """The median of the seats' quantiles at each level, in the working space; never crosses.

    Reference: Ray et al. 2023 (COVID-19 Forecast Hub).

    Example:
        >>> rows = np.array([[1.0, 2, 3, 4, 5], [2, 3, 4, 5, 6], [0, 1, 9, 9, 9]])
        >>> MedianOfQuantiles()(quantiles=rows, scale="linear").quantiles
        (1.0, 2.0, 4.0, 5.0, 6.0)
    """

    name: ClassVar[str] = "median_of_quantiles"

    def _combine(self, q: FloatArray) -> FloatArray:
        middle: FloatArray = np.median(q, axis=0)
        return middle


@dataclass(frozen=True)
class Mixture(IntervalRule):
    """The quantiles of the equal-weight mixture of the seats' distributions: CDFs are averaged, not quantiles.

    Each seat's law is linear in (normal score of the level, working value) between its five knots, with the outer
    slopes extended: piecewise lognormal on a log scale. Equal neighbours are an atom; an outer pair of equal quantiles
    holds the whole tail.

    Reference: Stone 1961; Gneiting & Ranjan 2013.

    Example:
        >>> rows = np.array([[200.0] * 5, [100, 150, 200, 260, 400]])
        >>> [round(q, 1) for q in Mixture()(quantiles=rows, scale="log").quantiles]
        [116.4, 200.0, 200.0, 200.0, 340.4]
    """

    name: ClassVar[str] = "mixture"

    def _combine(self, q: FloatArray) -> FloatArray:
        return mixture_quantiles(quantiles=q)


def mixture_quantiles(*, quantiles: FloatArray, interpolation: Interpolation = "normal_score") -> FloatArray:
    r"""Return the five quantiles of the equal-weight mixture of piecewise laws in the working space.

    ``F(u) = mean_i Phi(z_i(u))`` with ``z_i`` linear between the knots ``(q_i, Phi^{-1}(level))``; the answer is the
    generalised inverse ``min {u: F(u) >= level}``. The mixture is evaluated at all knots at once; a level that falls
    into a jump is that knot, any other is solved inside its segment by safeguarded Newton steps, or, in the gap between
    two camps, by balancing their tails.

    Args:
        quantiles: Working values (logarithms on a log scale), rows non-decreasing, shape (n, 5).
        interpolation: ``probability`` interpolates the level itself, with bounded tails: the naive choice, kept to show
            the difference.

    Example:
        >>> mixture_quantiles(quantiles=np.array([[0.0, 1, 2, 3, 4]])).round(9).tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    knots, curve, slope = _ordinate(interpolation)
    start, score, gradient = _segments(quantiles, knots)

    def cdf(u: FloatArray, below: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        seats = np.arange(len(quantiles))[:, None]
        rise = gradient[seats, below]
        z = score[seats, below] + (u - start[seats, below]) * rise
        return curve(z).mean(axis=0), (slope(z) * rise).mean(axis=0)

    knot = np.unique(quantiles)
    right, _ = cdf(knot, (quantiles[:, :, None] <= knot).sum(axis=1))
    left, _ = cdf(knot, (quantiles[:, :, None] < knot).sum(axis=1))
    levels = np.array(LEVELS)
    upper = np.minimum(np.searchsorted(np.maximum.accumulate(right), levels), knot.size - 1)
    # The levels are the knots' own, so no answer lies beyond the outermost knots.
    jump = (left[upper] < levels) | (upper == 0)
    high = knot[upper]
    low = np.where(jump, high, knot[np.maximum(upper - 1, 0)])
    inside = (quantiles[:, :, None] < high).sum(axis=1)
    u = high.copy()
    gap = ~jump & np.isin(inside, (0, len(LEVELS))).all(axis=0) & (interpolation == "normal_score")
    for at in np.flatnonzero(gap):
        passed = inside[:, at] > 0
        if round(len(quantiles) * levels[at], 9) == np.count_nonzero(passed):
            lines = [(start[rows, k], score[rows, k], gradient[rows, k]) for rows, k in ((~passed, 0), (passed, -1))]
            u[at] = low[at] = high[at] = _balance(float(low[at]), float(high[at]), *lines)
    fixed, settled_at = jump | (low == high), u.copy()
    for _ in range(_STEPS):
        value, density = cdf(u, inside)
        high = np.where(value >= levels, np.minimum(high, u), high)
        low = np.where(value < levels, np.maximum(low, u), low)
        step = np.divide(levels - value, density, out=np.full(u.size, np.inf), where=density > 0)
        target = np.where((u + step >= low) & (u + step <= high), u + step, 0.5 * (low + high))
        target = np.where(fixed, settled_at, target)
        settled = np.abs(target - u) <= 4 * np.spacing(np.abs(u))
        u = target
        if settled.all():
            break
    return u


def _balance(low: float, high: float, ahead: _Lines, passed: _Lines) -> float:
    """Return where the lower tails of the seats ahead weigh what the upper tails of the seats passed weigh.

    In the gap between two camps whose split is the level itself, the mixture's CDF is that level to the last digit;
    only the logarithms of the tails still tell where the quantile lies.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415 - scipy is loaded where it is used

    def tails(lines: _Lines, u: float, sign: float) -> float:
        origin, score, gradient = lines
        return float(np.logaddexp.reduce(log_ndtr(sign * (score + (u - origin) * gradient))))

    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if tails(ahead, middle, 1.0) >= tails(passed, middle, -1.0):
            high = middle
        else:
            low = middle
    return high


def _ordinate(interpolation: Interpolation) -> tuple[FloatArray, _Curve, _Curve]:
    """Return the knots' ordinates, the map from ordinate to probability, and its derivative."""
    levels = np.array(LEVELS)
    if interpolation == "probability":
        return levels, lambda p: np.clip(p, 0.0, 1.0), lambda p: ((p > 0) & (p < 1)).astype(np.float64)
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 - scipy is loaded where it is used

    return ndtri(levels), ndtr, lambda z: np.exp(-0.5 * z * z) / _SQRT_TAU


def _segments(q: FloatArray, knots: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return reference point, ordinate and slope of each seat's six pieces: lower tail, four inner, upper tail."""
    width = np.diff(q, axis=1)
    flat = width <= 0
    inner = np.divide(np.diff(knots), width, out=np.zeros_like(width), where=~flat)
    gradient = np.hstack([inner[:, :1], inner, inner[:, -1:]])
    start = np.hstack([q[:, :1], q])
    score = np.tile(np.append(knots[0], knots), (len(q), 1))
    score[flat[:, 0], 0] = -np.inf
    score[flat[:, -1], -1] = np.inf
    return start, score, gradient


INTERVAL_RULES: Final[Registry[IntervalRule]] = Registry(
    "interval rule", (MedianOfQuantiles(), Mixture()), group="consilience.interval_rules"
)

DEFAULT_INTERVAL_RULE: Final = "median_of_quantiles"
