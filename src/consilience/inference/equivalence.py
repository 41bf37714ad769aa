"""Equivalence: that two arms differ by less than a margin, which no large p-value of a difference shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from consilience.errors import DataError
from consilience.inference.effective import Undefined


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests against a margin.

    Attributes:
        point: The difference.
        low: Lower end of its interval at level ``1 - 2 alpha``.
        high: Upper end.
        margin: Largest difference that does not matter.
        p: The larger of the two one-sided p-values; undefined where nothing varies.
        equivalent: The interval lies within the margin.
    """

    point: float
    low: float
    high: float
    margin: float
    p: float | Undefined
    equivalent: bool


def equivalence(
    *, point: float, se: float | Undefined, n_clusters: int, margin: float, alpha: float = 0.05
) -> Equivalence | Undefined:
    r"""Return whether a difference lies within ``(-margin, margin)`` by two one-sided t-tests.

    ``p = max(P(t > (point + margin)/se), P(t < (point - margin)/se))`` on G - 1 degrees of freedom; equivalent where
    ``p < alpha``, that is where the ``1 - 2 alpha`` interval lies within the margin. The margin is fixed beforehand.

    Args:
        point: The difference, in the unit of the margin.
        se: Its standard error: of `cluster_t`, or of the bootstrap draws.
        n_clusters: Clusters G.
        margin: Above 0.
        alpha: In (0, 0.5).

    Reference: Schuirmann 1987; Lakens 2017.

    Degenerate: undefined with fewer than two clusters. With a standard error of 0 the difference decides, without p.

    Raises:
        DataError: The margin, the standard error or alpha is out of range, or the difference is not finite.

    Example:
        >>> made = equivalence(point=0.001, se=0.002, n_clusters=40, margin=0.01)
        >>> made.equivalent, round(made.p, 6)
        (True, 3e-05)
    """
    if not (math.isfinite(point) and margin > 0 and math.isfinite(margin) and 0 < alpha < 0.5):
        raise DataError(
            f"a difference of {point} against a margin of {margin} at {alpha}",
            hint="Give a finite difference, a margin above 0 and alpha in (0, 0.5).",
        )
    if isinstance(se, Undefined):
        return se
    if n_clusters < 2:
        return Undefined("one cluster has no standard error")
    if not (math.isfinite(se) and se >= 0):
        raise DataError(f"a standard error of {se}", hint="Give a finite one, 0 or above.")
    if se == 0:
        return Equivalence(point, point, point, margin, Undefined("nothing varies"), abs(point) < margin)
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415 - scipy is loaded where it is used

    df = n_clusters - 1
    p = float(stdtr(df, (abs(point) - margin) / se))
    reach = se * float(stdtrit(df, 1 - alpha))
    return Equivalence(point, point - reach, point + reach, margin, p, p < alpha)
