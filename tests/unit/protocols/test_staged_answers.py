"""A panel in stages: a debate only where the answers part, a supervisor who is shown all of it, rules that blend."""

from __future__ import annotations

import math
from typing import Any

import pytest

from consilience.core.outcomes import Outcome
from consilience.core.turn import Turn
from consilience.errors import PlanError
from consilience.experiments.rows import aggregate, expected_rules
from consilience.protocols.staged import Staged
from engine_cases import question
from protocol_cases import LOST, Say, answered, deliberate, turns_of

RAIN = question("probability")


def saying(*members: float, yes: float = 0.6, no: float = 0.3, supervisor: Outcome | None = None) -> Say:
    def say(seat: str, turn: Turn) -> Outcome:
        number = int(seat[-2:])
        if turn.kind == "supervision":
            return supervisor or answered("probability", p_yes=0.2, confidence=0.8)
        if turn.kind == "judgement":
            return answered("probability", p_yes=0.45)
        if turn.kind == "argument":
            return answered("probability", p_yes=yes if number == len(members) + 1 else no)
        return answered("probability", p_yes=members[number - 1])

    return say


def test_members_who_agree_are_not_debated() -> None:
    course, session = deliberate(Staged(), saying(0.40, 0.42), kind="probability", seats=2)
    assert [turn.kind for _, turn in session.turns()] == ["estimate", "estimate", "supervision"]
    assert course.notes["debate"] == "no_arguments"
    assert course.stages is not None
    assert course.stages.advocates is None


def test_the_spread_that_starts_a_debate_is_counted_in_log_odds() -> None:
    apart = 1 / (1 + math.exp(-0.3))
    _, at_the_bar = deliberate(Staged(supervise=False), saying(0.5, apart), kind="probability", seats=2)
    _, below = deliberate(Staged(supervise=False), saying(0.5, apart - 1e-6), kind="probability", seats=2)
    assert (len(at_the_bar.asked), len(below.asked)) == (1 + 6, 1)


def test_all_stages_are_asked_in_the_order_planned_and_stand_in_rows_of_their_own() -> None:
    protocol = Staged(judge=True)
    course, session = deliberate(protocol, saying(0.2, 0.7), kind="probability", seats=2)
    assert session.turns() == turns_of(protocol.plan(session.seating))
    assert course.notes["debate"] == "unresolved"
    rows = {row.rule: row.headline for row in aggregate(RAIN, course)}
    assert rows.keys() <= set(expected_rules("probability", course, protocol))
    assert (rows["mean"], rows["judge"], rows["supervisor"]) == (pytest.approx(0.45), 0.45, 0.2)
    assert rows["blend"] == 0.2  # a supervisor who is sure replaces the rest
    assert rows["strict"] == pytest.approx(1 / (1 + math.exp(-math.sqrt(3) * math.log(0.2 / 0.8))))


def test_the_supervisor_is_shown_answers_with_reasons_and_every_argument() -> None:
    _, session = deliberate(Staged(rounds=1), saying(0.2, 0.7), kind="probability", seats=2)
    shown = session.asked[-1][0].shown
    assert shown.table is not None
    assert [row.answer is not None for row in shown.table] == [True, True]
    assert (shown.others, [argument.side for argument in shown.arguments]) == (
        "reasons",
        ["advocate_yes", "advocate_no"],
    )


def test_a_lost_reply_loses_that_reply_and_never_the_panel() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        if turn.kind in {"supervision", "argument"} or seat == "analyst_03":
            return LOST
        return answered("probability", p_yes=0.2 if seat == "analyst_01" else 0.6)

    protocol = Staged()
    course, _ = deliberate(protocol, say, kind="probability", seats=3)
    assert course.stages is not None
    assert (course.stages.advocates, course.stages.supervisor) == (None, None)
    rows = {row.rule: row for row in aggregate(RAIN, course)}
    assert rows["blend"].headline == pytest.approx(rows["geometric_odds"].headline)
    assert rows["blend"].record()["flags"] == ("no_debate", "no_supervisor")
    assert "supervisor" not in rows


def test_one_member_has_no_spread_and_so_no_debate() -> None:
    course, session = deliberate(Staged(supervise=False), saying(0.2), kind="probability", seats=1)
    assert (len(session.asked), course.notes["spread"]) == (1, None)


def test_a_supervisor_who_does_not_say_how_sure_it_is_does_not_enter() -> None:
    unsure = answered("probability", p_yes=0.9)
    course, _ = deliberate(Staged(rounds=0), saying(0.4, 0.4, supervisor=unsure), kind="probability", seats=2)
    rows = {row.rule: row for row in aggregate(RAIN, course)}
    assert rows["blend"].headline == pytest.approx(0.4)
    assert "no_supervisor" in rows["blend"].record()["flags"]


@pytest.mark.parametrize("wrong", [{"rounds": 4}, {"rounds": -1}, {"consensus_gap": -0.1}, {"least_spread": -1.0}])
def test_parameters_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        Staged(**wrong)
