"""Intervals from bootstrap draws, with the rule that few clusters demand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError

FloatArray = npt.NDArray[np.float64]
Rule = Literal["percentile", "se_t"]

ENOUGH: Final = 20
FEW: Final = 10
LEAST: Final = 2


@dataclass(frozen=True)
class DifferenceInterval:
    """A difference between two arms with its interval.

    Attributes:
        point: The difference in the sample itself.
        se: Standard deviation of the draws (ddof 1); None with fewer than two clusters.
        low: Lower end under ``rule``; None with fewer than two clusters.
        high: Upper end under ``rule``; None with fewer than two clusters.
        rule: ``percentile`` or ``se_t``; None with fewer than two clusters.
        percentile: The percentile interval, stored whichever rule applies.
        se_t: ``point -/+ se * t(G - 1)``, stored whichever rule applies.
        level: Nominal coverage.
        n_clusters: Number of clusters G.
        flags: ``no_interval`` (G < 2), ``descriptive_only`` (G < 10), ``few_clusters`` (G < 20), ``identical`` (every
            draw gives zero: the arms do not differ, and no p-value exists).
    """

    point: float
    level: float
    n_clusters: int
    flags: tuple[str, ...]
    se: float | None = None
    low: float | None = None
    high: float | None = None
    rule: Rule | None = None
    percentile: tuple[float, float] | None = None
    se_t: tuple[float, float] | None = None


def difference_interval(*, point: float, draws: FloatArray, n_clusters: int, level: float = 0.95) -> DifferenceInterval:
    r"""Return the interval of a paired difference from its bootstrap draws.

    From 20 clusters on the percentile interval; below, where it covers too little, ``point -/+ se * t(G - 1)`` with a
    warning flag; below 10 that interval only describes; below 2 there is none.

    Args:
        point: The difference in the sample.
        draws: The difference in each resample, shape (B,), B >= 2; both arms under the same draws.
        n_clusters: Number of clusters G that were resampled.
        level: Nominal coverage, in (0, 1).

    Reference: Cameron, Gelbach & Miller 2008; MacKinnon & Webb 2017.

    Raises:
        DataError: Fewer than two draws, a draw that is not finite, no cluster, or a level outside (0, 1).

    Example:
        >>> few = difference_interval(point=0.5, draws=np.array([0.0, 1.0]), n_clusters=12)
        >>> few.rule, few.flags
        ('se_t', ('few_clusters',))
    """
    if draws.ndim != 1 or draws.size < 2 or not (np.isfinite(draws).all() and math.isfinite(point)):
        raise DataError(f"draws of shape {draws.shape}", hint="Give at least two finite draws of one difference.")
    if n_clusters < 1 or not 0 < level < 1:
        raise DataError(f"an interval at level {level} from {n_clusters} clusters", hint="Count at least one cluster.")
    if n_clusters < LEAST:
        return DifferenceInterval(point=point, level=level, n_clusters=n_clusters, flags=("no_interval",))
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is loaded where it is used

    se = float(draws.std(ddof=1))
    tail = (1 - level) / 2
    lower, upper = (float(end) for end in np.quantile(draws, (tail, 1 - tail)))
    reach = se * float(stdtrit(n_clusters - 1, 1 - tail))
    se_t = (point - reach, point + reach)
    rule: Rule = "percentile" if n_clusters >= ENOUGH else "se_t"
    low, high = (lower, upper) if rule == "percentile" else se_t
    flags: tuple[str, ...] = ()
    if n_clusters < ENOUGH:
        flags = ("descriptive_only" if n_clusters < FEW else "few_clusters",)
    if point == 0.0 and not draws.any():
        flags = (*flags, "identical")
    return DifferenceInterval(
        point=point,
        se=se,
        low=low,
        high=high,
        rule=rule,
        percentile=(lower, upper),
        se_t=se_t,
        level=level,
        n_clusters=n_clusters,
        flags=flags,
    )
