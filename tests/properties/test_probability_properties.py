"""Promises of the rules for probabilities, over the registry: what is declared holds, what is not is refuted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.aggregation.location import FloatArray
from consilience.aggregation.pooling import ProbabilityRule
from consilience.aggregation.probabilities import PROBABILITY_RULES
from consilience.aggregation.recalibration import Recalibration
from consilience.aggregation.resolved import FittedProbabilities

BRIEF = settings(max_examples=60, deadline=None)
RULES = list(PROBABILITY_RULES)
MEMBERS = st.lists(st.floats(0, 1), min_size=1, max_size=12)
SEATS = tuple(f"seat{i:02d}" for i in range(13))
ARTEFACT = Recalibration("platt", (0.3, 0.7), (), "geometric_odds", 400, "1")


@st.composite
def learnt(draw: Any) -> FittedProbabilities:
    weights = draw(st.lists(st.floats(0, 2), min_size=13, max_size=13))
    return FittedProbabilities(
        stacking=dict(zip(SEATS, weights, strict=True)),
        rho=draw(st.one_of(st.none(), st.floats(-0.05, 1))),
        base_rate=draw(st.one_of(st.none(), st.floats(0.05, 0.95))),
        n_items=draw(st.integers(0, 60)),
        complete_rows=0,
        recalibration=ARTEFACT,
    )


FITTED = learnt()
WITNESS = FittedProbabilities(
    stacking=dict.fromkeys(SEATS, 1.0), rho=0.1, base_rate=None, n_items=50, complete_rows=50, recalibration=ARTEFACT
)


def of(rule: ProbabilityRule, p: FloatArray, fitted: FittedProbabilities | None, seats: tuple[str, ...] = SEATS) -> Any:
    return rule(probabilities=p, seats=seats[: p.size], fitted=fitted)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@BRIEF
@given(members=MEMBERS, fitted=FITTED, seed=st.integers(0, 2**32 - 1))
def test_what_is_declared_holds(
    rule: ProbabilityRule, members: list[float], fitted: FittedProbabilities, seed: int
) -> None:
    p = np.array(members)
    made = of(rule, p, fitted)
    assert 0 <= made.value <= 1
    assert sum(made.weights.values()) == pytest.approx(1.0, abs=1e-9)
    assert made.n == p.size
    assert rule.order_invariant
    order = np.random.default_rng(seed).permutation(p.size)
    assert repr(of(rule, p[order], fitted, tuple(SEATS[int(i)] for i in order))) == repr(made)
    if rule.unanimity:
        assert of(rule, np.full(p.size, p[0]), fitted).value == p[0]
    if rule.within_range:
        assert p.min() <= made.value <= p.max()
    if rule.complementary:
        base = None if fitted.base_rate is None else 1 - fitted.base_rate
        other = replace(fitted, base_rate=base)
        assert of(rule, 1 - p, other).value == pytest.approx(1 - made.value, abs=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_is_not_declared_is_refuted(rule: ProbabilityRule) -> None:
    same, apart = np.array([0.8, 0.8, 0.8]), np.array([0.7, 0.75, 0.8])
    assert (of(rule, same, WITNESS).value == 0.8) == rule.unanimity
    value = of(rule, apart, WITNESS).value
    assert (apart.min() <= value <= apart.max()) == rule.within_range or rule.name == "recalibrated"
    assert (abs(of(rule, 1 - apart, WITNESS).value - (1 - value)) < 1e-9) == rule.complementary


def test_recalibration_leaves_the_range() -> None:
    far = np.array([0.97, 0.98])
    assert of(PROBABILITY_RULES["recalibrated"], far, WITNESS).value < far.min()


@pytest.mark.parametrize("name", ["stacking", "sqrt_neff_weighted"])
@BRIEF
@given(members=MEMBERS.filter(lambda p: len(p) > 1), fitted=FITTED, says=st.floats(0, 1), at=st.integers(0, 12))
def test_a_member_of_no_weight_does_not_matter(
    name: str, members: list[float], fitted: FittedProbabilities, says: float, at: int
) -> None:
    if name == "sqrt_neff_weighted":
        says = 0.5
        if all(p == 0.5 for p in members):
            return  # nobody weighs anything: all alike
    at = min(at, len(members))
    there = SEATS[: len(members) + 1]
    weights = dict(fitted.stacking or {})
    weights[there[at]] = 0.0
    if not any(weights[seat] for seat in there):
        return  # the same
    known = replace(fitted, stacking=weights)
    more = of(PROBABILITY_RULES[name], np.array([*members[:at], says, *members[at:]]), known)
    without = of(PROBABILITY_RULES[name], np.array(members), known, (*there[:at], *there[at + 1 :]))
    assert more.value == without.value
    assert more.weights[there[at]] == 0.0
