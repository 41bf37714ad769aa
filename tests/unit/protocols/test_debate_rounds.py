from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consilience.core.answers import Abstention
from consilience.core.outcomes import Abstained, Outcome
from consilience.core.turn import Turn
from consilience.errors import FinalModelError, PlanError
from consilience.experiments.arms import arm_label, treatment
from consilience.experiments.rows import status_of
from consilience.journal.events import ItemFinished, ProtocolNote
from consilience.models.request import Request
from consilience.models.scripted import Reply, prompt_text
from consilience.protocols import PROTOCOLS, Debate, Independent
from consilience.protocols.base import ALL_KINDS
from engine_cases import (
    INDEPENDENT,
    ROLES,
    answer_json,
    carry_out,
    events_of,
    make_item,
    make_items,
    make_plan,
    panel,
    read,
    reply,
    seat_number,
    speak,
)
from protocol_cases import LOST, answered, critic, deliberate, moving, turns_of


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_a_debate_asks_estimates_then_critiques_and_revisions_in_every_round(rounds: int) -> None:
    debate = Debate(rounds=rounds)
    deliberation, session = deliberate(debate, moving(0.5))
    assert session.turns() == turns_of(debate.plan(session.seating))
    assert [(stage[0].turn.kind, stage[0].turn.round, len(stage)) for stage in session.asked] == [
        ("estimate", 0, 3),
        *((kind, round_, 3) for round_ in range(1, rounds + 1) for kind in ("critique", "revision")),
    ]
    assert (deliberation.rounds_run, deliberation.stopped) == (rounds, None)
    assert len(deliberation.tables) == rounds + 1


def test_all_members_of_a_round_are_asked_on_the_same_table() -> None:
    deliberation, session = deliberate(Debate(rounds=2), moving(0.5))
    first, second, _ = deliberation.tables
    shown = [[ask.shown.table for ask in stage] for stage in session.asked]
    assert shown == [[table] * 3 for table in (None, first, first, second, second)]


def test_a_settled_debate_stops_early_and_says_where() -> None:
    deliberation, session = deliberate(Debate(rounds=4), moving(0.0))
    assert deliberation.stopped is not None
    assert (deliberation.stopped.reason, deliberation.stopped.round) == ("settled", 1)
    assert deliberation.stopped.spread_before == pytest.approx(deliberation.stopped.spread_after)
    assert (deliberation.rounds_run, len(session.asked)) == (1, 3)


@pytest.mark.parametrize(("change", "stops"), [(0.009, True), (0.011, False)])
def test_less_than_one_per_cent_of_the_spread_is_settled(change: float, stops: bool) -> None:
    deliberation, _ = deliberate(Debate(rounds=4), moving(change))
    assert (deliberation.stopped is not None) is stops
    assert deliberation.rounds_run == (1 if stops else 4)


def test_a_growing_spread_is_a_change_too() -> None:
    deliberation, _ = deliberate(Debate(rounds=2), moving(-0.02))
    assert deliberation.stopped is None


@pytest.mark.parametrize("rounds", [1, 2])
def test_nothing_is_stopped_after_the_last_round(rounds: int) -> None:
    settled_last = moving(0.0) if rounds == 1 else None

    def say(seat: str, turn: Turn) -> Outcome:
        if settled_last is not None:
            return settled_last(seat, turn)
        return moving(0.5)(seat, turn if turn.round < 2 else Turn(kind=turn.kind, round=1))

    deliberation, _ = deliberate(Debate(rounds=rounds), say)
    assert (deliberation.stopped, deliberation.rounds_run) == (None, rounds)


def test_perfect_agreement_is_settled() -> None:
    deliberation, _ = deliberate(Debate(rounds=4), lambda _, turn: critic() if turn.kind == "critique" else answered())
    assert deliberation.stopped is not None
    assert (deliberation.stopped.spread_before, deliberation.stopped.spread_after) == (0.0, 0.0)


def test_a_debate_never_settles_when_told_so() -> None:
    deliberation, _ = deliberate(Debate(rounds=4, settled_change=0.0), moving(0.0))
    assert deliberation.rounds_run == 4


def test_a_failed_revision_keeps_the_latest_answer_and_its_round() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        if seat == "analyst_02" and turn.round == 2:
            return LOST
        return moving(0.5)(seat, turn)

    deliberation, _ = deliberate(Debate(rounds=2), say)
    assert [row.carried_at(2) for row in deliberation.final] == [None, 1, None]
    assert deliberation.final[1].answer == deliberation.tables[1][1].answer
    assert deliberation.final[1].outcome == LOST


def test_a_failed_critique_costs_nobody_an_answer_and_addresses_nobody() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        if turn.kind != "critique":
            return moving(0.5)(seat, turn)
        return LOST if seat == "analyst_01" else critic("analyst_01")

    deliberation, session = deliberate(Debate(rounds=1), say)
    assert [set(ask.shown.critiques) for ask in session.asked[-1]] == [{"analyst_02", "analyst_03"}] * 3
    assert all(row.answer is not None for row in deliberation.final)


def test_without_a_quorum_nobody_debates() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        return moving(0.5)(seat, turn) if seat == "analyst_01" else Abstained(said=Abstention(reason="No."))

    deliberation, session = deliberate(Debate(rounds=4), say)
    assert deliberation.stopped is not None
    assert (deliberation.stopped.reason, deliberation.stopped.round) == ("no_quorum", 0)
    assert len(session.asked) == 1
    assert status_of(deliberation.final) == "no_quorum"


def test_a_quorum_of_those_who_came_later_counts() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        return LOST if seat == "analyst_03" and turn.round == 0 else moving(0.5)(seat, turn)

    deliberation, _ = deliberate(Debate(rounds=1), say)
    assert deliberation.final[2].answered_round == 1


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in PROTOCOLS.names() for kind in PROTOCOLS[name].kinds]
)
def test_every_protocol_carries_every_kind_it_declares(name: str, kind: Any) -> None:
    protocol = PROTOCOLS[name]()
    seats = protocol.most_members if protocol.most_members is not None else 3

    def say(seat: str, turn: Turn) -> Outcome:
        others = [f"analyst_{number:02d}" for number in range(1, 4) if seat != f"analyst_{number:02d}"]
        addressed = [seat] if turn.kind == "self_critique" else others[:1]
        return critic(*addressed) if turn.yields == "critiques" else answered(kind)

    deliberation, session = deliberate(protocol, say, kind=kind, seats=seats)
    assert deliberation.final
    assert all(row.answer is not None for row in (*deliberation.final, *deliberation.variants.values()))
    asked, planned = session.turns(), turns_of(protocol.plan(session.seating))
    assert Counter((seat, turn.kind) for seat, turn in asked) <= Counter((seat, turn.kind) for seat, turn in planned)
    stops_early = any(
        hasattr(protocol, name) for name in ("settled_change", "consensus_gap", "full_share")
    )  # all say the same
    assert (asked == planned) is not stops_early


def test_most_protocols_serve_all_kinds() -> None:
    narrower = {name: PROTOCOLS[name].kinds for name in PROTOCOLS.names() if PROTOCOLS[name].kinds != ALL_KINDS}
    yes_no = ("probability",)
    assert narrower == {
        "adversarial": yes_no,
        "staged": yes_no,
        "displaced": ("estimate", "probability"),
        "escalation": ("choice",),
    }


def test_a_moving_vote_is_not_settled() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        if turn.kind == "critique":
            return critic()
        return answered("choice", choice="o1" if turn.round or seat == "analyst_01" else "o0")

    deliberation, _ = deliberate(Debate(rounds=2), say, kind="choice")
    assert deliberation.stopped is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rounds": 0}, "0 rounds"),
        ({"settled_change": 1.0}, "settled_change is 1.0"),
        ({"settled_change": -0.1}, "settled_change"),
    ],
)
def test_parameters_out_of_range_are_refused_when_the_plan_is_made(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        Debate(**changes)


def test_independent_is_one_turn_each() -> None:
    deliberation, session = deliberate(Independent(), lambda _seat, _turn: answered())
    assert (deliberation.rounds_run, deliberation.stopped, len(session.asked)) == (0, None, 1)
    turn = Turn(kind="estimate", round=0)
    assert session.turns() == [(seat, turn) for seat in ("analyst_01", "analyst_02", "analyst_03")]
    assert turns_of(Independent().plan(session.seating)) == session.turns()


@pytest.mark.parametrize(
    ("arm", "label"), [("E_single", "E_single"), ("F_independent", "F_independent"), ("G_debate", "G_debate_r2")]
)
def test_the_arms_are_declared(arm: str, label: str) -> None:
    declared = treatment(arm)
    assert (arm_label(arm, declared.make_protocol()), declared.full_view) == (label, False)
    assert treatment("G_fullview").full_view
    assert {role.view for role in treatment("G_fullview").views(ROLES)} == {("all",)}
    assert declared.views(ROLES) == ROLES


def spoken(*, silent: int, kind: str = "estimate") -> Callable[[Request], Reply]:
    """Members up to a number fail whenever they are asked for this."""

    def say(request: Request) -> Reply:
        if seat_number(request) <= silent and read(request).task.startswith(kind):
            return FinalModelError("gone", hint="Stop.", status=404)
        return speak(request)

    return say


@pytest.mark.parametrize("protocol", [INDEPENDENT, {"debate": {"rounds": 2, "settled_change": 0.0}}])
def test_below_the_quorum_an_item_has_no_answer_and_says_why(tmp_path: Path, protocol: dict[str, Any]) -> None:
    items = make_items(2)
    report = carry_out(tmp_path / "run", make_plan(items, protocol=protocol), items, panel(spoken(silent=3)))
    frame = report.predictions
    assert (set(frame["status"]), set(frame["n_answered"]), set(frame["n_seats"])) == ({"no_quorum"}, {2}, {5})
    assert frame["point"].null_count() == frame.height > 0
    assert report.manifest["items"] == {"no_quorum": 2, "not_run": 0}
    assert report.calls == 2 * 5
    assert [record.event.data["status"] for record in events_of(tmp_path / "run", ItemFinished)] == ["no_quorum"] * 2  # type: ignore[union-attr]
    notes = [record.event.data["reason"] for record in events_of(tmp_path / "run", ProtocolNote)]  # type: ignore[union-attr]
    assert notes == (["no_quorum"] * 2 if "debate" in protocol else [])


def test_with_a_quorum_the_failed_are_left_out_and_counted(tmp_path: Path) -> None:
    items = make_items(1)
    report = carry_out(tmp_path / "run", make_plan(items, protocol=INDEPENDENT), items, panel(spoken(silent=2)))
    assert (set(report.predictions["status"]), set(report.predictions["n_answered"])) == ({"answered"}, {3})
    median = report.predictions.filter(report.predictions["aggregation"] == "median")
    assert median["point"][0] == pytest.approx(300_000 * 1.2)
    assert report.manifest["turns"] == {"answered": 3, "abstained": 0, "unreadable": 0, "failed": 2}


def test_an_answer_carried_over_is_marked_in_the_transcript(tmp_path: Path) -> None:
    item = make_item()
    report = carry_out(tmp_path / "run", make_plan([item]), [item], panel(spoken(silent=1, kind="revision")))
    text = (tmp_path / "run" / "transcripts" / "item-01.json").read_text()
    assert '"carried_from_round":0' in text
    assert text.count('"carried_from_round":null') == 4
    assert set(report.predictions["n_answered"]) == {5}


def test_an_early_stop_is_recorded_with_its_round(tmp_path: Path) -> None:
    def agree(request: Request) -> str:
        return reply(critiques=[]) if read(request).task.startswith("critique") else reply(answer=answer_json())

    items = make_items(1)
    plan = make_plan(items, protocol={"debate": {"rounds": 4, "settled_change": 0.01}})
    report = carry_out(tmp_path / "run", plan, items, panel(agree))
    (note,) = events_of(tmp_path / "run", ProtocolNote)
    assert isinstance(note.event, ProtocolNote)
    assert (note.event.note, note.event.data) == (
        "stopped_early",
        {"reason": "settled", "round": 1, "spread_before": 0.0, "spread_after": 0.0},
    )
    assert report.calls == 15
    assert '"rounds_run":1' in (tmp_path / "run" / "transcripts" / "item-01.json").read_text()


def test_rounds_are_told_to_members(tmp_path: Path) -> None:
    items = make_items(1)
    model = panel()
    carry_out(
        tmp_path / "run", make_plan(items, protocol={"debate": {"rounds": 2, "settled_change": 0.0}}), items, model
    )
    for round_ in (1, 2):
        assert sum(f"TASK: revision (round {round_})" in prompt_text(request) for request in model.requests) == 5
