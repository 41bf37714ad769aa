"""The skeptic sees its view and the final numbers, nothing else; flagged members see their flags next time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.core.answers import Abstention
from consilience.core.outcomes import Abstained, Outcome
from consilience.core.turn import Turn
from consilience.errors import FinalModelError
from consilience.evidence.reading import ParsedPrompt
from consilience.experiments.orders import RunReport
from consilience.experiments.rows import status_of
from consilience.models.base import plain_body
from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted
from consilience.protocols.debate import Debate
from consilience.protocols.skeptic import BlindedSkeptic
from consilience.valuation.roster import roles_for
from engine_cases import answer_json, carry_out, make_item, make_plan, panel, read, reply, seat_number
from protocol_cases import LOST, deliberate, moving, seated, turns_of

PANEL = roles_for("default12")
SKEPTIC = "analyst_12"
PARTS = {"skeptic": "skeptic"}
H = {"skeptic": {"rounds": 2, "settled_change": 0.0, "flags": True}}
MARK = "canary"


def round_of(prompt: ParsedPrompt) -> int:
    return int(prompt.task.partition("(round ")[2].partition(")")[0])


def point_of(seat: int, round_: int) -> int:
    """Return a number that no other seat or round has."""
    return 512_000 + 1_000 * seat + 101 * round_


def speak(request: Request) -> Reply:
    """Answer with a canary in every free text of every answer and critique."""
    prompt, seat = read(request), seat_number(request)
    round_ = round_of(prompt)
    mark = f"{MARK}-{prompt.task.split()[0]}-{round_}-{seat:02d}"
    if prompt.task.startswith("critique"):
        return reply(
            critiques=[
                {
                    "target_role": row["seat"],
                    "agrees": False,
                    "points": [f"{mark} point"],
                    "evidence_ids": ["P"],
                    "suggested_value": 7_000_000 + seat,
                }
                for row in (prompt.committee or {})["others"]
            ]
        )
    words: dict[str, Any] = {"reasoning_summary": mark, "counterarguments": [mark], "missing_data": [mark]}
    if prompt.kind == "estimate":
        own: dict[str, Any] = {
            "point": point_of(seat, round_),
            "confidence_rationale": mark,
            "key_assumptions": [mark],
            "adjustments": [{"evidence_id": "C01", "adjusted_value": 500_000, "reason": mark}],
        }
    elif prompt.kind == "choice":
        own = {"choice": f"o{(seat + round_) % 3}", "confidence": 0.5, "rationale": mark}
    else:
        own = {"p_yes": round(0.02 * seat + 0.001 * round_, 4), "rationale": mark}
    return reply(answer=answer_json(prompt.kind, **{**own, **words}))


def held(folder: Path, say: Callable[[Request], Reply] = speak, kind: str = "estimate") -> tuple[RunReport, Scripted]:
    item = make_item(kind=kind)
    model = panel(say)
    plan = make_plan([item], protocol=H, roles=PANEL, parts=PARTS)
    return carry_out(folder, plan, [item], model), model


def verdict_request(model: Scripted) -> Request:
    (asked,) = [request for request in model.requests if read(request).seat == SKEPTIC]
    return asked


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "transcripts" / "item-01.json").read_bytes())
    return found


@pytest.mark.parametrize("kind", ["estimate", "probability", "choice"])
def test_no_byte_of_the_skeptics_prompt_comes_from_the_discussion(tmp_path: Path, kind: str) -> None:
    report, model = held(tmp_path / "run", kind=kind)
    assert report.calls == 11 * 5 + 1
    asked = verdict_request(model)
    body = json.dumps(plain_body(asked), ensure_ascii=False)
    assert MARK not in body
    assert "7000001" not in body.replace(",", "")
    seen_by_members = [json.dumps(plain_body(request)) for request in model.requests if request is not asked]
    for spoken in ("estimate-0", "critique-1", "revision-1", "critique-2"):
        for seat in range(1, 12):
            assert any(f"{MARK}-{spoken}-{seat:02d}" in text for text in seen_by_members)
    prompt = read(asked)
    assert prompt.task.startswith("skeptic_verdict (round 3)")
    assert (prompt.own_answer, prompt.critiques, prompt.flags, prompt.packet) == (None, (), (), None)


def test_the_skeptic_sees_the_numbers_of_the_final_table_and_of_no_other_round(tmp_path: Path) -> None:
    _, model = held(tmp_path / "run")
    committee = read(verdict_request(model)).committee or {}
    assert set(committee) == {"round", "median", "others"}
    assert {row["seat"]: row["point"] for row in committee["others"]} == {
        f"analyst_{seat:02d}": point_of(seat, 2) for seat in range(1, 12)
    }
    assert {frozenset(row) for row in committee["others"]} == {frozenset({"seat", "point", "q05", "q95"})}
    assert committee["median"] == point_of(6, 2)
    body = json.dumps(plain_body(verdict_request(model)))
    assert not [n for n in range(1, 12) for round_ in (0, 1) if str(point_of(n, round_)) in body]


def test_the_verdict_stands_beside_the_members_answers(tmp_path: Path) -> None:
    report, _ = held(tmp_path / "run")
    transcript = told(tmp_path / "run")
    last = transcript["turns"][-1]
    assert (last["kind"], last["round"], last["seat"], last["role"]) == ("skeptic_verdict", 3, SKEPTIC, "skeptic")
    assert [row["seat"] for row in transcript["final"]] == [f"analyst_{seat:02d}" for seat in range(1, 13)]
    assert transcript["final"][-1]["answer"]["point"] == point_of(12, 3)
    assert transcript["rounds_run"] == 2
    assert set(report.predictions["n_seats"]) == set(report.predictions["n_answered"]) == {12}


def test_the_verdict_comes_in_the_round_after_the_last_one_run() -> None:
    course, session = deliberate(BlindedSkeptic(rounds=4), moving(0.0))
    assert (course.stopped is not None, course.rounds_run) == (True, 1)
    (verdict,) = session.asked[-1]
    assert (verdict.seat, verdict.turn.kind, verdict.turn.round) == ("analyst_04", "skeptic_verdict", 2)
    assert (verdict.shown.others, verdict.shown.table) == ("numbers", course.tables[-1])
    assert course.verdicts[0].answered_round == 2
    assert [row.seat for row in course.final] == ["analyst_01", "analyst_02", "analyst_03", "analyst_04"]


def test_the_skeptic_is_planned_after_the_members_debate() -> None:
    seating = seated(3, "skeptic")
    planned = BlindedSkeptic(rounds=2).plan(seating)
    debate = Debate(rounds=2).plan(seating)
    assert planned[:-1] == debate
    assert turns_of(planned[-1:]) == [("analyst_04", Turn(kind="skeptic_verdict", round=3))]
    assert (planned[-1].rows, len(planned)) == (3, 3 * 5 + 1)
    assert len(BlindedSkeptic().plan(seated(11, "skeptic"))) == 56


def test_a_skeptic_that_fails_leaves_the_members_answer(tmp_path: Path) -> None:
    def say(request: Request) -> Reply:
        if read(request).task.startswith("skeptic_verdict"):
            return FinalModelError("gone", hint="Stop.", status=404)
        return speak(request)

    report, _ = held(tmp_path / "run", say)
    frame = report.predictions
    assert (set(frame["status"]), set(frame["n_answered"]), set(frame["n_seats"])) == ({"answered"}, {11}, {12})
    assert frame.filter(pl.col("aggregation") == "median")["point"][0] == pytest.approx(point_of(6, 2))
    assert told(tmp_path / "run")["without_answer"] == {SKEPTIC: "failed"}


def test_without_a_quorum_the_skeptic_is_not_asked() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        return moving(0.5)(seat, turn) if seat == "analyst_01" else Abstained(said=Abstention(reason="No."))

    course, session = deliberate(BlindedSkeptic(), say)
    assert (course.verdicts, len(session.asked), status_of(course.final)) == ((), 1, "no_quorum")


def test_the_skeptic_alone_makes_no_quorum() -> None:
    def say(seat: str, turn: Turn) -> Outcome:
        return moving(0.5)(seat, turn) if turn.kind == "skeptic_verdict" else LOST

    course, _ = deliberate(BlindedSkeptic(), say)
    assert status_of(course.final) == "no_quorum"


def test_a_member_cannot_address_the_skeptic(tmp_path: Path) -> None:
    def say(request: Request) -> Reply:
        told = str(speak(request))
        return told.replace('"analyst_01"', f'"{SKEPTIC}"') if read(request).task.startswith("critique") else told

    report, _ = held(tmp_path / "run", say)
    assert report.manifest["turns"]["unreadable"] == 2 * 10  # all but analyst_01 address it


FLAGGED = 2


def cite(request: Request) -> Reply:
    """Let one seat cite, in its first answer alone, an id that does not exist."""
    prompt = read(request)
    if prompt.task.startswith("critique"):
        return reply(critiques=[])
    unknown = prompt.task.startswith("estimate") and seat_number(request) == FLAGGED
    point = point_of(seat_number(request), round_of(prompt))
    return reply(answer=answer_json(point=point, evidence_ids=["ZZ9"] if unknown else ["P"]))


@pytest.mark.parametrize(
    ("protocol", "parts"),
    [({"debate": {"rounds": 2, "settled_change": 0.0, "flags": True}}, {}), (H, PARTS)],
    ids=["G_flags", "H_skeptic"],
)
def test_a_flagged_member_sees_its_flags_and_nobody_else_does(tmp_path: Path, protocol: Any, parts: Any) -> None:
    item, model = make_item(), panel(cite)
    carry_out(tmp_path / "run", make_plan([item], protocol=protocol, roles=PANEL, parts=parts), [item], model)
    seen = {}
    for request in model.requests:
        prompt = read(request)
        if prompt.flags:
            seen[prompt.seat, prompt.task.split()[0], round_of(prompt)] = prompt.flags
    flag = {"code": "unknown_evidence_id", "evidence_id": "ZZ9", "detail": "the packet has no such evidence"}
    assert {place: [{name: row[name] for name in flag} for row in flags] for place, flags in seen.items()} == {
        ("analyst_02", "critique", 1): [flag],
        ("analyst_02", "revision", 1): [flag],  # its revision cites nothing unknown, so that round 2 shows none
    }


def test_a_debate_shows_no_flags(tmp_path: Path) -> None:
    item, model = make_item(), panel(cite)
    protocol = {"debate": {"rounds": 2, "settled_change": 0.0}}
    carry_out(tmp_path / "run", make_plan([item], protocol=protocol, roles=PANEL), [item], model)
    assert [read(request).flags for request in model.requests] == [()] * 60
    assert '"unknown_evidence_id"' in (tmp_path / "run" / "transcripts" / "item-01.json").read_text()


def test_flags_stay_with_an_answer_that_is_carried_over(tmp_path: Path) -> None:
    def say(request: Request) -> Reply:
        if seat_number(request) == FLAGGED and read(request).task.startswith("revision (round 1)"):
            return FinalModelError("gone", hint="Stop.", status=404)
        return cite(request)

    item, model = make_item(), panel(say)
    carry_out(tmp_path / "run", make_plan([item], protocol=H, roles=PANEL, parts=PARTS), [item], model)
    flagged = {(read(request).seat, read(request).task[:18]) for request in model.requests if read(request).flags}
    assert flagged == {("analyst_02", f"{kind} (round {r})") for kind in ("critique", "revision") for r in (1, 2)}
