"""The conformal margin is the right order statistic, and the corrected intervals cover what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.inference.conformal import (
    ENOUGH,
    Cqr,
    Margins,
    conformal_margin,
    fit_cqr,
    least_rows,
    trailing_window,
)


@pytest.mark.parametrize(
    ("m", "alpha", "rank"), [(9, 0.1, 9), (19, 0.1, 18), (19, 0.05, 19), (99, 0.1, 90), (100, 0.1, 91), (39, 0.05, 38)]
)
def test_the_margin_is_the_finite_sample_order_statistic(m: int, alpha: float, rank: int) -> None:
    scores = np.random.default_rng(0).permutation(np.arange(1.0, m + 1))
    assert conformal_margin(scores=scores, alpha=alpha) == rank


@pytest.mark.parametrize(("alpha", "need"), [(0.1, 9), (0.05, 19), (0.025, 39), (0.25, 3), (0.3, 3)])
def test_one_row_fewer_than_needed_is_refused(alpha: float, need: int) -> None:
    assert least_rows(alpha) == need
    assert conformal_margin(scores=np.arange(float(need)), alpha=alpha) == need - 1
    with pytest.raises(DataError, match=f"{need - 1} rows give no finite"):
        conformal_margin(scores=np.arange(need - 1.0), alpha=alpha)


@given(m=st.integers(19, 400), alpha=st.sampled_from([0.05, 0.1, 0.25, 0.5]))
def test_the_share_of_scores_above_the_margin_is_below_alpha(m: int, alpha: float) -> None:
    scores = np.random.default_rng(m).normal(size=m)
    margin = conformal_margin(scores=scores, alpha=alpha)
    # Of m + 1 exchangeable scores a new one exceeds the k-th of m with probability (m + 1 - k)/(m + 1).
    above = float((scores > margin).sum()) / (m + 1) + 1 / (m + 1)
    assert alpha - 1 / (m + 1) <= above + 1e-12 <= alpha + 1e-9


def test_each_tail_misses_its_half_when_the_level_has_drifted() -> None:
    rng = np.random.default_rng(1)
    calibration, fresh = rng.normal(0.5, 1, 4_000), rng.normal(0.5, 1, 200_000)
    lower, upper = np.full(4_000, -1.0), np.full(4_000, 1.0)
    fitted = fit_cqr(lower=lower, upper=upper, outcome=calibration, alpha=0.1)
    low, high = fitted.apply(lower=np.array([-1.0]), upper=np.array([1.0]))
    assert (fresh < low[0]).mean() == pytest.approx(0.05, abs=0.012)
    assert (fresh > high[0]).mean() == pytest.approx(0.05, abs=0.012)
    both = fit_cqr(lower=lower, upper=upper, outcome=calibration, alpha=0.1, asymmetric=False).overall
    assert both.lower == both.upper
    assert (fresh < -1 - both.lower).mean() < 0.03  # symmetric: nearly all misses are on one side


@pytest.mark.parametrize("asymmetric", [True, False])
@pytest.mark.parametrize("m", [19, 60, 300])
def test_coverage_over_many_draws_lies_between_its_bounds(m: int, asymmetric: bool) -> None:
    rng = np.random.default_rng(7)
    hits = []
    for _ in range(2_000):
        outcome = rng.lognormal(size=m + 1)
        ends = np.full(m, 0.8), np.full(m, 1.2)
        fitted = fit_cqr(lower=ends[0], upper=ends[1], outcome=outcome[:m], alpha=0.1, asymmetric=asymmetric)
        low, high = fitted.apply(lower=ends[0][:1], upper=ends[1][:1])
        hits.append(low[0] <= outcome[m] <= high[0])
    tails = 2 if asymmetric else 1
    assert 0.9 - 0.02 <= np.mean(hits) <= 0.9 + tails / (m + 1) + 0.02


def test_a_stratum_of_a_hundred_has_its_own_margins_and_a_smaller_one_those_of_all() -> None:
    outcome = np.r_[np.linspace(-1, 1, ENOUGH), np.linspace(-5, 5, ENOUGH - 1)]
    strata = ["calm"] * ENOUGH + ["wild"] * (ENOUGH - 1)
    zero = np.zeros(outcome.size)
    fitted = fit_cqr(lower=zero, upper=zero, outcome=outcome, alpha=0.1, strata=strata)
    assert list(fitted.strata) == ["calm"]
    assert fitted.strata["calm"].upper < 1 < fitted.overall.upper
    _, high = fitted.apply(lower=zero[:3], upper=zero[:3], strata=["calm", "wild", "unheard of"])
    assert high.tolist() == [fitted.strata["calm"].upper, fitted.overall.upper, fitted.overall.upper]
    assert fitted.record()["strata"]["calm"]["rows"] == ENOUGH


def test_margins_that_turn_an_interval_over_leave_its_middle() -> None:
    fitted = Cqr(alpha=0.5, asymmetric=True, overall=Margins(-2.0, -1.0, 50), strata={})
    low, high = fitted.apply(lower=np.array([0.0]), upper=np.array([1.0]))
    assert low.tolist() == high.tolist() == [1.0]


def test_what_does_not_fit_is_refused() -> None:
    y = np.arange(30.0)
    with pytest.raises(DataError, match="lower end lies above"):
        fit_cqr(lower=y + 1, upper=y, outcome=y, alpha=0.1)
    with pytest.raises(DataError, match="do not fit or are not finite"):
        fit_cqr(lower=y, upper=y, outcome=y * np.nan, alpha=0.1)
    with pytest.raises(DataError, match="strata do not fit"):
        fit_cqr(lower=y, upper=y, outcome=y, alpha=0.1, strata=["a"])
    with pytest.raises(DataError, match="not finite"):
        conformal_margin(scores=np.r_[y, np.inf], alpha=0.1)
    with pytest.raises(DataError, match="alpha 1"):
        least_rows(1.0)


def test_the_trailing_window_counts_back_from_the_last_day() -> None:
    days = np.array(["2016-02-28", "2016-02-29", "2016-03-01"], dtype="datetime64[D]")
    assert trailing_window(days, length=2).tolist() == [False, True, True]
    with pytest.raises(DataError, match="trailing window of 0 days"):
        trailing_window(days, length=0)
