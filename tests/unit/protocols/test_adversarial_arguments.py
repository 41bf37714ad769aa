"""Two advocates in alternation, then a judge: who hears what, what a lost reply loses, and how far apart they stand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.core.answers import Probability
from consilience.core.outcomes import Answered, Outcome
from consilience.core.role import Role
from consilience.core.showing import Argument
from consilience.core.turn import Turn
from consilience.errors import FinalModelError, PlanError
from consilience.experiments.orders import RunReport
from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted
from consilience.protocols.adversarial import Adversarial
from engine_cases import answer_json, carry_out, make_item, make_plan, panel, read, reply
from protocol_cases import LOST, FakeSession, answered, deliberate, seated, turns_of

YES, NO, JUDGE = "analyst_01", "analyst_02", "analyst_03"
SIDES = {YES: "advocate_yes", NO: "advocate_no"}
ROLES = (
    Role(id="advocate_yes", view=("P", "C"), text="Argue yes."),
    Role(id="advocate_no", view=("P", "M"), text="Argue no."),
    Role(id="judge", view=("all",), text="Judge."),
)
PARTS = {role.id: role.id for role in ROLES}


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def p_of(seat: str, round_: int) -> float:
    """Return what a seat believes: the advocates come nearer with every round and never meet."""
    return {YES: 0.9 - 0.05 * round_, NO: 0.1 + 0.05 * round_, JUDGE: 0.42}[seat]


def say(seat: str, turn: Turn) -> Outcome:
    return answered("probability", p_yes=p_of(seat, turn.round), rationale=f"{seat} {turn.round}")


def argument(seat: str, round_: int) -> Argument:
    outcome = say(seat, Turn(kind="argument", round=round_))
    assert isinstance(outcome, Answered)
    assert isinstance(outcome.said, Probability)
    return Argument(SIDES[seat], outcome.said)


def heard(session: FakeSession) -> list[tuple[Argument, ...]]:
    return [ask.shown.arguments for stage in session.asked for ask in stage]


def test_advocates_alternate_and_hear_the_others_last_argument_alone() -> None:
    course, session = deliberate(Adversarial(rounds=3), say, kind="probability", seats=0)
    assert [(seat, turn.kind, turn.round) for seat, turn in session.turns()] == [
        *((seat, "argument", round_) for round_ in (1, 2, 3) for seat in (YES, NO)),
        (JUDGE, "judgement", 4),
    ]
    assert session.turns() == turns_of(Adversarial(rounds=3).plan(session.seating))
    assert [len(stage) for stage in session.asked] == [1] * 7
    expected: list[tuple[Argument, ...]] = [()]
    for round_ in (1, 2, 3):
        expected += [(argument(YES, round_),), (argument(NO, round_),)]
    assert heard(session)[:-1] == expected[:-1]
    assert heard(session)[-1] == tuple(argument(seat, round_) for round_ in (1, 2, 3) for seat in (YES, NO))
    assert all(ask.shown.table is None for stage in session.asked for ask in stage)
    assert [row.seat for row in course.final] == [JUDGE]


def test_the_gaps_are_those_of_the_first_and_the_last_round() -> None:
    course, _ = deliberate(Adversarial(rounds=3), say, kind="probability", seats=0)
    assert course.notes["opening_gap"] == pytest.approx(logit(0.85) - logit(0.15))
    assert course.notes["closing_gap"] == pytest.approx(logit(0.75) - logit(0.25))
    assert (course.notes["rounds_argued"], course.notes["debate"]) == (3, "unresolved")


def test_advocates_that_come_apart_have_diverged() -> None:
    def apart(seat: str, turn: Turn) -> Outcome:
        step = 0.1 * turn.round
        return answered("probability", p_yes={YES: 0.6 + step, NO: 0.4 - step, JUDGE: 0.5}[seat])

    course, _ = deliberate(Adversarial(rounds=2), apart, kind="probability", seats=0)
    assert course.notes["debate"] == "diverged"
    assert course.notes["closing_gap"] == pytest.approx(logit(0.8) - logit(0.2))


@pytest.mark.parametrize(("gap", "rounds"), [(0.19, 1), (0.21, 3)])
def test_an_early_consensus_ends_the_arguing_and_the_judge_is_still_asked(gap: float, rounds: int) -> None:
    odds = {YES: gap / 2, NO: -gap / 2, JUDGE: 0.0}

    def close(seat: str, _: Turn) -> Outcome:
        return answered("probability", p_yes=1 / (1 + math.exp(-odds[seat])))

    course, session = deliberate(Adversarial(rounds=3), close, kind="probability", seats=0)
    assert course.notes["rounds_argued"] == rounds
    assert session.turns()[-1] == (JUDGE, Turn(kind="judgement", round=rounds + 1))
    assert course.verdicts[0].answered_round == rounds + 1
    assert course.notes["debate"] == ("reconciled" if rounds == 1 else "unresolved")


def test_certain_advocates_have_a_finite_gap() -> None:
    def sure(seat: str, _: Turn) -> Outcome:
        return answered("probability", p_yes={YES: 1.0, NO: 0.0, JUDGE: 0.5}[seat])

    course, _ = deliberate(Adversarial(rounds=1), sure, kind="probability", seats=0)
    assert course.notes["opening_gap"] == pytest.approx(2 * logit(0.995))


def test_a_lost_reply_loses_that_argument_alone() -> None:
    def lost(seat: str, turn: Turn) -> Outcome:
        return LOST if (seat, turn.round) == (YES, 2) else say(seat, turn)

    course, session = deliberate(Adversarial(rounds=3), lost, kind="probability", seats=0)
    assert len(session.turns()) == 7
    assert heard(session)[3] == (argument(YES, 1),)  # the other's last one that there is
    assert heard(session)[4] == (argument(NO, 2),)
    judged = [(YES, 1), (NO, 1), (NO, 2), (YES, 3), (NO, 3)]
    assert heard(session)[-1] == tuple(argument(*said) for said in judged)
    assert course.notes["closing_gap"] == pytest.approx(logit(0.75) - logit(0.25))


def test_without_a_single_argument_the_judge_answers_from_the_evidence() -> None:
    course, session = deliberate(
        Adversarial(rounds=2),
        lambda seat, turn: say(seat, turn) if seat == JUDGE else LOST,
        kind="probability",
        seats=0,
    )
    assert heard(session) == [()] * 5
    assert (course.notes["debate"], course.notes["opening_gap"]) == ("no_arguments", None)
    assert course.final[0].answer is not None


def test_one_silent_advocate_leaves_no_gap() -> None:
    course, session = deliberate(
        Adversarial(rounds=2), lambda seat, turn: LOST if seat == NO else say(seat, turn), kind="probability", seats=0
    )
    assert (course.notes["opening_gap"], course.notes["closing_gap"]) == (None, None)
    assert heard(session)[-1] == (argument(YES, 1), argument(YES, 2))


@pytest.mark.parametrize("changes", [{"rounds": 0}, {"rounds": 4}, {"consensus_gap": -0.1}])
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match=r"rounds of arguments|consensus_gap"):
        Adversarial(**changes)


def test_what_is_planned_grows_with_what_is_heard() -> None:
    planned = Adversarial(rounds=2).plan(seated(0, *PARTS))
    assert [one.rows for one in planned] == [0, 1, 1, 1, 4]


def speak(request: Request) -> Reply:
    prompt = read(request)
    assert prompt.seat is not None
    round_ = int(prompt.task.partition("(round ")[2].partition(")")[0])
    mark = f"mark-{prompt.seat}-{round_}"
    return reply(answer=answer_json("probability", p_yes=p_of(prompt.seat, round_), rationale=mark, evidence_ids=["P"]))


def argued(folder: Path, how: Any = speak) -> tuple[RunReport, Scripted]:
    item, model = make_item(kind="probability"), panel(how)
    plan = make_plan([item], protocol={"adversarial": {"rounds": 3}}, roles=ROLES, parts=PARTS)
    return carry_out(folder, plan, [item], model), model


def test_the_judges_answer_alone_is_the_answer(tmp_path: Path) -> None:
    report, model = argued(tmp_path / "run")
    frame = report.predictions.filter(pl.col("status") == "answered")
    assert report.calls == 7
    assert dict(frame.select("aggregation", "p").iter_rows())["median"] == 0.42
    assert dict(frame.select("aggregation", "p").iter_rows())["mean"] == pytest.approx(0.42)
    assert (set(frame["n_answered"]), set(frame["n_seats"])) == ({1}, {1})
    told = json.loads((tmp_path / "run" / "transcripts" / "item-01.json").read_bytes())
    assert [row["seat"] for row in told["final"]] == [JUDGE]
    assert told["course"]["rounds_argued"] == 3
    assert told["course"]["closing_gap"] == pytest.approx(logit(0.75) - logit(0.25))
    judge = read(model.requests[-1])
    assert [row["side"] for row in judge.arguments] == ["advocate_yes", "advocate_no"] * 3
    assert [row["rationale"] for row in judge.arguments] == [
        f"mark-{seat}-{round_}" for round_ in (1, 2, 3) for seat in (YES, NO)
    ]
    assert [row["p_yes"] for row in judge.arguments][-2:] == pytest.approx([0.75, 0.25])
    assert (judge.committee, judge.own_answer) == (None, None)


def test_an_advocate_is_shown_one_argument_of_the_other_side(tmp_path: Path) -> None:
    _, model = argued(tmp_path / "run")
    shown = [[(row["side"], row["rationale"]) for row in read(request).arguments] for request in model.requests[:-1]]
    assert shown[0] == []
    assert shown[1:] == [
        [("advocate_yes", f"mark-{YES}-1")],
        [("advocate_no", f"mark-{NO}-1")],
        [("advocate_yes", f"mark-{YES}-2")],
        [("advocate_no", f"mark-{NO}-2")],
        [("advocate_yes", f"mark-{YES}-3")],
    ]


def test_a_judge_that_fails_leaves_no_answer_and_says_so(tmp_path: Path) -> None:
    def how(request: Request) -> Reply:
        if read(request).task.startswith("judgement"):
            return FinalModelError("gone", hint="Stop.", status=404)
        return speak(request)

    report, _ = argued(tmp_path / "run", how)
    assert set(report.predictions["status"]) == {"failed"}
    assert report.predictions["p"].null_count() == report.predictions.height > 0
