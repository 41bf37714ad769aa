"""Delphi: a debate without a word of critique."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from consilience.core.answers import Abstention
from consilience.core.outcomes import Abstained, Outcome
from consilience.core.turn import Turn
from consilience.errors import PlanError
from consilience.experiments.rows import status_of
from consilience.models.scripted import prompt_text
from consilience.protocols.delphi import Delphi
from engine_cases import carry_out, make_item, make_plan, panel, read
from protocol_cases import LOST, deliberate, moving, turns_of


def test_delphi_asks_estimates_then_a_revision_per_round_on_one_table() -> None:
    course, session = deliberate(Delphi(rounds=3), moving(0.5))
    stages = [(stage[0].turn.kind, stage[0].turn.round) for stage in session.asked]
    assert stages == [("estimate", 0), *(("revision", round_) for round_ in (1, 2, 3))]
    assert session.turns() == turns_of(Delphi(rounds=3).plan(session.seating))
    assert [[ask.shown.table for ask in stage] for stage in session.asked[1:]] == [
        [table] * 3 for table in course.tables[:3]
    ]
    shown = [ask.shown for stage in session.asked[1:] for ask in stage]
    assert [(one.others, dict(one.critiques), one.flags) for one in shown] == [("reasons", {}, False)] * 9
    assert (course.rounds_run, course.stopped) == (3, None)


def test_delphi_settles_and_never_after_its_last_round() -> None:
    course, session = deliberate(Delphi(rounds=4), moving(0.0))
    assert course.stopped is not None
    assert (course.stopped.reason, course.stopped.round, len(session.asked)) == ("settled", 1, 2)
    assert deliberate(Delphi(rounds=1), moving(0.0))[0].stopped is None


def test_a_lost_revision_keeps_the_answer_and_no_quorum_ends_it() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        return LOST if (seat, turn.round) == ("analyst_03", 2) else moving(0.5)(seat, turn)

    course, _ = deliberate(Delphi(rounds=2), say)
    assert [row.carried_at(2) for row in course.final] == [None, None, 1]

    def nobody(seat: str, turn: Turn) -> Outcome:
        return moving(0.5)(seat, turn) if seat == "analyst_01" else Abstained(said=Abstention(reason="No."))

    course, session = deliberate(Delphi(rounds=2), nobody)
    assert course.stopped is not None
    assert (course.stopped.reason, len(session.asked), status_of(course.final)) == ("no_quorum", 1, "no_quorum")


def test_members_see_the_others_reasons_and_no_critique(tmp_path: Path) -> None:
    item, model = make_item(), panel()
    plan = make_plan([item], protocol={"delphi": {"rounds": 2, "settled_change": 0.0}})
    report = carry_out(tmp_path / "run", plan, [item], model)
    assert (report.calls, set(plan.tasks)) == (15, {"estimate", "revision"})
    revisions = [read(request) for request in model.requests if read(request).committee is not None]
    assert len(revisions) == 10
    for prompt in revisions:
        assert (prompt.critiques, prompt.flags) == ((), ())
        assert [row["reasoning"] for row in (prompt.committee or {})["others"]] == ["So."] * 4
    assert not any("critique" in prompt_text(request) for request in model.requests)


@pytest.mark.parametrize("changes", [{"rounds": 0}, {"rounds": 21}, {"settled_change": 1.0}])
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match=r"delphi of \d+ rounds|settled_change"):
        Delphi(**changes)
