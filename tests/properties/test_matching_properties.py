"""Promises of cost-matching that hold whatever samples cost."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from consilience.errors import PlanError
from consilience.experiments.matching import Allotment, Match, SampleCost, share_out
from consilience.protocols import Single
from consilience.protocols.single import MOST_SAMPLES, REFINE_TURNS

ANY_COST = st.none() | st.integers(0, 500)
KNOWN_COST = st.integers(30, 500)
"""High enough that no number of samples is capped."""
NAMES = [f"item-{number:02d}" for number in range(1, 9)]


@st.composite
def costs(draw: st.DrawFn, allowance: int, cost: st.SearchStrategy[int | None]) -> SampleCost:
    """Return what a run learns of an item: nothing, its first sample, or two where the allowance bears them."""
    first = draw(cost)
    bears = first is not None and 2 * first <= allowance
    return SampleCost(first, draw(cost) if bears else None)


@st.composite
def matches(
    draw: st.DrawFn, cost: st.SearchStrategy[int | None] = ANY_COST
) -> tuple[Match, dict[str, SampleCost], Single]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    allowance = {name: draw(st.integers(1, 20_000)) for name in names}
    known = {name: draw(costs(allowance[name], cost)) for name in names}
    match = Match(unit="tokens", source="tokens:n", label="tokens", allowance=allowance)
    return match, known, Single(refine=draw(st.booleans()))


def shared(match: Match, known: dict[str, SampleCost], protocol: Single) -> dict[str, Allotment]:
    try:
        return share_out(match, known, protocol)
    except PlanError:
        assume(False)
        raise


def planned_cost(allotted: Allotment, cost: SampleCost) -> int | None:
    """Return what an item is planned to take when every turn after the first takes what the second sample did."""
    if not cost.first or not cost.marginal:
        return None
    refining = len(REFINE_TURNS) * cost.marginal if allotted.protocol.refine else 0
    return cost.first + (allotted.protocol.samples - 1) * cost.marginal + refining


@given(case=matches())
def test_no_item_is_planned_to_take_more_than_it_may_unless_its_first_samples_alone_do(case: Any) -> None:
    match, known, protocol = case
    for item, allotted in shared(match, known, protocol).items():
        planned = planned_cost(allotted, known[item])
        if planned is None or planned <= allotted.allowed:
            continue
        taken_anyhow = 1 if known[item].next is None else 2
        assert (allotted.protocol.samples, allotted.protocol.refine) == (taken_anyhow, False)


@given(case=matches())
def test_what_is_left_over_is_less_than_one_more_sample(case: Any) -> None:
    match, known, protocol = case
    for item, allotted in shared(match, known, protocol).items():
        planned = planned_cost(allotted, known[item])
        if planned is not None and not allotted.capped:
            assert allotted.allowed - planned < (known[item].marginal or 0)


@given(case=matches(KNOWN_COST))
def test_the_rest_is_carried_to_the_next_item(case: Any) -> None:
    match, known, protocol = case
    carried = 0
    for item, allotted in sorted(shared(match, known, protocol).items()):
        assert allotted.allowed == match.allowance[item] + carried
        carried = allotted.allowed - (planned_cost(allotted, known[item]) or 0)


@given(case=matches(KNOWN_COST))
def test_together_items_are_planned_to_take_what_they_may(case: Any) -> None:
    """Within one sample of the last item, unless its first samples alone cost more."""
    match, known, protocol = case
    made = shared(match, known, protocol)
    assert not any(one.capped for one in made.values())
    planned = {item: planned_cost(one, known[item]) or 0 for item, one in made.items()}
    last = max(made)
    rest = sum(match.allowance[item] for item in made) - sum(planned.values())
    assert rest < (known[last].marginal or 0)
    assert rest >= 0 or planned[last] > made[last].allowed


@given(case=matches(), order=st.randoms(use_true_random=False))
def test_the_order_in_which_samples_come_changes_nothing(case: Any, order: Any) -> None:
    match, known, protocol = case
    names = [*known]
    order.shuffle(names)
    again = {name: known[name] for name in names}
    assert shared(match, again, protocol) == shared(match, known, protocol)


@given(case=matches())
def test_what_is_declared_otherwise_stays(case: Any) -> None:
    match, known, protocol = case
    for allotted in shared(match, known, protocol).values():
        assert 1 <= allotted.protocol.samples <= MOST_SAMPLES
        assert protocol.refine or not allotted.protocol.refine
        assert replace(allotted.protocol, samples=protocol.samples, refine=protocol.refine) == protocol


@given(case=matches())
def test_an_item_whose_cost_is_unknown_is_asked_as_often_as_a_typical_one(case: Any) -> None:
    match, known, protocol = case
    made = shared(match, known, protocol)
    marginals = [cost.marginal for cost in known.values() if cost.marginal]
    if not marginals:
        assert {(one.protocol.samples, one.protocol.refine) for one in made.values()} == {(1, False)}
        return
    typical = SampleCost(round(statistics.median(marginals)))
    assume(typical.first)
    guessed = {item: typical if cost.marginal is None else cost for item, cost in known.items()}
    assert shared(match, guessed, protocol) == made
