"""Tests of paired loss differences: by cluster, by sign flips and, over time, Diebold and Mariano's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from consilience.errors import DataError
from consilience.inference.bootstrap import Labels
from consilience.inference.effective import FloatArray, Undefined
from consilience.inference.intervals import ENOUGH, FEW

Kernel = Literal["bartlett", "acf"]

EXACT_CLUSTERS: Final = 20
"""Up to 2^20 sign patterns are counted one by one."""
FEWEST_FOR_ACF: Final = 30
_ROUNDING: Final = 1e-12
_SIGN_CHUNK: Final = 512


@dataclass(frozen=True)
class ClusterTest:
    """A mean difference with its cluster-robust standard error.

    Attributes:
        mean: Mean of the differences.
        se: CR1 standard error; undefined with one cluster.
        statistic: ``mean / se``; undefined where nothing varies.
        df: Degrees of freedom, G - 1.
        p: Two-sided, from t(G - 1); undefined where nothing varies.
        naive_se: What it would be if rows were independent; undefined with one row.
        n: Rows.
        n_clusters: Clusters G.
        flags: ``descriptive_only`` (G < 10), ``few_clusters`` (G < 20), ``identical`` (every difference is 0).
    """

    mean: float
    se: float | Undefined
    statistic: float | Undefined
    df: int
    p: float | Undefined
    naive_se: float | Undefined
    n: int
    n_clusters: int
    flags: tuple[str, ...]


def cluster_t(*, differences: FloatArray, clusters: Labels) -> ClusterTest:
    r"""Return the cluster-robust paired t-test of a mean difference; the test for questions that share no time order.

    ``se = sqrt(G/(G-1) * sum_g (sum_{i in g} (d_i - mean))^2) / n``, compared with t on G - 1 degrees of freedom.

    Args:
        differences: Loss of A less loss of B on each row, shape (n,).
        clusters: One label per row.

    Reference: Liang & Zeger 1986; Cameron & Miller 2015; Miller 2024.

    Degenerate: one cluster has no standard error; where nothing varies between clusters there is no p-value.

    Raises:
        DataError: There are no rows, shapes do not fit or a difference is not finite.

    Example:
        >>> made = cluster_t(differences=np.array([0.2, 0.1, 0.3, 0.0]), clusters=np.array([0, 0, 1, 2]))
        >>> round(made.se, 6), made.df, round(made.p, 4), made.flags
        (0.064952, 2, 0.1472, ('descriptive_only',))
    """
    if differences.ndim != 1:
        raise DataError(f"differences of shape {differences.shape}", hint="Give one difference per row.")
    codes, groups = _checked(differences[:, None], clusters)
    n = differences.size
    mean = math.fsum(differences.tolist()) / n
    around = differences - mean
    scale = float(np.abs(differences).max())
    naive: float | Undefined = Undefined("one row has no spread")
    if n > 1:
        naive = math.sqrt(math.fsum((around**2).tolist()) / (n - 1) / n)
    flags = _flags(groups) + (("identical",) if scale == 0 else ())
    if groups < 2:
        none = Undefined("one cluster has no standard error")
        return ClusterTest(mean, none, none, 0, none, naive, n, groups, flags)
    sums = np.bincount(codes, weights=around, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * math.fsum((sums**2).tolist())) / n
    if se <= _ROUNDING * scale:
        still = Undefined("every difference is 0" if scale == 0 else "the difference does not vary between clusters")
        return ClusterTest(mean, 0.0, still, groups - 1, still, naive, n, groups, flags)
    statistic = mean / se
    return ClusterTest(mean, se, statistic, groups - 1, t_p(statistic, df=groups - 1), naive, n, groups, flags)


def t_p(statistic: float, *, df: float) -> float:
    """Return the two-sided p-value of a t statistic.

    Example:
        >>> round(t_p(2.0, df=10), 6)
        0.073388
    """
    from scipy.special import stdtr  # noqa: PLC0415 - scipy is loaded where it is used

    return 2 * float(stdtr(df, -abs(statistic)))


@dataclass(frozen=True)
class SignFlip:
    """A test by flipping the signs of whole clusters.

    Attributes:
        mean: Mean of the differences.
        p: Two-sided; undefined where every difference is 0.
        exact: Every pattern of signs was counted.
        n_patterns: Patterns compared: 2^G, or the number drawn.
        n_clusters: Clusters G.
    """

    mean: float
    p: float | Undefined
    exact: bool
    n_patterns: int
    n_clusters: int


def sign_flip(
    *,
    differences: FloatArray,
    clusters: Labels,
    rng: np.random.Generator | None = None,
    n_patterns: int = 9_999,
) -> tuple[SignFlip, ...]:
    r"""Return the paired permutation test of mean differences: labels are swapped in whole clusters.

    Up to 20 clusters all 2^G patterns are counted; above, ``p = (b + 1)/(B + 1)`` with b of B drawn patterns at least
    as far from 0 as the sample, the same patterns for all contrasts. It tests that the two are exchangeable.

    Args:
        differences: One row per case and one column per contrast, shape (n, contrasts).
        clusters: One label per row.
        rng: Consumed; only above 20 clusters.
        n_patterns: Patterns B drawn above 20 clusters.

    Reference: Fisher 1935; Phipson & Smyth 2010.

    Degenerate: a column of zeros has no p-value; one cluster gives 1.

    Raises:
        DataError: There are no rows, shapes do not fit, a difference is not finite, or random numbers are missing.

    Example:
        >>> d = np.array([[0.3], [0.2], [0.4], [0.1]])
        >>> sign_flip(differences=d, clusters=np.arange(4))[0].p
        0.125
    """
    codes, groups = _checked(differences, clusters)
    sums = np.zeros((groups, differences.shape[1]))
    np.add.at(sums, codes, differences)
    reach = np.abs(sums.sum(axis=0)) - _ROUNDING * np.abs(sums).sum(axis=0)
    exact = groups <= EXACT_CLUSTERS
    if exact:
        drawn = 2**groups
        p = np.array([_share_of_all(column, least) for column, least in zip(sums.T, reach, strict=True)])
    else:
        if rng is None or n_patterns < 1:
            raise DataError(
                f"{groups} clusters are too many for every pattern of signs, and no random patterns were offered",
                hint="Give rng, from analysis_rng, and at least one pattern.",
            )
        drawn = n_patterns
        p = (_at_least(sums, reach, rng, n_patterns) + 1) / (n_patterns + 1)
    nothing = np.logical_not(differences.any(axis=0)).tolist()
    means = differences.mean(axis=0)
    return tuple(
        SignFlip(
            mean=float(mean),
            p=Undefined("every difference is 0") if void else float(value),
            exact=exact,
            n_patterns=drawn,
            n_clusters=groups,
        )
        for mean, value, void in zip(means, p, nothing, strict=True)
    )


def _share_of_all(sums: FloatArray, least: float) -> float:
    """Return the share of all sign patterns whose sum is at least so far from 0; by symmetry the first sign is +."""
    totals = sums[:1].copy()
    for value in sums[1:]:
        totals = np.concatenate([totals + value, totals - value])
    return float(np.count_nonzero(np.abs(totals) >= least)) / totals.size


def _at_least(sums: FloatArray, least: FloatArray, rng: np.random.Generator, n_patterns: int) -> FloatArray:
    counts = np.zeros(sums.shape[1])
    for start in range(0, n_patterns, _SIGN_CHUNK):
        shape = (min(_SIGN_CHUNK, n_patterns - start), len(sums))
        signs = rng.integers(0, 2, size=shape, dtype=np.int8) * 2.0 - 1.0
        counts += np.count_nonzero(np.abs(signs @ sums) >= least, axis=0)
    return counts


@dataclass(frozen=True)
class DieboldMariano:
    """A test that two forecasts of a series lose equally much.

    Attributes:
        mean: Mean loss difference.
        statistic: With the correction of Harvey, Leybourne and Newbold; undefined where the variance is 0.
        p: Two-sided, from t(n - 1); undefined as well.
        n: Points in time.
        horizon: Steps ahead h.
        kernel: Weights of the autocovariances that were used.
        flags: ``negative_variance``: the acf kernel gave a negative variance, so Bartlett's was used.
    """

    mean: float
    statistic: float | Undefined
    p: float | Undefined
    n: int
    horizon: int
    kernel: Kernel
    flags: tuple[str, ...]


def diebold_mariano(
    *, differences: FloatArray, horizon: int = 1, kernel: Kernel = "bartlett"
) -> DieboldMariano | Undefined:
    r"""Return the Diebold–Mariano test in the small-sample form of Harvey, Leybourne and Newbold.

    ``DM = mean / sqrt(V/n)``, ``V = g_0 + 2 sum_{k<h} w_k g_k`` with autocovariances g (divisor n) and ``w_k = 1 -
    k/h`` (Bartlett) or 1 (acf); times ``sqrt((n + 1 - 2h + h(h-1)/n)/n)``, compared with t(n - 1). For losses in order
    of time only: for h = 1 it is the plain paired t-test, and questions of one time call for `cluster_t`.

    Args:
        differences: Loss of A less loss of B at each time, in order, shape (n,).
        horizon: Steps ahead h, from 1 to n - 1.
        kernel: Weights of the autocovariances.

    Reference: Diebold & Mariano 1995; Harvey, Leybourne & Newbold 1997.

    Degenerate: undefined for the acf kernel with n < 30 and h > 1, where its variance may vanish by chance; no
    statistic where the variance is 0.

    Raises:
        DataError: Fewer than two times, a horizon out of range, or a difference that is not finite.

    Example:
        >>> d = np.array([0.1, -0.3, 0.2, 0.4, 0.0, 0.3])
        >>> round(diebold_mariano(differences=d).p, 6)
        0.301861
        >>> diebold_mariano(differences=d, horizon=2, kernel="acf").reason
        'the acf kernel needs 30 times for a horizon of 2, and there are 6'
    """
    n = differences.size
    if differences.ndim != 1 or n < 2 or not np.isfinite(differences).all():
        raise DataError(
            f"loss differences of shape {differences.shape}", hint="Give at least two finite ones, by time."
        )
    if not 1 <= horizon < n:
        raise DataError(f"a horizon of {horizon} for {n} times", hint="Give h from 1 to n - 1.")
    if kernel == "acf" and horizon > 1 and n < FEWEST_FOR_ACF:
        return Undefined(f"the acf kernel needs {FEWEST_FOR_ACF} times for a horizon of {horizon}, and there are {n}")
    mean = math.fsum(differences.tolist()) / n
    scale = float(np.abs(differences).max())
    variance = _long_run(differences - mean, horizon, kernel)
    flags: tuple[str, ...] = ()
    if variance < -((_ROUNDING * scale) ** 2):
        variance, kernel, flags = _long_run(differences - mean, horizon, "bartlett"), "bartlett", ("negative_variance",)
    if variance <= (_ROUNDING * scale) ** 2:
        void = Undefined("zero variance of the loss differences")
        return DieboldMariano(mean, void, void, n, horizon, kernel, flags)
    factor = (n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n
    statistic = mean / math.sqrt(variance / n) * math.sqrt(factor)
    return DieboldMariano(mean, statistic, t_p(statistic, df=n - 1), n, horizon, kernel, flags)


def _long_run(around: FloatArray, horizon: int, kernel: Kernel) -> float:
    n = around.size
    total = float(around @ around) / n
    for lag in range(1, horizon):
        weight = 1 - lag / horizon if kernel == "bartlett" else 1.0
        total += 2 * weight * float(around[lag:] @ around[:-lag]) / n
    return total


def _flags(groups: int) -> tuple[str, ...]:
    if groups >= ENOUGH:
        return ()
    return ("descriptive_only",) if groups < FEW else ("few_clusters",)


def _checked(differences: FloatArray, clusters: Labels) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], int]:
    if differences.ndim != 2 or len(differences) == 0 or clusters.shape != differences.shape[:1]:
        raise DataError(
            f"differences {differences.shape} and {clusters.size} cluster labels do not fit",
            hint="Give one row and one label per case, at least one.",
        )
    if not np.isfinite(differences).all():
        raise DataError("a difference is not finite", hint="Compare on the cases that both have answered.")
    labels, codes = np.unique(clusters, return_inverse=True)
    return codes, labels.size
