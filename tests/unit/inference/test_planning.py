"""Variance components and power: published figures, oracles, simulation, and the cases without a number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from consilience.errors import DataError
from consilience.inference.bootstrap import analysis_rng
from consilience.inference.effective import Undefined
from consilience.inference.power import (
    design_effect,
    difference_sd,
    least_detectable,
    pairs_needed,
    pilot_se,
    power_of,
)
from consilience.inference.variance import Components, CrossedComponents, _reml, components, crossed_components

DYESTUFF = np.array(
    [
        [1545, 1440, 1440, 1520, 1580],
        [1540, 1555, 1490, 1560, 1495],
        [1595, 1550, 1605, 1510, 1560],
        [1445, 1440, 1595, 1465, 1545],
        [1595, 1630, 1515, 1635, 1625],
        [1520, 1455, 1450, 1480, 1445],
    ],
    dtype=np.float64,
)
DYESTUFF2 = np.array(
    [
        [7.298, 3.846, 2.434, 9.566, 7.990],
        [5.220, 6.556, 0.608, 11.788, -0.892],
        [0.110, 10.386, 13.434, 5.510, 8.166],
        [2.212, 4.852, 7.092, 9.288, 4.980],
        [0.282, 9.014, 4.458, 9.446, 7.198],
        [1.722, 4.782, 8.106, 0.758, 3.758],
    ]
)


def of(table: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Components:
    made = components(values=table.ravel(), groups=np.repeat(np.arange(len(table)), table.shape[1]))
    assert isinstance(made, Components)
    return made


def test_a_negative_component_is_zero_and_its_share_is_pooled() -> None:
    made = of(DYESTUFF2)
    assert made.between == 0
    assert made.within == pytest.approx(13.806, abs=5e-4)
    assert made.icc == 0
    assert made.flags == ("negative_between",)


def test_restricted_likelihood_equals_the_moments_where_groups_are_equal() -> None:
    means, sizes = DYESTUFF.mean(axis=1), np.full(6, 5.0)
    squares = float(((DYESTUFF - means[:, None]) ** 2).sum())
    assert _reml(means, sizes, squares) == pytest.approx((1764.05, 2451.25), rel=1e-5)


def test_uneven_groups_maximise_the_whole_restricted_likelihood() -> None:
    from scipy import optimize  # noqa: PLC0415 - an oracle

    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 5, 12)
    codes = np.repeat(np.arange(12), sizes)
    values = rng.normal(0, 2, 12)[codes] + rng.normal(0, 1, codes.size)
    made = components(values=values, groups=codes)
    assert isinstance(made, Components)
    assert made.method == "reml"
    same = (codes[:, None] == codes[None, :]).astype(float)
    ones = np.ones((codes.size, 1))

    def deviance(logs: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        covariance = np.exp(logs[0]) * same + np.exp(logs[1]) * np.eye(codes.size)
        inverse = np.linalg.inv(covariance)
        info = ones.T @ inverse @ ones
        around = values - (ones.T @ inverse @ values / info).item()
        return float(np.linalg.slogdet(covariance)[1] + math.log(info.item()) + around @ inverse @ around)

    best = optimize.minimize(deviance, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert (made.between, made.within) == pytest.approx(tuple(np.exp(best.x)), rel=1e-4)


def test_uneven_groups_that_do_not_differ_have_no_variance_between() -> None:
    values = np.array([1.0, 5.0, 2.0, 4.0, 3.0, 3.1, 2.9])
    made = components(values=values, groups=np.array([0, 0, 1, 1, 2, 2, 2]))
    assert isinstance(made, Components)
    assert made.between == 0
    assert made.within == pytest.approx(values.var(ddof=1))
    assert made.flags == ("negative_between", "few_runs")


def test_identical_repetitions_leave_no_variance_within() -> None:
    made = components(values=np.array([1.0, 1.0, 2.0, 2.0, 2.0]), groups=np.array([0, 0, 1, 1, 1]))
    assert isinstance(made, Components)
    assert (made.within, made.between, made.icc) == (0.0, 0.5, 1.0)
    still = components(values=np.full(6, 0.3), groups=np.array([0, 0, 0, 1, 1, 1]))
    assert isinstance(still, Components)
    assert isinstance(still.icc, Undefined)


def test_too_little_for_components_is_undefined_and_misfits_are_refused() -> None:
    assert isinstance(components(values=np.arange(3.0), groups=np.arange(3)), Undefined)
    assert isinstance(components(values=np.arange(3.0), groups=np.zeros(3)), Undefined)
    with pytest.raises(DataError, match="do not fit"):
        components(values=np.arange(3.0), groups=np.zeros(2))
    assert isinstance(crossed_components(values=np.zeros((4, 2, 1))), Undefined)
    with pytest.raises(DataError, match="by question"):
        crossed_components(values=np.zeros((4, 2)))


def test_crossed_components_recover_what_was_put_in() -> None:
    rng = np.random.default_rng(3)
    q, a, r = 4_000, 3, 3
    values = (
        rng.normal(0, 2, (q, 1, 1))
        + np.arange(a)[None, :, None]
        + rng.normal(0, 1, (q, a, 1))
        + rng.normal(0, 0.5, (q, a, r))
    )
    made = crossed_components(values=values)
    assert isinstance(made, CrossedComponents)
    assert (made.question, made.arm_by_question, made.run) == pytest.approx((4.0, 1.0, 0.25), rel=0.06)
    assert made.flags == ()


def test_negative_crossed_components_are_pooled_downwards() -> None:
    values = np.array([[[0.0, 2.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]], [[0.0, 2.0], [0.0, 2.0]]])
    made = crossed_components(values=values)
    assert isinstance(made, CrossedComponents)
    assert (made.question, made.arm_by_question) == (0.0, 0.0)
    assert made.run == pytest.approx(12 / 10)  # all squares over all degrees of freedom but the arms' mean
    assert made.flags == ("negative_arm_by_question", "negative_question", "few_runs")


def test_power_is_what_simulation_gives() -> None:
    from scipy import stats  # noqa: PLC0415 - an oracle, slow to load

    rng = np.random.default_rng(4)
    d = rng.normal(0.5, 1, (20_000, 15))
    seen = (stats.ttest_1samp(d, 0, axis=1).pvalue < 0.05).mean()
    assert power_of(delta=0.5, se=1 / math.sqrt(15), df=14) == pytest.approx(seen, abs=0.012)


def test_the_least_detectable_difference_has_the_power_asked_for() -> None:
    for df in (1, 5, 51, 1e6):
        for power in (0.5, 0.8, 0.95):
            delta = least_detectable(se=0.02, df=df, power=power)
            assert power_of(delta=delta, se=0.02, df=df) == pytest.approx(power, abs=1e-9)
    assert least_detectable(se=1.0, df=1e9) == pytest.approx(1.959964 + 0.841621, abs=1e-4)
    assert least_detectable(se=0.0, df=5) == 0.0
    assert power_of(delta=0.0, se=1.0, df=9) == pytest.approx(0.05)
    assert power_of(delta=1e6, se=1.0, df=9) == 1.0
    for df in (1, 2, 5, 300):
        curve = [power_of(delta=delta, se=1.0, df=df) for delta in np.arange(0, 120, 0.25)]
        assert np.diff(curve).min() > -1e-3
        assert max(curve) <= 1


def test_needed_pairs_and_power_are_inverse() -> None:
    n = pairs_needed(delta=0.01, sd=0.12, power=0.9)
    assert power_of(delta=0.01, se=0.12 / math.sqrt(n), df=n - 1) == pytest.approx(0.9, abs=1e-9)
    assert pairs_needed(delta=100.0, sd=0.1) == 2.0


def test_a_pilot_tells_the_error_of_a_study_of_another_size() -> None:
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(300), 4)
    shared = rng.normal(0, 1, (300, 2))[clusters]
    losses = np.abs(shared + rng.normal(0, 1, (1_200, 2)))
    se = {
        size: pilot_se(losses=losses, clusters=clusters, n_clusters=size, rng=analysis_rng(seed=1, analysis=f"{size}"))
        for size in (75, 300)
    }
    assert isinstance(se[75], float)
    assert isinstance(se[300], float)
    assert se[75] / se[300] == pytest.approx(2, rel=0.08)
    median = pilot_se(losses=losses, clusters=clusters, n_clusters=300, rng=rng, median=True)
    assert isinstance(median, float)
    assert median > se[300]
    alone = pilot_se(losses=losses, clusters=np.zeros(1_200), n_clusters=5, rng=rng)
    assert isinstance(alone, Undefined)


def test_planning_refuses_what_cannot_be() -> None:
    with pytest.raises(DataError, match="standard error"):
        power_of(delta=1.0, se=0.0, df=5)
    with pytest.raises(DataError, match="power"):
        least_detectable(se=1.0, df=5, power=0.01)
    with pytest.raises(DataError, match="difference"):
        pairs_needed(delta=0.0, sd=1.0)
    with pytest.raises(DataError, match="clusters"):
        design_effect(mean_size=5.0, rho=-0.5)
    with pytest.raises(DataError, match="negative"):
        difference_sd(lasting=-1.0)
    with pytest.raises(DataError, match="two columns"):
        pilot_se(losses=np.zeros((3, 1)), clusters=np.arange(3), n_clusters=3, rng=np.random.default_rng(1))
