"""How a panel moved: small tables worked by hand, of every kind."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from consilience.aggregation.movement import (
    Move,
    Toward,
    cited_ids,
    evidence_overlap,
    item_diagnostics,
    moves_between,
)
from consilience.aggregation.positions import distance, is_right, position, stance, truth_position
from consilience.core.answers import Quote
from consilience.core.question import Kind
from course_cases import ask, course, deliberation, make


def shares(move: Move) -> list[tuple[str, float]]:
    return [(one.seat, round(one.share, 9)) for one in move.toward]


def by_seat(moves: list[Move]) -> dict[str, Move]:
    return {move.seat: move for move in moves}


def test_who_moved_toward_whom_and_how_much_of_the_gap() -> None:
    before, after = course("estimate", (10, 20, 40), (15, 20, 10))
    moves = by_seat(moves_between(before, after, ask("estimate"), round_=1))
    # a: gap to b 10 -> 5, to c 30 -> 25
    assert moves["a"].distance == 5
    assert shares(moves["a"]) == [("b", 0.5), ("c", round(1 / 6, 9))]
    assert (moves["b"].distance, moves["b"].toward) == (0, ())
    # c: gap to a 30 -> 0; to b 20 -> 10, on the other side
    assert moves["c"].toward == (Toward("a", 1.0), Toward("b", 0.5))
    assert [move.changed for move in moves.values()] == [None] * 3
    assert [move.turned for move in moves.values()] == [None] * 3


def test_a_log_scale_measures_ratios() -> None:
    before, after = course("estimate", (100, 400, None), (200, 400, None))
    moves = by_seat(moves_between(before, after, ask("estimate", scale="log"), round_=1))
    assert moves["a"].distance == pytest.approx(math.log(2))
    assert shares(moves["a"]) == [("b", 0.5)]
    assert set(moves) == {"a", "b"}


def test_moving_away_is_toward_nobody() -> None:
    before, after = course("probability", (0.5, 0.8, 0.9), (0.2, 0.8, 0.9))
    move = by_seat(moves_between(before, after, ask("probability"), round_=1))["a"]
    assert move.distance == pytest.approx(0.3)
    assert (move.toward, move.changed) == ((), True)


def test_ballots_move_whole() -> None:
    before, after = course("choice", ("x", "y", "y"), ("y", "y", "z"))
    moves = by_seat(moves_between(before, after, ask("choice"), round_=1, truth="y"))
    assert moves["a"].toward == (Toward("b", 1.0), Toward("c", 1.0))
    assert (moves["a"].changed, moves["a"].turned) == (True, "wrong_to_right")
    assert (moves["b"].distance, moves["b"].changed, moves["b"].turned) == (0.0, False, None)
    assert (moves["c"].distance, moves["c"].toward, moves["c"].turned) == (1.0, (), "right_to_wrong")


def test_distributions_by_total_variation() -> None:
    before, after = course("distribution", ((0.6, 0.4, 0.0), (0.0, 1.0, 0.0), None), ((0.2, 0.8, 0.0), (0, 1, 0), None))
    move = by_seat(moves_between(before, after, ask("distribution"), round_=1, truth="x"))["a"]
    assert move.distance == pytest.approx(0.4)
    assert shares(move) == [("b", round(2 / 3, 9))]
    assert (move.changed, move.turned) == (True, "right_to_wrong")


def test_a_carried_answer_is_no_move_and_a_late_one_neither() -> None:
    said = deliberation("probability", (0.2, None, 0.9), (None, 0.6, 0.9), (0.7, 0.7, None))
    made = item_diagnostics(ask("probability"), said, truth=1)
    first = [move for move in made.moves if move.round == 1]
    assert [(move.seat, move.carried, move.distance) for move in first] == [("a", True, 0.0), ("c", False, 0.0)]
    second = by_seat([move for move in made.moves if move.round == 2])
    assert (second["a"].turned, second["b"].turned, second["c"].carried) == ("wrong_to_right", None, True)
    assert [(state.answered, state.carried, state.right) for state in made.rounds] == [(2, 0, 1), (3, 1, 2), (3, 1, 3)]


def test_spread_is_the_kinds_own_and_none_below_two_answers() -> None:
    said = deliberation("choice", ("x", None, None), ("x", "y", "y"))
    made = item_diagnostics(ask("choice"), said)
    assert [state.spread for state in made.rounds] == [None, pytest.approx(1 / 3)]
    assert [state.right for state in made.rounds] == [None, None]


@pytest.mark.parametrize(
    ("kind", "value", "truth", "right"),
    [
        ("estimate", 110, 100.0, True),
        ("estimate", 90, 100.0, True),
        ("estimate", 110.001, 100.0, False),
        ("estimate", -110, -100.0, True),
        ("estimate", 0, 0.0, True),
        ("estimate", 0.001, 0.0, False),
        ("probability", 0.51, 1, True),
        ("probability", 0.51, 0, False),
        ("probability", 0.5, 0, False),
        ("probability", 0.5, 1, False),
        ("choice", "x", "x", True),
        ("choice", "y", "x", False),
        ("distribution", (0.5, 0.3, 0.2), "x", True),
        ("distribution", (0.4, 0.4, 0.2), "x", False),
    ],
)
def test_what_counts_as_right(kind: Kind, value: Any, truth: Any, right: bool) -> None:
    assert is_right(make(kind, value), ask(kind), truth) is right


def test_positions_and_stances() -> None:
    assert position(make("distribution", (0.5, 0.3, 0.2)), ask("distribution")) == (0.5, 0.3, 0.2)
    assert position(make("choice", "y"), ask("choice")) == truth_position("y", ask("choice")) == (0.0, 1.0, 0.0)
    assert position(make("estimate", math.e), ask("estimate", scale="log")) == pytest.approx((1.0,))
    assert truth_position(math.e, ask("estimate", scale="log")) == pytest.approx((1.0,))
    assert [stance(make("probability", p), ask("probability")) for p in (0.2, 0.5, 0.7)] == ["no", None, "yes"]
    assert stance(make("estimate", 1), ask("estimate")) is None
    assert stance(make("distribution", (0.4, 0.4, 0.2)), ask("distribution")) is None
    assert distance((0.6, 0.4, 0.0), (0.2, 0.4, 0.4)) == pytest.approx(0.4)


def test_evidence_overlap_by_hand() -> None:
    answers = [make("choice", "x", "P", "C1", "C2"), make("choice", "y", "P", "C1"), make("choice", "y", "P", "C9")]
    made = evidence_overlap(answers)
    assert made.pairs == 3
    assert made.jaccard == pytest.approx((2 / 3 + 1 / 4 + 1 / 3) / 3)
    assert (made.by_all, made.by_one) == (("P",), ("C2", "C9"))


def test_who_cites_nothing_shares_nothing() -> None:
    made = evidence_overlap([make("choice", "x"), make("choice", "y"), make("choice", "y", "P")])
    assert (made.pairs, made.jaccard, made.by_all, made.by_one) == (2, 0.0, (), ("P",))
    assert evidence_overlap([make("choice", "x"), make("choice", "y")]).jaccard is None
    alone = evidence_overlap([make("choice", "x", "P")])
    assert (alone.jaccard, alone.by_all, alone.by_one) == (None, (), ())


def test_quotes_and_adjustments_are_citations_too() -> None:
    quoted = make("choice", "x", "P").model_copy(update={"quotes": (Quote(evidence_id="M", text="a"),)})
    assert cited_ids(quoted) == {"P", "M"}


def test_the_record_is_json_with_short_numbers() -> None:
    said = deliberation("estimate", (10, 20, 40), (13, 20, 10))
    told = item_diagnostics(ask("estimate"), said, truth=10.0).record()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["moves"][0] == {
        "seat": "a",
        "round": 1,
        "carried": False,
        "distance": 3,
        "toward": [{"seat": "b", "share": 0.3}, {"seat": "c", "share": 0.1}],
        "changed": None,
        "turned": "right_to_wrong",
    }
    assert told["rounds"][1] == {
        "round": 1,
        "answered": 3,
        "carried": 0,
        "spread": 5,
        "right": 1,
        "evidence": {"pairs": 0, "jaccard": None, "by_all": [], "by_one": []},
    }
