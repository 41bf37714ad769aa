"""Where the truth falls in the stated laws: bins of unequal masses, and the probability integral transform."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.core.answers import LEVELS
from consilience.errors import DataError
from consilience.scoring.law import reconstruct
from consilience.scoring.point import FloatArray

IntArray = npt.NDArray[np.intp]


def pit(
    *,
    quantiles: FloatArray,
    outcome: FloatArray,
    levels: tuple[float, ...] = LEVELS,
    rng: np.random.Generator | None = None,
) -> FloatArray:
    r"""Return ``F(y)`` of each outcome under the law its quantiles stand for; uniform on [0, 1] if they are right.

    Args:
        quantiles: Non-decreasing rows, shape (n, K); logarithms for prices.
        outcome: Shape (n,), in the same space.
        levels: Levels of the quantiles.
        rng: For plots only: an outcome on an atom is drawn uniformly between ``P(X < y)`` and ``P(X <= y)``. Without
            it every outcome gets ``P(X <= y)``, always the same.

    Degenerate: of a point mass the outcome is below (0), at or above (1).

    Reference: Dawid 1984; Diebold, Gunther & Tay 1998.

    Raises:
        DataError: Shapes do not fit, a number is not finite, or quantiles cross.

    Example:
        >>> pit(quantiles=np.array([[1.0, 2, 3, 4, 5]]), outcome=np.array([3.0])).tolist()
        [0.5]
    """
    law = reconstruct(quantiles=quantiles, levels=levels)
    _fit(quantiles, outcome)
    upper = law.cdf(outcome=outcome)
    if rng is None:
        return upper
    lower = law.cdf(outcome=outcome, closed=False)
    return lower + (upper - lower) * rng.random(outcome.size)


def pit_bins(*, quantiles: FloatArray, outcome: FloatArray) -> IntArray:
    r"""Return the bin of each outcome, 0 to K: the number of its quantiles strictly below it.

    The bins' expected masses are unequal: 0.05, 0.20, 0.25, 0.25, 0.20, 0.05 for the five levels.

    Raises:
        DataError: Shapes do not fit, a number is not finite, or quantiles cross.

    Example:
        >>> pit_bins(quantiles=np.array([[1.0, 2, 3, 4, 5]] * 2), outcome=np.array([2.0, 2.5])).tolist()
        [1, 2]
    """
    _fit(quantiles, outcome)
    if (np.diff(quantiles, axis=1) < 0).any():
        raise DataError("quantiles cross", hint="Sort fitted quantiles first and report the rate.")
    found: IntArray = (quantiles < outcome[:, None]).sum(axis=1)
    return found


@dataclass(frozen=True)
class PitHistogram:
    """The bins of a set of outcomes. Draw ``density`` over edges at the levels, never equal bars of the counts.

    Attributes:
        n: Cases.
        counts: Outcomes in each bin.
        mass: Share expected in each bin if the quantiles are right.
        density: ``count / (n * mass)``; 1 throughout is best.
        low: Lower edge of the simultaneous band of ``density`` if the quantiles are right and cases independent.
        high: Upper edge.
        level: Probability that all bins lie in the band.
    """

    n: int
    counts: tuple[int, ...]
    mass: tuple[float, ...]
    density: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    level: float


def pit_histogram(
    *,
    bins: IntArray,
    rng: np.random.Generator,
    levels: tuple[float, ...] = LEVELS,
    draws: int = 10_000,
    level: float = 0.9,
) -> PitHistogram:
    r"""Return counts and densities of bins with a simultaneous band, ``n m -/+ c sqrt(n m (1 - m))``.

    c is the ``level`` quantile of the largest standardised deviation over the bins, in ``draws`` multinomial samples.

    Args:
        bins: From `pit_bins`, shape (n,).
        rng: Consumed; state its seed beside the picture.
        levels: Levels of the quantiles.
        draws: Multinomial samples, at least 1.
        level: Of the band, in (0, 1).

    Raises:
        DataError: No cases, a bin that the levels do not have, or ``draws`` or ``level`` out of range.

    Example:
        >>> made = pit_histogram(bins=np.array([0, 1, 2, 3, 4, 5] * 10), rng=np.random.default_rng(1))
        >>> [round(height, 2) for height in made.density]
        [3.33, 0.83, 0.67, 0.67, 0.83, 3.33]
    """
    n, k = bins.size, len(levels) + 1
    if n == 0 or bins.min() < 0 or bins.max() >= k:
        raise DataError(f"{n} cases do not fit {k} bins", hint="Give the bins of at least one case, from 0.")
    if draws < 1 or not 0 < level < 1:
        raise DataError(
            f"a band at level {level} from {draws} draws", hint="Give a level in (0, 1), at least one draw."
        )
    counts = np.bincount(bins, minlength=k)
    mass = np.diff(np.array([0.0, *levels, 1.0]))
    sd = np.sqrt(n * mass * (1 - mass))
    reach = np.quantile((np.abs(rng.multinomial(n, mass, size=draws) - n * mass) / sd).max(axis=1), level) * sd
    return PitHistogram(
        n=n,
        counts=tuple(counts.tolist()),
        mass=tuple(mass.tolist()),
        density=tuple((counts / (n * mass)).tolist()),
        low=tuple((np.maximum(n * mass - reach, 0) / (n * mass)).tolist()),
        high=tuple((np.minimum(n * mass + reach, n) / (n * mass)).tolist()),
        level=level,
    )


def _fit(quantiles: FloatArray, outcome: FloatArray) -> None:
    fits = quantiles.ndim == 2 and outcome.shape == quantiles.shape[:1]
    if not (fits and np.isfinite(quantiles).all() and np.isfinite(outcome).all()):
        raise DataError(
            f"quantiles {quantiles.shape} and outcomes {outcome.shape} do not fit or are not finite",
            hint="Give one row of quantiles per outcome; leave out cases without an answer and count them.",
        )
