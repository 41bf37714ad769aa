"""Summaries of scores over cases; every one says over how many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consilience.core.undefined import Undefined
from consilience.errors import DataError
from consilience.scoring.equity import Concentration, VerticalEquity, concentration, vertical_equity
from consilience.scoring.point import BoolArray, FloatArray, absolute_percentage_error, log_error, within
from consilience.scoring.ratio import PriceRelatedBias, beyond_iqr, cod, prb, prd, ratio, scorable

ENOUGH: Final = 20
FEW: Final = 10
LEAST: Final = 2
_CONSTANT: Final = 1e-12


@dataclass(frozen=True)
class PointSummary:
    """How good a set of estimates was.

    Attributes:
        n: Cases.
        mdape: Median absolute percentage error (an even number of cases averages the two middle ones); 0 is best.
        ppe10: Share of cases within 10 %; 1 is best.
        ppe20: Share of cases within 20 %; 1 is best.
        rmse_log: Root mean square log error; 0 is best.
        mae_log: Mean absolute log error; 0 is best.
        bias: Mean log error; 0 is best, positive is too high.
        spread: Standard deviation (ddof 1) of the log errors; undefined for one case.
        median_abs_log: Median absolute log error, which weighs half and double alike; 0 is best.
        r2: ``1 - sum (estimate - truth)^2 / sum (truth - mean truth)^2``; 1 is best, 0 is a constant, negative worse;
            undefined where all truths are equal.
        r2_log: The same of the logarithms.
    """

    n: int
    mdape: float
    ppe10: float
    ppe20: float
    rmse_log: float
    mae_log: float
    bias: float
    spread: float | Undefined
    median_abs_log: float
    r2: float | Undefined
    r2_log: float | Undefined


def summarise_points(*, estimate: FloatArray, truth: FloatArray) -> PointSummary:
    """Return the point summary of the cases that have an answer; non-answers are counted elsewhere, by kind.

    Raises:
        DataError: No cases, shapes differ, or a number is not finite and positive.

    Example:
        >>> round(summarise_points(estimate=np.array([110.0, 100.0]), truth=np.array([100.0, 100.0])).mdape, 9)
        0.05
    """
    if estimate.size == 0:
        raise DataError("a summary of no cases", hint="Report that no case was answered instead.")
    ape = absolute_percentage_error(estimate=estimate, truth=truth)
    error = log_error(estimate=estimate, truth=truth)
    return PointSummary(
        n=estimate.size,
        mdape=float(np.median(ape)),
        ppe10=float(within(ape=ape, limit=0.10).mean()),
        ppe20=float(within(ape=ape, limit=0.20).mean()),
        rmse_log=float(np.sqrt((error**2).mean())),
        mae_log=float(np.abs(error).mean()),
        bias=float(error.mean()),
        spread=float(error.std(ddof=1)) if error.size > 1 else Undefined("one case has no spread"),
        median_abs_log=float(np.median(np.abs(error))),
        r2=_explained(estimate, truth),
        r2_log=_explained(np.log(estimate), np.log(truth)),
    )


def _explained(estimate: FloatArray, truth: FloatArray) -> float | Undefined:
    around = truth - truth.mean()
    if np.abs(around).max() <= _CONSTANT * max(float(np.abs(truth).max()), 1.0):
        return Undefined("all truths are equal")
    return 1.0 - float(((estimate - truth) ** 2).sum() / (around**2).sum())


@dataclass(frozen=True)
class Share:
    """A share of cases with its interval.

    Attributes:
        value: ``k / n``.
        k: Cases that have the property.
        n: Cases.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    value: float
    k: int
    n: int
    low: float
    high: float


def share(*, hits: BoolArray, level: float = 0.95) -> Share:
    """Return a share, such as coverage, with the Wilson interval of independent cases.

    Raises:
        DataError: No cases, or the level is outside (0, 1).

    Example:
        >>> found = share(hits=np.array([True, True, False, True]))
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (0.75, 0.301, 0.954)
    """
    k, n = int(hits.sum()), int(hits.size)
    low, high = wilson(k=k, n=n, level=level)
    return Share(value=k / n, k=k, n=n, low=low, high=high)


def wilson(*, k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    r"""Return Wilson's score interval of a share: the shares that a score test at ``level`` would not reject.

    Reference: Wilson 1927; Brown, Cai & DasGupta 2001. Degenerate: k = 0 gives a lower end of 0, k = n an upper of 1.

    Raises:
        DataError: Not ``0 <= k <= n`` with n >= 1, or the level is outside (0, 1).

    Example:
        >>> [round(end, 4) for end in wilson(k=81, n=263)]
        [0.2553, 0.3662]
    """
    from scipy.special import ndtri  # noqa: PLC0415 - scipy is loaded where it is used

    _check_counts(k, n, level)
    return _score_interval(k, n, float(ndtri(0.5 + level / 2)))


def _score_interval(k: float, n: float, z: float) -> tuple[float, float]:
    centre = (k + z * z / 2) / (n + z * z)
    half = z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


@dataclass(frozen=True)
class ClusteredShare:
    """A share of cases that share errors in clusters, with its interval.

    Attributes:
        value: ``k / n``.
        k: Cases that have the property.
        n: Cases.
        n_clusters: Clusters G.
        n_effective: Independent cases that would tell as much, ``n / design_effect``.
        design_effect: Variance of the share over that of independent cases, at least 1.
        low: Lower end of the interval; None with fewer than two clusters.
        high: Upper end; None with fewer than two clusters.
        level: Nominal coverage.
        flags: ``no_interval`` (G < 2), ``descriptive_only`` (G < 10), ``few_clusters`` (G < 20), ``all_alike`` (all
            cases have the property or none: dependence cannot be seen and is taken to be complete within clusters).
    """

    value: float
    k: int
    n: int
    n_clusters: int
    n_effective: float
    design_effect: float
    low: float | None
    high: float | None
    level: float
    flags: tuple[str, ...]


def share_clustered(*, hits: BoolArray, clusters: npt.NDArray[Any], level: float = 0.95) -> ClusteredShare:
    r"""Return a share with the Wilson interval of as many independent cases as the clustered ones are worth.

    ``design effect = G/(G - 1) sum_g (sum_{i in g} (h_i - p))^2 / (n p (1 - p))``, not below 1: the cluster-robust
    variance of the share over the binomial one. Below 20 clusters the normal quantile becomes that of t(G - 1).

    Args:
        hits: Shape (n,).
        clusters: One label per case, shape (n,).
        level: Nominal coverage, in (0, 1).

    Degenerate: where all cases are alike the design effect is that of complete dependence, ``n sum share_g^2``.

    Reference: Kish 1965; Korn & Graubard 1998 (there with the exact interval).

    Raises:
        DataError: No cases, shapes differ, or the level is outside (0, 1).

    Example:
        >>> towns = np.repeat(np.arange(25), 4)
        >>> made = share_clustered(hits=towns % 5 > 0, clusters=towns)
        >>> made.value, round(made.n_effective), round(made.low, 2), round(made.high, 2)
        (0.8, 24, 0.6, 0.91)
    """
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415 - scipy is loaded where it is used

    if hits.ndim != 1 or clusters.shape != hits.shape:
        raise DataError(f"{hits.shape} cases with labels {clusters.shape}", hint="Give one cluster label per case.")
    k, n = int(hits.sum()), int(hits.size)
    _check_counts(k, n, level)
    codes = np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(codes)
    groups, value = sizes.size, k / n
    alike = k in {0, n}
    if alike:
        effect = float((sizes.astype(np.float64) ** 2).sum()) / n
    elif groups < LEAST:
        effect = float(n)
    else:
        off = np.bincount(codes, weights=hits.astype(np.float64)) - value * sizes
        effect = max(1.0, groups / (groups - 1) * float((off**2).sum()) / (n * value * (1 - value)))
    flags: tuple[str, ...] = ("all_alike",) if alike else ()
    low: float | None = None
    high: float | None = None
    if groups < ENOUGH:
        flags = ("no_interval" if groups < LEAST else "descriptive_only" if groups < FEW else "few_clusters", *flags)
    if groups >= LEAST:
        tail = 0.5 + level / 2
        z = float(ndtri(tail) if groups >= ENOUGH else stdtrit(groups - 1, tail))
        low, high = _score_interval(k / effect, n / effect, z)
    return ClusteredShare(
        value=value,
        k=k,
        n=n,
        n_clusters=groups,
        n_effective=n / effect,
        design_effect=effect,
        low=low,
        high=high,
        level=level,
        flags=flags,
    )


def clopper_pearson(*, k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    r"""Return the exact binomial interval of a share, which never covers less than ``level``: for audits.

    Reference: Newcombe 1998. Degenerate: k = 0 gives a lower end of 0, k = n an upper of 1.

    Raises:
        DataError: Not ``0 <= k <= n`` with n >= 1, or the level is outside (0, 1).

    Example:
        >>> [round(end, 4) for end in clopper_pearson(k=0, n=20)]
        [0.0, 0.1684]
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - scipy is loaded where it is used

    _check_counts(k, n, level)
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high


def _check_counts(k: int, n: int, level: float) -> None:
    if not (n >= 1 and 0 <= k <= n and 0 < level < 1):
        raise DataError(f"an interval for {k} of {n} cases at level {level}", hint="Count at least one case.")


@dataclass(frozen=True)
class RatioSummary:
    """The ratio statistics of a set of sales, and which sales they are of.

    Attributes:
        n: Sales that entered.
        unscorable: Sales without a positive estimate and price, which have no ratio.
        trimmed: Sales left out as outliers.
        trim: Interquartile ranges beyond the quartiles from which a ratio was one; None where nothing was trimmed.
        median: Median ratio; 1 is best.
        mean: Mean ratio.
        weighted_mean: Sum of estimates over sum of prices.
        cod: Coefficient of dispersion, percent; 0 is best.
        prd: Price-related differential; 1 is best.
        prb: Price-related bias; 0 is best.
        vei: Vertical equity indicator; 0 is best.
        concentration: Kakwani indices.
    """

    n: int
    unscorable: int
    trimmed: int
    trim: float | None
    median: float
    mean: float
    weighted_mean: float
    cod: float
    prd: float
    prb: PriceRelatedBias | Undefined
    vei: VerticalEquity | Undefined
    concentration: Concentration


def summarise_ratios(*, estimate: FloatArray, price: FloatArray, trim: float | None = None) -> RatioSummary:
    """Return the ratio statistics of the sales that have a ratio, and counts of those that have none or were trimmed.

    Args:
        estimate: Shape (n,); what is not finite and positive has no ratio.
        price: Shape (n,); the same.
        trim: Leave out ratios more than this many interquartile ranges outside the quartiles; 3 is usual.

    Raises:
        DataError: No sale has a ratio, or shapes differ.

    Example:
        >>> made = summarise_ratios(estimate=np.array([0.0, 90, 100, 110]), price=np.full(4, 100.0))
        >>> made.n, made.unscorable, round(made.cod, 3)
        (3, 1, 6.667)
    """
    fine = scorable(estimate=estimate, price=price)
    said, paid = estimate[fine], price[fine]
    ratios = ratio(estimate=said, price=paid)
    kept = np.ones(ratios.size, dtype=np.bool_) if trim is None else ~beyond_iqr(ratio=ratios, multiple=trim)
    said, paid, ratios = said[kept], paid[kept], ratios[kept]
    return RatioSummary(
        n=ratios.size,
        unscorable=int((~fine).sum()),
        trimmed=int((~kept).sum()),
        trim=trim,
        median=float(np.median(ratios)),
        mean=float(ratios.mean()),
        weighted_mean=float(said.sum() / paid.sum()),
        cod=cod(ratio=ratios),
        prd=prd(estimate=said, price=paid),
        prb=prb(estimate=said, price=paid),
        vei=vertical_equity(estimate=said, price=paid),
        concentration=concentration(estimate=said, price=paid),
    )
