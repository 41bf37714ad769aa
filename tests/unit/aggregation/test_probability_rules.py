from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from consilience.aggregation.odds import (
    clipped,
    effective_number,
    expit,
    halved_farthest,
    log_odds_gap,
    logit,
    mean_logit,
    projective_factor,
    scale_odds,
    sqrt_neff,
)
from consilience.aggregation.pooling import Clip, PooledProbability
from consilience.aggregation.probabilities import (
    PROBABILITY_RULES,
    MedianProbability,
    TrimmedMeanProbability,
    default_probability_rule,
    ready_rules,
)
from consilience.aggregation.recalibration import Recalibration
from consilience.aggregation.resolved import FittedProbabilities
from consilience.errors import DataError, QuorumError

SEATS = tuple("abcdefgh")
SHRINK = Recalibration(method="platt", parameters=(0.1, 0.5), knots=(), pool="median", n=300, version="2025-01")


def pool(rule: str, *p: float, fitted: FittedProbabilities | None = None) -> PooledProbability:
    return PROBABILITY_RULES[rule](probabilities=np.array(p), seats=SEATS[: len(p)], fitted=fitted)


def fitted(**changed: Any) -> FittedProbabilities:
    told: dict[str, Any] = {"stacking": None, "rho": None, "base_rate": None, "n_items": 40, "complete_rows": 40}
    return FittedProbabilities(**{**told, **changed})


@pytest.mark.parametrize(
    "p", [[0.1, 0.2, 0.4, 0.5], [0.0, 1.0], [0.9, 0.05, 0.3], [1.0, 1.0, 0.0, 0.7, 0.2], [0.1] * 6]
)
def test_the_median_is_that_of_the_standard_library(p: list[float]) -> None:
    made = pool("median", *p)
    assert made.value == statistics.median(p)
    assert made.n == len(p)
    assert sum(made.weights.values()) == pytest.approx(1.0)
    assert made.value == pytest.approx(sum(made.weights[seat] * x for seat, x in zip(SEATS, p, strict=False)))
    assert made.flags == ()


def test_certainty_is_kept_as_given_by_rules_that_need_no_logarithm() -> None:
    assert pool("median", 0.0, 0.0, 1.0).value == 0.0
    assert pool("mean", 0.0, 0.0).value == 0.0


@pytest.mark.parametrize("rule", ready_rules(), ids=lambda rule: rule.name)
def test_a_single_seat_is_itself_and_flagged(rule: Any) -> None:
    made = rule(probabilities=np.array([0.001]), seats=("solo",))
    assert (made.value, made.weights, made.flags, made.n) == (0.001, {"solo": 1.0}, ("single_agent",), 1)


@pytest.mark.parametrize("rule", ready_rules(), ids=lambda rule: rule.name)
def test_nothing_is_made_of_nothing(rule: Any) -> None:
    with pytest.raises(QuorumError, match=f"{rule.name} of no answers"):
        rule(probabilities=np.empty(0), seats=())


@pytest.mark.parametrize(
    ("p", "seats"),
    [
        ([0.1, 0.2], ("a",)),
        ([0.1, 0.2], ("a", "a")),
        ([0.1, 1.1], ("a", "b")),
        ([-0.1, 0.2], ("a", "b")),
        ([float("nan"), 0.2], ("a", "b")),
        ([[0.1], [0.2]], ("a", "b")),
    ],
)
def test_what_is_no_probability_is_refused(p: list[float], seats: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        MedianProbability()(probabilities=np.array(p), seats=seats)


def test_the_default_is_fixed_by_the_declared_seats() -> None:
    assert [default_probability_rule(n) for n in (1, 7, 8, 20)] == ["geometric_odds"] * 2 + ["median"] * 2
    assert {default_probability_rule(n) for n in (1, 8)} <= set(PROBABILITY_RULES.names())


def test_trimming_cuts_both_ends_or_says_that_it_does_not() -> None:
    assert pool("trimmed_mean", 0.0, 0.2, 0.3, 0.4, 1.0).value == pytest.approx(0.3)
    assert pool("trimmed_mean", 0.0, 0.2, 0.3, 0.4, 1.0).weights["a"] == 0.0
    assert pool("trimmed_mean", 0.0, 0.2, 0.3, 0.9).flags == ("trim_inactive",)
    with pytest.raises(DataError, match=r"trim of 0\.5"):
        TrimmedMeanProbability(proportion=0.5)(probabilities=np.array([0.1, 0.2]), seats=("a", "b"))


def test_every_clip_is_on_record_with_before_and_after() -> None:
    made = pool("geometric_odds", 0.0, 0.5, 0.999)
    assert made.clips == (Clip("a", 0.0, 0.005), Clip("c", 0.999, 0.995))
    assert made.value == pytest.approx(0.5)
    assert json.loads(json.dumps(asdict(made)))["clips"][0] == {"what": "a", "before": 0.0, "after": 0.005}
    for rule in ("neyman", "extremized_odds", "stacking"):
        assert pool(rule, 0.0, 0.5, 0.999).clips == made.clips


def test_clipping_never_carries_the_pool_beyond_what_the_seats_said() -> None:
    made = pool("geometric_odds", 0.001, 0.002)
    assert made.value == 0.002
    assert [clip.what for clip in made.clips] == ["a", "b", "pool"]
    assert made.clips[-1].after == 0.002


def test_a_correlation_is_never_assumed() -> None:
    made = pool("sqrt_neff", 0.12, 0.22, 0.22)
    assert made.value == pytest.approx(0.56 / 3)
    assert (made.flags, made.rho, made.n_eff, made.factor, made.base) == (("rho_unmeasured",), 1.0, 1.0, 1.0, 0.5)
    assert list(made.band) == ["0", "0.3", "0.5", "0.7", "0.9", "1"]
    assert [round(p, 4) for p in made.band.values()] == [0.01, 0.071, 0.1162, 0.1497, 0.1757, 0.1867]
    few = pool("sqrt_neff", 0.12, 0.22, 0.22, fitted=fitted(rho=0.9, n_items=29, complete_rows=0))
    assert few == made
    own = pool("neyman", 0.12, 0.22, 0.22, fitted=fitted(rho=0.9, base_rate=0.1, n_items=29, complete_rows=0))
    assert own == pool("neyman", 0.12, 0.22, 0.22)
    assert own.flags == ("rho_unmeasured",)
    assert own.band["0"] == own.value
    assert own.band["1"] == pytest.approx(pool("geometric_odds", 0.12, 0.22, 0.22).value)


def test_a_measured_correlation_is_used_and_needs_no_band() -> None:
    made = pool("sqrt_neff", 0.12, 0.22, 0.22, fitted=fitted(rho=0.9))
    assert (round(made.value, 4), made.rho, made.flags, made.band) == (0.1757, 0.9, (), {})
    assert made.n_eff == pytest.approx(3 / 2.8)
    odds = pool("neyman", 0.12, 0.22, 0.22, fitted=fitted(rho=0.9))
    assert odds.factor == projective_factor(3 / 2.8)
    negative = pool("sqrt_neff", 0.12, 0.22, 0.22, fitted=fitted(rho=-0.2))
    assert (negative.flags, negative.rho, negative.n_eff) == (("rho_negative",), 0.0, 3.0)
    assert [clip.what for clip in negative.clips] == ["pool"]


def test_the_effective_number_is_reported_unclamped() -> None:
    made = PROBABILITY_RULES["sqrt_neff"](
        probabilities=np.full(20, 0.6), seats=tuple(f"s{i:02d}" for i in range(20)), fitted=fitted(rho=0.0)
    )
    assert (made.n_eff, made.factor) == (20.0, 3.0)


def test_weighing_by_extremity() -> None:
    made = pool("sqrt_neff_weighted", 0.5, 0.9, 0.3)
    assert made.weights == pytest.approx({"a": 0.0, "b": 2 / 3, "c": 1 / 3})
    assert pool("sqrt_neff_weighted", 0.5, 0.5).flags == ("equal_weights", "rho_unmeasured")
    assert pool("sqrt_neff_weighted", 0.5, 0.5).value == 0.5


def test_stacked_odds_use_fitted_weights_of_any_sum() -> None:
    learnt = fitted(stacking={"a": 1.0, "b": 0.5, "c": 0.0})
    made = pool("stacking", 0.6, 0.8, 0.1, fitted=learnt)
    assert made.value == pytest.approx(expit(logit(0.6) + 0.5 * logit(0.8)))
    assert (made.flags, made.factor) == ((), 1.5)
    assert made.weights == pytest.approx({"a": 2 / 3, "b": 1 / 3, "c": 0.0})
    fewer = pool("stacking", 0.6, 0.8, fitted=learnt)
    assert (fewer.value, fewer.flags) == (made.value, ("renormalised",))
    with pytest.raises(DataError, match="d was not fitted"):
        pool("stacking", 0.6, 0.8, 0.1, 0.2, fitted=learnt)


def test_stacked_odds_without_weights_are_the_geometric_mean() -> None:
    plain = pool("geometric_odds", 0.6, 0.8)
    nothing = pool("stacking", 0.6, 0.8, fitted=fitted(stacking={"a": 0.0, "b": 0.0}))
    assert pool("stacking", 0.6, 0.8).value == nothing.value == plain.value
    assert pool("stacking", 0.6, 0.8).flags == ("equal_weights",)
    assert nothing.flags == ("zero_weights", "equal_weights")


def test_without_an_artefact_nothing_is_recalibrated() -> None:
    assert "recalibrated" not in [rule.name for rule in ready_rules()]
    assert "recalibrated" not in [rule.name for rule in ready_rules(fitted())]
    with pytest.raises(DataError, match="recalibrated without an artefact"):
        pool("recalibrated", 0.5, 0.6)
    again = Recalibration(**{**asdict(SHRINK), "pool": "recalibrated"})
    with pytest.raises(DataError, match="recalibration of recalibrated"):
        pool("recalibrated", 0.5, 0.6, fitted=fitted(recalibration=again))


def test_an_artefact_maps_the_pool_it_was_fitted_on_and_is_named() -> None:
    learnt = fitted(recalibration=SHRINK)
    assert [rule.name for rule in ready_rules(learnt)] == PROBABILITY_RULES.names()
    made = pool("recalibrated", 0.6, 0.9, 0.8, fitted=learnt)
    assert made.value == pytest.approx(expit(0.1 + 0.5 * logit(0.8)))
    assert made.artefact == "2025-01"
    single = pool("recalibrated", 0.8, fitted=learnt)
    assert (single.value, single.flags) == (made.value, ("single_agent",))


def test_log_odds_at_the_ends() -> None:
    assert (logit(0.0), logit(1.0), expit(math.inf), expit(-math.inf)) == (-math.inf, math.inf, 1.0, 0.0)
    assert (log_odds_gap(0.0, 0.0), log_odds_gap(1.0, 0.5), log_odds_gap(0.0, 1.0)) == (0.0, math.inf, math.inf)
    assert clipped(1.0) == 0.995
    assert halved_farthest([0.2, 0.6]) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: logit(1.5), "1.5 is no probability"),
        (lambda: scale_odds(0.5, exponent=0.0), "to the power 0.0"),
        (lambda: scale_odds(0.5, exponent=1.0, factor=-1.0), "times -1.0"),
        (lambda: mean_logit([0.5], [0.0]), r"weights \[0.0\]"),
        (lambda: mean_logit([0.5], [0.5, 0.5]), "for 1 probabilities"),
        (lambda: mean_logit([]), "for 0 probabilities"),
        (lambda: projective_factor(0.5), "for 0.5 members"),
        (lambda: effective_number(3, rho=-0.5), "correlation -0.5"),
        (lambda: effective_number(3, rho=1.5), "correlation 1.5"),
        (lambda: sqrt_neff([0.5, 0.6], rho=0.3, weights=[-1, 2]), r"weights \[-1, 2\]"),
        (lambda: halved_farthest([]), "mean of no probabilities"),
    ],
)
def test_formulas_refuse_what_has_no_answer(made: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        made()
