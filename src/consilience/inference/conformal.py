"""Split-conformal correction of intervals (CQR): margins learnt on rows the quantiles never saw, applied unchanged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Days: TypeAlias = npt.NDArray[np.datetime64]

ENOUGH = 100
"""Rows from which a stratum has margins of its own; a smaller one takes those of all rows."""


def least_rows(alpha: float) -> int:
    """Return the fewest rows with which a one-sided margin at miss rate ``alpha`` is finite: ``ceil(1/alpha) - 1``.

    Raises:
        DataError: ``alpha`` is outside (0, 1).

    Example:
        >>> least_rows(0.1), least_rows(0.05)
        (9, 19)
    """
    if not 0 < alpha < 1:
        raise DataError(f"a conformal margin with alpha {alpha}", hint="Alpha lies strictly between 0 and 1.")
    return math.ceil(round(1 / alpha, 9)) - 1


def conformal_margin(*, scores: FloatArray, alpha: float) -> float:
    r"""Return the margin that a new score exceeds with probability at most ``alpha``, whatever the scores' law.

    Equation: the k-th smallest of m scores, ``k = ceil((m + 1)(1 - alpha))``: the quantile at level ``k / m``. It holds
    for exchangeable scores, and misses no more than ``alpha`` and no less than ``alpha - 1/(m + 1)`` without ties.

    Args:
        scores: Distance by which each outcome lay outside (positive) or inside (negative) its interval.
        alpha: Admitted miss rate, in (0, 1).

    Reference: Romano, Patterson & Candes 2019; Vovk, Gammerman & Shafer 2005.

    Raises:
        DataError: Fewer scores than make the margin finite, a score that is not finite, or alpha outside (0, 1).

    Example:
        >>> conformal_margin(scores=np.arange(1.0, 20.0), alpha=0.1)
        18.0
    """
    need = least_rows(alpha)
    if scores.size < need:
        raise DataError(
            f"{scores.size} rows give no finite conformal margin at alpha {alpha:g}",
            hint=f"Calibrate on at least {need} rows: widen the window.",
        )
    if not np.isfinite(scores).all():
        raise DataError("a conformal score is not finite", hint="Leave out rows without an outcome.")
    rank = math.ceil(round((scores.size + 1) * (1 - alpha), 9))
    return float(np.partition(scores, rank - 1)[rank - 1])


@dataclass(frozen=True)
class Margins:
    """What is added to one interval's ends.

    Attributes:
        lower: Subtracted from the lower end; negative narrows.
        upper: Added to the upper end; negative narrows.
        rows: Rows they were learnt on.
    """

    lower: float
    upper: float
    rows: int


@dataclass(frozen=True)
class Cqr:
    """A fitted correction of one central interval.

    Attributes:
        alpha: Miss rate of the interval.
        asymmetric: Whether each tail had its own score.
        overall: Margins of all rows.
        strata: Margins of the strata with at least `ENOUGH` rows.
    """

    alpha: float
    asymmetric: bool
    overall: Margins
    strata: Mapping[str, Margins]

    def apply(
        self, *, lower: FloatArray, upper: FloatArray, strata: Sequence[str] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the corrected ends; where negative margins would turn an interval over, both ends are its middle.

        Args:
            lower: Lower ends, in the space of the fit.
            upper: Upper ends.
            strata: Stratum of each row; an unknown one takes the overall margins.

        Raises:
            DataError: Shapes differ.

        Example:
            >>> fitted = Cqr(alpha=0.1, asymmetric=True, overall=Margins(0.25, 0.5, 40), strata={})
            >>> low, high = fitted.apply(lower=np.array([1.0]), upper=np.array([2.0]))
            >>> low.tolist(), high.tolist()
            ([0.75], [2.5])
        """
        _same(lower, upper, strata)
        rows = [self.overall] * lower.size if strata is None else [self.strata.get(s, self.overall) for s in strata]
        low = lower - np.array([row.lower for row in rows])
        high = upper + np.array([row.upper for row in rows])
        middle = (low + high) / 2
        turned = low > high
        return np.where(turned, middle, low), np.where(turned, middle, high)

    def record(self) -> dict[str, Any]:
        """Return the correction as JSON values."""
        return {
            "alpha": self.alpha,
            "asymmetric": self.asymmetric,
            "overall": vars(self.overall).copy(),
            "strata": {name: vars(margins).copy() for name, margins in self.strata.items()},
        }


def fit_cqr(
    *,
    lower: FloatArray,
    upper: FloatArray,
    outcome: FloatArray,
    alpha: float,
    asymmetric: bool = True,
    strata: Sequence[str] | None = None,
) -> Cqr:
    r"""Return the conformal correction of a central interval, learnt on rows that its quantiles never saw.

    Symmetric: one score ``max(l - y, y - u)`` at miss rate alpha moves both ends alike. Asymmetric: the scores
    ``l - y`` and ``y - u`` have a margin each at alpha / 2, so each tail misses half of alpha even where the level
    drifts or the errors are skewed, at the price of more rows (19 instead of 9 for 90 %).

    Args:
        lower: Lower ends, shape (m,); logarithms for prices.
        upper: Upper ends, in the same space.
        outcome: What happened.
        alpha: Miss rate of the interval, in (0, 1).
        asymmetric: Whether each tail has its own score.
        strata: Stratum of each row; those with at least 100 rows get margins of their own.

    Reference: Romano, Patterson & Candes 2019, equations 8 and 10.

    Raises:
        DataError: Shapes differ, a number is not finite, an interval is upside down, too few rows, or alpha is outside
            (0, 1).

    Example:
        >>> y = np.arange(19.0)
        >>> fitted = fit_cqr(lower=y - 1, upper=y + y, outcome=y, alpha=0.1)
        >>> fitted.overall
        Margins(lower=-1.0, upper=0.0, rows=19)
    """
    _same(lower, upper, strata)
    if outcome.shape != lower.shape or not all(np.isfinite(part).all() for part in (lower, upper, outcome)):
        raise DataError(
            f"ends {lower.shape} and outcomes {outcome.shape} do not fit or are not finite",
            hint="Give one outcome per interval and leave out rows without one.",
        )
    if (lower > upper).any():
        raise DataError("an interval's lower end lies above its upper", hint="Sort fitted quantiles and report it.")

    def margins(rows: BoolArray) -> Margins:
        below, above = (lower - outcome)[rows], (outcome - upper)[rows]
        if asymmetric:
            low, high = (conformal_margin(scores=score, alpha=alpha / 2) for score in (below, above))
            return Margins(low, high, rows=below.size)
        both = conformal_margin(scores=np.maximum(below, above), alpha=alpha)
        return Margins(both, both, rows=below.size)

    labels = np.array([] if strata is None else list(strata), dtype=np.str_)
    names, counts = np.unique(labels, return_counts=True)
    return Cqr(
        alpha=alpha,
        asymmetric=asymmetric,
        overall=margins(np.ones(lower.size, dtype=np.bool_)),
        strata={str(name): margins(labels == name) for name in names[counts >= ENOUGH]},
    )


def trailing_window(days: Days, *, length: int) -> BoolArray:
    """Return which rows lie in the last ``length`` days that the rows reach, the last day included.

    Raises:
        DataError: No rows, or a length below 1.

    Example:
        >>> trailing_window(np.array(["2015-01-01", "2015-01-30", "2015-01-31"], dtype="datetime64[D]"), length=2)
        array([False,  True,  True])
    """
    if days.size == 0 or length < 1:
        raise DataError(
            f"a trailing window of {length} days over {days.size} rows", hint="Give at least one row and one day."
        )
    inside: BoolArray = days > days.max() - np.timedelta64(timedelta(days=length))
    return inside


def _same(lower: FloatArray, upper: FloatArray, strata: Sequence[str] | None) -> None:
    if lower.ndim != 1 or lower.shape != upper.shape or (strata is not None and len(strata) != lower.size):
        raise DataError(
            f"ends {lower.shape} and {upper.shape} and their strata do not fit", hint="Give one of each per row."
        )
