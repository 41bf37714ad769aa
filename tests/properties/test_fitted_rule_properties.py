"""Promises of every point rule under weights that validation taught it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.aggregation.fitted import FittedRole
from consilience.aggregation.fitting import fit_numbers
from consilience.aggregation.location import FloatArray
from consilience.aggregation.numbers import POINT_RULES, Fitted, PointRule

BRIEF = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
RULES = list(POINT_RULES)
POINTS = st.lists(st.floats(min_value=1e3, max_value=1e8), min_size=2, max_size=9).map(
    lambda points: np.array(points, dtype=np.float64)
)
WEIGHTS = st.floats(min_value=0, max_value=1).map(lambda w: round(w, 3))
ROLE = st.builds(
    FittedRole,
    rows=st.integers(5, 200),
    variance=st.floats(0.001, 0.2),
    scale=st.floats(0.01, 0.3),
    stacking=WEIGHTS,
    stacking_nnls=WEIGHTS,
)
NINE = st.lists(ROLE, min_size=9, max_size=9)
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
OWN = {"inverse_variance": "variance", "stacking": "stacking", "stacking_nnls": "stacking_nnls"}
"""The rules whose weights do not depend on the points, with what they rest on."""
by_weight = pytest.mark.parametrize("rule", [POINT_RULES[name] for name in OWN], ids=lambda rule: rule.name)


def names(n: int) -> tuple[str, ...]:
    return tuple(f"seat{i:02d}" for i in range(n))


def seated(roles: list[FittedRole], n: int) -> Fitted:
    return dict(zip(names(n), roles[:n], strict=True))


@by_rule
@BRIEF
@given(points=POINTS, roles=NINE, seed=SEEDS)
def test_the_order_of_members_changes_no_bit(
    rule: PointRule, points: FloatArray, roles: list[FittedRole], seed: int
) -> None:
    seats, fitted = names(points.size), seated(roles, points.size)
    order = [int(i) for i in np.random.default_rng(seed).permutation(points.size)]
    made = rule(points=points, scale="log", seats=seats, weights=fitted)
    turned = {seats[i]: fitted[seats[i]] for i in order}
    again = rule(points=points[order], scale="log", seats=tuple(seats[i] for i in order), weights=turned)
    assert again == made


@by_rule
@BRIEF
@given(points=POINTS, roles=NINE, factor=st.sampled_from((0.092903, 1000.0, 0.7)))
def test_a_change_of_unit_commutes(rule: PointRule, points: FloatArray, roles: list[FittedRole], factor: float) -> None:
    seats, fitted = names(points.size), seated(roles, points.size)
    made = rule(points=points, scale="log", seats=seats, weights=fitted)
    if "second_mode" in made.flags:
        return  # two modes of nearly one height may change places by rounding
    other = rule(points=points * factor, scale="log", seats=seats, weights=fitted)
    assert other.value == pytest.approx(made.value * factor, rel=1e-8)


@by_rule
@BRIEF
@given(points=POINTS, roles=NINE)
def test_unanimity_and_range(rule: PointRule, points: FloatArray, roles: list[FittedRole]) -> None:
    seats, fitted = names(points.size), seated(roles, points.size)
    if rule.unanimity:
        alike = np.full(points.size, points[0])
        assert rule(points=alike, scale="log", seats=seats, weights=fitted).value == points[0]
    if rule.within_range:
        value = rule(points=points, scale="log", seats=seats, weights=fitted).value
        assert points.min() * (1 - 1e-12) <= value <= points.max() * (1 + 1e-12)


@pytest.mark.parametrize("name", ["stacking", "stacking_nnls"])
@BRIEF
@given(points=POINTS, roles=NINE, at=st.integers(0, 8), elsewhere=st.floats(1e3, 1e8))
def test_a_member_without_weight_does_not_matter(
    name: str, points: FloatArray, roles: list[FittedRole], at: int, elsewhere: float
) -> None:
    at %= points.size
    seats, fitted = names(points.size), dict(seated(roles, points.size))
    fitted[seats[at]] = replace(fitted[seats[at]], **{OWN[name]: 0.0})  # type: ignore[arg-type] # its fields by name
    rule = POINT_RULES[name]
    if not any(getattr(role, OWN[name]) for role in fitted.values()):
        return  # nobody has weight: equal weights, flagged
    made = rule(points=points, scale="log", seats=seats, weights=fitted)
    moved = points.copy()
    moved[at] = elsewhere
    assert rule(points=moved, scale="log", seats=seats, weights=fitted).value == pytest.approx(made.value, rel=1e-14)
    assert made.weights[seats[at]] == 0.0
    without = np.delete(points, at), tuple(seat for seat in seats if seat != seats[at])
    gone = rule(points=without[0], scale="log", seats=without[1], weights=fitted)
    assert gone.value == pytest.approx(made.value, rel=1e-12)


@by_rule
@BRIEF
@given(points=POINTS, roles=NINE, absent=st.sets(st.integers(0, 8), max_size=4))
def test_who_abstains_never_enters(
    rule: PointRule, points: FloatArray, roles: list[FittedRole], absent: set[int]
) -> None:
    kept = [i for i in range(points.size) if i not in absent]
    if not kept:
        return
    seats, fitted = names(points.size), seated(roles, points.size)
    here = tuple(seats[i] for i in kept)
    made = rule(points=points[kept], scale="log", seats=here, weights=fitted)
    alone = rule(points=points[kept], scale="log", seats=here, weights={seat: fitted[seat] for seat in here})
    assert (made.value, made.weights, made.n) == (alone.value, alone.weights, alone.n)
    assert set(made.weights) == set(here)
    assert math.fsum(made.weights.values()) == pytest.approx(1.0, rel=1e-9)


@by_weight
@BRIEF
@given(points=POINTS, roles=NINE)
def test_weights_of_those_present_keep_their_proportions(
    rule: PointRule, points: FloatArray, roles: list[FittedRole]
) -> None:
    seats, fitted = names(points.size), seated(roles, points.size)
    whole = rule(points=points, scale="log", seats=seats, weights=fitted)
    part = rule(points=points[1:], scale="log", seats=seats[1:], weights=fitted)
    left = math.fsum(whole.weights[seat] for seat in seats[1:])
    if "equal_weights" in {*whole.flags, *part.flags} or left == 0:
        return
    assert list(part.weights.values()) == pytest.approx([whole.weights[s] / left for s in seats[1:]], rel=1e-9)
    assert ("weights_renormalised" in part.flags) == (part.n > 1)


@by_rule
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, n=st.integers(2, 6), rows=st.integers(1, 50), gaps=st.floats(0, 0.5))
def test_what_was_fitted_can_be_applied(rule: PointRule, seed: int, n: int, rows: int, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    truth = np.exp(12 + rng.standard_normal(rows))
    points = truth[:, None] * np.exp(0.2 * rng.standard_normal((rows, n)))
    present = rng.random((rows, n)) >= gaps
    present[0] = True
    made = fit_numbers(points=points, present=present, truth=truth, roles=names(n), scale="log")
    assert [role.rows for role in made.roles.values()] == present.sum(axis=0).tolist()
    for shares in ("stacking", "stacking_nnls"):
        assert math.fsum(getattr(role, shares) for role in made.roles.values()) == pytest.approx(1.0, rel=1e-9)
    value = rule(points=points[0], scale="log", seats=names(n), weights=made.roles).value
    assert points[0].min() * (1 - 1e-12) <= value <= points[0].max() * (1 + 1e-12)
