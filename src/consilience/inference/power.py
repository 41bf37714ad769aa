"""What a study can see before it is run: power, the least detectable difference, and how many cases it takes."""

from __future__ import annotations

import math

import numpy as np

from consilience.errors import DataError
from consilience.inference.bootstrap import Labels, bootstrap_means, bootstrap_medians
from consilience.inference.effective import FloatArray, Undefined


def power_of(*, delta: float, se: float, df: float, alpha: float = 0.05) -> float:
    r"""Return the probability that a two-sided t-test sees a true difference.

    ``P(|t'| > t_{1-alpha/2})`` with ``t'`` noncentral on ``df`` degrees of freedom, noncentrality ``delta / se``. Both
    tails count. With clusters ``df = G - 1``; of n pairs ``se = sd / sqrt(n)``, ``df = n - 1``; of two groups of n
    ``se = sd sqrt(2/n)``, ``df = 2n - 2``.

    Args:
        delta: True difference.
        se: Standard error of its estimate, above 0.
        df: Degrees of freedom, above 0.
        alpha: Level of the test, in (0, 1).

    Range: from alpha at no difference to 1. Meant for planning; of a finished study it tells nothing beyond its
    p-value. Reference: Cohen 1988.

    Raises:
        DataError: An argument is out of range.

    Example:
        >>> round(power_of(delta=1.0, se=1 / 10**0.5, df=38), 7)
        0.868953
    """
    from scipy.special import chdtr, nctdtr, stdtrit  # noqa: PLC0415 - scipy is loaded where it is used

    if not (math.isfinite(delta) and 0 < se < math.inf and df > 0 and 0 < alpha < 1):
        raise DataError(
            f"a difference of {delta} with standard error {se}, df {df}, alpha {alpha}",
            hint="Give a finite difference, a standard error and df above 0, and alpha in (0, 1).",
        )
    away = abs(delta) / se
    critical = float(stdtrit(df, 1 - alpha / 2))
    above = 1 - float(nctdtr(df, away, critical))
    if math.isnan(above):  # SciPy loses its way at effects beyond 50, beside which a standard normal number is nothing
        above = float(chdtr(df, df * (away / critical) * (away / critical)))  # a power would overflow
    # The other tail is below P(z < -away), which is nothing from 7 on.
    return above + (float(nctdtr(df, away, -critical)) if away < 7 else 0.0)


def least_detectable(*, se: float, df: float, alpha: float = 0.05, power: float = 0.8) -> float:
    r"""Return the minimum detectable effect: the true difference that is seen with the given probability.

    The ``delta`` at which `power_of` is ``power``; about ``(z_{1-alpha/2} + z_power) se`` for many degrees of freedom.

    Args:
        se: Standard error of the estimated difference, 0 or above.
        df: Degrees of freedom, above 0.
        alpha: Level of the test.
        power: In (alpha, 1).

    Reference: Bloom 1995; Miller 2024. Degenerate: a standard error of 0 sees every difference.

    Raises:
        DataError: An argument is out of range.

    Example:
        >>> round(least_detectable(se=0.01, df=51), 6)
        0.028557
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy is loaded where it is used

    _check_power(alpha, power)
    if se == 0:
        return 0.0
    high = 2.0
    while power_of(delta=high, se=1.0, df=df, alpha=alpha) < power:
        high *= 2
    root = brentq(lambda away: power_of(delta=away, se=1.0, df=df, alpha=alpha) - power, 0.0, high, xtol=1e-12)
    return float(root) * se


def pairs_needed(
    *, delta: float, sd: float, alpha: float = 0.05, power: float = 0.8, two_sample: bool = False
) -> float:
    r"""Return how many pairs (or cases per group) see a true difference with the given probability; round it up.

    The n at which `power_of` with ``se = sd / sqrt(n)`` (two groups: ``sd sqrt(2/n)``) is ``power``. With clusters it
    counts independent cases: multiply by `design_effect`.

    Args:
        delta: True difference, not 0.
        sd: Standard deviation of the paired differences (two groups: within a group), above 0.
        alpha: Level of the test.
        power: In (alpha, 1).
        two_sample: Two groups of n instead of n pairs.

    Raises:
        DataError: An argument is out of range.

    Example:
        >>> round(pairs_needed(delta=0.5, sd=1.0), 4)
        33.3671
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy is loaded where it is used

    _check_power(alpha, power)
    if not (math.isfinite(delta) and delta != 0 and 0 < sd < math.inf):
        raise DataError(f"a difference of {delta} with sd {sd}", hint="Give a difference other than 0, sd above 0.")
    groups = 2 if two_sample else 1

    def lacking(n: float) -> float:
        se = sd * math.sqrt(groups / n)
        return power_of(delta=delta, se=se, df=groups * (n - 1), alpha=alpha) - power

    low, high = 1.0 + 1e-9, 4.0
    if lacking(2.0) >= 0:
        return 2.0
    low = 2.0
    while lacking(high) < 0:
        low, high = high, 2 * high
    return float(brentq(lacking, low, high, xtol=1e-10))


def design_effect(*, mean_size: float, rho: float) -> float:
    r"""Return ``1 + (m - 1) rho``: by how much clusters inflate the variance of a mean.

    Args:
        mean_size: Mean number m of rows per cluster, >= 1; for uneven clusters ``sum m^2 / sum m`` is safer.
        rho: Correlation of differences within a cluster, in [-1, 1].

    Reference: Kish 1965.

    Raises:
        DataError: An argument is out of range, or the result is not above 0.

    Example:
        >>> design_effect(mean_size=21.0, rho=0.25)
        6.0
    """
    made = 1 + (mean_size - 1) * rho
    if not (mean_size >= 1 and math.isfinite(mean_size) and -1 <= rho <= 1) or made <= 0:
        raise DataError(
            f"clusters of {mean_size} rows with a correlation of {rho}",
            hint="Give at least one row per cluster and a correlation above -1/(m - 1).",
        )
    return made


def difference_sd(*, lasting: float, run_a: float = 0.0, run_b: float = 0.0, runs_a: int = 1, runs_b: int = 1) -> float:
    r"""Return the standard deviation of a paired difference when every arm is asked several times and averaged.

    ``sqrt(omega^2 + s_A^2/K_A + s_B^2/K_B)``: more runs lessen the second and third term, more questions all of them.

    Args:
        lasting: Standard deviation omega over questions of the difference that repetition does not lessen.
        run_a: Standard deviation s from run to run of arm A; ``run_b`` of arm B.
        run_b: See ``run_a``.
        runs_a: Runs K of arm A, >= 1; ``runs_b`` of arm B.
        runs_b: See ``runs_a``.

    Reference: Miller 2024.

    Raises:
        DataError: A standard deviation is negative or there is no run.

    Example:
        >>> round(difference_sd(lasting=3.0, run_a=4.0, run_b=8.0, runs_a=1, runs_b=1) ** 2, 9)
        89.0
        >>> round(difference_sd(lasting=3.0, run_a=4.0, run_b=8.0, runs_a=4, runs_b=4) ** 2, 9)
        29.0
    """
    if not all(math.isfinite(sd) and sd >= 0 for sd in (lasting, run_a, run_b)) or min(runs_a, runs_b) < 1:
        raise DataError("a standard deviation is negative or there is no run", hint="Give sd >= 0 and runs >= 1.")
    return math.sqrt(lasting**2 + run_a**2 / runs_a + run_b**2 / runs_b)


def pilot_se(
    *,
    losses: FloatArray,
    clusters: Labels,
    n_clusters: int,
    rng: np.random.Generator,
    median: bool = False,
    n_resamples: int = 2_000,
) -> float | Undefined:
    r"""Return the standard error that a difference will have on ``n_clusters`` clusters like those of a pilot.

    That many clusters are drawn from the pilot with replacement, again and again: the standard deviation of the
    difference. It knows the pilot's clusters only, with their sizes and the dependence within them.

    Args:
        losses: Of both arms on the same cases, shape (n, 2).
        clusters: One label per case.
        n_clusters: Clusters of the study to come, >= 1.
        rng: Consumed.
        median: Difference of medians (MdAPE) instead of means.
        n_resamples: Studies simulated, >= 2.

    Degenerate: undefined with fewer than two clusters in the pilot.

    Raises:
        DataError: Shapes do not fit, or a number is out of range.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> losses = rng.normal(size=(400, 2))
        >>> se = pilot_se(losses=losses, clusters=np.arange(400), n_clusters=800, rng=rng)
        >>> bool(abs(se / (2 / 800) ** 0.5 - 1) < 0.1)
        True
    """
    if losses.ndim != 2 or losses.shape[1] != 2 or n_clusters < 1 or n_resamples < 2:
        raise DataError(
            f"losses of shape {losses.shape}, {n_clusters} clusters and {n_resamples} resamples",
            hint="Give two columns of losses, at least one cluster and two resamples.",
        )
    there = np.unique(clusters).size
    if there < 2:
        return Undefined("one cluster of a pilot does not tell how clusters differ")
    weights = rng.multinomial(n_clusters, [1 / there] * there, size=n_resamples).astype(np.uint16)
    made = bootstrap_medians if median else bootstrap_means
    draws = made(values=losses, clusters=clusters, weights=weights)
    return float((draws[:, 0] - draws[:, 1]).std(ddof=1))


def _check_power(alpha: float, power: float) -> None:
    if not 0 < alpha < power < 1:
        raise DataError(f"power {power} at alpha {alpha}", hint="Give 0 < alpha < power < 1, such as 0.05 and 0.8.")
