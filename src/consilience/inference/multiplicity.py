"""Several tests at once: p-values adjusted over a family, and the largest statistic of one set of bootstrap draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from consilience.errors import DataError
from consilience.inference.effective import FloatArray, Undefined

Method = Literal["holm", "bonferroni", "bh", "by"]


@dataclass(frozen=True)
class Adjusted:
    """Adjusted p-values in the order given.

    Attributes:
        p: Adjusted; a test without a p-value stays as it was and out of the family.
        family: Number of tests that entered.
        excluded: Positions of those that did not.
        method: How they were adjusted.
    """

    p: tuple[float | Undefined, ...]
    family: int
    excluded: tuple[int, ...]
    method: str


def adjust(*, p: Sequence[float | Undefined], method: Method) -> Adjusted:
    r"""Return p-values adjusted over their family, to be compared with the level of the whole.

    Sorted upwards: ``holm``: running maximum of ``(m - i + 1) p_i`` (family-wise error, any dependence; the declared
    family); ``bonferroni``: ``m p_i``; ``bh``: running minimum from above of ``m p_i / i`` (false discovery rate under
    positive dependence; exploration); ``by``: the same times ``1 + 1/2 + … + 1/m`` (any dependence). All at most 1.

    Args:
        p: One per test in [0, 1]; `Undefined` or NaN where there is none, which leaves the family.
        method: Name of the adjustment.

    Reference: Holm 1979; Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001.

    Raises:
        DataError: A p-value is outside [0, 1].

    Example:
        >>> adjust(p=[0.01, Undefined("identical"), 0.04, 0.03], method="holm").p
        (0.03, Undefined(reason='identical'), 0.06, 0.06)
    """
    kept = [at for at, value in enumerate(p) if not isinstance(value, Undefined) and not math.isnan(value)]
    values = np.array([p[at] for at in kept], dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise DataError(f"p-values {values.tolist()}", hint="Give probabilities between 0 and 1.")
    m = values.size
    order = np.argsort(values, kind="stable")
    ranks = np.arange(1, m + 1)
    ascending = values[order]
    if method == "holm":
        made = np.maximum.accumulate(ascending * (m - ranks + 1))
    elif method == "bonferroni":
        made = ascending * m
    else:
        factor = 1.0 if method == "bh" else math.fsum(1 / rank for rank in range(1, m + 1))
        made = np.minimum.accumulate((ascending * m * factor / ranks)[::-1])[::-1]
    back: dict[int, float] = {kept[int(at)]: min(float(value), 1.0) for at, value in zip(order, made, strict=True)}
    missing = Undefined("the test has no p-value")
    every = tuple(
        back[at] if at in back else value if isinstance(value, Undefined) else missing for at, value in enumerate(p)
    )
    return Adjusted(every, m, tuple(sorted(set(range(len(p))) - set(kept))), method)


def max_t(*, points: FloatArray, draws: FloatArray) -> Adjusted:
    r"""Return p-values adjusted by the largest statistic over the family in each bootstrap draw, stepping down.

    ``t_k = |point_k| / se_k`` with ``se_k`` the standard deviation of the draws, against the maximum over the contrasts
    not yet rejected of ``|draw_k - point_k| / se_k``: ``p = (b + 1)/(B + 1)``, made monotone. It controls the
    family-wise error and uses the dependence between contrasts, so it is less conservative than Holm.

    Args:
        points: The contrasts in the sample, shape (k,).
        draws: The same in each resample, shape (B, k), B >= 2; all columns under the same draws.

    Reference: Romano & Wolf 2005.

    Degenerate: a contrast whose draws do not vary has no p-value and leaves the family.

    Raises:
        DataError: Shapes do not fit or a number is not finite.

    Example:
        >>> draws = np.array([[0.1, 1.0], [-0.1, 1.2], [0.0, 0.8], [0.2, 1.1]])
        >>> max_t(points=np.array([0.05, 1.0]), draws=draws).p
        (1.0, 0.2)
    """
    if draws.ndim != 2 or len(draws) < 2 or points.shape != draws.shape[1:]:
        raise DataError(f"points {points.shape} and draws {draws.shape} do not fit", hint="Give draws by contrasts.")
    if not (np.isfinite(points).all() and np.isfinite(draws).all()):
        raise DataError("a point or a draw is not finite", hint="Compare arms on cases that all of them answered.")
    se = draws.std(axis=0, ddof=1)
    moving = se > 1e-12 * np.maximum(np.abs(draws).max(axis=0), np.abs(points))
    kept = np.flatnonzero(moving)
    statistic = np.abs(points[kept]) / se[kept]
    order = np.argsort(-statistic, kind="stable")
    null = np.abs(draws[:, kept[order]] - points[kept[order]]) / se[kept[order]]
    # The largest over a contrast and all that are smaller than it, in each draw.
    largest = np.maximum.accumulate(null[:, ::-1], axis=1)[:, ::-1]
    at_least = np.count_nonzero(largest >= statistic[order] * (1 - 1e-12), axis=0)
    made = np.maximum.accumulate((at_least + 1) / (len(draws) + 1))
    back = {int(kept[at]): float(value) for at, value in zip(order, made, strict=True)}
    still = Undefined("the draws do not vary")
    every = tuple(back.get(at, still) for at in range(points.size))
    return Adjusted(every, kept.size, tuple(np.flatnonzero(~moving).tolist()), "max_t")
