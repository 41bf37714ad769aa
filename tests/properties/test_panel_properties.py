"""Promises of the panel's diagnostics that hold for all panels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.aggregation.movement import item_diagnostics
from consilience.core.deliberation import Deliberation
from consilience.core.question import Kind
from consilience.experiments.diagnostics import Observed, observe, panel_diagnostics
from consilience.inference.crowd import diversity_prediction
from consilience.inference.effective import Undefined, effective_numbers
from course_cases import ask, deliberation

BRIEF = settings(max_examples=40)
SEATS = "abcd"
SHARES = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any).map(lambda w: tuple(x / sum(w) for x in w))
VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    "estimate": st.floats(1, 1e6),
    "probability": st.floats(0, 1),
    "choice": st.sampled_from("xyz"),
    "distribution": SHARES,
}
TRUTHS: dict[Kind, st.SearchStrategy[Any]] = {
    "estimate": st.floats(1, 1e6),
    "probability": st.sampled_from([0, 1]),
    "choice": st.sampled_from("xyz"),
    "distribution": st.sampled_from("xyz"),
}
Rounds = list[list[Any]]


@st.composite
def runs(draw: st.DrawFn) -> tuple[Kind, list[tuple[Rounds, Any]]]:
    """Return a kind and up to 14 items of up to three rounds, some answers and truths missing."""
    kind = draw(st.sampled_from(list(VALUES)))
    row = st.lists(st.none() | VALUES[kind] if draw(st.booleans()) else VALUES[kind], min_size=4, max_size=4)
    item = st.tuples(st.lists(row, min_size=1, max_size=3), st.none() | TRUTHS[kind])
    return kind, draw(st.lists(item, min_size=1, max_size=14))


def shuffled(course: Deliberation, order: list[int]) -> Deliberation:
    return Deliberation(tuple(tuple(table[index] for index in order) for table in course.tables))


@BRIEF
@given(run=runs(), order=st.permutations(range(4)), turn=st.randoms(use_true_random=False))
def test_the_order_of_members_and_items_changes_nothing(run: Any, order: list[int], turn: Any) -> None:
    kind, items = run
    scale = "log" if kind == "estimate" else "linear"
    plain: list[Observed] = []
    mixed: list[Observed] = []
    for number, (rounds, truth) in enumerate(items):
        question = ask(kind, scale=scale, name=f"q{number}")
        course = deliberation(kind, *rounds, seats=SEATS)
        plain.append(observe(question, course, truth=truth))
        mixed.append(observe(question, shuffled(course, order), truth=truth))
        one, other = (item_diagnostics(question, c, truth=truth) for c in (course, shuffled(course, order)))
        assert one.rounds == other.rounds
        assert sorted(one.moves, key=lambda m: (m.round, m.seat)) == sorted(
            other.moves, key=lambda m: (m.round, m.seat)
        )
    turn.shuffle(mixed)
    assert panel_diagnostics(plain) == panel_diagnostics(mixed)


@BRIEF
@given(run=runs())
def test_a_move_closes_at_most_the_whole_gap_and_only_by_moving(run: Any) -> None:
    kind, items = run
    for rounds, truth in items:
        made = item_diagnostics(ask(kind), deliberation(kind, *rounds, seats=SEATS), truth=truth)
        for move in made.moves:
            assert all(0 < one.share <= 1 for one in move.toward)
            assert [one.share for one in move.toward] == sorted((one.share for one in move.toward), reverse=True)
            assert move.distance > 0 or move.toward == ()
            assert move.distance == 0 or not move.carried
        for state in made.rounds:
            shares = state.evidence
            assert set(shares.by_all).isdisjoint(shares.by_one)
            assert state.right is None or 0 <= state.right <= state.answered


@BRIEF
@given(
    column=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=30).filter(lambda x: max(x) - min(x) > 1e-3),
    copies=st.integers(2, 12),
)
def test_a_panel_of_copies_is_worth_one(column: list[float], copies: int) -> None:
    made = effective_numbers(values=np.tile(np.array(column)[:, None], (1, copies)), errors=True)
    for value in (made.equicorrelated, made.equal_weight, made.participation_ratio, made.mean_square):
        assert value == pytest.approx(1.0, abs=1e-6)


@BRIEF
@given(
    values=st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.floats(-1e3, 1e3), min_size=n, max_size=n), min_size=3, max_size=12)
    )
)
def test_every_number_is_at_least_one_and_finite_or_says_why(values: list[list[float]]) -> None:
    made = effective_numbers(values=np.array(values), errors=True)
    for name, value in vars(made).items():
        if isinstance(value, Undefined):
            assert value.reason
        elif name in {"rho", "rank_rho"}:
            assert -1 <= value <= 1
        else:
            assert np.isfinite(value)
            assert value >= 1 - 1e-6, name


@BRIEF
@given(values=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), truth=st.floats(-1e3, 1e3))
def test_diversity_is_what_the_crowd_gains(values: list[float], truth: float) -> None:
    made = diversity_prediction(predictions=np.array(values), truth=truth)
    assert made.crowd_error == pytest.approx(made.avg_error - made.diversity, abs=1e-6)
    assert made.diversity >= 0
