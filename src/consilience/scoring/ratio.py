"""Ratio statistics of assessors (IAAO): how even estimates are, relative to prices, over a set of sales.

What they say of value-dependence is in part an artefact: an error in the price itself makes every measure look
regressive. Vertical equity by groups and by concentration is in `consilience.scoring.equity`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.scoring.point import BoolArray, FloatArray

CONSTANT: Final = 1e-12
"""Relative spread up to which a regressor counts as constant."""
_CELLS: Final = 60_000  # what is computed at once stays in the processor's cache
_CELLS_OF_SUMS: Final = 500_000
_LEAST_ROWS: Final = 3


def scorable(*, estimate: FloatArray, price: FloatArray) -> BoolArray:
    """Return which rows have a ratio: both numbers finite and positive. Count the others where you report.

    Raises:
        DataError: Shapes differ.

    Example:
        >>> scorable(estimate=np.array([0.0, np.nan, 90.0]), price=np.array([100.0, 100.0, 100.0])).tolist()
        [False, False, True]
    """
    if estimate.shape != price.shape:
        raise DataError(f"{estimate.shape} estimates for {price.shape} prices", hint="Give one price per estimate.")
    return np.isfinite(estimate) & (estimate > 0) & np.isfinite(price) & (price > 0)


def ratio(*, estimate: FloatArray, price: FloatArray) -> FloatArray:
    """Return ``estimate / price`` of each sale; 1 is best, above is too high.

    Raises:
        DataError: No sales, shapes differ, or a number is not finite and positive.

    Example:
        >>> ratio(estimate=np.array([90.0, 120.0]), price=np.array([100.0, 100.0])).tolist()
        [0.9, 1.2]
    """
    fine = scorable(estimate=estimate, price=price)
    if fine.ndim != 1 or fine.size == 0:
        raise DataError(f"ratios of shape {fine.shape}", hint="Give one row of at least one sale.")
    if not fine.all():
        raise DataError(
            f"sale in row {int(np.flatnonzero(~fine)[0])} has no ratio: its estimate or price is not positive",
            hint="Keep the rows that `scorable` names and count the others.",
        )
    return estimate / price


def beyond_iqr(*, ratio: FloatArray, multiple: float = 3.0) -> BoolArray:
    """Return which ratios lie more than ``multiple`` interquartile ranges outside the quartiles.

    A trimming must be declared: it always flatters. Quartiles are numpy's (linear between order statistics).

    Raises:
        DataError: No ratios, one is not finite, or the multiple is negative.

    Example:
        >>> beyond_iqr(ratio=np.array([0.9, 1.0, 1.0, 1.1, 9.0])).tolist()
        [False, False, False, False, True]
    """
    if ratio.size == 0 or not np.isfinite(ratio).all() or not multiple >= 0:
        raise DataError(f"outliers among {ratio.size} ratios at {multiple} times the range", hint="Give finite ratios.")
    low, high = np.quantile(ratio, (0.25, 0.75))
    reach = multiple * (high - low)
    found: BoolArray = (ratio < low - reach) | (ratio > high + reach)
    return found


def cod(*, ratio: FloatArray) -> float:
    r"""Return the coefficient of dispersion, ``100 mean |R - M| / M`` about the median M; 0 is best.

    Range: [0, inf), percent; 5 to 15 is accepted for typical housing, below 5 hints at chased sales.

    Reference: IAAO Standard on Ratio Studies 2013.

    Raises:
        DataError: No ratios, or one is not finite and positive.

    Example:
        >>> cod(ratio=np.array([0.9, 1.0, 1.1])).__round__(6)
        6.666667
    """
    _positive(ratio)
    middle = float(np.median(ratio))
    return 100.0 * float(np.abs(ratio - middle).mean()) / middle


def prd(*, estimate: FloatArray, price: FloatArray) -> float:
    r"""Return the price-related differential, ``mean(R) / (sum of estimates / sum of prices)``; 1 is best.

    Range: (0, inf); above 1 dear homes are estimated lower than cheap ones (0.98 to 1.03 is accepted). It is biased
    upwards and moved by single dear sales.

    Reference: IAAO Standard on Ratio Studies 2013.

    Raises:
        DataError: As `ratio`.

    Example:
        >>> prd(estimate=np.array([90.0, 160.0]), price=np.array([100.0, 200.0]))
        1.02
    """
    return float(ratio(estimate=estimate, price=price).mean()) / float(estimate.sum() / price.sum())


@dataclass(frozen=True)
class PriceRelatedBias:
    """The price-related bias with its closed-form interval.

    Attributes:
        value: Share by which the ratio changes when the value doubles; 0 is best, negative is regressive.
        se: Its standard error, for independent sales of equal variance.
        low: Lower end of the interval, ``value - t(n - 2) se``.
        high: Upper end.
        intercept: Of the regression.
        n: Sales.
    """

    value: float
    se: float
    low: float
    high: float
    intercept: float
    n: int


def prb(*, estimate: FloatArray, price: FloatArray, level: float = 0.95) -> PriceRelatedBias | Undefined:
    r"""Return the price-related bias: the slope of ``(R - M)/M`` on ``log2((estimate/M + price)/2)``.

    Range: any number; within 0.05 of 0 is accepted, beyond 0.10 not.

    Degenerate: undefined when all values are equal, and below three sales. Sales that share errors (of one parcel,
    of one town) need `ratio_draws` instead.

    Reference: IAAO Standard on Ratio Studies 2013.

    Raises:
        DataError: As `ratio`, or the level is outside (0, 1).

    Example:
        >>> found = prb(estimate=np.array([100.0, 190.0, 360.0]), price=np.array([100.0, 200.0, 400.0]))
        >>> round(found.value, 4), found.low < found.value < found.high
        (-0.0547, True)
        >>> prb(estimate=np.full(3, 100.0), price=np.full(3, 100.0)).reason
        'regressor has zero variance'
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is loaded where it is used

    if not 0 < level < 1:
        raise DataError(f"an interval at level {level}", hint="Give a level between 0 and 1.")
    ratios = ratio(estimate=estimate, price=price)
    n, middle = ratios.size, float(np.median(ratios))
    if n < _LEAST_ROWS:
        return Undefined(f"{n} sales; at least {_LEAST_ROWS} are needed")
    size = np.log2(0.5 * (estimate / middle + price))
    around = size - size.mean()
    if np.abs(around).max() <= CONSTANT * max(1.0, float(np.abs(size).max())):
        return Undefined("regressor has zero variance")
    off = (ratios - middle) / middle
    spread = float(around @ around)
    slope = float(around @ off) / spread
    intercept = float(off.mean() - slope * size.mean())
    left = off - off.mean() - slope * around
    se = float(np.sqrt(left @ left / (n - 2) / spread))
    reach = float(stdtrit(n - 2, 0.5 + level / 2)) * se
    return PriceRelatedBias(value=slope, se=se, low=slope - reach, high=slope + reach, intercept=intercept, n=n)


@dataclass(frozen=True)
class RatioDraws:
    """The ratio statistics in each resample, shape (B,).

    Attributes:
        median: Median ratio.
        cod: Coefficient of dispersion.
        prd: Price-related differential.
        prb: Price-related bias; undefined as soon as one resample has a constant regressor.
    """

    median: FloatArray
    cod: FloatArray
    prd: FloatArray
    prb: FloatArray | Undefined


def ratio_draws(
    *, estimate: FloatArray, price: FloatArray, clusters: npt.NDArray[Any], weights: npt.NDArray[Any]
) -> RatioDraws:
    """Return COD, PRD and PRB in each resample of clusters, for intervals where sales share errors.

    Args:
        estimate: Shape (n,), positive.
        price: Shape (n,), positive.
        clusters: One label per sale, shape (n,).
        weights: How often each cluster was drawn, shape (B, G), columns in order of the sorted labels; every resample
            holds some sale.

    Raises:
        DataError: As `ratio`, or the weights do not fit the clusters.

    Example:
        >>> made = ratio_draws(estimate=np.array([90.0, 110.0, 100.0]), price=np.full(3, 100.0),
        ...                    clusters=np.array([1, 2, 3]), weights=np.array([[1, 1, 1], [0, 3, 0]]))
        >>> made.cod.round(6).tolist(), made.prd.round(6).tolist()
        ([6.666667, 0.0], [1.0, 1.0])
    """
    ratios = ratio(estimate=estimate, price=price)
    labels, codes = np.unique(clusters, return_inverse=True)
    if clusters.shape != ratios.shape or weights.ndim != 2 or weights.shape[1] != labels.size:
        raise DataError(
            f"weights {weights.shape} for {labels.size} clusters of {ratios.size} sales",
            hint="Draw the weights from these clusters.",
        )
    order = np.argsort(ratios, kind="stable")
    r, paid, said, codes = ratios[order], price[order], estimate[order], codes[order]
    columns: list[list[FloatArray]] = []
    step = max(1, _CELLS // ratios.size)
    for at in range(0, len(weights), step):
        w = weights[at : at + step][:, codes].astype(np.float64)  # counts: every sum of them is exact
        running = np.cumsum(w, axis=1)
        total = running[:, -1]
        if (total == 0).any():
            raise DataError("a resample holds no sale", hint="Draw as many clusters as there are.")
        lower = (running >= ((total + 1) // 2)[:, None]).argmax(axis=1)
        upper = (running >= (total // 2 + 1)[:, None]).argmax(axis=1)
        middle = 0.5 * (r[lower] + r[upper])
        off = (r - middle[:, None]) / middle[:, None]
        dispersion = 100.0 * (w * np.abs(off)).sum(axis=1) / total
        size = np.log2(0.5 * (said / middle[:, None] + paid))
        around = size - ((w * size).sum(axis=1) / total)[:, None]
        weighted = w * around
        spread = (w * around**2).sum(axis=1)
        moving = _moving(w, around, size, mean_square=spread / total)
        slope = np.divide(
            (weighted * off).sum(axis=1), spread, out=np.full(total.size, np.nan), where=moving & (spread > 0)
        )
        columns.append([middle, dispersion, slope])
    if not columns:
        raise DataError("no resamples", hint="Draw at least one; 10,000 is usual.")
    middle, dispersion, slope = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    constant = int(np.isnan(slope).sum())
    return RatioDraws(
        median=middle,
        cod=dispersion,
        prd=_differential(weights, codes, (r, said, paid)),
        prb=Undefined(f"regressor has zero variance in {constant} of {slope.size} resamples") if constant else slope,
    )


def _differential(
    weights: npt.NDArray[Any], codes: npt.NDArray[np.intp], sales: tuple[FloatArray, FloatArray, FloatArray]
) -> FloatArray:
    """Return the price-related differential in each resample: sums of products alone, which like long strides."""
    r, said, paid = sales
    found = []
    step = max(1, _CELLS_OF_SUMS // r.size)
    for at in range(0, len(weights), step):
        w = np.take(weights[at : at + step], codes, axis=1).astype(np.float64)
        found.append((w @ r / w.sum(axis=1)) / ((w @ said) / (w @ paid)))
    return np.concatenate(found)


def _moving(w: FloatArray, around: FloatArray, size: FloatArray, *, mean_square: FloatArray) -> BoolArray:
    """Return in which resamples the regressor is no constant: some drawn sale lies off its mean.

    No mean square is above its greatest square, so that most resamples need no look at their sales.
    """
    most = np.maximum(np.abs(size.min(axis=1)), np.abs(size.max(axis=1)))
    limit = CONSTANT * np.maximum(1.0, most)
    moving: BoolArray = mean_square > (2.0 * limit) ** 2
    unsure = np.flatnonzero(~moving)
    if unsure.size:
        moving[unsure] = np.where(w[unsure] > 0, np.abs(around[unsure]), 0.0).max(axis=1) > limit[unsure]
    return moving


def _positive(ratio: FloatArray) -> None:
    if ratio.size == 0 or not (np.isfinite(ratio).all() and (ratio > 0).all()):
        raise DataError("ratios are missing or not finite and positive", hint="Keep the rows that `scorable` names.")
